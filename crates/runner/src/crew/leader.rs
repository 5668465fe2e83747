//! Node 0 of a job: claims the next attempt of its run, has it carried on every node, tells how it
//! went, and decides what follows.

use super::company::{Company, Event};
use super::course::Course;
use super::news::Bulletin;
use super::share::{Share, Step};
use super::{Crew, ENDED_BY_SIGNAL, LOOK_EVERY, SLACK, complain};
use crate::far::records::Due;
use crate::launch::free_port;
use std::io;
use std::time::{Duration, Instant};
use towline_core::reason::{Cause, Ending};
use towline_host::crash;
use towline_wire::crew::{FromNode, ToNode};
use towline_wire::runner::Stop;
use towline_wire::stage::{Claim, Held, JobStart};

/// How long a node that gives signs of life may take beyond the grace to say that it has ended.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn lead(crew: Crew<'_>) -> io::Result<i32> {
    let bulletin = Bulletin::read(crew.task)?;
    let job = std::env::var("AZUREML_RUN_ID").unwrap_or_else(|_| crew.task.run.to_string());
    let me = JobStart {
        job,
        restarts: bulletin.starts(),
    };
    let company = Company::new(
        &crew.station,
        crew.nodes,
        &crew.carrier.order.word,
        crew.task.pace,
    );
    let mut leader = Leader {
        crew,
        bulletin,
        company,
        me,
        is_leaving: false,
        is_torn: false,
        is_orphan: false,
    };
    let code = leader.lead();
    if code.is_err() {
        // The others would wait for us.
        leader.company.farewell(1);
    }
    code
}

struct Leader<'a> {
    crew: Crew<'a>,
    bulletin: Bulletin,
    company: Company,
    me: JobStart,
    /// The service ends this job: no further attempt begins in it.
    is_leaving: bool,
    /// Not all nodes of it are there any more: none can.
    is_torn: bool,
    /// Who guards us is gone: nothing may go on.
    is_orphan: bool,
}

