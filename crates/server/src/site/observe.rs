//! What is known of runs: their records, and one question to the scheduler for all of them. What
//! died without a word is settled on the way.

use super::settle::{Act, SILENT, Signs, Truth, believed, settle};
use super::submit::Jobs;
use super::{Site, failed};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use towline_backends::slurm::parse::accounting::AccountingRow;
use towline_backends::slurm::parse::config::Config;
use towline_backends::slurm::parse::hosts::expand;
use towline_backends::slurm::parse::ids::{JobId, Part};
use towline_backends::slurm::parse::queue::{QueueRow, Which};
use towline_backends::slurm::reasons::{Outlook, explain_with, is_turn};
use towline_backends::slurm::state::{self, ExitPair};
use towline_core::cluster::End;
use towline_core::cluster::{AttemptReport, Explanation, KnownJob, Observed, RunRef, RunReport};
use towline_core::reason::{Cause, Ending};
use towline_core::state::Native;
use towline_core::{Error, ErrorKind, Result, Retry, RunId};
use towline_runner::far::is_lapsed;
use towline_runner::far::records::{self, Due, Records};
use towline_wire::stage::{Holder, Record, StopOrder};

/// How long something must be as it is before it is believed: a scheduler that comes up knows
/// nothing for its first seconds.
const BELIEVED_AFTER: Duration = Duration::from_secs(12);

/// Jobs that are asked for by name; of more, all of the user's are asked for.
const MOST_NAMES: usize = 500;

/// What one site process remembers between questions.
#[derive(Default)]
pub(super) struct Memory {
    settings: std::cell::OnceCell<Config>,
    /// Since when a run is to be settled, and as what.
    since: HashMap<RunId, (String, Instant)>,
    /// Runs that were handed over once, and of which neither the stage folder nor the scheduler
    /// knows anything.
    lost: HashSet<RunId>,
    /// When it last looked for what nobody needs.
    pub(super) tidied: Option<Instant>,
}

/// What is left to do for a run.
enum Left {
    Nothing,
    SubmitAgain,
    /// It is settled if it is still so after this time.
    SettlesAfter(Duration),
}

/// What the scheduler says, as far as it was asked.
struct Queue {
    rows: Vec<QueueRow>,
    accounted: Vec<AccountingRow>,
}

impl Site {
    /// Asked once: a site's settings hardly change.
    pub(super) fn settings(&self) -> Result<&Config> {
        if self.observed.settings.get().is_none() {
            let _ = self.observed.settings.set(self.slurm.config()?);
        }
        self.observed
            .settings
            .get()
            .ok_or_else(|| Error::bug("the settings are gone"))
    }

