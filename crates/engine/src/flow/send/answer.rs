//! The cluster's answer to a submission that the daemon sends.

use crate::flow::outside::Outside;
use crate::flow::waiting::TELL_AFTER;
use std::time::{Duration, Instant};
use towline_client::{self as client, Heard};
use towline_core::reason::Cause;
use towline_core::state::{Phase, RunState};
use towline_core::time::Moment;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_wire::cluster::ClusterStatus;
use towline_wire::daemon::{Reply, Request};
use towline_wire::layout::StateFolder;

/// How long to wait for a cluster's answer once it is in trouble, and how often to check.
const TROUBLE_TIMEOUT: Duration = Duration::from_secs(10);
const TROUBLE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Waits until the cluster has accepted or refused a submission. Does not wait for a cluster in
/// trouble: the daemon sends the submission when the cluster answers again.
pub fn carried_over(
    outside: &dyn Outside,
    cluster: &str,
    run: &RunId,
    submitted: Moment,
) -> Result<()> {
    let decided = |state: &RunState| {
        // One that waits for other runs is sent later.
        state.is_blocked()
            || !matches!(
                state.phase,
                Phase::Drafted | Phase::Staging | Phase::Submitting
            )
    };
    let mut wait = Wait {
        cluster,
        begun: Instant::now(),
        submitted,
        troubled: None,
        said: String::new(),
        tell: outside.terminal().tell,
    };
    loop {
        let (first, mut conversation) = client::ask(outside.state()?, &|| Request::Watch {
            runs: vec![run.clone()],
            logs: false,
        })?;
        let mut next = Heard::Reply(Box::new(first));
        loop {
            match next {
                Heard::Reply(reply) => match *reply {
                    Reply::State { state, .. } | Reply::Event { state, .. } if decided(&state) => {
                        return judged(&state);
                    }
                    _ => {}
                },
                Heard::NotYet => {
                    if let Some(why) = wait.has_no_end(outside.state()?) {
                        let lines = why
                            .hints
                            .iter()
                            .fold(why.text, |text, hint| format!("{text}\n  hint: {hint}"));
                        (outside.terminal().tell)(&format!(
                            "warning: `{cluster}` does not answer: {lines}\n  {run} is recorded \
                                and will be sent when it does"
                        ));
                        return Ok(());
                    }
                }
                // The daemon exits; the next one takes over.
                Heard::HungUp => break,
            }
            next = conversation.hear(Some(Instant::now() + TROUBLE_CHECK_INTERVAL))?;
        }
    }
}

/// A wait for a cluster that has neither accepted nor refused yet.
struct Wait<'c> {
    cluster: &'c str,
    begun: Instant,
    submitted: Moment,
    /// Since when the cluster is in trouble.
    troubled: Option<Instant>,
    said: String,
    tell: fn(&str),
}

struct Why {
    text: String,
    hints: Vec<String>,
}

impl Wait<'_> {
    /// Tells the user what the wait is for. Returns the reason to stop waiting, once the cluster
    /// was in trouble for too long.
    fn has_no_end(&mut self, state: &StateFolder) -> Option<Why> {
        let status = ClusterStatus::read(&state.cluster(self.cluster, "status"))
            .ok()
            .flatten()
            .unwrap_or_default();
        let why = status
            .trouble
            .filter(|_| status.at.is_some_and(|at| at >= self.submitted));
        let Some(text) = why else {
            self.troubled = None;
            if self.said.is_empty() && self.begun.elapsed() > TELL_AFTER {
                self.say(format!("waiting for `{}` to accept it", self.cluster));
            }
            return None;
        };
        if self.troubled.get_or_insert_with(Instant::now).elapsed() >= TROUBLE_TIMEOUT {
            return Some(Why {
                text,
                hints: status.hints,
            });
        }
        self.say(format!("waiting for `{}`: {text}", self.cluster));
        None
    }

    /// Prints a line, unless it is the last one again.
    fn say(&mut self, line: String) {
        if self.said != line {
            (self.tell)(&line);
            self.said = line;
        }
    }
}

fn judged(state: &RunState) -> Result<()> {
    let rejected = state
        .ending
        .as_ref()
        .filter(|ending| state.phase.is_ended() && ending.cause == Some(Cause::Rejected));
    let Some(ending) = rejected else {
        return Ok(());
    };
    let error = Error::new(
        ending
            .refusal
            .as_ref()
            .map_or(ErrorKind::Refused, |refusal| refusal.kind),
        ending.detail.clone().unwrap_or_default(),
    );
    Err(ending.hints().iter().fold(error, Error::hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::reason::Ending;

    #[test]
    fn only_a_rejected_run_is_an_error() {
        let ended = |cause| {
            let ending = Ending::cause(cause).detail("no such partition");
            RunState {
                phase: Phase::Ended(ending.outcome()),
                ending: Some(ending),
                ..RunState::default()
            }
        };
        let error = judged(&ended(Cause::Rejected)).expect_err("rejected");
        assert!(error.to_string().contains("no such partition"));
        assert!(judged(&ended(Cause::ExitCode)).is_ok());
        assert!(judged(&RunState::default()).is_ok());
    }
}
