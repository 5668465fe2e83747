//! Node 0 of a job: claims the next attempt of its run, starts it on every node, records how it
//! went, and decides what follows.

use super::local_part::{LocalPart, Step};
use super::peers::{Event, Peers};
use super::progress::Progress;
use super::status_file::StatusFile;
use super::{Crew, NODE_END_SLACK, SIGTERM_EXIT_CODE, TIMEOUT_CHECK_INTERVAL, complain};
use crate::far::records::Due;
use crate::launch::free_port;
use std::io;
use std::time::{Duration, Instant};
use towline_core::cluster::{Claim, Held, JobStart};
use towline_core::reason::{Cause, Ending};
use towline_host::crash;
use towline_wire::crew::{FromNode, ToNode};
use towline_wire::runner::Stop;

/// How long a node that still sends heartbeats may take beyond the grace to report its end.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn lead(crew: Crew<'_>) -> io::Result<i32> {
    let status_file = StatusFile::read(crew.task)?;
    let job = std::env::var("AZUREML_RUN_ID").unwrap_or_else(|_| crew.task.run.to_string());
    let me = JobStart {
        job,
        restarts: status_file.starts(),
    };
    let peers = Peers::new(
        &crew.station,
        crew.nodes,
        &crew.carrier.order.shared_token,
        crew.task.pace,
    );
    let mut leader = Leader {
        crew,
        status_file,
        peers,
        me,
        is_leaving: false,
        has_lost_node: false,
        is_orphan: false,
    };
    let code = leader.lead();
    if code.is_err() {
        // The others would wait for us.
        leader.peers.dismiss_all(1);
    }
    code
}

struct Leader<'a> {
    crew: Crew<'a>,
    status_file: StatusFile,
    peers: Peers,
    me: JobStart,
    /// The service ends this job: no further attempt begins in it.
    is_leaving: bool,
    /// The job has lost a node: no further attempt can begin in it.
    has_lost_node: bool,
    /// Our guard is gone: everything must end.
    is_orphan: bool,
}

