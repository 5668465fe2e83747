//! The processes of a job, and the variables of each.

use serde_json::{Value, json};
use std::net::TcpListener;

#[derive(Debug)]
pub(super) struct Process {
    pub node: usize,
    pub rank: usize,
    /// Its path among the run's artifacts.
    pub log: String,
    pub variables: Vec<(String, String)>,
}

/// An address of loopback for each node, so that nodes and attempts differ.
pub(super) fn hosts(job: u64, nodes: usize, attempt: usize) -> Vec<String> {
    let last = |node: usize| 1 + (attempt * nodes + node) % 250;
    (0..nodes)
        .map(|node| {
            format!(
                "127.{}.{}.{}",
                1 + job / 250 % 250,
                1 + job % 250,
                last(node)
            )
        })
        .collect()
}

/// One process for each node if no distribution is asked for.
pub(super) fn processes(
    asked: &Value,
    nodes: usize,
    hosts: &[String],
    attempt: usize,
) -> Vec<Process> {
    let distribution = &asked["distribution"];
    let kind = distribution["distributionType"]
        .as_str()
        .unwrap_or_default();
    let each = match kind {
        "PyTorch" | "Mpi" => distribution["processCountPerInstance"]
            .as_u64()
            .and_then(|many| usize::try_from(many).ok())
            .unwrap_or(1)
            .max(1),
        _ => 1,
    };
    let single = kind.is_empty() && nodes == 1;
    let port = free_port(&hosts[0]);
    let all = nodes * each;
    let folder = if attempt == 0 {
        "user_logs".to_owned()
    } else {
        format!("user_logs/retry_{attempt:03}")
    };
    let process = |rank: usize| {
        let (node, local) = (rank / each, rank % each);
        let place = Place {
            node,
            rank,
            local,
            each,
            all,
            nodes,
        };
        let variables = [
            batch(hosts, &place, port),
            of_kind(kind, distribution, hosts, &place, port),
        ]
        .concat();
        // Numbers have as many digits as the largest.
        let width = (all - 1).to_string().len();
        let log = if single {
            format!("{folder}/std_log.txt")
        } else {
            format!("{folder}/std_log_process_{rank:0width$}.txt")
        };
        Process {
            node,
            rank,
            log,
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    };
    (0..all).map(process).collect()
}

struct Place {
    node: usize,
    rank: usize,
    local: usize,
    /// Processes of one node, and of all.
    each: usize,
    all: usize,
    nodes: usize,
}

type Pairs = Vec<(&'static str, String)>;

/// The variables of nodes of a cluster.
fn batch(hosts: &[String], place: &Place, port: u16) -> Pairs {
    vec![
        ("AZ_BATCH_HOST_LIST", hosts.join(",")),
        ("AZ_BATCH_NODE_LIST", hosts.join(";")),
        ("AZ_BATCH_MASTER_NODE", format!("{}:{port}", hosts[0])),
        ("AZ_BATCHAI_JOB_MASTER_NODE_IP", hosts[0].clone()),
        ("AZ_BATCHAI_TASK_INDEX", place.node.to_string()),
        ("AZ_BATCHAI_NUM_NODES", place.nodes.to_string()),
        ("AZUREML_PROCESS_NAME", format!("rank_{}", place.rank)),
    ]
}

fn of_kind(kind: &str, distribution: &Value, hosts: &[String], place: &Place, port: u16) -> Pairs {
    let text = |number: usize| number.to_string();
    match kind {
        "Mpi" => vec![
            ("OMPI_COMM_WORLD_RANK", text(place.rank)),
            ("OMPI_COMM_WORLD_SIZE", text(place.all)),
            ("OMPI_COMM_WORLD_LOCAL_RANK", text(place.local)),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", text(place.each)),
            ("OMPI_COMM_WORLD_NODE_RANK", text(place.local)),
            ("AZ_BATCHAI_MPI_MASTER_NODE", hosts[0].clone()),
        ],
        "TensorFlow" => vec![("TF_CONFIG", tensorflow(distribution, hosts, place, port))],
        _ => vec![
            ("MASTER_ADDR", hosts[0].clone()),
            ("MASTER_PORT", port.to_string()),
            ("NODE_RANK", text(place.node)),
            ("RANK", text(place.rank)),
            ("LOCAL_RANK", text(place.local)),
            ("WORLD_SIZE", text(place.all)),
        ],
    }
}

/// The first nodes are parameter servers, the others workers.
fn tensorflow(distribution: &Value, hosts: &[String], place: &Place, port: u16) -> String {
    let servers = distribution["parameterServerCount"]
        .as_u64()
        .and_then(|many| usize::try_from(many).ok())
        .unwrap_or(0)
        .min(place.nodes.saturating_sub(1));
    let address = |host: &String| format!("{host}:{port}");
    let (ps, worker): (Vec<_>, Vec<_>) = (
        hosts[..servers].iter().map(address).collect(),
        hosts[servers..].iter().map(address).collect(),
    );
    let task = if place.node < servers {
        json!({"type": "ps", "index": place.node})
    } else {
        json!({"type": "worker", "index": place.node - servers})
    };
    json!({"cluster": {"ps": ps, "worker": worker}, "task": task}).to_string()
}

fn free_port(host: &str) -> u16 {
    TcpListener::bind((host, 0))
        .and_then(|listener| listener.local_addr())
        .map_or(6105, |address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_through_all_nodes() {
        let asked =
            json!({"distribution": {"distributionType": "PyTorch", "processCountPerInstance": 6}});
        let found = processes(&asked, 2, &hosts(0, 2, 0), 0);
        let of = |at: usize, name: &str| {
            found[at]
                .variables
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(found.len(), 12);
        assert_eq!(
            (
                of(7, "RANK"),
                of(7, "NODE_RANK"),
                of(7, "LOCAL_RANK"),
                of(7, "WORLD_SIZE")
            ),
            (Some("7"), Some("1"), Some("1"), Some("12"))
        );
        assert_eq!(
            (of(0, "MASTER_ADDR"), of(11, "MASTER_PORT")),
            (Some("127.1.1.1"), of(0, "MASTER_PORT"))
        );
        assert_eq!(
            (found[0].log.as_str(), found[11].log.as_str()),
            (
                "user_logs/std_log_process_00.txt",
                "user_logs/std_log_process_11.txt"
            )
        );
        assert_eq!(
            processes(&json!({}), 1, &hosts(3, 1, 0), 0)[0].log,
            "user_logs/std_log.txt"
        );
        assert_eq!(
            processes(&json!({}), 1, &hosts(3, 1, 2), 2)[0].log,
            "user_logs/retry_002/std_log.txt"
        );
    }
}
