//! The size of a batch script's job: nodes, tasks, CPUs, GPUs and memory, computed once all its lines
//! are read.

use super::quoted;
use super::sbatch::Work;
use super::sbatch_options::{Given, mebibytes};
use super::section::wrong;
use std::collections::BTreeMap;
use towline_core::Result;
use towline_core::yaml::{Node, Position};

/// The numbers from which ranks, CPUs and GPUs are computed once all lines are read.
#[derive(Default)]
pub(super) struct Size {
    nodes: Option<u32>,
    tasks: Option<u32>,
    tasks_per_node: Option<u32>,
    cpus_per_task: Option<u32>,
    gpus: BTreeMap<&'static str, u32>,
    memory: BTreeMap<&'static str, u64>,
    /// The options that give the number of tasks and the CPUs of each.
    task_options: Vec<Given>,
}

impl Work<'_> {
    /// Remembers an option that [`Self::sizes`] uses; `false` for any other.
    pub(super) fn count(&mut self, given: &Given) -> Result<bool> {
        let size = &mut self.size;
        match given.name.as_str() {
            "nodes" => {
                let text = given.text()?;
                let (least, most) = text.split_once('-').unwrap_or((text, text));
                let nodes = least
                    .parse()
                    .ok()
                    .filter(|nodes| *nodes > 0)
                    .ok_or_else(|| {
                        wrong(
                            &given.at,
                            format!("`--nodes`: `{text}` is not a number of nodes"),
                        )
                    })?;
                size.nodes = Some(nodes);
                if least != most {
                    self.converted
                        .report
                        .warn(format!("`--nodes={text}`: the smaller number is taken"));
                }
            }
            "ntasks" | "ntasks-per-node" | "cpus-per-task" => {
                let number = Some(given.number()?).filter(|number| *number > 0);
                if number.is_none() {
                    return Err(wrong(
                        &given.at,
                        format!("`--{}` is at least 1", given.name),
                    ));
                }
                match given.name.as_str() {
                    "ntasks" => size.tasks = number,
                    "ntasks-per-node" => size.tasks_per_node = number,
                    _ => size.cpus_per_task = number,
                }
                size.task_options.push(given.clone());
                return Ok(true);
            }
            "gpus" | "gpus-per-node" | "gpus-per-task" | "gres" => return self.gpus(given),
            "mem" if given.text()? == "0" => return Ok(false),
            "mem" => drop(size.memory.insert("node", mebibytes(given)?)),
            "mem-per-cpu" => drop(size.memory.insert("cpu", mebibytes(given)?)),
            "mem-per-gpu" => drop(size.memory.insert("gpu", mebibytes(given)?)),
            _ => return Ok(false),
        }
        let to = if given.name == "nodes" {
            "resources.nodes"
        } else {
            "resources.memory"
        };
        self.converted
            .report
            .mapped(format!("--{}", given.name), &given.at, to);
        Ok(true)
    }

    /// `4`, `a100:4`, and for `--gres` `gpu:4`, `gpu:a100:4`, `gpu`.
    fn gpus(&mut self, given: &Given) -> Result<bool> {
        let text = given.text()?;
        let (text, kind) = match given.name.as_str() {
            "gres" if text.contains(',') => return Ok(false),
            "gres" => match text.strip_prefix("gpu") {
                Some("") => ("1", "node"),
                Some(rest) if rest.starts_with(':') => (&rest[1..], "node"),
                _ => return Ok(false),
            },
            "gpus" => (text, "all"),
            "gpus-per-task" => (text, "task"),
            _ => (text, "node"),
        };
        let (make, count) = text
            .rsplit_once(':')
            .map_or((None, text), |(make, count)| (Some(make), count));
        let (make, count) =
            if count.parse::<u32>().is_err() && make.is_none() && given.name == "gres" {
                (Some(count), "1")
            } else {
                (make, count)
            };
        let count = count.parse().map_err(|_| {
            wrong(
                &given.at,
                format!("`--{}`: `{text}` is not a number of GPUs", given.name),
            )
        })?;
        self.size.gpus.insert(kind, count);
        self.converted.report.mapped(
            format!("--{}", given.name),
            &given.at,
            "resources.gpus_per_node",
        );
        if let Some(make) = make {
            self.scalar(given, &["resources", "instance_type"], make);
        }
        Ok(true)
    }

    /// Computes the numbers per node, as the job file has them.
    pub(super) fn sizes(&mut self, at: &Position) -> Result<()> {
        let Size {
            nodes,
            tasks,
            tasks_per_node,
            cpus_per_task,
            gpus,
            memory,
            task_options,
        } = std::mem::take(&mut self.size);
        let count = nodes.unwrap_or(1);
        // With GPUs in all and per task, the number of tasks follows.
        let tasks = tasks.or_else(
            || match (gpus.get("all"), gpus.get("task"), tasks_per_node) {
                (Some(all), Some(each), None) if *each > 0 => Some(all.div_ceil(*each)),
                _ => None,
            },
        );
        let ranks = tasks_per_node
            .or_else(|| tasks.map(|tasks| tasks.div_ceil(count)))
            .unwrap_or(1);
        let cpus = cpus_per_task
            .map(|cpus| cpus.saturating_mul(ranks))
            .or((ranks > 1).then_some(ranks));
        let whole = |total: u32| {
            if total.is_multiple_of(count) {
                Ok(total / count)
            } else {
                Err(wrong(
                    at,
                    format!("{total} GPUs cannot be shared out among {count} nodes"),
                ))
            }
        };
        let total = gpus.get("all").copied();
        let gpus = match (gpus.get("node"), gpus.get("task"), total) {
            (Some(gpus), ..) => Some(*gpus),
            (_, _, Some(total)) => Some(whole(total)?),
            (_, Some(gpus), _) => Some(gpus.saturating_mul(ranks)),
            _ => None,
        };
        if let Some(total) = total.filter(|total| nodes.is_none() && *total > 1) {
            self.converted.report.warn(format!(
                "`--gpus={total}` without `--nodes`: all of them are asked for on one node. Slurm \
                    would choose the nodes; write `resources.nodes` and `resources.gpus_per_node` \
                        where one node has fewer"
            ));
        }
        let times =
            |size: u64, count: Option<u32>| size.saturating_mul(u64::from(count.unwrap_or(1)));
        let memory = match (memory.get("node"), memory.get("cpu"), memory.get("gpu")) {
            (Some(size), ..) => Some(*size),
            (_, Some(size), _) => Some(times(*size, cpus)),
            (.., Some(size)) => Some(times(*size, gpus)),
            _ => None,
        };
        self.put_per_node(at, nodes, gpus, cpus, memory);
        self.job.put(&["launch"], Node::scalar("once", at.clone()));
        if nodes.is_none() && ranks > 1 && tasks_per_node.is_none() {
            self.converted.report.warn(format!(
                "`--ntasks={ranks}` without `--nodes`: all of it is asked for on one node"
            ));
        }
        self.report_tasks(&task_options, count, (tasks, ranks), cpus_per_task);
        Ok(())
    }

    fn put_per_node(
        &mut self,
        at: &Position,
        nodes: Option<u32>,
        gpus: Option<u32>,
        cpus: Option<u32>,
        mebibytes: Option<u64>,
    ) {
        let number = |number: u32| number.to_string();
        let memory = |size: u64| {
            if size.is_multiple_of(1024) {
                format!("{}G", size / 1024)
            } else {
                format!("{size}M")
            }
        };
        for (key, value) in [
            ("nodes", nodes.map(number)),
            ("gpus_per_node", gpus.map(number)),
            ("cpus_per_node", cpus.map(number)),
            ("memory", mebibytes.map(memory)),
        ] {
            if let Some(value) = value {
                self.job
                    .put(&["resources", key], Node::scalar(value, at.clone()));
            }
        }
    }

    /// Passes the numbers of tasks on, for the script's own `srun`: Towline's runner leaves the
    /// job's resources to it, and shows it what `sbatch` was told.
    fn report_tasks(
        &mut self,
        task_options: &[Given],
        nodes: u32,
        (tasks, ranks): (Option<u32>, u32),
        cpus_per_task: Option<u32>,
    ) {
        for given in task_options {
            let (key, report) = (format!("--{}", given.name), &mut self.converted.report);
            match (ranks, given.name.as_str()) {
                (1, "cpus-per-task") => report.mapped(key, &given.at, "resources.cpus_per_node"),
                (1, _) => report.not_needed(key, &given.at, "Towline starts one task per node"),
                _ => report.mapped(
                    key,
                    &given.at,
                    "resources.native, for `srun` in \
                    the script, and resources.cpus_per_node",
                ),
            }
        }
        let Some(first) = task_options.first().filter(|_| ranks > 1) else {
            return;
        };
        let all = ranks.saturating_mul(nodes);
        let uneven = tasks.filter(|tasks| *tasks != all);
        // CPUs too, because Towline's own option gives all those of the node to one task.
        let lines = [
            uneven.map(|tasks| format!("--ntasks={tasks}")),
            Some(format!("--ntasks-per-node={ranks}")),
            Some(format!("--cpus-per-task={}", cpus_per_task.unwrap_or(1))),
        ];
        for line in lines.into_iter().flatten() {
            self.native.push(quoted(&line, &first.at));
        }
        self.converted.report.warn(format!(
            "the script runs once, and its `srun` starts \
            {} tasks. To have Towline start them: `launch: {ranks}`, the command without \
                `srun`, and these numbers taken out of `resources.native`",
            uneven.unwrap_or(all)
        ));
    }
}