    pub(super) fn observe(&mut self, runs: &[RunRef], ask: bool) -> Result<Observed> {
        let asked = ask.then(|| self.ask_scheduler(runs)).transpose();
        let (queue, mut unasked) = match asked {
            Ok(queue) => (queue, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let mut again: BTreeMap<RunId, Vec<Option<u32>>> = BTreeMap::new();
        let mut settles_in: Option<Duration> = None;
        for (far, queue) in queue
            .iter()
            .flat_map(|queue| runs.iter().map(move |far| (far, queue)))
        {
            match self.settle_one(far, queue)? {
                Left::Nothing => {}
                Left::SubmitAgain => again
                    .entry(far.submission.clone())
                    .or_default()
                    .push(far.task),
                Left::SettlesAfter(rest) => {
                    settles_in = Some(settles_in.map_or(rest, |known| known.min(rest)))
                }
            }
        }
        for (submission, tasks) in again {
            if let Err(error) = self.carry_on(&submission, &tasks) {
                // One that cannot go on now is no reason to keep silent of the others.
                unasked.get_or_insert(error.to_string());
            }
        }
        // Nobody else does so for what never came to run, or died without a word.
        for submission in runs
            .iter()
            .map(|far| &far.submission)
            .collect::<BTreeSet<_>>()
        {
            records::drop_secrets(&self.stage, submission);
        }
        if ask {
            self.tidy();
        }
        let reports = runs
            .iter()
            .map(|far| self.report(far, queue.as_ref()))
            .collect::<Result<_>>()?;
        let settles_in = settles_in.map(|rest| u64::try_from(rest.as_millis()).unwrap_or(u64::MAX));
        Ok(Observed {
            at: towline_host::clock::now(),
            runs: reports,
            unasked,
            settles_in,
        })
    }

    /// What the controller has of these submissions, whatever else is in its queue.
    pub(super) fn queue_of<'r>(
        &self,
        submissions: impl IntoIterator<Item = &'r RunId>,
    ) -> Result<Vec<QueueRow>> {
        let names: BTreeSet<&str> = submissions.into_iter().map(RunId::as_str).collect();
        // A command line has an end.
        let names: Vec<&str> = if names.len() > MOST_NAMES {
            Vec::new()
        } else {
            names.into_iter().collect()
        };
        self.slurm.queue(&Which {
            user: Some(&self.user),
            names: &names,
            ..Which::default()
        })
    }

    /// Another job for these runs; those that no scheduler will carry have ended.
    fn carry_on(&self, submission: &RunId, tasks: &[Option<u32>]) -> Result<()> {
        let (over, why) = match self.submit_again(submission, tasks) {
            Ok(worn) => (
                worn,
                "the scheduler took it several times and lost it each time".to_owned(),
            ),
            Err(error)
                if error.kind() == ErrorKind::Unreachable
                    || error.retry_advice() == Retry::Later =>
            {
                return Err(error);
            }
            Err(error) => (
                tasks.to_vec(),
                format!("it was to go on in another job: {error}"),
            ),
        };
        for task in over {
            let run = task.map_or_else(|| submission.clone(), |task| submission.numbered(task));
            self.end(&run, 0, &Ending::cause(Cause::Rejected).detail(why.clone()))?;
        }
        Ok(())
    }

    /// One question for all, and one more for those that the controller has let go, or that ended
    /// without a word of ours: only the database tells how.
    fn ask_scheduler(&self, runs: &[RunRef]) -> Result<Queue> {
        let rows = self.queue_of(runs.iter().map(|far| &far.submission))?;
        let mut queue = Queue {
            rows,
            accounted: Vec::new(),
        };
        let mut gone = Vec::new();
        for far in runs {
            let is_open = queue
                .row(far)
                .is_some_and(|row| !state::native(&row.state).is_ended());
            if !is_open && !self.is_over(far)? {
                gone.extend(
                    self.jobs(&far.submission)?
                        .accepted(far.task)
                        .map(|(_, job)| job.to_owned()),
                );
            }
        }
        gone.sort_unstable();
        gone.dedup();
        if !gone.is_empty() && self.settings()?.has_accounting {
            queue.accounted = self
                .slurm
                .accounting(self.settings()?.version, None, &gone, None)?;
        }
        Ok(queue)
    }

    pub(super) fn is_over(&self, far: &RunRef) -> Result<bool> {
        let folder = self.stage.run(&far.run);
        let records = Records::read(&folder).map_err(|error| failed(folder.root(), error))?;
        Ok(!records.attempts.is_empty()
            && matches!(records.due(self.policy(far).as_ref()), Due::Nothing(_)))
    }

    fn policy(&self, far: &RunRef) -> Option<towline_core::job::RetryPolicy> {
        records::order(&self.stage, &far.submission)
            .ok()
            .and_then(|order| order.plan.resolved.retry)
    }

    fn settle_one(&mut self, far: &RunRef, queue: &Queue) -> Result<Left> {
        let jobs = self.jobs(&far.submission)?;
        let folder = self.stage.run(&far.run);
        let records = Records::read(&folder).map_err(|error| failed(folder.root(), error))?;
        if jobs.times(far.task) == 0 {
            return self.settle_unrecorded(far, &records, queue);
        }
        let due = records.due(self.policy(far).as_ref());
        let truth = queue.truth(far);
        let lapsed = match &due {
            Due::Open(attempt) => self.is_dead(far, *attempt, &records)?,
            _ => true,
        };
        let rest = self.rest(&far.run, format!("{due:?} {truth:?} {lapsed}"));
        let signs = Signs {
            lapsed,
            lasting: rest.is_zero(),
            unstarted: queue.row(far).is_some_and(|row| row.nodes.is_empty()),
        };
        match settle(&records, &due, &truth, signs) {
            Act::Nothing
                if settle(
                    &records,
                    &due,
                    &truth,
                    Signs {
                        lasting: true,
                        ..signs
                    },
                ) != Act::Nothing =>
            {
                Ok(Left::SettlesAfter(rest))
            }
            Act::Nothing => Ok(Left::Nothing),
            Act::SubmitAgain => {
                self.observed.since.remove(&far.run);
                Ok(Left::SubmitAgain)
            }
            Act::End { attempt, ending } => {
                let ending = on_hosts(self.with_last_words(far, &jobs, ending), &records, attempt);
                self.end(&far.run, attempt, &ending)?;
                if truth == Truth::Waiting && self.is_over(far)? {
                    // Put back for a start that nobody wants. One that comes all the same finds the
                    // end and leaves.
                    let _ = self.withdraw(std::slice::from_ref(far));
                }
                Ok(Left::Nothing)
            }
        }
    }

    /// How long something has still to be as it is before it is believed.
    fn rest(&mut self, run: &RunId, sign: String) -> Duration {
        let since = match self.observed.since.get(run) {
            Some((known, since)) if *known == sign => *since,
            _ => {
                let now = Instant::now();
                self.observed.since.insert(run.clone(), (sign, now));
                now
            }
        };
        BELIEVED_AFTER.saturating_sub(since.elapsed())
    }

    /// Nothing here says that it was ever handed over. If it was, somebody has removed the stage
    /// folder: once no job of it is alive it has ended as its user wished, or nobody will ever know
    /// how.
    fn settle_unrecorded(
        &mut self,
        far: &RunRef,
        records: &Records,
        queue: &Queue,
    ) -> Result<Left> {
        if far.native.is_none()
            || !records.attempts.is_empty()
            || !matches!(queue.truth(far), Truth::NeverHeard | Truth::Ended(_))
        {
            return Ok(Left::Nothing);
        }
        let rest = self.rest(&far.run, format!("unrecorded {}", records.cancelled));
        if !rest.is_zero() {
            return Ok(Left::SettlesAfter(rest));
        }
        if records.cancelled {
            self.end(&far.run, 0, &Ending::cause(Cause::ByUser))?;
        } else {
            self.observed.lost.insert(far.run.clone());
        }
        Ok(Left::Nothing)
    }

    fn end(&self, run: &RunId, attempt: u32, ending: &Ending) -> Result<()> {
        let folder = self.stage.run(run);
        // A host that was only asleep and wakes finds the word to end before anything else.
        let stop = || match attempt {
            0 => Ok(false),
            _ => records::make(
                &folder,
                attempt,
                Record::Stop,
                &StopOrder {
                    ending: ending.clone(),
                    at_once: true,
                    by_scheduler: false,
                },
            ),
        };
        let made = std::fs::create_dir_all(folder.root())
            .and_then(|()| stop())
            .and_then(|_| {
                records::make(
                    &folder,
                    attempt,
                    Record::End,
                    &End {
                        at: towline_host::clock::now(),
                        ending: ending.clone(),
                    },
                )
            });
        made.map(|_| ())
            .map_err(|error| failed(folder.root(), error))
    }

    fn is_dead(&self, far: &RunRef, attempt: u32, records: &Records) -> Result<bool> {
        let folder = self.stage.run(&far.run);
        let nodes = records
            .attempts
            .get(&attempt)
            .and_then(|of| of.claim.as_ref())
            .map_or(1, |claim| claim.hosts.len());
        let holders = (0..u32::try_from(nodes).unwrap_or(u32::MAX))
            .map(Holder::Node)
            .chain([Holder::Head]);
        let leases: Vec<PathBuf> = holders
            .map(|holder| folder.lease(attempt, holder))
            .collect();
        is_lapsed(&leases, &folder.record(attempt, Record::Claim))
            .map_err(|error| failed(folder.root(), error))
    }

    /// What the job itself wrote last, where it never came to write records.
    fn with_last_words(&self, far: &RunRef, jobs: &Jobs, ending: Ending) -> Ending {
        if ending.cause != Some(Cause::NotStarted) {
            return ending;
        }
        let Some((_, job)) = jobs.accepted(far.task).next() else {
            return ending;
        };
        let name = far.task.map_or_else(
            || format!("slurm-{job}.out"),
            |task| format!("slurm-{job}_{task}.out"),
        );
        let path = self.stage.submission(&far.submission).join(name);
        let said = match std::fs::read(&path) {
            Ok(said) => said,
            // Slurm makes it on the node before anything else happens.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let stage = self.stage.root().display();
                return ending.detail(format!(
                    "its job ended before anything of it began, and its output is not in {stage}, \
                        the `stage` of the cluster: its node does not share that folder"
                ));
            }
            Err(_) => return ending,
        };
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(4096)..]).into_owned();
        match said.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => ending.detail(format!(
                "its job ended before anything of it began: {}",
                line.trim()
            )),
            None => ending,
        }
    }

    fn report(&self, far: &RunRef, queue: Option<&Queue>) -> Result<RunReport> {
        let folder = self.stage.run(&far.run);
        let records = Records::read(&folder).map_err(|error| failed(folder.root(), error))?;
        let jobs = self.jobs(&far.submission)?;
        let attempts = records.attempts.iter().map(|(attempt, of)| AttemptReport {
            attempt: *attempt,
            claim: of.claim.clone(),
            started: of.started.clone(),
            held: of.held.clone(),
            end: of.end.clone(),
        });
        let hosts = records
            .attempts
            .values()
            .next_back()
            .and_then(|of| of.claim.as_ref())
            .map(|claim| claim.hosts.clone())
            .unwrap_or_default();
        let mut native = queue.and_then(|queue| queue.native(far));
        if let Some(native) = native.as_mut().filter(|native| native.hosts.is_empty()) {
            native.hosts = hosts;
        }
        let attempts: Vec<AttemptReport> = attempts.collect();
        // What the scheduler remembers of an ended job is no run: its records were dropped.
        let lives = native
            .as_ref()
            .is_some_and(|native| !matches!(state::native(&native.word), state::Native::Ended(_)));
        let is_unknown = attempts.is_empty() && jobs.0.is_empty() && !lives;
        Ok(RunReport {
            run: far.run.clone(),
            is_unknown,
            is_lost: is_unknown && self.observed.lost.contains(&far.run),
            cancelled: records.cancelled,
            attempts,
            native,
            state: None,
        })
    }

    /// The lines of one run: by the number that its job was given, if that is still the one that
    /// waits.
    fn rows_of_one(&self, far: &RunRef) -> Result<Vec<QueueRow>> {
        let jobs = self.jobs(&far.submission)?;
        let number = jobs.accepted(far.task).next().map(|(_, job)| job);
        let asked = number
            .and_then(|_| {
                self.slurm
                    .queue(&Which {
                        job: number,
                        ..Which::default()
                    })
                    .ok()
            })
            .unwrap_or_default();
        let is_it = |row: &QueueRow| {
            row.user == self.user && state::native(&row.state) == state::Native::Waiting
        };
        if rows_of(&asked, far).any(is_it) {
            Ok(asked)
        } else {
            self.queue_of([&far.submission])
        }
    }

    /// Why it waits.
    pub(super) fn explain(&self, far: &RunRef) -> Result<Explanation> {
        let queue = Queue {
            rows: self.rows_of_one(far)?,
            accounted: Vec::new(),
        };
        let plain = |text: &str| {
            Ok(Explanation {
                native: queue.native(far),
                text: text.into(),
                next: None,
                forever: false,
            })
        };
        let Some(row) = queue.row(far) else {
            return plain("Slurm has no job of it now");
        };
        match state::native(&row.state) {
            state::Native::Running => {
                return plain("Slurm has given it nodes, and it has not told of itself yet");
            }
            state::Native::Ended(_) => {
                return plain("its job has ended there, and what follows is not settled yet");
            }
            state::Native::Waiting | state::Native::Unknown(_) => {}
        }
        let native = queue.native(far);
        let reason = row.reason.clone().unwrap_or_default();
        // All who wait have to be asked for: only where it tells something.
        let waiting = is_turn(&reason)
            .then(|| self.slurm.priorities(&row.partition).ok())
            .flatten();
        let count = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
        let outlook = Outlook {
            now: towline_host::clock::now(),
            job: native.as_ref().map(|native| native.id.as_str()),
            start: row.start,
            ahead: waiting.as_ref().map(|waiting| {
                count(
                    waiting
                        .iter()
                        .filter(|other| **other > row.priority)
                        .count(),
                )
            }),
            waiting: waiting.as_ref().map(|waiting| count(waiting.len())),
        };
        let found = explain_with(&reason, &outlook);
        Ok(Explanation {
            text: found.text,
            next: found.next,
            forever: found.forever,
            native,
        })
    }

    /// Everything in the scheduler's queue, and every run that this stage folder knows of.
    pub(super) fn known(&self) -> Result<Vec<KnownJob>> {
        let rows = self.slurm.queue(&Which::default())?;
        let mut known = Vec::new();
        for row in &rows {
            let submission = RunId::try_from(row.name.clone())
                .ok()
                .filter(|id| row.user == self.user && self.stage.plan(id).exists());
            let run = submission.map(|id| match row.id.part {
                Part::Task(task) => id.numbered(task),
                _ => id,
            });
            known.push(KnownJob {
                ended: state::native(&row.state).is_ended(),
                run,
                job: Some(row.id.to_string()),
                name: row.name.clone(),
                user: row.user.clone(),
                state: state::native(&row.state).word().map(ToOwned::to_owned),
                word: Some(row.state.clone()),
                reason: row.reason.clone(),
                nodes: row.node_count,
                created: None,
            });
        }
        let listed: HashSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let folder = self.stage.submissions();
        for entry in std::fs::read_dir(&folder)
            .map_err(|error| failed(&folder, error))?
            .flatten()
        {
            let Some(submission) = entry
                .file_name()
                .into_string()
                .ok()
                .and_then(|name| RunId::try_from(name).ok())
            else {
                continue;
            };
            if listed.contains(submission.as_str()) {
                continue;
            }
            let Ok(order) = records::order(&self.stage, &submission) else {
                continue;
            };
            let jobs = self.jobs(&submission)?;
            for run in &order.plan.runs {
                let far = RunRef::of(&run.id);
                known.push(KnownJob {
                    ended: jobs.is_refused() || self.is_over(&far)?,
                    job: jobs
                        .accepted(far.task)
                        .next()
                        .map(|(_, job)| job.to_owned()),
                    run: Some(run.id.clone()),
                    name: run.name.clone(),
                    user: self.user.clone(),
                    state: None,
                    word: None,
                    reason: None,
                    nodes: order.plan.resolved.shape.nodes,
                    created: run.id.made(),
                });
            }
        }
        Ok(known)
    }
}

