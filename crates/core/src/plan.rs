//! A plan: the job resolved against one cluster. Acting takes the plan and nothing else.

use crate::RunId;
use crate::after::After;
use crate::config;
use crate::job::{IoMode, Job};
use crate::quantity::Memory;
use crate::resolve::Resolved;
use crate::sweep::Parameters;
use crate::time::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The format of stored plans.
pub const PLAN_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub version: u32,
    /// The id of the single run, or the one a sweep's runs share.
    pub id: RunId,
    pub cluster: String,
    pub kind: String,
    pub runs: Vec<PlannedRun>,
    /// The job as asked for.
    pub job: Job,
    pub resolved: Resolved,
    /// The request that will be sent.
    pub request: Request,
    /// Notes for the user before it is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The runs that must end before its runs begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// The run that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resubmits: Option<RunId>,
    /// Set if the run was not submitted from this machine and is only followed: the cluster's own
    /// name for it, or the submission's id if each run has its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<String>,
    /// When it was submitted, as the cluster reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
    /// The GPUs of each node, where a run takes whole nodes whatever it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_node_gpus: Option<u32>,
    /// The agent that submitted it for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl Plan {
    /// Whether its runs are on this machine.
    pub fn is_here(&self) -> bool {
        config::is_this_machine(&self.kind)
    }

    /// The cluster's name for an adopted run.
    pub fn native_of(&self, run: &RunId) -> Option<String> {
        self.adopted.as_ref().map(|name| {
            if *name == self.id.as_str() {
                run.to_string()
            } else {
                name.clone()
            }
        })
    }

    /// The GPUs that each of its runs takes.
    pub fn gpus_taken(&self) -> u64 {
        let shape = &self.resolved.shape;
        let per_node = shape.gpus_per_node.max(self.whole_node_gpus.unwrap_or(0));
        u64::from(shape.nodes) * u64::from(per_node)
    }

    /// The name of the job, where another tool submitted it.
    pub fn foreign(&self) -> Option<&str> {
        self.adopted
            .as_deref()
            .filter(|name| *name != self.id.as_str())
    }

    /// The part that is stored once per submission: without its runs and the submitter's environment.
    #[must_use]
    pub fn lean(&self) -> Self {
        Self {
            version: self.version,
            id: self.id.clone(),
            cluster: self.cluster.clone(),
            kind: self.kind.clone(),
            runs: Vec::new(),
            job: self.job.clone(),
            resolved: self.resolved.without_inherited(),
            request: self.request.clone(),
            notes: self.notes.clone(),
            after: self.after.clone(),
            resubmits: self.resubmits.clone(),
            adopted: self.adopted.clone(),
            made: self.made,
            whole_node_gpus: self.whole_node_gpus,
            agent: self.agent.clone(),
        }
    }
}

/// One run of a plan with its sweep values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedRun {
    /// Its id.
    pub id: RunId,
    /// Its name.
    pub name: String,
    /// Its values of the sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Parameters,
}

/// The native request, printable as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// For people: a batch script, a JSON body, a command.
    pub text: String,
}

/// The lines of a description: a name and a value each.
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "{name:<9} {value}");
    }
}

/// Describes a run for people: program, code, data, size and environment. `takes` is the size as
/// the cluster counts it.
pub fn describe(resolved: &Resolved, takes: &str, is_here: bool) -> String {
    let mut lines = Lines(String::new());
    lines.add("starts", &resolved.program.display());
    describe_code(resolved, is_here, &mut lines);
    describe_data(resolved, &mut lines);
    let shape = &resolved.shape;
    lines.add(
        "ranks",
        &format!(
            "{} on {} node{}",
            shape.world(),
            shape.nodes,
            plural(shape.nodes.into())
        ),
    );
    lines.add("takes", takes);
    lines.add("tier", resolved.tier.word());
    if let Some(time) = resolved.time {
        lines.add("at most", &time.to_string());
    }
    describe_environment(resolved, is_here, &mut lines);
    lines.0
}

fn describe_code(resolved: &Resolved, is_here: bool, lines: &mut Lines) {
    match &resolved.code {
        None if is_here => lines.add("in", &format!("{} itself", resolved.workdir)),
        None => lines.add("in", "the folder of the run, which has no code"),
        Some(code) => {
            lines.add(
                "in",
                format!("code of the run/{}", code.workdir).trim_end_matches('/'),
            );
            lines.add(
                "code",
                &format!(
                    "{} file{}, {} from {}",
                    code.files,
                    plural(code.files),
                    Memory(code.bytes),
                    code.root
                ),
            );
            let links: Vec<String> = code
                .links
                .iter()
                .chain(code.mapped.keys())
                .cloned()
                .collect();
            if is_here && !links.is_empty() {
                lines.add("linked", &shown_links(&links));
            }
        }
    }
}

fn describe_data(resolved: &Resolved, lines: &mut Lines) {
    if let Some(container) = &resolved.container {
        lines.add(
            "image",
            &format!("{} ({})", container.image, container.program),
        );
    }
    for io in &resolved.io {
        let mode = match io.mode {
            IoMode::Read => "read",
            IoMode::Write => "write",
            IoMode::Mount => "mount",
        };
        lines.add(
            "data",
            &format!("{} = {}:{} ({mode})", io.name, io.store.name, io.path),
        );
    }
    if let Some(copy) = &resolved.copy {
        let subdirs = copy.subdirs.join(", ");
        let text = format!("{}:{} {subdirs}", copy.store.name, copy.path);
        lines.add("copy", text.trim_end());
    }
}

