//! Starting the runners of an attempt: one child where the head has the only node, else `srun`.

use super::{Head, NODE_END_SLACK};
use crate::far::{HEAD_PID_VARIABLE, NODE_VERB, scheduler};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use towline_core::cluster::Claim;
use towline_slurm::{job_variables, step};

/// The process that runs on the only node, or that starts the runners on several.
pub(super) struct NodeStarter {
    pub(super) child: Child,
    /// Becomes readable when the child ends, on kernels that have it.
    ended: Option<OwnedFd>,
    /// The first error that `srun` printed.
    error: Arc<Mutex<Option<String>>>,
    listener: Option<JoinHandle<()>>,
}

impl NodeStarter {
    /// Copies the child's stderr to our own and remembers its first error.
    pub(super) fn new(mut child: Child) -> io::Result<Self> {
        let error = Arc::new(Mutex::new(None));
        let first_error = error.clone();
        let listener = child
            .stderr
            .take()
            .map(|stderr| {
                std::thread::Builder::new()
                    .name("srun".into())
                    .spawn(move || pass_on(stderr, &first_error))
            })
            .transpose()?;
        let pid = rustix::process::Pid::from_child(&child);
        let ended = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
        Ok(Self {
            child,
            ended: ended.ok(),
            error,
            listener,
        })
    }

    /// Becomes readable when the child ends.
    pub(super) fn watch(&self) -> Vec<BorrowedFd<'_>> {
        self.ended.iter().map(AsFd::as_fd).collect()
    }

    /// The first error that `srun` printed. Called once it has ended.
    pub(super) fn error(self) -> Option<String> {
        if let Some(listener) = self.listener {
            let begun = Instant::now();
            // A process that outlives `srun` may hold the other end of its stderr.
            while !listener.is_finished() && begun.elapsed() < NODE_END_SLACK {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

fn pass_on(stderr: ChildStderr, error: &Mutex<Option<String>>) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    while lines
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        let _ = io::stderr().write_all(&line);
        if let Some(text) = step::error(&String::from_utf8_lossy(&line)) {
            // The first error is the cause; the next ones follow from it.
            error
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| text.to_owned());
        }
        line.clear();
    }
}

impl Head {
    pub(super) fn start_nodes(&self, attempt: u32, claim: &Claim) -> io::Result<NodeStarter> {
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        let mut words = vec![
            own,
            NODE_VERB.to_owned(),
            self.stage.root().to_string_lossy().into_owned(),
        ];
        words.extend([
            self.submission.to_string(),
            self.run.to_string(),
            attempt.to_string(),
        ]);
        let nodes = self.order.plan.resolved.shape.nodes;
        if claim.hosts.len() < nodes as usize {
            return Err(io::Error::other(format!(
                "{nodes} nodes were asked for and {} were given",
                claim.hosts.len()
            )));
        }
        if nodes > 1 {
            return NodeStarter::new(
                scheduler::on_each_node(nodes, &words)
                    .stderr(Stdio::piped())
                    .spawn()?,
            );
        }
        let own = std::process::id().to_string();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env(job_variables::NODE, "0")
            .env(HEAD_PID_VARIABLE, own)
            .stdin(Stdio::null())
            .process_group(0);
        NodeStarter::new(command.spawn()?)
    }
}