impl Leader<'_> {
    fn lead(&mut self) -> io::Result<i32> {
        let policy = self.crew.carrier.order.plan.resolved.retry.clone();
        self.status_file.restart(policy.as_ref())?;
        let mut code = 1;
        loop {
            match self.status_file.due(policy.as_ref()) {
                Due::Nothing(ending) => return self.over(&ending),
                Due::Open(attempt) => {
                    return Err(io::Error::other(format!("attempt {attempt} has no end")));
                }
                Due::Begin(_) if self.is_orphan => return Ok(1),
                Due::Begin(_) if self.is_leaving => {
                    self.peers.dismiss_all(SIGTERM_EXIT_CODE);
                    return Ok(SIGTERM_EXIT_CODE);
                }
                Due::Begin(_) if self.has_lost_node => {
                    self.status_file.conclude();
                    self.peers.dismiss_all(code);
                    return Ok(code);
                }
                Due::Begin(attempt) => code = self.begin(attempt)?,
            }
        }
    }

    fn over(&mut self, ending: &Ending) -> io::Result<i32> {
        if self.status_file.is_empty() {
            self.status_file.end(0, ending.clone())?;
        }
        self.status_file.conclude();
        let code = ending.passed_code();
        if !self.is_leaving && !self.has_lost_node && !self.is_orphan {
            // The other nodes may just be starting for a run that is over.
            self.wait_for_nodes()?;
        }
        self.peers.dismiss_all(code);
        Ok(code)
    }

    /// Waits until something happens, or for a moment. Returns whether the service has signalled us
    /// to end.
    fn wait(&mut self, local_part: Option<&LocalPart>) -> io::Result<bool> {
        let mut others = self.peers.watches();
        others.extend(local_part.and_then(LocalPart::watch));
        let limit = if local_part.is_some_and(LocalPart::is_due) {
            Duration::ZERO
        } else {
            TIMEOUT_CHECK_INTERVAL
        };
        let signalled = self
            .crew
            .end_signal
            .wait_also(local_part.and_then(LocalPart::attempt), &others, limit)?
            .is_some();
        self.is_orphan = self.crew.is_orphan();
        self.is_leaving |= signalled;
        Ok(signalled)
    }

    /// Waits for all nodes. Returns descriptions of those that did not come in time.
    fn wait_for_nodes(&mut self) -> io::Result<Vec<String>> {
        let begun = Instant::now();
        loop {
            let open = self.peers.open();
            self.peers.receive();
            let missing = self.peers.missing();
            let is_late = begun.elapsed() >= self.crew.task.pace.meeting;
            if missing.is_empty() || self.is_leaving || self.is_orphan {
                return Ok(Vec::new());
            }
            if is_late {
                let deaf = open.err().map(|error| {
                    format!(
                        "; its port {} cannot be had: {error}",
                        self.crew.station.port
                    )
                });
                let after = self.crew.task.pace.meeting.as_secs();
                return Ok(missing
                    .iter()
                    .map(|node| {
                        format!(
                            "node {node} did not come within {after} s{}",
                            deaf.as_deref().unwrap_or_default()
                        )
                    })
                    .collect());
            }
            self.wait(None)?;
        }
    }

    /// One attempt from its claim to its end. Returns its exit code.
    fn begin(&mut self, attempt: u32) -> io::Result<i32> {
        let missing = self.wait_for_nodes()?;
        if self.is_leaving || self.is_orphan {
            return Ok(SIGTERM_EXIT_CODE);
        }
        let others = (1..self.crew.nodes).map(|node| self.peers.host(node).to_owned());
        let hosts: Vec<String> = [self.crew.station.leader.clone()]
            .into_iter()
            .chain(others)
            .collect();
        let claim = Claim {
            by: self.me.clone(),
            at: towline_host::clock::now(),
            hosts,
            port: free_port(),
        };
        crash::pass("crew.claim.before");
        self.status_file.claim(attempt, claim.clone())?;
        crash::pass("crew.claimed");
        let ending = if missing.is_empty() {
            let ending = self.carry(attempt, &claim)?;
            self.hold(attempt, ending)?
        } else {
            self.has_lost_node = true;
            Ending::cause(Cause::NodeFailed).detail(missing.join("; "))
        };
        crash::pass("crew.end.before");
        self.status_file.end(attempt, ending.clone())?;
        crash::pass("crew.end.written");
        Ok(ending.passed_code())
    }

    /// Runs the attempt on all nodes, until no process of it is alive.
    fn carry(&mut self, attempt: u32, claim: &Claim) -> io::Result<Ending> {
        self.peers.send_all(&ToNode::Begin {
            attempt,
            hosts: claim.hosts.clone(),
            port: claim.port,
        });
        let mut local_part = self.crew.carrier.begin(attempt, &claim.hosts, claim.port);
        let mut progress = Progress::new(self.crew.nodes);
        while !progress.is_over() {
            let signalled = self.wait(Some(&local_part))?;
            if self.is_orphan {
                towline_host::process::kill_all_descendants();
                return Ok(
                    Ending::cause(Cause::NodeFailed).detail("what guarded node 0 was killed")
                );
            }
            if signalled && local_part.has_ended() && progress.is_open_here_alone() {
                // It had ended before.
                local_part.hurry();
            } else if signalled {
                let ending = self.ending_by_service();
                self.stop(&mut progress, &mut local_part, ending);
            }
            for event in self.peers.receive() {
                self.happened(event, &mut progress, &mut local_part);
            }
            self.give_up_late(&mut progress);
            if progress.is_open(0) {
                match local_part.wake() {
                    Step::Nothing => {}
                    Step::Started => self.started(&mut progress, attempt),
                    Step::Ended(ending) => self.ended(0, ending, &mut progress, &mut local_part),
                }
            }
        }
        Ok(progress.ending())
    }

    /// The ending for a signal of the service, which does not say why it ends a job.
    fn ending_by_service(&self) -> Ending {
        Ending::cause(if self.status_file.is_cancelled() {
            Cause::ByUser
        } else {
            Cause::Preempted
        })
    }

    fn stop(&self, progress: &mut Progress, local_part: &mut LocalPart, ending: Ending) {
        let why = if ending.cause == Some(Cause::Preempted) {
            Stop::Preempted
        } else {
            Stop::ByUser
        };
        if progress.stop(ending) {
            self.peers.send_all(&ToNode::Stop {
                attempt: local_part.number(),
            });
        }
        if self.is_leaving {
            local_part.stop_soon(why, self.crew.short_grace());
        } else {
            local_part.stop(why);
        }
    }

    fn happened(&mut self, event: Event, progress: &mut Progress, local_part: &mut LocalPart) {
        match event {
            Event::Said(_, FromNode::Started { attempt }) if attempt == local_part.number() => {
                self.started(progress, attempt);
            }
            Event::Said(node, FromNode::Ended { attempt, ending })
                if attempt == local_part.number() =>
            {
                self.ended(node, ending, progress, local_part);
            }
            Event::Said(..) => {}
            Event::Lost(node, why) => {
                self.has_lost_node = true;
                complain(&why);
                if progress.is_open(node) {
                    progress.ended(node);
                    self.stop(
                        progress,
                        local_part,
                        Ending::cause(Cause::NodeFailed).detail(why),
                    );
                }
            }
        }
    }

    fn started(&mut self, progress: &mut Progress, attempt: u32) {
        if progress.started() {
            self.status_file.started(attempt);
            crash::pass("crew.started");
        }
    }

    /// Handles the end of a node. The first node that failed ends the others.
    fn ended(
        &mut self,
        node: u32,
        ending: Ending,
        progress: &mut Progress,
        local_part: &mut LocalPart,
    ) {
        progress.ended(node);
        match ending.cause {
            None => {}
            Some(Cause::Preempted) if !progress.is_stopping() => {
                // The service has signalled that node; its signal is on the way to us too.
                self.is_leaving = true;
                let ending = self.ending_by_service();
                self.stop(progress, local_part, ending);
            }
            Some(_) => self.stop(progress, local_part, ending),
        }
    }

    /// Gives up nodes that take too long, because the service does not wait for them.
    fn give_up_late(&mut self, progress: &mut Progress) {
        let grace = Duration::from_millis(self.crew.carrier.order.grace_millis);
        let limit = if self.is_leaving {
            self.crew.short_grace() + NODE_END_SLACK
        } else {
            grace + STOP_TIMEOUT
        };
        for node in progress.late(limit) {
            complain(&format!("node {node} did not report its end in time"));
            self.has_lost_node = true;
            self.peers.give_up(node);
            progress.ended(node);
        }
    }

    /// Holds the nodes after a failure, if the user asked for that.
    fn hold(&mut self, attempt: u32, ending: Ending) -> io::Result<Ending> {
        let failed = ending.cause.is_some_and(Cause::is_own_failure);
        let span = self.crew.carrier.order.plan.resolved.hold_on_failure;
        let Some(span) = span.filter(|_| failed && !self.is_leaving && !self.is_orphan) else {
            return Ok(ending);
        };
        let at = towline_host::clock::now();
        let begun = Instant::now();
        self.status_file.held(
            attempt,
            Held {
                at,
                until: at.plus_millis(span.0 * 1000),
                ending: ending.clone(),
            },
        );
        while begun.elapsed() < Duration::from_secs(span.0) && !self.is_leaving && !self.is_orphan {
            self.wait(None)?;
            self.has_lost_node |= self
                .peers
                .receive()
                .iter()
                .any(|event| matches!(event, Event::Lost(..)));
        }
        Ok(ending)
    }
}
