//! From the job as asked to the job as it will run: its sizes are fixed, and its environment is split
//! into variables that may be stored and secrets. Pure: the facts of the machine are arguments.

mod checks;
mod mapped;
mod shape;

pub use mapped::MappedPlace;
pub use shape::{Shape, shape as shape_of};

use crate::command::Program;
use crate::config::Datastore;
use crate::job::{IoMode, Job, RetryPolicy, Tier};
use crate::process_limits::ProcessLimits;
use crate::quantity::Span;
use crate::redact::{Secret, SecretSet, looks_like_credential};
use crate::secret_name::SecretName;
use crate::{Error, Result};
use checks::{check_nul, check_templates, check_variables};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shape::shape;
use std::collections::{BTreeMap, BTreeSet};

/// The job as it will run. Holds no secret value, only names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// Its nodes, its ranks, and what each node needs.
    pub shape: Shape,
    /// Its tier.
    pub tier: Tier,
    /// The longest time of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// What a rank runs.
    pub program: Program,
    /// Commands that run on each node before the ranks start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// The folder where commands start: an absolute path on the local cluster.
    pub workdir: String,
    /// The umask of its processes.
    pub umask: u32,
    /// The submitter's priority and limits, where the cluster is the submitter's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProcessLimits>,
    /// From the job file; its values may hold `${{name}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// From the submitter's environment, where the cluster is the submitter's machine.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inherited: BTreeMap<String, String>,
    /// Names of variables whose values are secret and stored apart.
    #[schemars(with = "Vec<String>")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretName>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// How long its nodes are kept if a rank fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_on_failure: Option<Span>,
    /// The Git state of its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitState>,
    /// The code that is sent with the run. Without it the run starts in `workdir` itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<FrozenCode>,
    /// The container that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// The data that it reads, writes or mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<IoPlan>,
    /// The data that is copied to each node first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyPlan>,
}

/// One datastore path of a run: the store as it was configured when the run was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoPlan {
    /// Its name in the job file.
    pub name: String,
    /// The datastore.
    pub store: NamedStore,
    /// Its path there.
    pub path: String,
    /// Whether it is read, written or mounted.
    pub mode: IoMode,
    /// Options for the program that mounts it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl IoPlan {
    /// `TOW_IO_BLOBMNT`
    pub fn variable(&self) -> String {
        let name: String = self
            .name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_uppercase()
                } else {
                    '_'
                }
            })
            .collect();
        format!("TOW_IO_{name}")
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyPlan {
    /// The datastore that it comes from.
    pub store: NamedStore,
    /// Its path there.
    pub path: String,
    /// The folders below the path that are copied. None means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subdirs: Vec<String>,
}

/// A datastore with its name. Credentials are references; their values are stored apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedStore {
    /// Its name in the configuration.
    pub name: String,
    /// Its definition.
    pub datastore: Datastore,
}

/// The container image of a run, and the program that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Container {
    /// The program that runs containers.
    pub runtime: Runtime,
    /// The path of the runtime's program.
    pub program: String,
    /// A name for the runtime, or the absolute path of a folder that is a root file system.
    pub image: String,
    /// Extra options for the runtime, as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    Podman,
    Docker,
    Apptainer,
}

impl Runtime {
    /// In the order in which they are searched for.
    pub const ALL: [Self; 3] = [Self::Podman, Self::Docker, Self::Apptainer];

    /// Its program.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
            Self::Apptainer => "apptainer",
        }
    }
}

/// The code of a run, as it was when it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FrozenCode {
    /// The snapshot's id; absent in a plan that was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The folder that the snapshot was taken of.
    pub root: String,
    /// The folder where commands start, below it; empty for the root itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workdir: String,
    /// The number of its files.
    pub files: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// Paths that the ignore rules leave out and that a run on this machine gets as links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Folders that `folders:` maps and the tree does not have, with their places in a folder
    /// datastore.
    #[schemars(with = "BTreeMap<String, String>")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mapped: BTreeMap<String, MappedPlace>,
}

