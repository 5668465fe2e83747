//! One go of a job at running: its nodes' folders, its processes, what they write, and how it ended.

use super::document::is_interactive;
use super::inputs;
use super::life::{LOOK, Life, user_error};
use super::logs::Log;
use super::node::{self, Running};
use super::outputs::{self, Output};
use super::ranks::{self, Process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) enum End {
    Succeeded,
    Failed(Value),
    Cancelled,
    TimedOut,
    Preempted,
    /// The emulator has ended.
    Gone,
}

/// Files are sent on so often while a job runs.
const SHIP: Duration = Duration::from_millis(50);
const UPLOAD: Duration = Duration::from_millis(300);

pub(super) struct Attempt {
    pub folder: PathBuf,
    pub command: String,
    pub processes: Vec<Process>,
    /// `AZURE_ML_INPUT_x` and the like.
    pub paths: Vec<(String, String)>,
    outputs: Vec<Output>,
    artifacts: Vec<Output>,
    logs: Vec<Log>,
}

impl Attempt {
    /// Brings code and inputs to folders of nodes that no job has seen before.
    pub(super) fn prepare(life: &Life, number: usize) -> Result<Self, String> {
        let (asked, nodes, job_number) = life.job(|job| (job.asked.clone(), job.node_count(), job.number)).ok_or("the job is gone")?;
        if asked["jobType"] != "Command" {
            return Err(format!("The emulator runs command jobs; '{}' is none.", asked["jobType"].as_str().unwrap_or_default()));
        }
        let folder = life.world.folder.join(format!("{}-{number}", life.name));
        let code = inputs::bring_code(life, &asked, &folder.join("code"))?;
        for node in 0..nodes {
            copy(&code, &node::folder(&folder, node)).map_err(|error| error.to_string())?;
        }
        let inputs = inputs::bring_all(life, &asked, &folder.join("inputs"))?;
        let outputs = outputs::all(life, &asked, &folder)?;
        let shown: BTreeMap<String, String> = outputs.iter().map(|output| (output.name.clone(), output.folder.display().to_string())).collect();
        let line = if is_interactive(&asked) { "exec sleep infinity" } else { asked["command"].as_str().unwrap_or_default() };
        let command = bind(line, &inputs, &shown);
        let named = |kind: &str, paths: &BTreeMap<String, String>| -> Vec<_> {
            paths.iter().map(|(name, path)| (format!("AZURE_ML_{kind}_{name}"), path.clone())).collect()
        };
        let paths = [named("INPUT", &inputs), named("OUTPUT", &shown)].concat();
        let processes = ranks::processes(&asked, nodes, &ranks::hosts(job_number, nodes, number), number);
        let artifacts = outputs::artifacts(&life.name, &folder, nodes);
        Ok(Self { folder, command, processes, paths, outputs, artifacts, logs: Vec::new() })
    }

    fn ship(&mut self, life: &Life) {
        self.logs.iter_mut().for_each(|log| log.ship(&life.world.blobs));
    }
    /// A mount carries files away in the order in which they were closed: what was written into a later output, after
    /// something in an earlier one, must not be there before it. So the later are read first and sent last.
    fn upload(&mut self, life: &Life, last: bool) {
        let mut wanted: Vec<&mut Output> = self.outputs.iter_mut().chain(&mut self.artifacts).filter(|output| last || output.while_running).collect();
        let mut changed: Vec<_> = wanted.iter().rev().map(|output| output.changed()).collect();
        changed.reverse();
        wanted.iter_mut().zip(changed).for_each(|(output, changed)| output.send(&life.world.blobs, changed));
    }
}

/// To the end of every process; whatever they wrote is in the store when this returns.
pub(super) fn run(life: &Life, attempt: &mut Attempt) -> End {
    let (grace, timeout) = (life.world.conditions().grace, life.job(|job| job.timeout()).flatten());
    let mut running = match node::start(life, attempt) {
        Ok((running, logs)) => {
            attempt.logs = logs;
            running
        }
        Err(message) => return End::Failed(user_error(&message)),
    };
    life.job(|job| job.groups = running.iter().map(Running::group).collect());
    let begun = Instant::now();
    let (mut shipped, mut uploaded) = (begun, begun);
    let end = loop {
        if let Some(end) = ended(life, &mut running, timeout.is_some_and(|limit| begun.elapsed() >= limit)) {
            break end;
        }
        if shipped.elapsed() >= SHIP {
            attempt.ship(life);
            shipped = Instant::now();
        }
        if uploaded.elapsed() >= UPLOAD {
            attempt.upload(life, false);
            uploaded = Instant::now();
        }
        std::thread::sleep(LOOK);
    };
    node::end(&mut running, if matches!(end, End::Preempted | End::Gone) { Duration::ZERO } else { grace });
    // The last of what was written arrives when the job is said to be ending already.
    if matches!(end, End::Succeeded | End::Failed(_) | End::TimedOut) {
        life.turn("Finalizing");
    }
    if !matches!(end, End::Gone) {
        attempt.ship(life);
        attempt.upload(life, true);
    }
    end
}

fn ended(life: &Life, running: &mut [Running], late: bool) -> Option<End> {
    if life.world.ended() {
        return Some(End::Gone);
    }
    let (cancelled, preempted) = life.job(|job| (job.cancelled, std::mem::take(&mut job.preempted))).unwrap_or((true, false));
    if cancelled {
        return Some(End::Cancelled);
    }
    if preempted {
        return Some(End::Preempted);
    }
    if late {
        return Some(End::TimedOut);
    }
    let codes: Vec<Option<i32>> = running.iter_mut().map(Running::code).collect();
    if let Some((at, code)) = codes.iter().enumerate().find_map(|(at, code)| code.filter(|code| *code != 0).map(|code| (at, code))) {
        let message =
            format!("Execution failed. User process 'bash' exited with status code {code}. Please check log file '{}' for error details.", running[at].log);
        return Some(End::Failed(user_error(&message)));
    }
    codes.iter().all(Option::is_some).then_some(End::Succeeded)
}

/// Puts paths and values in place of `${{inputs.x}}` and `${{outputs.x}}`.
fn bind(command: &str, inputs: &BTreeMap<String, String>, outputs: &BTreeMap<String, String>) -> String {
    let mut command = command.to_owned();
    for (kind, values) in [("inputs", inputs), ("outputs", outputs)] {
        for (name, value) in values {
            command = command.replace(&format!("${{{{{kind}.{name}}}}}"), value);
        }
    }
    command
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
