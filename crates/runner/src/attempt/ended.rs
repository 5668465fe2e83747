//! The effect of an ended process on its attempt.

use super::{Attempt, Step};
use crate::inner::ending_file;
use crate::memory::{MemoryGroup, kernel_kills};
use rustix::process::WaitStatus;
use towline_core::cluster::LogSource;
use towline_core::reason::{Cause, Ending, RankFailure};
use towline_wire::log_name::LogName;

impl Attempt {
    pub(super) fn ended(&mut self, pid: i32, status: WaitStatus) {
        if let Some(data) = self.data.as_mut().filter(|data| data.pid() == pid) {
            return data.has_ended(status.exit_status() == Some(0));
        }
        let Some(process) = self
            .processes
            .iter_mut()
            .find(|process| process.pid == pid && process.status.is_none())
        else {
            return;
        };
        process.status = Some(status);
        process.watch = None;
        let (source, node) = (process.source, process.node);
        if self.step == Step::Inside {
            return self.inside_ended(status);
        }
        towline_host::crash::pass("runner.rank.exited");
        if status.exit_status() == Some(0) || self.ending.is_some() {
            return;
        }
        self.ending = Some(self.failure(source, node, status));
        self.terminate(false);
    }

    /// Reads the ending that the runner inside has left; there is none if the runner was killed.
    fn inside_ended(&mut self, status: WaitStatus) {
        self.launch().remove_container();
        let file = ending_file(&self.folder, &self.assignment);
        let left: Option<Ending> = std::fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let _ = std::fs::remove_file(file);
        self.inner_ending_read = left.is_some();
        let ran_out = self.memory.first().is_some_and(MemoryGroup::ran_out);
        let left = left.map(|ending| match ending.cause {
            Some(Cause::ExitCode | Cause::Signal) if ran_out => Ending {
                cause: Some(Cause::OutOfMemory),
                ..ending
            },
            _ => ending,
        });
        match left {
            _ if self.ending.is_some() => {}
            Some(ending) if ending.cause.is_none() => {}
            Some(ending) => self.ending = Some(ending),
            None if self.assignment.container.is_none() => {
                self.ending = Some(Ending::cause(if ran_out {
                    Cause::OutOfMemory
                } else {
                    Cause::NodeFailed
                }));
            }
            None => {
                let code = status
                    .exit_status()
                    .or(status.terminating_signal().map(|number| 128 + number));
                let stderr = self
                    .last_line(LogSource::SetUp(
                        self.assignment.gang.as_ref().map_or(0, |place| place.node),
                    ))
                    .unwrap_or_else(|| "it printed nothing".to_owned());
                if self.start_with_cgroups(&stderr) {
                    return;
                }
                self.ending = Some(
                    Ending {
                        exit_code: code,
                        ..Ending::cause(Cause::ImagePull)
                    }
                    .detail(stderr),
                );
            }
        }
    }

    /// Starts the container again if podman refused it because of control groups. `false` if that
    /// was not the reason.
    fn start_with_cgroups(&mut self, stderr: &str) -> bool {
        let Some(order) = &mut self.assignment.container else {
            return false;
        };
        let Some(option) = crate::container::other_cgroups(order, stderr) else {
            return false;
        };
        order.container.options.insert(0, option.to_owned());
        let Ok(process) = self.launch().inside() else {
            return false;
        };
        self.processes = vec![process];
        true
    }

    fn last_line(&self, source: LogSource) -> Option<String> {
        let text = std::fs::read(
            self.folder
                .join(LogName::new(self.assignment.attempt, source).file()),
        )
        .ok()?;
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]).into_owned();
        text.lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .map(|line| line.trim().to_owned())
    }

    fn failure(&self, source: LogSource, node: u32, status: WaitStatus) -> Ending {
        let (code, by_signal) = (status.exit_status(), status.terminating_signal());
        let exit_code = code.or(by_signal.map(|number| 128 + number));
        let by_cluster = || self.assignment.gang.is_some() && kernel_kills() > self.kills_before;
        let ran_out = self
            .memory
            .get(node as usize)
            .is_some_and(MemoryGroup::ran_out)
            || by_cluster();
        match source {
            LogSource::SetUp(_) => Ending {
                exit_code,
                ..Ending::cause(Cause::SetUp)
            }
            .detail(format!("node {node}, code {}", exit_code.unwrap_or(1))),
            LogSource::Rank(rank) => {
                let cause = match by_signal {
                    _ if ran_out => Cause::OutOfMemory,
                    Some(_) => Cause::Signal,
                    None => Cause::ExitCode,
                };
                let first_failure = Some(RankFailure {
                    rank,
                    node,
                    exit_code: code,
                    signal: by_signal,
                });
                Ending {
                    exit_code,
                    first_failure,
                    ..Ending::cause(cause)
                }
            }
        }
    }
}