impl Resolved {
    /// A copy without the submitter's environment, which is stored apart.
    #[must_use]
    pub fn without_inherited(&self) -> Self {
        Self {
            shape: self.shape.clone(),
            tier: self.tier,
            time: self.time,
            program: self.program.clone(),
            setup: self.setup.clone(),
            workdir: self.workdir.clone(),
            umask: self.umask,
            limits: self.limits.clone(),
            env: self.env.clone(),
            inherited: BTreeMap::new(),
            secrets: self.secrets.clone(),
            retry: self.retry.clone(),
            hold_on_failure: self.hold_on_failure,
            git: self.git.clone(),
            code: self.code.clone(),
            container: self.container.clone(),
            io: self.io.clone(),
            copy: self.copy.clone(),
        }
    }
}

/// The git commit of a run's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitState {
    /// The commit that was checked out.
    pub commit: String,
    /// The branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether tracked files differ from the commit; absent if git could not be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
}

/// The facts that only the submitter's machine knows.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub environment: Vec<(String, String)>,
    pub workdir: String,
    pub umask: u32,
    pub limits: Option<ProcessLimits>,
    pub git: Option<GitState>,
    pub code: Option<FrozenCode>,
    pub container: Option<Container>,
    pub io: Vec<IoPlan>,
    pub copy: Option<CopyPlan>,
    /// Whether the job inherits the environment: only on the submitter's own machine.
    pub inherit: bool,
    /// Values the keyring had for names under `secrets`.
    pub keyring: BTreeMap<String, Secret>,
    /// Variables that the configuration names as credentials, whatever they are called.
    pub credentials: BTreeSet<String>,
}

/// Variables of the submitter's shell that a container runtime needs. A run in an image inherits
/// none.
const RUNTIME_VARIABLES: [&str; 10] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DOCKER_HOST",
    "CONTAINER_HOST",
];

/// Resolves a job for a cluster whose nodes have `gpus_per_node` GPUs.
/// `total_gpus` is `-n`: nodes = n / GPUs per node, a remainder is an error.
pub fn resolve(
    job: &Job,
    total_gpus: Option<u32>,
    gpus_per_node: u32,
    around: Surroundings,
) -> Result<(Resolved, SecretSet)> {
    let program = Program::from_job(job)?;
    check_templates(job, &program)?;
    let shape = shape(job, total_gpus, gpus_per_node)?;
    check_variables(job)?;
    check_nul(job)?;
    let (inherited, secrets) = split_environment(job, &around)?;
    let resolved = Resolved {
        shape,
        tier: job.resources.tier.unwrap_or_default(),
        time: job.resources.time,
        program,
        setup: job.environment.setup.clone(),
        workdir: around.workdir,
        umask: around.umask,
        limits: around
            .limits
            .filter(|_| around.inherit && around.container.is_none()),
        env: job.environment.env.clone(),
        inherited,
        secrets: secrets.names(),
        retry: job.retry.clone(),
        hold_on_failure: job.hold_on_failure,
        git: around.git,
        code: around.code,
        container: around.container,
        io: around.io,
        copy: around.copy,
    };
    if let Some(RetryPolicy { max: Some(0), .. }) = resolved.retry {
        return Err(
            Error::config("`retry.max` counts every start, so it is at least 1").about("retry.max"),
        );
    }
    Ok((resolved, secrets))
}

/// Finds mistakes that a job has on any cluster, before a cluster is contacted. The size is checked
/// only if the configuration gives the GPUs per node.
pub fn check(
    job: &Job,
    total_gpus: Option<u32>,
    gpus_per_node: Option<u32>,
    around: &Surroundings,
) -> Result<()> {
    check_templates(job, &Program::from_job(job)?)?;
    check_variables(job)?;
    check_nul(job)?;
    job.sweep
        .combinations()
        .map_err(|error| error.about("sweep"))?;
    split_environment(job, around)?;
    gpus_per_node.map_or(Ok(()), |gpus| shape(job, total_gpus, gpus).map(drop))
}