/// Whoever died without a word died somewhere: that is the node to look at.
fn on_hosts(ending: Ending, records: &Records, attempt: u32) -> Ending {
    let hosts = records
        .attempts
        .get(&attempt)
        .and_then(|of| of.claim.as_ref())
        .map(|claim| claim.hosts.join(", "))
        .unwrap_or_default();
    match ending.detail.as_deref() {
        Some(SILENT) if !hosts.is_empty() => ending.detail(format!("{SILENT} on {hosts}")),
        _ => ending,
    }
}

/// The lines of a run: by the name it has there, which is its submission's id.
pub(super) fn rows_of<'q, 'f>(
    rows: &'q [QueueRow],
    far: &'f RunRef,
) -> impl Iterator<Item = &'q QueueRow> + use<'q, 'f> {
    let task = |row: &QueueRow, task: u32| {
        row.id.covers(&JobId {
            job: row.id.job,
            part: Part::Task(task),
            step: None,
        })
    };
    rows.iter().filter(move |row| {
        row.name == far.submission.as_str() && far.task.is_none_or(|number| task(row, number))
    })
}

impl Queue {
    fn row(&self, far: &RunRef) -> Option<&QueueRow> {
        // Of several, by a lost answer, the one that lives; else the last.
        let rank = |row: &&QueueRow| {
            let life = match state::native(&row.state) {
                state::Native::Running => 3,
                state::Native::Waiting => 2,
                state::Native::Unknown(_) => 1,
                state::Native::Ended(_) => 0,
            };
            (life, row.id.job)
        };
        rows_of(&self.rows, far).max_by_key(rank)
    }

