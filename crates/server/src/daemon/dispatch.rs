//! Starting what the scheduler chose: the intent first, then the word to the runner.

use super::{Daemon, Message, Then, log, now};
use crate::schedule::{Capacity, Decision, Waiting, decide};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_core::backend::GpuMake;
use towline_core::event::RunEvent;
use towline_core::plan::Plan;
use towline_core::reason::{Cause, Ending};
use towline_core::redact::SecretSet;
use towline_core::resolve::{IoPlan, Resolved, STORE_SECRET};
use towline_core::template;
use towline_core::{Error, Result, RunId};
use towline_engine::history::RunKey;
use towline_host::crash;
use towline_snapshot::digest::Digest;
use towline_wire::runner::{Assignment, CodeOrder, ContainerOrder, CopyOrder, DataOrder, IoOrder, Stop, ToRunner, Variables};

impl Daemon {
    pub(super) fn schedule(&mut self) {
        self.unsettled = false;
        if self.queue.waiting_count() == 0 {
            return;
        }
        let known = self.gpus_are_known();
        let decision = self.decide_with(known, self.queue.waiting());
        for (key, gpus) in decision.start {
            self.dispatch(key, gpus);
        }
        for key in decision.preempt {
            self.preempt(key);
        }
    }

    /// What the scheduler would do with these, as things stand.
    pub(super) fn decide<'w>(&self, waiting: impl IntoIterator<Item = &'w Waiting>) -> Decision {
        self.decide_with(true, waiting)
    }

    fn decide_with<'w>(&self, gpus_are_known: bool, waiting: impl IntoIterator<Item = &'w Waiting>) -> Decision {
        let at = now();
        let mut holding = self.queue.holding(at, self.grace_millis);
        holding.extend(self.reserved.iter().cloned());
        let gpus = if gpus_are_known { self.machine.usable_gpus() } else { BTreeSet::new() };
        let capacity = Capacity { cpus: self.machine.cpus, memory: self.machine.memory, gpus };
        decide(&capacity, waiting, &holding, at.0.unsigned_abs())
    }

    fn dispatch(&mut self, key: RunKey, gpus: BTreeSet<u32>) {
        crash::pass("daemon.dispatch.before");
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt + 1) else { return };
        let runner = match self.runners.take_idle() {
            Ok(runner) => runner,
            Err(error) => return log(&format!("no runner can be started: {error}")),
        };
        let Some(event) = self.apply(key, RunEvent::AttemptIntent { attempt, runner: runner.clone(), gpus: gpus.into_iter().collect(), durable: false }, now())
        else {
            return self.runners.put_back(&runner);
        };
        self.runners.assign(&runner, key, attempt);
        if let Some(run) = self.queue.get_mut(key) {
            run.started = None;
        }
        self.queue.refile(key);
        self.record(vec![event], Then::Dispatch { key });
    }

    /// The intent is in the history, so whoever comes after us knows which runner may have it.
    pub(super) fn dispatch_written(&mut self, key: RunKey) {
        crash::pass("daemon.dispatch.committed");
        let Some(run) = self.run_of(key) else { return };
        let submission = run.submission.clone();
        match self.plans.get(&submission) {
            Some(plan) => self.plan_read(key, Ok(Some(plan.clone()))),
            None => self.ledger.read(move |history| {
                let plan = history.submission(&submission).map(|found| found.map(|submission| Arc::new(submission.plan)));
                Message::PlanRead { key, plan }
            }),
        }
    }

    pub(super) fn plan_read(&mut self, key: RunKey, plan: Result<Option<Arc<Plan>>>) {
        let Some(run) = self.run_of(key) else { return };
        let Some(runner) = run.state.runner.clone() else { return };
        let assignment = plan.and_then(|plan| plan.ok_or_else(|| Error::bug("its plan is not in the history"))).and_then(|plan| {
            let assignment = self.assignment(key, &plan)?;
            self.keep_plan(plan);
            Ok(assignment)
        });
        match assignment {
            Ok(assignment) => {
                self.runners.send(&runner, ToRunner::Start(Box::new(assignment)));
                crash::pass("daemon.dispatch.sent");
                self.send_stop_if_wanted(key);
            }
            Err(error) => {
                let attempt = self.run_of(key).map_or(0, |run| run.state.attempt);
                self.runners.put_back(&runner);
                self.attempt_over(key, attempt, Ending::cause(Cause::NotStarted).detail(error.to_string()), now());
            }
        }
    }

    fn assignment(&self, key: RunKey, plan: &Plan) -> Result<Assignment> {
        let run = self.run_of(key).ok_or_else(|| Error::bug("the run is gone"))?;
        let resolved = &plan.resolved;
        let secrets = self.secrets(&run.submission);
        let data = self.data_of(&run.id, resolved, &secrets)?;
        let places: Vec<(&str, &str)> = data.iter().flat_map(|data| &data.io).map(|order| (order.io.name.as_str(), order.place.as_str())).collect();
        let values = || run.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(places.iter().copied());
        let value_of = |wanted: &str| values().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        let known: Vec<&str> = values().map(|(name, _)| name).collect();
        let fill = |text: &str| template::fill(text, value_of, &known);
        // The shell's own variables, PATH among them, mean nothing inside an image.
        let mut variables: BTreeMap<String, String> = if resolved.container.is_some() { BTreeMap::new() } else { resolved.inherited.clone() };
        if let Some(missing) = resolved.secrets.iter().find(|name| !secrets.0.contains_key(*name)) {
            return Err(Error::refused(format!("the value of the secret `{missing}` is gone; submit again")));
        }
        let own = secrets.0.iter().filter(|(name, _)| !name.starts_with(STORE_SECRET));
        variables.extend(own.map(|(name, value)| (name.clone(), value.expose().to_owned())));
        for (name, value) in &resolved.env {
            variables.insert(name.clone(), fill(value)?);
        }
        for order in data.iter().flat_map(|data| &data.io) {
            variables.insert(order.io.variable(), order.place.clone());
        }
        if let Some(copy) = data.as_ref().and_then(|data| data.copy.as_ref()) {
            variables.insert("TOW_COPY_DIR".to_owned(), copy.place.clone());
        }
        let (code, workdir) = self.code_of(&run.id, resolved)?;
        if let Some(code) = &code {
            move_into(&mut variables, code, &workdir);
        }
        Ok(Assignment {
            run: run.id.clone(),
            attempt: run.state.attempt,
            shape: resolved.shape.clone(),
            program: resolved.program.try_map(fill)?,
            setup: resolved.setup.iter().map(|line| fill(line)).collect::<Result<_>>()?,
            workdir,
            umask: resolved.umask,
            variables: Variables(variables),
            container: self.container_of(&run.id, resolved, data.as_ref())?,
            data,
            code,
            gpus: self.gpus_by_node(&run.state.gpus, resolved.shape.nodes, resolved.shape.gpus_per_node),
            gpu_make: self.gpu_make(),
            time: run.time,
            hold_on_failure: resolved.hold_on_failure.map(|span| span.0),
            memory: resolved.shape.memory.map(|memory| memory.0),
            grace_millis: self.grace_millis,
            intent_is_durable: run.state.claim_may_be_lost,
        })
    }

    /// What is laid out for a run, and where it starts: in its own tree, or in the folder itself.
    fn code_of(&self, run: &RunId, resolved: &Resolved) -> Result<(Option<CodeOrder>, String)> {
        let Some(code) = &resolved.code else { return Ok((None, resolved.workdir.clone())) };
        let text = |path: PathBuf| path.into_os_string().into_string().map_err(|_| Error::refused("the state folder has a name that is not UTF-8"));
        let target = self.state.code(run);
        let order = CodeOrder {
            snapshot: code.snapshot.clone().ok_or_else(|| Error::bug("the plan names no snapshot"))?,
            store: text(self.state.snapshots())?,
            target: text(target.clone())?,
            root: code.root.clone(),
            links: code.links.clone(),
            mapped: code.mapped.clone(),
        };
        // An empty part would leave a slash at the end.
        let workdir = if code.workdir.is_empty() { target } else { target.join(&code.workdir) };
        Ok((Some(order), text(workdir)?))
    }

    /// What is brought, mounted and collected for a run, and where it lies on this machine.
    fn data_of(&self, run: &RunId, resolved: &Resolved, secrets: &SecretSet) -> Result<Option<DataOrder>> {
        if resolved.io.is_empty() && resolved.copy.is_none() {
            return Ok(None);
        }
        let text = |path: PathBuf| path.into_os_string().into_string().map_err(|_| Error::refused("the state folder has a name that is not UTF-8"));
        let order = |io: &IoPlan| Ok(IoOrder { io: io.clone(), place: text(self.state.io(run, &io.name))? });
        let copy = resolved.copy.as_ref().map(|copy| {
            let name = serde_json::to_vec(&(&copy.store, &copy.path)).unwrap_or_default();
            Ok::<_, Error>(CopyOrder { copy: copy.clone(), place: text(self.state.copy(&Digest::of(&name).short()))? })
        });
        let stores = secrets.0.iter().filter_map(|(name, value)| Some((name.strip_prefix(STORE_SECRET)?.to_owned(), value.expose().to_owned())));
        Ok(Some(DataOrder {
            io: resolved.io.iter().map(order).collect::<Result<_>>()?,
            copy: copy.transpose()?,
            secrets: Variables(stores.collect()),
            journals: text(self.state.transfers())?,
            collect_every: self.collect_seconds,
            only_collect: false,
        }))
    }

    /// Inside, a run sees its own folder, its code, and where what is linked leads to.
    fn container_of(&self, run: &RunId, resolved: &Resolved, data: Option<&DataOrder>) -> Result<Option<ContainerOrder>> {
        let Some(container) = &resolved.container else { return Ok(None) };
        let own = self.state.run(run).into_os_string().into_string().map_err(|_| Error::refused("the state folder has a name that is not UTF-8"))?;
        let code = resolved.code.as_ref().map_or_else(|| resolved.workdir.clone(), |code| code.root.clone());
        // The folder may be gone by now; frozen code does not need it.
        let folders = data.iter().flat_map(|data| &data.io).filter(|order| order.io.store.datastore.kind == "folder");
        let copy = data.and_then(|data| data.copy.as_ref()).map(|copy| copy.place.clone());
        let mapped = resolved.code.iter().flat_map(|code| code.mapped.values().cloned());
        let elsewhere =
            folders.filter_map(|order| order.io.store.datastore.path.clone()).chain([code]).chain(mapped).filter(|folder| Path::new(folder).is_dir());
        let binds: BTreeSet<String> = [own].into_iter().chain(elsewhere).chain(copy).collect();
        let binds = binds.into_iter().collect();
        Ok(Some(ContainerOrder { container: container.clone(), binds, variables: Variables(resolved.inherited.clone()) }))
    }

    /// A machine with GPUs hides them from a run that asked for none.
    fn gpus_by_node(&self, gpus: &[u32], nodes: u32, per_node: u32) -> Vec<Vec<u32>> {
        if self.machine.gpus.is_empty() {
            return Vec::new();
        }
        (0..nodes).map(|node| gpus.iter().copied().skip((node * per_node) as usize).take(per_node as usize).collect()).collect()
    }

    fn gpu_make(&self) -> GpuMake {
        self.machine.gpu_make()
    }

    fn preempt(&mut self, key: RunKey) {
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt) else { return };
        let event = self.apply(key, RunEvent::PreemptIntent { attempt }, now());
        self.record(event.into_iter().collect(), Then::Preempt { key });
    }

    pub(super) fn preempt_written(&mut self, key: RunKey) {
        crash::pass("daemon.preempt.committed");
        self.send_stop_if_wanted(key);
        crash::pass("daemon.preempt.sent");
    }

    /// Passes on what the history says the user or a higher tier wants. Harmless when repeated.
    pub(super) fn send_stop_if_wanted(&mut self, key: RunKey) {
        let Some(run) = self.run_of(key) else { return };
        let why = match (run.state.cancel_requested, run.state.preempt_requested) {
            (true, _) => Stop::ByUser,
            (false, true) => Stop::Preempted,
            (false, false) => return,
        };
        let Some(runner) = run.state.runner.clone() else { return };
        let stop = ToRunner::Stop { run: run.id.clone(), attempt: run.state.attempt, why };
        self.runners.send(&runner, stop);
    }
}

/// The submitter's shell names its own folder; the run has another.
fn move_into(variables: &mut BTreeMap<String, String>, code: &CodeOrder, workdir: &str) {
    if variables.contains_key("PWD") {
        variables.insert("PWD".to_owned(), workdir.to_owned());
    }
    variables.remove("OLDPWD");
    // Python looks there before anywhere else: the frozen modules, not today's.
    if let Some(path) = variables.get_mut("PYTHONPATH") {
        let moved = |entry: &str| match Path::new(entry).strip_prefix(&code.root) {
            Ok(below) if Path::new(entry).is_absolute() => Path::new(&code.target).join(below).to_string_lossy().trim_end_matches('/').to_owned(),
            _ => entry.to_owned(),
        };
        *path = path.split(':').map(moved).collect::<Vec<_>>().join(":");
    }
}
