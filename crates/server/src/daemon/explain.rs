//! Explains why a run waits, and what the machine is doing.

use super::Daemon;
use super::far::FarRequest;
use towline_backends::local::render::Need;
use towline_core::RunId;
use towline_core::cluster::{Facts, NodeFacts};
use towline_core::quantity::Memory;
use towline_wire::daemon::{Explanation, RefusalKind, Reply};

impl Daemon {
    pub(super) fn explain(&mut self, run: &RunId, connection: u64) {
        match self.queue.key(run).and_then(|key| self.run_of(key)) {
            None => self.refuse(connection, RefusalKind::NotFound, "the run does not wait"),
            Some(found) if found.far.is_some() && !found.is_unsent() => {
                self.ask_far(connection, run.clone(), FarRequest::Explain);
            }
            Some(found) => {
                let explanation = self.explain_here(found);
                self.reply(connection, Reply::Explained(explanation));
            }
        }
    }

    fn explain_here(&self, run: &super::queue::Run) -> Explanation {
        if run.state.is_blocked() {
            return Explanation {
                ahead: 0,
                waits_for: Vec::new(),
                held_by: Vec::new(),
                text: self.blocked_text(run),
            };
        }
        let ahead = self
            .queue
            .waiting()
            .take_while(|waiting| waiting.key != run.key)
            .count();
        let free = self.free();
        let waits_for = missing(run.need, free);
        let holds = |other: &&super::queue::Run| {
            (run.need.gpus > free.gpus && other.need.gpus > 0)
                || (run.need.cpus > free.cpus && other.need.cpus > 0)
                || (run.need.memory > free.memory && other.need.memory > 0)
        };
        let held_by: Vec<RunId> = self
            .queue
            .held_runs()
            .filter(holds)
            .map(|other| other.id.clone())
            .collect();
        let text = self.waiting_text(run, free, &waits_for, ahead);
        Explanation {
            ahead,
            waits_for,
            held_by,
            text,
        }
    }

    fn waiting_text(
        &self,
        run: &super::queue::Run,
        free: Need,
        waits_for: &[String],
        ahead: usize,
    ) -> String {
        let mut text = match (run.state.runner.is_some(), waits_for.is_empty(), ahead) {
            (true, ..) => "it is being started".to_owned(),
            (false, true, _) if self.runners.trouble.is_some() => {
                format!(
                    "no runner can be started, and the daemon tries again: {}",
                    self.runners.trouble.as_deref().unwrap_or_default()
                )
            }
            (false, true, 0) => "it starts in a moment".to_owned(),
            (false, true, ahead) => format!(
                "there is room, but starting it now could delay one of the {ahead} run(s) before it"
            ),
            (false, false, ahead) => {
                let place = if ahead == 0 {
                    "next in line".to_owned()
                } else {
                    format!("behind {ahead} other run(s)")
                };
                format!("it waits for {}, {place}", waits_for.join(" and "))
            }
        };
        if let Some(paused) = self
            .paused_starts
            .as_ref()
            .filter(|_| run.state.runner.is_none())
        {
            text = format!("no run can be started now: {}", paused.why);
        }
        if let Some(why) = self.ledger.stalled() {
            text = format!("no run can be started now: {why}");
        }
        let busy = self
            .machine
            .gpus
            .iter()
            .filter(|gpu| gpu.busy_with.is_some())
            .count();
        if busy > 0 && run.need.gpus > free.gpus {
            text += &format!("; {busy} GPU(s) are kept busy by others");
        }
        text
    }

    fn free(&self) -> Need {
        let held = self
            .queue
            .held_runs()
            .fold(Need::default(), |sum, run| Need {
                cpus: sum.cpus + run.need.cpus,
                memory: sum.memory + run.need.memory,
                gpus: sum.gpus + run.need.gpus,
            });
        let taken: Vec<u32> = self
            .queue
            .held_runs()
            .flat_map(|run| run.state.gpus.iter().copied())
            .collect();
        let gpus = self
            .machine
            .usable_gpus()
            .into_iter()
            .filter(|gpu| !taken.contains(gpu))
            .count();
        Need {
            cpus: self.machine.cpus.saturating_sub(held.cpus),
            memory: self.machine.memory.saturating_sub(held.memory),
            gpus: u32::try_from(gpus).unwrap_or(0),
        }
    }

    /// The machine, with the runs that hold parts of it.
    pub(super) fn machine_facts(&self) -> Facts {
        let free = self.free();
        let gpus = self.machine.gpus.iter().cloned().map(|mut gpu| {
            gpu.run = self
                .queue
                .held_runs()
                .find(|run| run.state.gpus.contains(&gpu.index))
                .map(|run| run.id.clone());
            gpu
        });
        let node = NodeFacts {
            name: self.settings.host.clone(),
            cpus: self.machine.cpus,
            cpus_used: self.machine.cpus - free.cpus,
            memory: self.machine.memory,
            memory_used: self.machine.memory - free.memory,
            gpus: gpus.collect(),
            ..NodeFacts::default()
        };
        Facts {
            nodes: vec![node],
            ..Facts::default()
        }
    }
}

/// The resources of which the run needs more than is free.
fn missing(need: Need, free: Need) -> Vec<String> {
    let mut waits_for = Vec::new();
    let mut add = |is_short: bool, text: String| {
        if is_short {
            waits_for.push(text);
        }
    };
    add(
        need.gpus > free.gpus,
        format!(
            "{} GPU{} ({} free)",
            need.gpus,
            if need.gpus == 1 { "" } else { "s" },
            free.gpus
        ),
    );
    add(
        need.cpus > free.cpus,
        format!(
            "{} CPU{} ({} free)",
            need.cpus,
            if need.cpus == 1 { "" } else { "s" },
            free.cpus
        ),
    );
    add(
        need.memory > free.memory,
        format!(
            "{} memory ({} free)",
            Memory(need.memory),
            Memory(free.memory)
        ),
    );
    waits_for
}