fn split_environment(
    job: &Job,
    around: &Surroundings,
) -> Result<(BTreeMap<String, String>, SecretSet)> {
    let mut inherited = BTreeMap::new();
    let mut secrets = SecretSet::default();
    for (name, value) in &around.environment {
        if name.starts_with("TOW_") || !around.inherit {
            continue;
        }
        if around.container.is_some() && !RUNTIME_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        if looks_like_credential(name)
            || around.credentials.contains(name)
            || crate::token::begins_like_secret(value).is_some()
        {
            let name = SecretName::Variable(name.clone());
            secrets.0.insert(name, Secret::new(value.clone()));
        } else {
            inherited.insert(name.clone(), value.clone());
        }
    }
    for name in &job.environment.secrets {
        let from_environment = around
            .environment
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| Secret::new(value.clone()));
        let Some(value) = from_environment.or_else(|| around.keyring.get(name).cloned()) else {
            return Err(Error::refused(format!("the secret `{name}` has no value"))
                .hint(format!(
                    "export {name}=… before submitting, or store it: secret-tool store \
                    --label={name} towline {name}"
                ))
                .about("environment.secrets"));
        };
        inherited.remove(name);
        secrets.0.insert(SecretName::Variable(name.clone()), value);
    }
    Ok((inherited, secrets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::OneOrMany;

    fn job(text: &str) -> Job {
        let mut job: Job =
            crate::yaml::decode(&crate::yaml::parse("job", text).expect("YAML")).expect("decodes");
        if job.command.is_empty() && job.script.is_none() {
            job.command = OneOrMany::One("true".into());
        }
        job
    }

    fn shape_of(text: &str, n: Option<u32>, machine: u32) -> Result<(u32, u32, u32)> {
        shape(&job(text), n, machine).map(|shape| (shape.nodes, shape.gpus_per_node, shape.world()))
    }

    #[test]
    fn gpus_are_spread_like_act_does() {
        assert_eq!(shape_of("{}", None, 8).expect("fits"), (1, 0, 1));
        assert_eq!(shape_of("{}", Some(4), 8).expect("fits"), (1, 4, 1));
        assert_eq!(
            shape_of("{launch: per_gpu}", Some(16), 8).expect("fits"),
            (2, 8, 16)
        );
        assert_eq!(
            shape_of("{resources: {nodes: 4, gpus_per_node: 8}}", Some(16), 0).expect("fits"),
            (2, 8, 2)
        );
        assert_eq!(
            shape_of("{launch: once, resources: {nodes: 3}}", None, 0).expect("fits"),
            (3, 0, 1)
        );
        assert!(shape_of("{}", Some(9), 8).is_err());
        assert!(shape_of("{launch: per_gpu}", None, 8).is_err());
    }

    #[test]
    fn credentials_are_held_apart_and_our_own_variables_left_out() {
        let around = Surroundings {
            environment: [
                ("HF_TOKEN", "t"),
                ("PATH", "/bin"),
                ("TOW_X", "1"),
                ("MINE", "m"),
            ]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
            inherit: true,
            ..Surroundings::default()
        };
        let (resolved, secrets) = resolve(
            &job("{environment: {secrets: [MINE]}}"),
            None,
            0,
            around.clone(),
        )
        .expect("resolves");
        assert_eq!(resolved.inherited.keys().collect::<Vec<_>>(), ["PATH"]);
        let names = ["HF_TOKEN", "MINE"].map(SecretName::from);
        assert_eq!(secrets.names(), names);
        assert_eq!(resolved.secrets, names);
        let missing = resolve(&job("{environment: {secrets: [NONE]}}"), None, 0, around)
            .expect_err("no value");
        assert_eq!(missing.kind(), crate::ErrorKind::Refused);
    }

    #[test]
    fn unknown_names_in_templates_are_found_before_anything_is_sent() {
        let wrong = job("{sweep: {lr: [1]}, command: 'train ${{lrr}}'}");
        let error = resolve(&wrong, None, 0, Surroundings::default()).expect_err("unknown name");
        assert_eq!(error.hints(), ["did you mean `lr`?"]);
    }

    #[test]
    fn limits_go_with_the_environment_and_not_into_an_image() {
        let limits_of = |inherit, container| {
            let around = Surroundings {
                inherit,
                container,
                limits: Some(ProcessLimits {
                    nice: 3,
                    soft: BTreeMap::new(),
                }),
                ..Surroundings::default()
            };
            let (resolved, _) = resolve(&job("{}"), None, 0, around).expect("resolves");
            resolved.limits.map(|limits| limits.nice)
        };
        let image = Container {
            runtime: Runtime::Docker,
            program: "docker".into(),
            image: "a".into(),
            options: Vec::new(),
        };
        assert_eq!(limits_of(true, None), Some(3));
        assert_eq!(limits_of(false, None), None);
        assert_eq!(limits_of(true, Some(image)), None);
    }
}
