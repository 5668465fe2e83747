//! The environment every rank gets, so that existing scripts run unchanged.

use crate::RunId;
use crate::resolve::Shape;

/// The place of one rank in the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub node: u32,
    pub local_rank: u32,
}

impl Place {
    pub const fn rank(self, shape: &Shape) -> u32 {
        self.node * shape.ranks_per_node + self.local_rank
    }
}

/// The values that all ranks of an attempt share.
#[derive(Debug, Clone)]
pub struct Gang<'a> {
    pub run: &'a RunId,
    pub attempt: u32,
    pub shape: &'a Shape,
    pub master_addr: &'a str,
    pub master_port: u16,
    /// Host names or addresses by node.
    pub hosts: &'a [String],
}

/// The variables of one node, before ranks exist. Set-up gets these.
pub fn node_variables(gang: &Gang<'_>, node: u32) -> Vec<(&'static str, String)> {
    vec![
        ("NODE_RANK", node.to_string()),
        ("GROUP_RANK", node.to_string()),
        ("MASTER_ADDR", gang.master_addr.to_owned()),
        ("MASTER_PORT", gang.master_port.to_string()),
        ("WORLD_SIZE", gang.shape.world().to_string()),
        ("LOCAL_WORLD_SIZE", gang.shape.ranks_on(node).to_string()),
        ("AZ_BATCH_HOST_LIST", gang.hosts.join(",")),
        ("AZ_BATCHAI_JOB_MASTER_NODE_IP", gang.master_addr.to_owned()),
        ("TOW_RUN_ID", gang.run.to_string()),
        ("TOW_ATTEMPT", gang.attempt.to_string()),
        ("TOW_NODES", gang.shape.nodes.to_string()),
    ]
}

/// The variables of one rank.
pub fn rank_variables(gang: &Gang<'_>, place: Place) -> Vec<(&'static str, String)> {
    let rank = place.rank(gang.shape).to_string();
    let world = gang.shape.world().to_string();
    let local = place.local_rank.to_string();
    let local_world = gang.shape.ranks_on(place.node).to_string();
    let mut variables = node_variables(gang, place.node);
    variables.extend([
        ("RANK", rank.clone()),
        ("LOCAL_RANK", local.clone()),
        ("OMPI_COMM_WORLD_RANK", rank),
        ("OMPI_COMM_WORLD_SIZE", world),
        ("OMPI_COMM_WORLD_LOCAL_RANK", local),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", local_world),
    ]);
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_through_the_nodes() {
        let shape = Shape {
            nodes: 3,
            ranks_per_node: 2,
            once: false,
            gpus_per_node: 0,
            cpus_per_node: None,
            memory: None,
        };
        let run = RunId::new("x", 1, 2);
        let hosts = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let gang = Gang {
            run: &run,
            attempt: 1,
            shape: &shape,
            master_addr: "a",
            master_port: 29_500,
            hosts: &hosts,
        };
        let variables = rank_variables(
            &gang,
            Place {
                node: 2,
                local_rank: 1,
            },
        );
        let value = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(value("RANK"), Some("5"));
        assert_eq!(value("WORLD_SIZE"), Some("6"));
        assert_eq!(value("NODE_RANK"), Some("2"));
        assert_eq!(value("OMPI_COMM_WORLD_LOCAL_RANK"), Some("1"));
        assert_eq!(value("AZ_BATCH_HOST_LIST"), Some("a,b,c"));
        assert_eq!(value("MASTER_PORT"), Some("29500"));
    }

    #[test]
    fn a_rank_has_a_number_of_its_own() {
        let shape = Shape {
            nodes: 2,
            ranks_per_node: 3,
            once: false,
            gpus_per_node: 0,
            cpus_per_node: None,
            memory: None,
        };
        let places =
            (0..2).flat_map(|node| (0..3).map(move |local_rank| Place { node, local_rank }));
        let ranks: Vec<u32> = places.map(|place| place.rank(&shape)).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
    }
}