fn describe_environment(resolved: &Resolved, is_here: bool, lines: &mut Lines) {
    for setup in &resolved.setup {
        lines.add("set-up", setup);
    }
    for (name, value) in &resolved.env {
        lines.add("variable", &format!("{name}={value}"));
    }
    if resolved.container.is_some() && is_here {
        lines.add(
            "inherits",
            "no variable of this shell: an image has its own",
        );
    } else if !resolved.inherited.is_empty() {
        lines.add(
            "inherits",
            &format!("{} variables of this shell", resolved.inherited.len()),
        );
    }
    if !resolved.secrets.is_empty() {
        let names: Vec<String> = resolved.secrets.iter().map(ToString::to_string).collect();
        lines.add("secrets", &names.join(", "));
    }
}

/// `2 CPUs, 1 GPU, 4G memory`
pub fn takes(cpus: u32, gpus: u32, memory: u64) -> String {
    let memory = if memory > 0 {
        format!(", {} memory", Memory(memory))
    } else {
        String::new()
    };
    format!(
        "{cpus} CPU{}, {gpus} GPU{}{memory}",
        plural(cpus.into()),
        plural(gpus.into())
    )
}

const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The first few by name.
fn shown_links(links: &[String]) -> String {
    let mut text = links.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    if links.len() > 6 {
        text += &format!(" and {} more", links.len() - 6);
    }
    text
}

/// The runs of a plan: one, or one per combination of the sweep.
pub fn plan_runs(
    id: &RunId,
    name: &str,
    combinations: &[Parameters],
) -> crate::Result<Vec<PlannedRun>> {
    let is_sweep = combinations.len() > 1;
    combinations
        .iter()
        .zip(1u32..)
        .map(|(parameters, number)| {
            let known: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
            let value_of = |wanted: &str| {
                parameters
                    .iter()
                    .find(|(name, _)| name == wanted)
                    .map(|(_, value)| value.as_str())
            };
            Ok(PlannedRun {
                id: if is_sweep {
                    id.numbered(number)
                } else {
                    id.clone()
                },
                name: crate::template::fill(name, value_of, &known)?,
                parameters: parameters.clone(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan with everything in it.
    fn sample() -> Plan {
        let samples: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/plan.json")).expect("JSON");
        serde_json::from_value(samples["plan"][0].clone()).expect("a plan")
    }

    #[test]
    fn an_adopted_run_has_the_cluster_s_name_and_a_followed_one_its_own() {
        let run = RunId::new("train", 1, 2);
        let mut plan = sample();
        plan.adopted = None;
        assert_eq!((plan.native_of(&run), plan.foreign()), (None, None));
        plan.adopted = Some("77".to_owned());
        assert_eq!(plan.native_of(&run).as_deref(), Some("77"));
        assert_eq!(plan.foreign(), Some("77"));
        plan.adopted = Some(plan.id.to_string());
        assert_eq!(plan.native_of(&run), Some(run.to_string()));
        assert_eq!(plan.foreign(), None);
    }

    #[test]
    fn a_description_says_where_code_data_and_variables_come_from() {
        let mut resolved = sample().resolved;
        resolved.shape.once = false;
        resolved.limits = None;
        let lines = |resolved: &Resolved, is_here| -> Vec<String> {
            let text = describe(resolved, "2 CPUs", is_here);
            text.lines().map(str::to_owned).collect()
        };
        assert_eq!(
            lines(&resolved, true),
            [
                "starts    python train.py",
                "in        code of the run/src",
                "code      12 files, 33.7K from /home/alice/project",
                "linked    data, checkpoints",
                "image     lab/cuda:12 (/usr/bin/podman)",
                "data      blobmnt = research:alice/work (mount)",
                "copy      research:imagenet train, val",
                "ranks     16 on 2 nodes",
                "takes     2 CPUs",
                "tier      premium",
                "at most   14d",
                "set-up    pip install -r requirements.txt",
                "variable  NCCL_IB_DISABLE=0",
                "inherits  no variable of this shell: an image has its own",
                "secrets   GITHUB_PAT",
            ]
        );
        let far = lines(&resolved, false);
        assert!(far.contains(&"inherits  1 variables of this shell".to_owned()));
        assert!(!far.iter().any(|line| line.starts_with("linked")));
        if let Some(code) = &mut resolved.code {
            (code.links, code.mapped) = (Vec::new(), std::collections::BTreeMap::new());
        }
        let unlinked = lines(&resolved, true);
        assert!(!unlinked.iter().any(|line| line.starts_with("linked")));
        resolved.code = None;
        assert_eq!(
            lines(&resolved, true)[1],
            "in        /home/alice/project/src itself"
        );
        assert_eq!(
            lines(&resolved, false)[1],
            "in        the folder of the run, which has no code"
        );
    }

    #[test]
    fn one_is_singular_and_a_machine_s_memory_may_be_unknown() {
        assert_eq!(takes(2, 1, 4 << 30), "2 CPUs, 1 GPU, 4G memory");
        assert_eq!(takes(1, 0, 0), "1 CPU, 0 GPUs");
    }

    #[test]
    fn only_a_sweep_numbers_its_runs() {
        let id = RunId::new("train", 1, 2);
        let value = |value: &str| vec![("lr".to_owned(), value.to_owned())];
        let names = |combinations: &[Parameters]| -> Vec<(RunId, String)> {
            let runs = plan_runs(&id, "lr ${{lr}}", combinations).expect("runs");
            runs.into_iter().map(|run| (run.id, run.name)).collect()
        };
        assert_eq!(names(&[value("1")]), [(id.clone(), "lr 1".to_owned())]);
        assert_eq!(
            names(&[value("1"), value("2")]),
            [
                (id.numbered(1), "lr 1".to_owned()),
                (id.numbered(2), "lr 2".to_owned())
            ]
        );
    }
}
