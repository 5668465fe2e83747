//! Processes of a job on the nodes that this machine plays.

use super::container::Prepared;
use super::document::Job;
use super::life::Life;
use super::logs::Log;
use super::ranks::Process;
use super::run::Attempt;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long leftover processes of a job may take to die.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A process and everything it started, in a group of its own.
pub(super) struct Running {
    child: Child,
    /// The name of its log.
    pub log: String,
    code: Option<i32>,
    /// Variables that every process of the job has: the job's name, and the emulator's address.
    marks: [String; 2],
}

impl Running {
    pub(super) fn group(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }
    /// Its exit status, once it has one; for a signal 128+n.
    pub(super) fn code(&mut self) -> Option<i32> {
        if self.code.is_none() {
            let status = self.child.try_wait().ok().flatten();
            self.code = status.map(|status| {
                status
                    .code()
                    .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
            });
        }
        self.code
    }
    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.group()) {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// A node's working folder.
pub(super) fn folder(attempt: &Path, node: usize) -> PathBuf {
    attempt.join(format!("node-{node}/wd"))
}

/// Starts all processes of a job, with their logs.
pub(super) fn start(life: &Life, attempt: &Attempt) -> Result<(Vec<Running>, Vec<Log>), String> {
    let common = common(life)?;
    let image = Prepared::new(
        life.world.conditions().image,
        &attempt.folder,
        &life.world.authority,
    )
    .map_err(|error| error.to_string())?;
    let (mut running, mut logs) = (Vec::new(), Vec::new());
    for process in &attempt.processes {
        let file = attempt.folder.join(format!("log-{}", process.rank));
        let started = launch(attempt, process, &common, &file, &image)
            .map_err(|error| format!("bash: {error}"));
        let made = started.and_then(|child| {
            running.push(Running {
                child,
                log: process.log.clone(),
                code: None,
                marks: marks(&life.name, &life.world.endpoint),
            });
            Log::new(
                &life.world.blobs,
                &format!("{}{}", Job::artifacts(&life.name), process.log),
                &file,
            )
        });
        match made {
            Ok(log) => logs.push(log),
            Err(message) => {
                end(&mut running, Duration::ZERO);
                return Err(message);
            }
        }
    }
    Ok((running, logs))
}

fn launch(
    attempt: &Attempt,
    process: &Process,
    common: &[(String, String)],
    file: &Path,
    image: &Prepared,
) -> std::io::Result<Child> {
    let output = File::create(file)?;
    let wd = folder(&attempt.folder, process.node);
    let node = &attempt.nodes[process.node];
    let pairs: Vec<(String, String)> = common
        .iter()
        .chain(&node.paths)
        .chain(&process.variables)
        .cloned()
        .collect();
    let mut command = image.command(&wd, &node.command, &pairs);
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    command.spawn()
}

/// The variables of every process; those that the job itself sets count more.
fn common(life: &Life) -> Result<Vec<(String, String)>, String> {
    let (world, scope, name) = (&life.world, &life.scope, life.name.as_str());
    let (asked, experiment, nodes, singularity) = life
        .job(|job| {
            (
                job.asked.clone(),
                job.experiment().to_owned(),
                job.node_count(),
                job.is_singularity(),
            )
        })
        .ok_or("the job is gone")?;
    let token = world.tokens.mint("https://ml.azure.com", 24 * 3600);
    let mut pairs: Vec<(String, String)> = [
        ("AZUREML_RUN_ID", name),
        ("AZUREML_ROOT_RUN_ID", name),
        ("AZUREML_EXPERIMENT_NAME", &experiment),
        ("AZUREML_ARM_SUBSCRIPTION", &scope.subscription),
        ("AZUREML_ARM_RESOURCEGROUP", &scope.group),
        ("AZUREML_ARM_WORKSPACE_NAME", &scope.workspace),
        ("AZUREML_ARM_PROJECT_NAME", &experiment),
        ("AZUREML_WORKSPACE_SCOPE", &scope.id()),
        ("AZUREML_SERVICE_ENDPOINT", &world.endpoint),
        (
            "AZUREML_DISCOVERY_SERVICE_ENDPOINT",
            &format!("{}/discovery", world.endpoint),
        ),
        ("AZUREML_RUN_TOKEN", &token),
        ("AZUREML_NODE_COUNT", &nodes.to_string()),
        ("AZ_BATCHAI_JOB_TEMP", "/tmp"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    pairs.push((
        "SSL_CERT_FILE".to_owned(),
        world.authority.display().to_string(),
    ));
    let variables = asked["environmentVariables"].as_object();
    // A virtual cluster takes the identity from a variable, other computes from the job itself.
    let named = variables.is_some_and(|variables| {
        variables.contains_key("DEFAULT_IDENTITY_CLIENT_ID")
            || variables.contains_key("_AZUREML_SINGULARITY_JOB_UAI")
    });
    if asked["identity"]["identityType"] == "Managed" || (singularity && named) {
        pairs.extend(world.tokens.identity());
        if let Some(client) = asked["identity"]["clientId"].as_str() {
            pairs.push(("DEFAULT_IDENTITY_CLIENT_ID".to_owned(), client.to_owned()));
        }
    }
    pairs.extend(
        world
            .conditions()
            .variables
            .iter()
            .filter(|(begin, _)| name.starts_with(begin))
            .map(|(_, [name, value])| (name.clone(), value.clone())),
    );
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    pairs.extend(
        variables
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value))),
    );
    Ok(pairs)
}

/// Freezes all processes, so that no file is closed.
pub(super) fn freeze(running: &[Running]) {
    for process in running {
        process.signal(Signal::STOP);
    }
    for pid in running
        .first()
        .map(|first| started_by(&first.marks))
        .unwrap_or_default()
    {
        towline_host::process::signal(pid, Signal::STOP);
    }
}

/// Ends all groups by SIGTERM, then by SIGKILL after the grace. Nothing of them is left.
pub(super) fn end(running: &mut [Running], grace: Duration) {
    let begun = Instant::now();
    if grace > Duration::ZERO && running.iter_mut().any(|process| process.code().is_none()) {
        running
            .iter()
            .filter(|process| process.code.is_none())
            .for_each(|process| process.signal(Signal::TERM));
        while begun.elapsed() < grace && running.iter_mut().any(|process| process.code().is_none())
        {
            std::thread::sleep(super::life::POLL_INTERVAL);
        }
    }
    for process in running.iter_mut() {
        process.signal(Signal::KILL);
        let _ = process.child.wait();
    }
    // As with a container that is removed, everything that was started in it ends, in its group or
    // not.
    if let Some(first) = running.first() {
        let begun = Instant::now();
        while begun.elapsed() < KILL_TIMEOUT
            && started_by(&first.marks)
                .into_iter()
                .map(|pid| towline_host::process::signal(pid, Signal::KILL))
                .count()
                > 0
        {
            std::thread::sleep(super::life::POLL_INTERVAL);
        }
    }
}

/// The variables that mark a job's processes. Another emulator may have a job of the same name.
fn marks(job: &str, endpoint: &str) -> [String; 2] {
    [
        format!("AZUREML_RUN_ID={job}"),
        format!("AZUREML_SERVICE_ENDPOINT={endpoint}"),
    ]
}

/// Processes that have these variables.
fn started_by(marks: &[String; 2]) -> Vec<i32> {
    let is_marked = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let pairs: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        marks.iter().all(|mark| pairs.contains(&mark.as_bytes()))
    };
    towline_host::process::all()
        .into_iter()
        .filter(|(_, facts)| !facts.zombie)
        .map(|(pid, _)| pid)
        .filter(is_marked)
        .collect()
}
