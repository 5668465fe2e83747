//! A cluster in memory, with switches for what goes wrong on real ones.

use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use towline_core::backend::{Asked, Backend, Handle, Observation, Staged};
use towline_core::caps::Caps;
use towline_core::cluster::{Cursor, Facts, LogChunk, NodeFacts};
use towline_core::event::RunEvent;
use towline_core::plan::{Plan, Request};
use towline_core::reason::Ending;
use towline_core::redact::SecretSet;
use towline_core::state::{RunState, Step, cancelled, reduce};
use towline_core::{Error, Result, RunId};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    None,
    /// The submission arrives, its answer does not.
    LostAnswer,
    /// Nothing can be asked.
    Unreachable,
}

#[derive(Debug, Default)]
pub struct FakeBackend {
    jobs: Mutex<HashMap<RunId, (RunState, Vec<u8>)>>,
    fault: Mutex<Fault>,
    /// Every call that a real cluster would have answered.
    pub calls: AtomicU32,
}

impl FakeBackend {
    pub fn set_fault(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn call(&self) -> Result<Fault> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match *self.fault.lock().unwrap() {
            Fault::Unreachable => Err(Error::unreachable("the fake cluster is unplugged")),
            fault => Ok(fault),
        }
    }

    fn step(&self, run: &RunId, event: &RunEvent) {
        let mut jobs = self.jobs.lock().unwrap();
        if let Some((state, _)) = jobs.get_mut(run)
            && let Ok(Step::Changed(next)) = reduce(state, event)
        {
            *state = next;
        }
    }

    /// The fake cluster's own life: starts a job, lets it write, and ends it.
    pub fn play(&self, run: &RunId, log: &[u8], ending: Ending) {
        self.step(
            run,
            &RunEvent::AttemptIntent {
                attempt: 1,
                runner: "fake".into(),
                gpus: Vec::new(),
                durable: false,
            },
        );
        self.step(run, &RunEvent::AttemptStarted { attempt: 1 });
        if let Some((_, bytes)) = self.jobs.lock().unwrap().get_mut(run) {
            bytes.extend_from_slice(log);
        }
        self.step(run, &RunEvent::Ended { attempt: 1, ending });
    }
}

#[async_trait]
impl Backend for FakeBackend {
    fn kind(&self) -> &'static str {
        "fake"
    }
    fn name(&self) -> &'static str {
        "fake"
    }
    fn caps(&self) -> Caps {
        Caps {
            live_logs: true,
            ..Caps::default()
        }
    }
    async fn probe(&self) -> Result<Facts> {
        self.call()?;
        Ok(Facts {
            nodes: vec![NodeFacts {
                name: "fake".into(),
                cpus: 8,
                memory: 1 << 34,
                ..NodeFacts::default()
            }],
            notes: Vec::new(),
        })
    }
    fn render(&self, asked: &Asked<'_>, _: &Facts) -> Result<Request> {
        Ok(Request {
            text: asked.resolved.program.display(),
        })
    }
    async fn submit(&self, plan: &Plan, _: &SecretSet, _: &Staged) -> Result<Vec<Handle>> {
        let fault = self.call()?;
        let mut jobs = self.jobs.lock().unwrap();
        for run in &plan.runs {
            jobs.entry(run.id.clone()).or_insert_with(|| {
                let state = RunState::default();
                let queued = match reduce(&state, &RunEvent::Submitted { native: None }) {
                    Ok(Step::Changed(state)) => state,
                    _ => state,
                };
                (queued, Vec::new())
            });
        }
        if fault == Fault::LostAnswer {
            return Err(Error::unreachable("the answer was lost"));
        }
        Ok(plan
            .runs
            .iter()
            .map(|run| Handle {
                run: run.id.clone(),
                native: run.id.to_string(),
            })
            .collect())
    }
    async fn find(&self, run: &RunId) -> Result<Option<Handle>> {
        self.call()?;
        Ok(self.jobs.lock().unwrap().contains_key(run).then(|| Handle {
            run: run.clone(),
            native: run.to_string(),
        }))
    }
    async fn observe(&self, handles: &[Handle]) -> Result<Vec<Observation>> {
        self.call()?;
        let jobs = self.jobs.lock().unwrap();
        let one = |handle: &Handle| match jobs.get(&handle.run) {
            Some((state, _)) => Observation::Known {
                state: Box::new(state.clone()),
                native: state.phase.word().to_owned(),
            },
            None => Observation::Gone,
        };
        Ok(handles.iter().map(one).collect())
    }
    async fn logs(&self, handle: &Handle, from: &Cursor, most: usize) -> Result<LogChunk> {
        self.call()?;
        let jobs = self.jobs.lock().unwrap();
        let bytes = jobs
            .get(&handle.run)
            .map(|(_, bytes)| bytes.as_slice())
            .unwrap_or_default();
        let start = usize::try_from(from.offset).unwrap_or(usize::MAX);
        if start > bytes.len() {
            return Ok(LogChunk {
                bytes: Vec::new(),
                truncated_to: Some(bytes.len() as u64),
            });
        }
        Ok(LogChunk {
            bytes: bytes[start..].iter().copied().take(most).collect(),
            truncated_to: None,
        })
    }
    async fn cancel(&self, handles: &[Handle]) -> Result<()> {
        self.call()?;
        for handle in handles {
            let attempt = self
                .jobs
                .lock()
                .unwrap()
                .get(&handle.run)
                .map_or(0, |(state, _)| state.attempt);
            self.step(&handle.run, &RunEvent::CancelIntent);
            self.step(
                &handle.run,
                &RunEvent::Ended {
                    attempt,
                    ending: cancelled(),
                },
            );
        }
        Ok(())
    }
    async fn forget(&self, handle: &Handle) -> Result<()> {
        self.call()?;
        self.jobs.lock().unwrap().remove(&handle.run);
        Ok(())
    }
}
