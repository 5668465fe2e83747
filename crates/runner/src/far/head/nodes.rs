//! The nodes of the job: laying out the code once for all of them, starting their runners, and what
//! they report in the run's folder.

use super::Head;
use super::node_starter::NodeStarter;
use crate::code::{Layout, not_laid_out};
use crate::far::ended_code;
use crate::far::records::{self, Records};
use crate::far::scheduler;
use crate::gang::{Event, Exit, Leave, Nodes, StopNodes};
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use towline_core::cluster::Claim;
use towline_core::obstacle::Obstacle;
use towline_core::reason::Ending;
use towline_host::crash;
use towline_wire::runner::CodeOrder;
use towline_wire::stage::{Record, StopOrder};

/// How long the nodes of an ended run are kept at most while its code is removed.
const TIDY_TIMEOUT: Duration = Duration::from_secs(10);

/// What is under way for the attempt.
pub(super) enum Work {
    Nothing,
    LayOut(Layout),
    /// The process that runs on the only node, or that starts the runners on several.
    Running(NodeStarter),
    /// That process is over, however it ended.
    Over(NodeStarter, Option<ExitStatus>),
}

impl Nodes for Head {
    /// The scheduler starts a job when all its nodes are there.
    fn gather(&mut self) {
        self.pending.push(Event::Gathered {
            missing: Vec::new(),
        });
    }

    fn begin(&mut self, attempt: u32, claim: &Claim) -> io::Result<()> {
        self.is_stopping = false;
        let Some(code) = &self.order.plan.resolved.code else {
            self.start(attempt, claim);
            return Ok(());
        };
        let order = CodeOrder {
            snapshot: code.snapshot.clone().unwrap_or_default(),
            store: self.stage.snapshots().to_string_lossy().into_owned(),
            target: self.folder.code().to_string_lossy().into_owned(),
            root: String::new(),
            links: Vec::new(),
            mapped: code
                .mapped
                .iter()
                .filter_map(|(name, place)| Some((name.clone(), place.path()?.to_owned())))
                .collect(),
        };
        self.work = Work::LayOut(Layout::begin(order, attempt)?);
        Ok(())
    }

    fn stop(&mut self, stop: &StopNodes) -> io::Result<()> {
        self.is_stopping = true;
        if let Work::LayOut(layout) = &self.work {
            layout.stop();
        }
        let order = StopOrder {
            ending: stop.ending.clone(),
            at_once: false,
            by_scheduler: stop.by_scheduler,
        };
        records::make(&self.folder, stop.attempt, Record::Stop, &order).map(|_| ())
    }

    /// The grace is the same, whoever ends the attempt.
    fn hurry(&mut self) {}

    fn give_up(&mut self, _nodes: &[u32]) {
        self.kill();
    }

    fn kill(&mut self) {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Running(mut starter) => {
                let _ = starter.child.kill();
                towline_host::process::kill_all_descendants();
                let _ = starter.child.wait();
                self.work = Work::Over(starter, None);
            }
            other => self.work = other,
        }
    }

    fn wait(&mut self, limit: Duration) -> io::Result<Vec<Event>> {
        if !self.pending.is_empty() {
            return Ok(std::mem::take(&mut self.pending));
        }
        match &self.work {
            Work::LayOut(layout) => self.signals.wait(limit, &[layout.watch()]),
            Work::Running(starter) => self.signals.wait(limit, &starter.watch()),
            Work::Over(..) => {}
            Work::Nothing => self.signals.wait(limit, &[]),
        }
        let mut events = self.reasons_to_end()?;
        events.extend(self.progress()?);
        Ok(events)
    }

    fn leave(&mut self, leave: &Leave) -> io::Result<i32> {
        Ok(match &leave.exit {
            Exit::Ended(ending) => {
                self.conclude(ending, leave.is_leaving)?;
                ending.passed_code()
            }
            Exit::Leaving => 1,
            Exit::NodesLost(code) => *code,
            Exit::NotOurs | Exit::CutOff => 0,
        })
    }
}

impl Head {
    fn start(&mut self, attempt: u32, claim: &Claim) {
        match self.start_nodes(attempt, claim) {
            Ok(starter) => {
                crash::pass("head.started");
                self.work = Work::Running(starter);
            }
            Err(error) => {
                let why = format!("its nodes could not be started: {error}");
                self.not_started(&Ending::not_started(why, Obstacle::of_io(&error)));
            }
        }
    }

