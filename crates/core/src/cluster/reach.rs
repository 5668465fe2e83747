//! How to reach a running job.

use super::RunRef;
use crate::state::{Phase, RunState};
use crate::transport::Transport;
use crate::{Error, Result};
use std::ffi::OsString;
use std::sync::Arc;

/// The run to reach, and the purpose.
#[derive(Debug, Clone, Copy)]
pub struct ReachRequest<'a> {
    pub run: &'a RunRef,
    pub state: &'a RunState,
    /// The node of the run, and the rank there.
    pub node: u32,
    pub rank: u32,
    pub purpose: Purpose<'a>,
}

impl ReachRequest<'_> {
    /// Refuses a run that has no nodes now.
    pub fn check_running(&self) -> Result<()> {
        let (run, phase) = (&self.run.run, self.state.phase);
        match phase {
            Phase::Running => Ok(()),
            Phase::Ended(_) => Err(
                Error::refused(format!("{run} has ended ({})", phase.word())).hint(format!(
                    "`tow submit ssh` or `tow alloc` keeps nodes; its files: tow get {} PATH",
                    run.short()
                )),
            ),
            _ => Err(
                Error::refused(format!("{run} does not run yet ({})", phase.word()))
                    .hint(format!("what it waits for: tow why {}", run.short())),
            ),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    /// A shell beside the rank, or this command.
    Shell {
        argv: &'a [String],
        terminal: bool,
    },
    Port,
}

/// The means to reach it.
#[derive(Debug)]
pub enum Reach {
    /// The run is on this machine.
    Here,
    /// This command of this machine connects to it.
    Command(Vec<OsString>),
    /// Its node accepts ssh itself.
    Ssh(SshAddress),
    /// Ports of `host` are forwarded through this machine.
    Through {
        transport: Arc<dyn Transport>,
        host: String,
    },
}

/// The address at which a node accepts ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshAddress {
    /// `user@host`
    pub login: String,
    pub port: u16,
    /// A configuration of ssh that the cluster names.
    pub ssh_config: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_runs_is_reached() {
        let run = RunRef::of(&crate::RunId::new("job", 1, 2));
        let message = |phase| {
            let state = RunState {
                phase,
                ..RunState::default()
            };
            let request = ReachRequest {
                run: &run,
                state: &state,
                node: 0,
                rank: 0,
                purpose: Purpose::Port,
            };
            request.check_running().err().map(|error| error.to_string())
        };
        assert_eq!(message(Phase::Running), None);
        let ended = message(Phase::Ended(crate::reason::Outcome::Failed));
        assert!(ended.is_some_and(|text| text.contains("has ended (failed)")));
        let queued = message(Phase::Queued);
        assert!(queued.is_some_and(|text| text.contains("does not run yet (queued)")));
    }
}