    fn native(&self, far: &RunRef) -> Option<Native> {
        let row = self.row(far)?;
        Some(Native {
            id: far.task.map_or_else(
                || row.id.job.to_string(),
                |task| format!("{}_{task}", row.id.job),
            ),
            word: row.state.clone(),
            reason: row.reason.clone().unwrap_or_default(),
            hosts: expand(&row.nodes).unwrap_or_default(),
            start: row
                .start
                .filter(|_| state::native(&row.state) == state::Native::Waiting),
            url: None,
        })
    }

    fn truth(&self, far: &RunRef) -> Truth {
        let controller = self
            .row(far)
            .map(|row| read(&row.state, ExitPair::default(), row.reason.as_deref()));
        let mut mine: Vec<&AccountingRow> = self
            .accounted
            .iter()
            .filter(|row| row.name == far.submission.as_str() && row.id.step.is_none())
            .filter(|row| far.task.is_none_or(|task| row.id.part == Part::Task(task)))
            .collect();
        mine.sort_by_key(|row| (row.id.job, row.start, row.submitted));
        believed(
            controller,
            mine.last()
                .map(|row| read(&row.state, row.exit, row.reason.as_deref())),
        )
    }
}

fn read(word: &str, exit: ExitPair, reason: Option<&str>) -> Truth {
    match state::native(word) {
        state::Native::Waiting => Truth::Waiting,
        state::Native::Running => Truth::Running,
        state::Native::Unknown(_) => Truth::Unknown,
        state::Native::Ended(_) => {
            Truth::Ended(state::ending(word, exit, reason).unwrap_or_default())
        }
    }
}
