//! The end of a story: all faults are over, everybody goes on until nothing is left to do, and the
//! promises are looked at.

use crate::action::{Action, ClusterAct};
use crate::client::{Client, Want};
use crate::plans::cluster_name;
use crate::runner::Stage;
use crate::world::{CLUSTERS, World};
use towline_core::RunId;
use towline_core::after::Verdict;
use towline_core::change::Change;
use towline_core::reason::{Cause, Outcome};
use towline_core::state::Phase;

/// Rounds after which a world that is not at rest never will be.
const MAX_ROUNDS: usize = 600;

impl World {
    /// Ends all faults and lets everybody go on until nothing is left to do.
    pub(crate) fn heal(&mut self) {
        self.note(|| "all faults are over".to_owned());
        self.facts.all_are_resumed = true;
        self.facts.on_hold.clear();
        self.disk_is_full = false;
        self.is_unreadable = false;
        self.has_no_processes = false;
        for cluster in &mut self.clusters {
            cluster.is_down = false;
            cluster.loses_answer = false;
            cluster.refuses = false;
        }
        for round in 0..MAX_ROUNDS {
            if self.facts.broken.is_some() || (round > 2 && self.is_at_rest()) {
                return;
            }
            self.round(round);
        }
        let what = self.unfinished();
        self.facts.break_promise(format!("no rest: {what}"));
    }

    /// Everybody does something.
    fn round(&mut self, round: usize) {
        self.act(&Action::Time(if round % 8 == 7 { 40_000 } else { 1_100 }));
        if self.daemon.is_none() {
            self.start_daemon();
        }
        self.resume_all();
        for client in 0..self.clients.len() {
            self.act(&Action::Client(client));
        }
        self.act(&Action::Daemon(60));
        let tasks = self.daemon.as_ref().map_or(0, |daemon| daemon.tasks.len());
        for task in 0..tasks {
            self.act(&Action::Task(task));
        }
        for runner in 0..self.runners.len() {
            self.act(&Action::Runner(runner));
            if self.ends_by_itself(runner) {
                self.act(&Action::RanksEnd { runner, how: 0 });
            }
        }
        for cluster in 0..CLUSTERS {
            self.act(&Action::Worker { cluster, steps: 30 });
            for act in [ClusterAct::List, ClusterAct::Start(round)] {
                self.act(&Action::Cluster { cluster, act });
            }
            let now = self.wall();
            self.clusters[cluster].end_one_of(round, &self.facts.cancelled, now);
        }
    }

    /// Somebody resumes every run that is on hold.
    fn resume_all(&mut self) {
        for cluster in &mut self.clusters {
            cluster
                .jobs
                .values_mut()
                .for_each(|job| job.is_on_hold = false);
        }
        let on_hold = self.history.rows().filter(|row| row.state.on_hold);
        let runs: Vec<RunId> = on_hold.map(|row| row.id.clone()).collect();
        for run in runs {
            let asks = |client: &Client| {
                let is_its = matches!(&client.want, Want::Change(of, Change::Resume) if *of == run);
                is_its && !client.is_done
            };
            if !self.clients.iter().any(asks) {
                let want = Want::Change(run, Change::Resume);
                self.clients.push(Client::new(want));
            }
        }
    }

    /// Whether the ranks of a runner end now. Those of a cancelled run have to be stopped.
    fn ends_by_itself(&self, runner: usize) -> bool {
        let attempt = self.runners[runner].attempt.as_ref();
        attempt.is_some_and(|of| {
            of.stage == Stage::Running && !self.facts.cancelled.contains_key(&of.run)
        })
    }

    fn is_at_rest(&self) -> bool {
        let is_open = |want: &Want| !matches!(want, Want::Watch(_));
        let all_ended = self.history.rows().all(|row| row.state.phase.is_ended());
        let answered = self
            .clients
            .iter()
            .all(|client| client.is_done || !is_open(&client.want));
        let runners_rest = self
            .runners
            .iter()
            .all(|runner| !runner.holds_lock() || (runner.is_alive && runner.attempt.is_none()));
        let daemon_rests = self.daemon.as_ref().is_some_and(|daemon| {
            daemon.is_at_rest()
                && daemon.tasks.is_empty()
                && daemon
                    .workers
                    .values()
                    .all(|worker| worker.is_at_rest(self.now))
        });
        all_ended && answered && runners_rest && daemon_rests
    }

    /// What is still to be done, for the reader of a failure.
    fn unfinished(&self) -> String {
        let open: Vec<String> = self
            .history
            .rows()
            .filter(|row| !row.state.phase.is_ended())
            .map(|row| format!("{} is {:?}", row.id, row.state))
            .collect();
        let waiting: Vec<&Want> = self
            .clients
            .iter()
            .filter(|client| !client.is_done)
            .map(|client| &client.want)
            .collect();
        format!("{open:?}, clients {waiting:?}")
    }

    /// Looks at what must hold once everything is over.
    pub(crate) fn check_end(&mut self) {
        let mut broken = Vec::new();
        for run in &self.facts.acknowledged {
            let is_known = self.history.row(run).is_some();
            if !is_known && !self.facts.forgotten.contains(run) {
                broken.push(format!("{run} was acknowledged and is lost"));
            }
        }
        for run in &self.facts.refused {
            if self.history.row(run).is_some() || self.facts.has_begun(run) {
                broken.push(format!("{run} was refused and happened"));
            }
        }
        if !self.facts.alive.is_empty() {
            broken.push(format!("ranks are alive: {:?}", self.facts.alive));
        }
        for row in self.history.rows() {
            self.check_run(&row.id, &mut broken);
        }
        for submission in &self.secrets {
            broken.push(format!("the secrets of {submission} stay on disk"));
        }
        if let Some(first) = broken.into_iter().next() {
            self.facts.break_promise(first);
        }
    }

    fn check_run(&self, run: &RunId, broken: &mut Vec<String>) {
        let Some(row) = self.history.row(run) else {
            return;
        };
        let Phase::Ended(outcome) = row.state.phase else {
            return broken.push(format!("{run} has not ended"));
        };
        if outcome == Outcome::Lost {
            broken.push(format!("{run} is called lost"));
        }
        for (number, cluster) in self.clusters.iter().enumerate() {
            let job = cluster.jobs.get(run);
            if job.is_some_and(|job| !job.is_over) {
                let name = cluster_name(number + 1);
                broken.push(format!("{run} has ended, and its job on {name} has not"));
            }
        }
        // An ending that the runner wrote down is told as it was.
        let ending = row.state.ending.as_ref();
        let known = self.facts.endings.get(&(run.clone(), row.state.attempt));
        if let (Some(known), Some(told)) = (known, ending)
            && known != told
            && !(row.state.cancel_requested && told.cause == Some(Cause::ByUser))
        {
            broken.push(format!("{run} ended as {known:?}, and {told:?} is told"));
        }
        // A run that never began because of another one: that one did not end as it had to.
        if ending.and_then(|ending| ending.cause) == Some(Cause::Dependency) {
            let after = self.facts.after.get(run);
            let is_so = after.is_some_and(|after| {
                let counts = self.history.phases_of(&after.run);
                after.when.judge(&counts) == Verdict::Never
            });
            if !is_so || self.facts.has_begun(run) {
                broken.push(format!("{run} was given up because of {after:?}"));
            }
        }
        // A run that succeeded has begun.
        if outcome == Outcome::Succeeded && !self.facts.has_begun(run) {
            broken.push(format!("{run} succeeded and never began"));
        }
    }
}
