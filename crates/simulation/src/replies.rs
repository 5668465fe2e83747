//! What clients ask, and what they hear.

use crate::client::{Client, Want};
use crate::plans::cluster_name;
use crate::world::World;
use towline_core::RunId;
use towline_core::after::After;
use towline_core::change::Change;
use towline_core::event::RunEvent;
use towline_server::daemon::Input;
use towline_wire::daemon::Reply;

impl World {
    /// A client connects and asks. If there is no daemon, it starts one.
    pub(crate) fn client_step(&mut self, which: usize) {
        let count = self.clients.len().max(1);
        let which = which % count;
        let Some(client) = self.clients.get(which) else {
            return;
        };
        if client.is_done || client.connection.is_some() {
            return;
        }
        if self.is_after_nothing(client) {
            self.clients[which].is_done = true;
            return;
        }
        if self.daemon.is_none() {
            self.start_daemon();
        }
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        self.connections += 1;
        let connection = self.connections;
        daemon.connections.insert(connection);
        let hello = self.clients[which].request(&self.plans);
        daemon.inbox.push_back(Input::Asked {
            connection,
            hello: Box::new(hello),
            limits_are_possible: true,
        });
        let client = &mut self.clients[which];
        // It may begin from now on.
        if let Want::Change(run, Change::Resume) = &client.want {
            self.facts.on_hold.remove(run);
        }
        // It may be gone from now on, also if the answer is lost.
        if let Want::Forget(run) = &client.want {
            self.facts.forgotten.insert(run.clone());
        }
        client.connection = Some((connection, daemon.number));
        client.asked += 1;
        client.events.clear();
        client.told_end = None;
        client.is_answered = false;
        client.asked_after_end = match &client.want {
            Want::Logs(run) => self
                .clusters
                .iter()
                .any(|cluster| cluster.jobs.get(run).is_some_and(|job| job.is_over)),
            _ => false,
        };
    }

    /// Whether a submission names a run before it that the history does not have. Then the client
    /// refuses it.
    fn is_after_nothing(&self, client: &Client) -> bool {
        let Want::Submit { after, .. } = &client.want else {
            return false;
        };
        let is_unknown = |after: &After| self.history.phases_of(&after.run).total() == 0;
        client.asked == 0 && after.iter().any(is_unknown)
    }

    /// A reply reaches its client.
    pub(crate) fn reply(&mut self, connection: u64, reply: &Reply, is_last: bool) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if !daemon.connections.contains(&connection) {
            return;
        }
        let number = daemon.number;
        if is_last {
            daemon.connections.remove(&connection);
        }
        let here = Some((connection, number));
        let Some(which) = self
            .clients
            .iter()
            .position(|client| client.connection == here)
        else {
            return;
        };
        if self.clients[which].is_answered {
            self.facts
                .break_promise("a client is answered after the last answer");
        }
        self.clients[which].is_answered = is_last;
        self.heard(which, reply);
        if Client::ends_with(reply) {
            self.clients[which].is_done = true;
            self.clients[which].connection = None;
            self.hang_up(connection, number);
        }
    }

    fn heard(&mut self, which: usize, reply: &Reply) {
        match (&self.clients[which].want, reply) {
            (Want::Submit { .. }, Reply::Submitted { runs }) => {
                self.facts.acknowledged.extend(runs.iter().cloned());
                let lost: Vec<&RunId> = runs
                    .iter()
                    .filter(|run| self.history.row(run).is_none())
                    .collect();
                if let Some(run) = lost.first()
                    && !self.facts.forgotten.contains(run)
                {
                    let what = format!("{run} is acknowledged and not in the history");
                    self.facts.break_promise(what);
                }
            }
            (Want::Submit { job, number, after }, Reply::Refused(_))
                if self.clients[which].asked == 1 =>
            {
                let plan = self.plans.submit(*job, *number, after).plan;
                let runs = plan.runs.into_iter().map(|run| run.id);
                self.facts.refused.extend(runs);
            }
            (Want::Change(run, Change::Hold), Reply::Changed { runs, .. })
                if runs.contains(run) =>
            {
                let run = run.clone();
                let resumes = |client: &Client| {
                    let asks =
                        matches!(&client.want, Want::Change(of, Change::Resume) if *of == run);
                    asks && client.asked > 0
                };
                // Somebody who wanted to resume it meanwhile may have come first or last.
                if !self.facts.all_are_resumed && !self.clients.iter().any(resumes) {
                    self.facts.on_hold.insert(run);
                }
            }
            (Want::Cancel(_), Reply::Cancelling { runs, .. }) => {
                let attempt_of = |run: &RunId| {
                    let row = self.history.row(run)?;
                    Some((run.clone(), row.state.attempt))
                };
                let last = runs.iter().filter_map(attempt_of);
                self.facts.cancelled.extend(last);
            }
            (Want::Watch(_), Reply::State { state, .. }) => {
                self.clients[which].told_end = Some(state.phase.is_ended());
            }
            // A run that was not known yet has no state.
            (Want::Watch(run), Reply::WatchEnded)
                if self.clients[which].told_end == Some(false) =>
            {
                let what = format!("a watch of {run} is over and told no end");
                self.facts.break_promise(what);
            }
            (Want::Watch(run), Reply::Event { recorded, state }) => {
                let run = run.clone();
                self.clients[which].told_end = Some(state.phase.is_ended());
                self.watched(which, &run, recorded.sequence, &recorded.event);
            }
            (Want::Logs(run), Reply::LogsBrought) if self.clients[which].asked_after_end => {
                let run = run.clone();
                self.check_logs(&run);
            }
            _ => {}
        }
    }

    /// A watch hears every event of its run, in order, once.
    fn watched(&mut self, which: usize, run: &RunId, sequence: i64, event: &RunEvent) {
        // A run that was removed from the history has no events to compare with.
        if self.history.row(run).is_none() {
            return;
        }
        let last = self.clients[which].events.last().copied();
        let events: Vec<i64> = self
            .history
            .row(run)
            .map(|row| row.events.iter().map(|(number, _)| *number).collect())
            .unwrap_or_default();
        let place = events.iter().position(|number| *number == sequence);
        let before = place.and_then(|place| events[..place].last().copied());
        if place.is_none() || (last.is_some() && before != last) {
            self.facts.break_promise(format!(
                "a watch of {run} hears event {sequence} after {last:?} of {events:?}"
            ));
        }
        self.clients[which].events.push(sequence);
        // Then the client asks for the last bytes of the log.
        if matches!(event, RunEvent::Ended { .. }) {
            self.clients.push(Client::new(Want::Logs(run.clone())));
        }
    }

    /// All that an ended far run printed is on this machine when a client that asked is answered.
    fn check_logs(&mut self, run: &RunId) {
        for (number, cluster) in self.clusters.iter().enumerate() {
            let Some(job) = cluster.jobs.get(run).filter(|job| job.is_over) else {
                continue;
            };
            let have = self.logs.get(run).copied().unwrap_or_default();
            if have != job.printed {
                self.facts.break_promise(format!(
                    "the log of {run} on {} was fetched: {have} of {} bytes",
                    cluster_name(number + 1),
                    job.printed
                ));
            }
        }
    }
}