impl Leader<'_> {
    fn lead(&mut self) -> io::Result<i32> {
        let policy = self.crew.carrier.order.plan.resolved.retry.clone();
        self.bulletin.begin_anew(policy.as_ref())?;
        let mut code = 1;
        loop {
            match self.bulletin.due(policy.as_ref()) {
                Due::Nothing(ending) => return self.over(&ending),
                Due::Open(attempt) => {
                    return Err(io::Error::other(format!("attempt {attempt} has no end")));
                }
                Due::Begin(_) if self.is_orphan => return Ok(1),
                Due::Begin(_) if self.is_leaving => {
                    self.company.farewell(ENDED_BY_SIGNAL);
                    return Ok(ENDED_BY_SIGNAL);
                }
                Due::Begin(_) if self.is_torn => {
                    self.bulletin.conclude();
                    self.company.farewell(code);
                    return Ok(code);
                }
                Due::Begin(attempt) => code = self.begin(attempt)?,
            }
        }
    }

    fn over(&mut self, ending: &Ending) -> io::Result<i32> {
        if self.bulletin.is_empty() {
            self.bulletin.end(0, ending.clone())?;
        }
        self.bulletin.conclude();
        let code = ending.passed_code();
        if !self.is_leaving && !self.is_torn && !self.is_orphan {
            // The others may just be coming, to a run that is over.
            self.meet()?;
        }
        self.company.farewell(code);
        Ok(code)
    }

    /// Waits until something happens, or for a moment. Whether the service has told us to end.
    fn wait(&mut self, share: Option<&Share>) -> io::Result<bool> {
        let mut others = self.company.watches();
        others.extend(share.and_then(Share::watch));
        let limit = if share.is_some_and(Share::is_due) {
            Duration::ZERO
        } else {
            LOOK_EVERY
        };
        let told = self
            .crew
            .word
            .wait_also(share.and_then(Share::attempt), &others, limit)?
            .is_some();
        self.is_orphan = self.crew.is_orphan();
        self.is_leaving |= told;
        Ok(told)
    }

    /// Waits for all nodes. What there is to say of those that did not come in time.
    fn meet(&mut self) -> io::Result<Vec<String>> {
        let begun = Instant::now();
        loop {
            let open = self.company.open();
            self.company.hear();
            let missing = self.company.missing();
            let is_late = begun.elapsed() >= self.crew.task.pace.meeting;
            if missing.is_empty() || self.is_leaving || self.is_orphan {
                return Ok(Vec::new());
            }
            if is_late {
                let unheard = open.err().map(|error| {
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
                            unheard.as_deref().unwrap_or_default()
                        )
                    })
                    .collect());
            }
            self.wait(None)?;
        }
    }

    /// One attempt from its claim to its end. The code it leaves behind.
    fn begin(&mut self, attempt: u32) -> io::Result<i32> {
        let missing = self.meet()?;
        if self.is_leaving || self.is_orphan {
            return Ok(ENDED_BY_SIGNAL);
        }
        let others = (1..self.crew.nodes).map(|node| self.company.host(node).to_owned());
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
        self.bulletin.claim(attempt, claim.clone())?;
        crash::pass("crew.claimed");
        let ending = if missing.is_empty() {
            let ending = self.carry(attempt, &claim)?;
            self.hold(attempt, ending)?
        } else {
            self.is_torn = true;
            Ending::cause(Cause::NodeFailed).detail(missing.join("; "))
        };
        crash::pass("crew.end.before");
        self.bulletin.end(attempt, ending.clone())?;
        crash::pass("crew.end.written");
        Ok(ending.passed_code())
    }

    /// Has the attempt carried on all nodes, until nothing of it is alive.
    fn carry(&mut self, attempt: u32, claim: &Claim) -> io::Result<Ending> {
        self.company.tell_all(&ToNode::Begin {
            attempt,
            hosts: claim.hosts.clone(),
            port: claim.port,
        });
        let mut share = self.crew.carrier.begin(attempt, &claim.hosts, claim.port);
        let mut course = Course::new(self.crew.nodes);
        while !course.is_over() {
            let told = self.wait(Some(&share))?;
            if self.is_orphan {
                towline_host::process::kill_all_descendants();
                return Ok(
                    Ending::cause(Cause::NodeFailed).detail("what guarded node 0 was killed")
                );
            }
            if told && share.has_ended() && course.is_open_here_alone() {
                // It had come to its end before.
                share.hurry();
            } else if told {
                let ending = self.why_told();
                self.stop(&mut course, &mut share, ending);
            }
            for event in self.company.hear() {
                self.happened(event, &mut course, &mut share);
            }
            self.give_up_late(&mut course);
            if course.is_open(0) {
                match share.wake() {
                    Step::Nothing => {}
                    Step::Started => self.started(&mut course, attempt),
                    Step::Ended(ending) => self.ended(0, ending, &mut course, &mut share),
                }
            }
        }
        Ok(course.ending())
    }

    /// The service does not say why it ends a job.
    fn why_told(&self) -> Ending {
        Ending::cause(if self.bulletin.is_cancelled() {
            Cause::ByUser
        } else {
            Cause::Preempted
        })
    }

    fn stop(&self, course: &mut Course, share: &mut Share, ending: Ending) {
        let why = if ending.cause == Some(Cause::Preempted) {
            Stop::Preempted
        } else {
            Stop::ByUser
        };
        if course.stop(ending) {
            self.company.tell_all(&ToNode::Stop {
                attempt: share.number(),
            });
        }
        if self.is_leaving {
            share.stop_soon(why, self.crew.short_grace());
        } else {
            share.stop(why);
        }
    }

    fn happened(&mut self, event: Event, course: &mut Course, share: &mut Share) {
        match event {
            Event::Said(_, FromNode::Started { attempt }) if attempt == share.number() => {
                self.started(course, attempt)
            }
            Event::Said(node, FromNode::Ended { attempt, ending }) if attempt == share.number() => {
                self.ended(node, ending, course, share)
            }
            Event::Said(..) => {}
            Event::Lost(node, why) => {
                self.is_torn = true;
                complain(&why);
                if course.is_open(node) {
                    course.ended(node);
                    self.stop(course, share, Ending::cause(Cause::NodeFailed).detail(why));
                }
            }
        }
    }

    fn started(&mut self, course: &mut Course, attempt: u32) {
        if course.started() {
            self.bulletin.started(attempt);
            crash::pass("crew.started");
        }
    }

    /// Of several nodes the first that failed ends the others.
    fn ended(&mut self, node: u32, ending: Ending, course: &mut Course, share: &mut Share) {
        course.ended(node);
        match ending.cause {
            None => {}
            Some(Cause::Preempted) if !course.is_stopping() => {
                // It was told by the service, whose signal is under way to us.
                self.is_leaving = true;
                let ending = self.why_told();
                self.stop(course, share, ending);
            }
            Some(_) => self.stop(course, share, ending),
        }
    }

    /// Who ends the job does not wait for a node that takes too long.
    fn give_up_late(&mut self, course: &mut Course) {
        let grace = Duration::from_millis(self.crew.carrier.order.grace_millis);
        let limit = if self.is_leaving {
            self.crew.short_grace() + SLACK
        } else {
            grace + STOP_PATIENCE
        };
        for node in course.late(limit) {
            complain(&format!("node {node} was not heard to end"));
            self.is_torn = true;
            self.company.give_up(node);
            course.ended(node);
        }
    }

    /// Keeps the nodes after a failure, if the user asked for that.
    fn hold(&mut self, attempt: u32, ending: Ending) -> io::Result<Ending> {
        let failed = matches!(
            ending.cause,
            Some(
                Cause::ExitCode
                    | Cause::Signal
                    | Cause::OutOfMemory
                    | Cause::SetUp
                    | Cause::NotStarted
                    | Cause::ImagePull
                    | Cause::Data
            )
        );
        let span = self.crew.carrier.order.plan.resolved.hold_on_failure;
        let Some(span) = span.filter(|_| failed && !self.is_leaving && !self.is_orphan) else {
            return Ok(ending);
        };
        let at = towline_host::clock::now();
        let begun = Instant::now();
        self.bulletin.held(
            attempt,
            Held {
                at,
                until: at.plus_millis(span.0 * 1000),
                ending: ending.clone(),
            },
        );
        while begun.elapsed() < Duration::from_secs(span.0) && !self.is_leaving && !self.is_orphan {
            self.wait(None)?;
            self.is_torn |= self
                .company
                .hear()
                .iter()
                .any(|event| matches!(event, Event::Lost(..)));
        }
        Ok(ending)
    }
}
