//! The nodes of the job: this one, and those that are connected.

use super::Leader;
use crate::crew::local_part::{LocalPart, Step};
use crate::crew::peers::Event as PeerEvent;
use crate::crew::{SIGTERM_EXIT_CODE, TIMEOUT_CHECK_INTERVAL, complain};
use crate::gang::{Event, Exit, Leave, Nodes, StopNodes};
use std::io;
use std::time::{Duration, Instant};
use towline_core::cluster::Claim;
use towline_core::reason::{Cause, Ending};
use towline_wire::crew::{FromNode, ToNode};
use towline_wire::runner::Stop;

impl Nodes for Leader<'_> {
    fn gather(&mut self) {
        self.gathering_since = Some(Instant::now());
        let gathered = self.gathered();
        self.pending.extend(gathered);
    }

    fn begin(&mut self, attempt: u32, claim: &Claim) -> io::Result<()> {
        self.is_stopping = false;
        self.has_reported_uploads = false;
        self.attempt = attempt;
        self.peers.send_all(&ToNode::Begin {
            attempt,
            hosts: claim.hosts.clone(),
            port: claim.port,
        });
        let carrier = &mut self.crew.carrier;
        self.local_part = Some(carrier.begin(attempt, &claim.hosts, claim.port));
        Ok(())
    }

    fn stop(&mut self, stop: &StopNodes) -> io::Result<()> {
        self.is_stopping = true;
        self.peers.send_all(&ToNode::Stop {
            attempt: stop.attempt,
        });
        let why = if stop.ending.cause == Some(Cause::Preempted) {
            Stop::Preempted
        } else {
            Stop::ByUser
        };
        let grace = self.crew.short_grace();
        match &mut self.local_part {
            Some(local_part) if stop.is_leaving => local_part.stop_soon(why, grace),
            Some(local_part) => local_part.stop(why),
            None => {}
        }
        Ok(())
    }

    fn hurry(&mut self) {
        let grace = self.crew.short_grace();
        if let Some(local_part) = &mut self.local_part {
            local_part.stop_soon(Stop::Preempted, grace);
        }
    }

    fn give_up(&mut self, nodes: &[u32]) {
        // Our own ranks are killed after their grace.
        for node in nodes.iter().copied().filter(|node| *node > 0) {
            let why = format!("node {node} did not report its end in time");
            complain(&why);
            self.peers.give_up(node);
            self.pending.push(Event::NodeLost {
                node,
                why,
                is_gone: true,
            });
        }
    }

    fn kill(&mut self) {
        towline_host::process::kill_all_descendants();
        self.local_part = None;
    }

    fn wait(&mut self, limit: Duration) -> io::Result<Vec<Event>> {
        if !self.pending.is_empty() {
            return Ok(std::mem::take(&mut self.pending));
        }
        let mut events = Vec::new();
        let is_signalled = self.poll(limit)?;
        if self.crew.is_orphan() {
            let ending = Ending::cause(Cause::NodeFailed).detail("what guarded node 0 was killed");
            return Ok(vec![Event::CutOff(Some(ending))]);
        }
        events.extend(is_signalled.then_some(Event::Signalled));
        for event in self.peers.receive() {
            self.heard(event, &mut events);
        }
        self.wake(&mut events);
        events.extend(self.gathered());
        Ok(events)
    }

    fn leave(&mut self, leave: &Leave) -> io::Result<i32> {
        let code = match &leave.exit {
            Exit::Ended(ending) => {
                if self.status_file.is_empty() {
                    self.status_file.end(0, ending.clone())?;
                }
                self.status_file.conclude();
                if leave.is_complete {
                    // The other nodes may just be starting for a run that is over.
                    self.wait_for_nodes()?;
                }
                ending.passed_code()
            }
            Exit::NodesLost(code) => {
                self.status_file.conclude();
                *code
            }
            Exit::Leaving => SIGTERM_EXIT_CODE,
            // Our guard ends what is left; the others notice that we are gone.
            Exit::CutOff | Exit::NotOurs => return Ok(1),
        };
        self.peers.dismiss_all(code);
        Ok(code)
    }
}

impl Leader<'_> {
    /// Waits until something happens, or for `limit`. Returns whether the service has signalled us
    /// to end.
    fn poll(&mut self, limit: Duration) -> io::Result<bool> {
        let local_part = self.local_part.as_ref();
        let mut others = self.peers.watches();
        others.extend(local_part.and_then(LocalPart::watch));
        let limit = if local_part.is_some_and(LocalPart::is_due) {
            Duration::ZERO
        } else {
            limit
        };
        let end_signal = &mut self.crew.end_signal;
        let attempt = local_part.and_then(LocalPart::attempt);
        Ok(end_signal.wait_also(attempt, &others, limit)?.is_some())
    }

    /// Whether all nodes have come, or those that are missing are too late.
    fn gathered(&mut self) -> Option<Event> {
        let since = self.gathering_since?;
        let open = self.peers.open();
        let missing = self.peers.missing();
        let timeout = self.crew.task.pace.meeting;
        if !missing.is_empty() && since.elapsed() < timeout {
            return None;
        }
        self.gathering_since = None;
        let port = self.crew.station.port;
        let deaf = open.err().map_or_else(String::new, |error| {
            format!("; its port {port} cannot be had: {error}")
        });
        let after = timeout.as_secs();
        let missing = missing
            .iter()
            .map(|node| format!("node {node} did not come within {after} s{deaf}"))
            .collect();
        Some(Event::Gathered { missing })
    }

    fn heard(&self, event: PeerEvent, events: &mut Vec<Event>) {
        match event {
            PeerEvent::Said(_, FromNode::Started { attempt }) if attempt == self.attempt => {
                events.push(Event::Started);
            }
            PeerEvent::Said(node, FromNode::Ended { attempt, ending })
                if attempt == self.attempt =>
            {
                self.ended(node, ending, events);
            }
            PeerEvent::Said(..) => {}
            // A node that begins anew before the attempt does loses nothing.
            PeerEvent::Lost(..) if self.gathering_since.is_some() => {}
            PeerEvent::Lost(node, why) => {
                complain(&why);
                events.push(Event::NodeLost {
                    node,
                    why,
                    is_gone: true,
                });
            }
        }
    }

    /// Reports the end of a node.
    fn ended(&self, node: u32, ending: Ending, events: &mut Vec<Event>) {
        if ending.cause == Some(Cause::Preempted) && !self.is_stopping {
            // The service has signalled that node; its signal is on the way to us too.
            events.push(Event::Signalled);
        }
        events.push(Event::NodeEnded { node, ending });
    }

    /// Takes the next step of this node's own part.
    fn wake(&mut self, events: &mut Vec<Event>) {
        let Some(local_part) = &mut self.local_part else {
            return;
        };
        let step = local_part.wake();
        if local_part.has_ended() && !self.has_reported_uploads {
            self.has_reported_uploads = true;
            events.push(Event::OnlyUploads { node: 0 });
        }
        match step {
            Step::Nothing => {}
            Step::Started => events.push(Event::Started),
            Step::Ended(ending) => {
                self.local_part = None;
                self.ended(0, ending, events);
            }
        }
    }

    /// Waits until all nodes have come, or are too late.
    fn wait_for_nodes(&mut self) -> io::Result<()> {
        self.gathering_since = Some(Instant::now());
        while self.gathered().is_none() {
            if self.poll(TIMEOUT_CHECK_INTERVAL)? || self.crew.is_orphan() {
                return Ok(());
            }
            self.peers.receive();
        }
        Ok(())
    }
}
