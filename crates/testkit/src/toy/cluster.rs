//! The toy cluster as an implementation of the seam.

use super::{Fault, ToyCluster, ToyJob};
use towline_core::cluster::{
    Asked, BlobBytes, Caps, Cell, Cluster, Cursor, Depth, Draft, Explanation, Facts, FileEntry,
    Fit, KnownJob, LogBytes, LogLength, LogSource, NodeFacts, Observed, Page, Reach, ReachRequest,
    RunRef, RunReport, Wake,
};
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::state::{Phase, RunState, cancelled};
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};

fn facts() -> Facts {
    Facts {
        nodes: vec![NodeFacts {
            name: "toy".to_owned(),
            cpus: 1,
            ..NodeFacts::default()
        }],
        ..Facts::default()
    }
}

impl Cluster for ToyCluster {
    fn kind(&self) -> &'static str {
        "toy"
    }
    fn name(&self) -> &'static str {
        "toy"
    }
    fn caps(&self) -> Caps {
        Caps {
            watches: true,
            ..Caps::NONE
        }
    }

    fn remembered_facts(&self) -> Option<Facts> {
        Some(facts())
    }
    fn facts(&self) -> Result<Facts> {
        self.call().map(|_| facts())
    }
    fn page(&self, facts: &mut Facts) -> Page {
        let row = |node: &NodeFacts| vec![Cell::plain(node.name.clone())];
        Page::default().table(&["NODE"], facts.nodes.iter().map(row).collect())
    }
    fn summary(&self, _: &Facts) -> String {
        "in memory".to_owned()
    }

    fn fit(&self, draft: Draft<'_>) -> Result<Fit> {
        Ok(Fit::unchanged(draft))
    }
    fn render(&self, asked: &Asked<'_>, _: &Facts) -> Result<Request> {
        Ok(Request {
            text: format!("toy {} × {}\n", asked.id, asked.runs.len()),
        })
    }

    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>> {
        let world = self.call()?;
        let is_missing = |blob: &String| !world.blobs.contains_key(blob);
        Ok(blobs.into_iter().filter(is_missing).collect())
    }
    fn put(&self, blobs: &mut BlobBytes<'_>) -> Result<()> {
        for blob in blobs {
            let (name, bytes) = blob?;
            self.call()?.blobs.entry(name).or_insert(bytes);
        }
        Ok(())
    }

    fn submit(&self, plan: &Plan, _: &SecretSet) -> Result<Vec<String>> {
        let mut world = self.call()?;
        world.plans.insert(plan.id.clone(), plan.clone());
        for run in &plan.runs {
            world.jobs.entry(run.id.clone()).or_insert_with(|| ToyJob {
                state: RunState {
                    phase: Phase::Queued,
                    ..RunState::default()
                },
                ..ToyJob::default()
            });
        }
        if world.fault == Fault::LostAnswer {
            return Err(Error::unreachable("the answer was lost"));
        }
        Ok(plan.runs.iter().map(|run| run.id.to_string()).collect())
    }
    fn observe(&self, runs: &[RunRef], _: Depth) -> Result<Observed> {
        let world = self.call()?;
        let report = |run: &RunRef| {
            let job = world.jobs.get(&run.run);
            RunReport {
                run: run.run.clone(),
                is_unknown: job.is_none(),
                is_lost: false,
                cancelled: job.is_some_and(|job| job.state.cancel_requested),
                attempts: Vec::new(),
                native: None,
                state: job.map(|job| Box::new(job.state.clone())),
            }
        };
        Ok(Observed {
            at: Moment::default(),
            runs: runs.iter().map(report).collect(),
            unasked: None,
            settles_in: None,
        })
    }
    fn cancel(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        let mut world = self.call()?;
        for run in runs {
            if let Some(job) = world.jobs.get_mut(&run.run) {
                let attempt = job.state.attempt;
                job.step(&towline_core::event::RunEvent::Ended {
                    attempt,
                    ending: cancelled(),
                });
            }
        }
        Ok(Vec::new())
    }
    fn on_change(&self, wake: Wake) {
        self.world().wakes.push(wake);
    }
    fn explain(&self, run: &RunRef) -> Result<Explanation> {
        let world = self.call()?;
        let job = world.jobs.get(&run.run);
        Ok(Explanation {
            native: None,
            text: job
                .map_or("never heard of it", |job| job.state.phase.word())
                .to_owned(),
            next: None,
            forever: false,
        })
    }
    fn forget(&self, runs: &[RunRef]) -> Result<()> {
        let mut world = self.call()?;
        for run in runs {
            world.jobs.remove(&run.run);
        }
        Ok(())
    }

    fn logs(&self, run: &RunRef) -> Result<Vec<LogLength>> {
        let world = self.call()?;
        let job = world.jobs.get(&run.run);
        Ok(job
            .map(|job| LogLength {
                attempt: 1,
                source: LogSource::Rank(0),
                length: job.log.len() as u64,
            })
            .into_iter()
            .collect())
    }
    fn log_bytes(&self, run: &RunRef, from: &Cursor, most: u64) -> Result<LogBytes> {
        let world = self.call()?;
        let Some(job) = world.jobs.get(&run.run).filter(|_| from.attempt == 1) else {
            return Ok(LogBytes::default());
        };
        Ok(LogBytes {
            bytes: part(&job.log, from.offset, most),
            length: Some(job.log.len() as u64),
        })
    }
    fn files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        let world = self.call()?;
        let files = world.jobs.get(&run.run).into_iter();
        let below = files
            .flat_map(|job| &job.files)
            .filter_map(|(name, bytes)| {
                let rest = name.strip_prefix(path)?;
                Some((rest.trim_start_matches('/').to_owned(), bytes.len() as u64))
            });
        Ok(below
            .map(|(path, size)| FileEntry {
                path,
                size,
                mode: 0o644,
                is_folder: false,
                link: None,
            })
            .collect())
    }
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        let world = self.call()?;
        let file = world.jobs.get(&run.run).and_then(|job| job.files.get(path));
        Ok(file
            .map(|bytes| part(bytes, offset, most))
            .unwrap_or_default())
    }
    fn run_folder(&self, run: &RunId) -> Option<(String, Option<String>)> {
        Some((format!("toy:{run}"), None))
    }

    fn known_jobs(&self) -> Result<Vec<KnownJob>> {
        let world = self.call()?;
        let known = world.jobs.iter().map(|(run, job)| KnownJob {
            run: Some(run.clone()),
            job: None,
            name: run.to_string(),
            user: "somebody".to_owned(),
            state: Some(job.state.phase.word().to_owned()),
            word: None,
            reason: None,
            nodes: 1,
            ended: job.state.phase.is_ended(),
            created: None,
        });
        Ok(known.collect())
    }
    fn plan_of(&self, submission: &RunId, _: Option<&str>) -> Result<Option<Plan>> {
        Ok(self.call()?.plans.get(submission).cloned())
    }
    fn reach(&self, request: &ReachRequest<'_>) -> Result<Reach> {
        request.check_running()?;
        Err(Error::refused("a toy lets nobody in"))
    }
}

fn part(bytes: &[u8], offset: u64, most: u64) -> Vec<u8> {
    let bytes = bytes.iter().copied();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    bytes
        .skip(usize::try_from(offset).unwrap_or(usize::MAX))
        .take(most)
        .collect()
}
