//! The number of this node and its leader, from the service's variables.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// This node's place in the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Station {
    pub(super) node: u32,
    /// The address of node 0.
    pub(super) leader: String,
    pub(super) port: u16,
}

impl Station {
    pub(super) fn of(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| {
            variable(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let first = |list: String| {
            list.split(',')
                .next()
                .map(|host| host.trim().to_owned())
                .filter(|host| !host.is_empty())
        };
        let node = ["NODE_RANK", "RANK", "AZ_BATCHAI_TASK_INDEX"]
            .iter()
            .find_map(|name| set(name)?.parse().ok());
        let leader = set("MASTER_ADDR")
            .or_else(|| set("AZ_BATCH_HOST_LIST").and_then(first))
            .or_else(|| set("AZ_BATCHAI_JOB_MASTER_NODE_IP"));
        Self {
            node: node.unwrap_or(0),
            leader: leader.unwrap_or_else(|| "127.0.0.1".to_owned()),
            port: set("MASTER_PORT")
                .and_then(|port| port.parse().ok())
                .unwrap_or(29_500),
        }
    }

    /// The leader's addresses. `/etc/hosts` is read first, because a static program should use the
    /// resolver of the image only if it must.
    pub(super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = self.leader.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, self.port)]);
        }
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        match listed(&hosts, &self.leader) {
            Some(ip) => Ok(vec![SocketAddr::new(ip, self.port)]),
            None => Ok((self.leader.as_str(), self.port)
                .to_socket_addrs()?
                .collect()),
        }
    }
}

/// The address of a name in a list such as `/etc/hosts`.
fn listed(hosts: &str, name: &str) -> Option<IpAddr> {
    let lines = hosts
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    lines.map(str::split_whitespace).find_map(|mut words| {
        let address = words.next()?.parse().ok()?;
        words.any(|word| word == name).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(variables: &[(&str, &str)]) -> (u32, String, u16) {
        let Station { node, leader, port } = Station::of(&|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        });
        (node, leader, port)
    }

    #[test]
    fn a_name_is_found_in_the_list_of_hosts() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.1 node-0\n10.0.0.4\tnode-0.lan node-0 # first\n";
        assert_eq!(listed(hosts, "node-0"), "10.0.0.4".parse().ok());
        assert_eq!(listed(hosts, "node-1"), None);
    }

    #[test]
    fn the_first_variable_that_says_something_counts() {
        assert_eq!(station(&[]), (0, "127.0.0.1".into(), 29_500));
        assert_eq!(
            station(&[
                ("NODE_RANK", "2"),
                ("RANK", "5"),
                ("MASTER_ADDR", "10.0.0.4"),
                ("MASTER_PORT", "6105")
            ]),
            (2, "10.0.0.4".into(), 6105)
        );
        assert_eq!(
            station(&[("RANK", "1"), ("AZ_BATCH_HOST_LIST", "10.0.0.7, 10.0.0.8")]),
            (1, "10.0.0.7".into(), 29_500)
        );
        assert_eq!(
            station(&[
                ("NODE_RANK", ""),
                ("AZ_BATCHAI_TASK_INDEX", "3"),
                ("AZ_BATCHAI_JOB_MASTER_NODE_IP", "10.0.0.9")
            ])
            .0,
            3
        );
    }
}