    /// Reports that the attempt has no process on any node.
    fn not_started(&mut self, ending: &Ending) {
        self.work = Work::Nothing;
        let nodes = 0..self.order.plan.resolved.shape.nodes;
        self.pending.extend(nodes.map(|node| Event::NodeEnded {
            node,
            ending: ending.clone(),
        }));
    }

    /// What says that the attempt has to end: the scheduler, the user, a record of another process,
    /// a node that failed or is lost.
    fn reasons_to_end(&mut self) -> io::Result<Vec<Event>> {
        let is_signalled = self.signals.is_end();
        let is_running = !matches!(self.work, Work::Nothing);
        if is_running && self.current.as_ref().is_some_and(|of| of.lease.is_lost()) {
            return Ok(vec![Event::CutOff(None)]);
        }
        let signalled = is_signalled.then_some(Event::Signalled);
        let current = match &self.current {
            Some(current) if current.is_held => {
                let is_cancelled = self.folder.cancel().exists();
                let cancelled = is_cancelled.then_some(Event::Cancelled);
                return Ok(Vec::from_iter(signalled.or(cancelled)));
            }
            Some(current) if !self.is_stopping => current,
            _ => return Ok(Vec::from_iter(signalled)),
        };
        let found = Records::read(&self.folder)?;
        let stop = found.attempts.get(&current.attempt);
        if let Some(order) = stop.and_then(|of| of.stop.clone()) {
            return Ok(vec![Event::StopOrdered(order.ending)]);
        }
        if let Some(signalled) = signalled {
            return Ok(vec![signalled]);
        }
        if found.cancelled {
            return Ok(vec![Event::Cancelled]);
        }
        if is_running {
            return self.failures();
        }
        Ok(Vec::new())
    }

    /// Takes the next step of what is under way.
    fn progress(&mut self) -> io::Result<Vec<Event>> {
        match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::LayOut(layout) if layout.is_over() => self.laid_out(layout),
            Work::Running(mut starter) => match starter.child.try_wait()? {
                Some(status) => return self.over(starter, Some(status)),
                None => self.work = Work::Running(starter),
            },
            Work::Over(starter, status) => return self.over(starter, status),
            other => self.work = other,
        }
        Ok(std::mem::take(&mut self.pending))
    }

    fn laid_out(&mut self, layout: Layout) {
        let laid_out = layout.finish();
        let current = self.current.as_ref();
        let current = current.map(|of| (of.attempt, of.claim.clone()));
        match (laid_out, current) {
            (Ok(()), Some((attempt, claim))) if !self.is_stopping => self.start(attempt, &claim),
            (Err(error), _) => self.not_started(&not_laid_out(&error, Obstacle::of(&error))),
            (Ok(()), _) => {
                let ending = Ending::not_started("it was stopped before it began", None);
                self.not_started(&ending);
            }
        }
    }

    /// Called when the process that started the nodes is over. Nothing of the attempt is alive on
    /// any node when this returns.
    fn over(&mut self, starter: NodeStarter, status: Option<ExitStatus>) -> io::Result<Vec<Event>> {
        // The runner of the only node may have been killed and have left processes behind.
        towline_host::process::kill_all_descendants();
        let Some(current) = &self.current else {
            return Ok(Vec::new());
        };
        if current.lease.is_lost() {
            return Ok(vec![Event::CutOff(None)]);
        }
        let (attempt, claim) = (current.attempt, current.claim.clone());
        let is_signalled = self.stop_silent_nodes(attempt, &claim)?;
        let code = status.and_then(|status| status.code());
        let mut events = self.ends(attempt, &claim, code, starter.error().as_deref())?;
        // The attempt had ended before the signal.
        events.extend(is_signalled.then_some(Event::Signalled));
        Ok(events)
    }

    /// Tidies up after a run that has ended.
    fn conclude(&mut self, ending: &Ending, is_leaving: bool) -> io::Result<()> {
        let found = Records::read(&self.folder)?;
        if found.attempts.is_empty() {
            self.record_end(0, ending.clone())?;
        }
        records::drop_secrets(&self.stage, &self.submission);
        if is_leaving && !found.cancelled {
            // The scheduler may have requeued a job that has nothing left to do.
            scheduler::withdraw(&self.me.job);
            return Ok(());
        }
        let begun = Instant::now();
        // The next site removes the rest; the nodes do not wait for it.
        let _ = ended_code::remove(&self.stage, &self.order, &self.run, &|| {
            begun.elapsed() > TIDY_TIMEOUT
        });
        Ok(())
    }
}
