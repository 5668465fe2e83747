//! One attempt of a job: its nodes' folders, its processes, its output, and how it ended.

use super::document::is_interactive;
use super::inputs;
use super::life::{Life, POLL_INTERVAL, user_error};
use super::logs::Log;
use super::node::{self, Running};
use super::outputs::{self, Output, When};
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

/// How often logs are uploaded while a job runs, and mounts are searched.
const LOG_UPLOAD_INTERVAL: Duration = Duration::from_millis(50);
const OUTPUT_UPLOAD_INTERVAL: Duration = Duration::from_millis(300);

pub(super) struct Attempt {
    pub folder: PathBuf,
    pub processes: Vec<Process>,
    /// The command of each node, and `AZURE_ML_INPUT_x` and the like as it sees them.
    pub nodes: Vec<NodeView>,
    outputs: Vec<Output>,
    logs: Vec<Log>,
}

/// The command and the paths of one node, which has its own mounts.
pub(super) struct NodeView {
    pub command: String,
    pub paths: Vec<(String, String)>,
}

impl Attempt {
    /// Downloads code and inputs to new folders of the nodes.
    pub(super) fn prepare(life: &Life, number: usize) -> Result<Self, String> {
        let (asked, nodes, job_number) = life
            .job(|job| (job.asked.clone(), job.node_count(), job.number))
            .ok_or("the job is gone")?;
        if asked["jobType"] != "Command" {
            return Err(format!(
                "The emulator runs command jobs; '{}' is none.",
                asked["jobType"].as_str().unwrap_or_default()
            ));
        }
        let folder = life.world.folder.join(format!("{}-{number}", life.name));
        let code = inputs::bring_code(life, &asked, &folder.join("code"))?;
        for node in 0..nodes {
            copy(&code, &node::folder(&folder, node)).map_err(|error| error.to_string())?;
        }
        let inputs = inputs::bring_all(life, &asked, &folder.join("inputs"))?;
        let mut outputs = outputs::all(life, &asked, &folder, nodes)?;
        let line = if is_interactive(&asked) {
            "exec sleep infinity"
        } else {
            asked["command"].as_str().unwrap_or_default()
        };
        let named = |kind: &str, paths: &BTreeMap<String, String>| -> Vec<_> {
            paths
                .iter()
                .map(|(name, path)| (format!("AZURE_ML_{kind}_{name}"), path.clone()))
                .collect()
        };
        let view = |node: usize| {
            let shown = outputs::of_node(&outputs, node);
            NodeView {
                command: bind(line, &inputs, &shown),
                paths: [named("INPUT", &inputs), named("OUTPUT", &shown)].concat(),
            }
        };
        let views = (0..nodes).map(view).collect();
        let processes = ranks::processes(
            &asked,
            nodes,
            &ranks::hosts(job_number, nodes, number),
            number,
        );
        outputs.extend(outputs::artifacts(&life.name, &folder, nodes));
        Ok(Self {
            folder,
            processes,
            nodes: views,
            outputs,
            logs: Vec::new(),
        })
    }

    fn upload_logs(&mut self, life: &Life) {
        self.logs
            .iter_mut()
            .for_each(|log| log.upload_logs(&life.world.blobs));
    }
    fn upload(&mut self, life: &Life, when: When) {
        outputs::send_changed(&mut self.outputs, &life.world.blobs, when);
        if when == When::Running {
            let cache = life.world.conditions().mount_cache;
            outputs::refresh_old(&mut self.outputs, &life.world.blobs, cache);
        }
    }
}

/// Runs to the end of every process. All output is in the store when this returns.
pub(super) fn run(life: &Life, attempt: &mut Attempt) -> End {
    let (grace, timeout) = (
        life.world.conditions().grace,
        life.job(|job| job.timeout()).flatten(),
    );
    let mut running = match node::start(life, attempt) {
        Ok((running, logs)) => {
            attempt.logs = logs;
            running
        }
        Err(message) => return End::Failed(user_error(&message)),
    };
    life.job(|job| job.groups = running.iter().map(Running::group).collect());
    let begun = Instant::now();
    let (mut logs_uploaded_at, mut outputs_uploaded_at) = (begun, begun);
    let end = loop {
        if let Some(end) = ended(
            life,
            &mut running,
            timeout.is_some_and(|limit| begun.elapsed() >= limit),
        ) {
            break end;
        }
        if logs_uploaded_at.elapsed() >= LOG_UPLOAD_INTERVAL {
            attempt.upload_logs(life);
            logs_uploaded_at = Instant::now();
        }
        if outputs_uploaded_at.elapsed() >= OUTPUT_UPLOAD_INTERVAL {
            attempt.upload(life, When::Running);
            outputs_uploaded_at = Instant::now();
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    // A preempted node loses files that were not closed, because a mount uploads a file when it is
    // closed.
    if matches!(end, End::Preempted) {
        node::freeze(&running);
        attempt.upload_logs(life);
        attempt.upload(life, When::Frozen);
    }
    node::end(
        &mut running,
        if matches!(end, End::Preempted | End::Gone) {
            Duration::ZERO
        } else {
            grace
        },
    );
    // The last output arrives when the job's state is already Finalizing.
    if matches!(end, End::Succeeded | End::Failed(_) | End::TimedOut) {
        life.turn("Finalizing");
    }
    if !matches!(end, End::Gone | End::Preempted) {
        attempt.upload_logs(life);
        attempt.upload(life, When::Ended);
    }
    end
}

fn ended(life: &Life, running: &mut [Running], late: bool) -> Option<End> {
    if life.world.ended() {
        return Some(End::Gone);
    }
    let (cancelled, preempted) = life
        .job(|job| (job.cancelled, std::mem::take(&mut job.preempted)))
        .unwrap_or((true, false));
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
    if let Some((at, code)) = codes
        .iter()
        .enumerate()
        .find_map(|(at, code)| code.filter(|code| *code != 0).map(|code| (at, code)))
    {
        let message = format!(
            "Execution failed. User process 'bash' exited with status code {code}. Please check \
                log file '{}' for error details.",
            running[at].log
        );
        return Some(End::Failed(user_error(&message)));
    }
    codes.iter().all(Option::is_some).then_some(End::Succeeded)
}

/// Puts paths and values in place of `${{inputs.x}}` and `${{outputs.x}}`.
fn bind(
    command: &str,
    inputs: &BTreeMap<String, String>,
    outputs: &BTreeMap<String, String>,
) -> String {
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
