//! The facts of a site: nodes, GPUs and their users, partitions, tiers, maintenance windows.

use super::Site;
use std::collections::HashMap;
use towline_core::cluster::{Facts, GpuFacts, NodeFacts};
use towline_core::resolve::Runtime;
use towline_core::{Result, RunId};
use towline_host::program::find_program;
use towline_slurm::parse::hosts::expand;
use towline_slurm::parse::node::Node;
use towline_slurm::parse::queue::{QueueRow, Which};
use towline_slurm::parse::values::Limit;
use towline_slurm::state;
use towline_wire::site::{PartitionFacts, SiteFacts};

impl Site {
    pub(super) fn facts(&self) -> Result<SiteFacts> {
        let settings = self.settings()?;
        let nodes = self.slurm.nodes()?;
        // Only running jobs, however many wait.
        let running = self
            .slurm
            .queue(&Which {
                states: &["R", "CG", "S"],
                ..Which::default()
            })
            .unwrap_or_default();
        let holders = holders(&running);
        let seconds = |limit: Option<Limit>| match limit {
            Some(Limit::At(seconds)) => Some(seconds),
            _ => None,
        };
        let partitions = self
            .slurm
            .partitions()?
            .into_iter()
            .map(|partition| PartitionFacts {
                is_up: partition.is_up(),
                longest: seconds(partition.max_time),
                usual: seconds(partition.default_time),
                nodes: partition.total_nodes,
                is_default: partition.is_default,
                name: partition.name,
            });
        let accounting = settings.has_accounting;
        let qos = accounting.then(|| self.slurm.qos());
        let tiers_unknown = matches!(qos, Some(Err(_)));
        let tiers = qos
            .and_then(towline_core::Result::ok)
            .unwrap_or_default()
            .into_iter()
            .map(|qos| qos.name)
            .collect();
        let mut notes = vec![format!(
            "Slurm {} of cluster {}",
            settings.version, settings.cluster
        )];
        if !accounting {
            notes.push(
                "no accounting: ended jobs are known to Slurm for some minutes only".to_owned(),
            );
        }
        if tiers_unknown {
            notes.push(
                "its accounting does not answer: QOS and shares are not known now".to_owned(),
            );
        }
        let down: Vec<&str> = nodes
            .iter()
            .filter(|node| !node.is_usable())
            .map(|node| node.name.as_str())
            .collect();
        if !down.is_empty() {
            notes.push(format!("not usable now: {}", down.join(", ")));
        }
        Ok(SiteFacts {
            facts: Facts {
                nodes: nodes
                    .iter()
                    .map(|node| node_facts(node, &holders))
                    .collect(),
                notes,
                ..Facts::default()
            },
            version: settings.version.to_string(),
            accounting,
            stage: self.stage.root().to_string_lossy().into_owned(),
            partitions: partitions.collect(),
            tiers,
            tiers_unknown,
            kill_wait: settings.kill_wait,
            signals_reach_all: settings.signals_reach_all(),
            runtimes: runtimes(),
            largest_array: settings.max_array_size,
            fair_share: if accounting { self.fair_share() } else { None },
            maintenance: self.maintenance(),
            environment: self.slurm.environment().to_vec(),
        })
    }

    fn fair_share(&self) -> Option<String> {
        let shares = self.slurm.share(&self.user).ok()?;
        let mine = shares
            .iter()
            .find(|share| share.user.as_deref() == Some(&self.user))?;
        let part = |value: Option<f64>| {
            value.map_or_else(|| "?".to_owned(), |value| format!("{:.0} %", value * 100.0))
        };
        let fair = mine
            .fair_share
            .map_or_else(String::new, |value| format!(", fair share {value:.2}"));
        Some(format!(
            "account {}: granted {}, used {}{fair}",
            mine.account,
            part(mine.granted),
            part(mine.used)
        ))
    }

    fn maintenance(&self) -> Vec<String> {
        let windows = self.slurm.reservations().unwrap_or_default();
        let shown = |moment: Option<towline_core::time::Moment>| {
            moment.map_or_else(|| "?".to_owned(), |moment| moment.to_string())
        };
        windows
            .iter()
            .filter(|window| window.is_maintenance())
            .map(|window| {
                format!(
                    "{}: {} until {} ({})",
                    window.name,
                    shown(window.start),
                    shown(window.end),
                    window.nodes
                )
            })
            .collect()
    }
}

/// Container runtimes on our PATH here. Those made for clusters come before those for workstations.
fn runtimes() -> Vec<Runtime> {
    let path = towline_host::surroundings::variable("PATH").unwrap_or_default();
    let order = [Runtime::Apptainer, Runtime::Podman, Runtime::Docker];
    order
        .into_iter()
        .filter(|runtime| find_program(runtime.word(), &path).is_some())
        .collect()
}

/// The users of each node.
fn holders(rows: &[QueueRow]) -> HashMap<String, Vec<String>> {
    let mut holders: HashMap<String, Vec<String>> = HashMap::new();
    for row in rows
        .iter()
        .filter(|row| state::native(&row.state) == state::Native::Running)
    {
        let who = format!("{} ({})", row.user, row.name);
        for host in expand(&row.nodes).unwrap_or_default() {
            holders.entry(host).or_default().push(who.clone());
        }
    }
    holders
}

fn node_facts(node: &Node, holders: &HashMap<String, Vec<String>>) -> NodeFacts {
    let who = holders.get(&node.name).cloned().unwrap_or_default();
    // Slurm does not say which GPU a job has, only how many are in use.
    let used = node.gpus_used();
    let run = match who.as_slice() {
        [one] => one
            .split_once(" (")
            .and_then(|(_, name)| RunId::try_from(name.trim_end_matches(')').to_owned()).ok()),
        _ => None,
    };
    let taken = if node.is_usable() {
        who.join(", ")
    } else {
        node.state.join("+").to_lowercase()
    };
    let kinds = node.gpus.iter().flat_map(|gpus| {
        std::iter::repeat_n(gpus.kind.clone().unwrap_or_default(), gpus.count as usize)
    });
    let gpus = kinds.zip(0u32..).map(|(name, index)| {
        let is_used = index < used || !node.is_usable();
        GpuFacts {
            index,
            name,
            run: run.clone().filter(|_| is_used && node.is_usable()),
            busy_with: (is_used && (run.is_none() || !node.is_usable())).then(|| {
                if taken.is_empty() {
                    "a job".to_owned()
                } else {
                    taken.clone()
                }
            }),
            ..GpuFacts::default()
        }
    });
    let reason = node
        .reason
        .as_ref()
        .filter(|_| !node.is_usable())
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    NodeFacts {
        name: node.name.clone(),
        state: format!("{}{reason}", node.state.join("+").to_lowercase()),
        users: who,
        cpus: node.cpus,
        cpus_used: if node.is_usable() {
            node.cpus_used
        } else {
            node.cpus
        },
        memory: node.memory,
        memory_used: node.memory_used,
        gpus: gpus.collect(),
    }
}
