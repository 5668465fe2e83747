//! Kills the processes that a dead runner left.

use super::{Message, log};
use crate::daemon::{Input, Orphans};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use towline_core::RunId;
use towline_host::process;
use towline_wire::layout::StateFolder;

/// Kills them in a thread. If no thread can be started, the daemon's own thread does it, and all
/// clients wait.
pub(super) fn end(state: &StateFolder, orphans: Orphans, inbox: &UnboundedSender<Message>) {
    let group_of = |runner: String| {
        let file = std::fs::read_to_string(state.runner_group(&runner));
        file.ok().map(PathBuf::from)
    };
    let group = orphans.runner.and_then(group_of);
    let inbox = inbox.clone();
    let (run, processes) = (orphans.run, orphans.processes);
    let (key, attempt) = (orphans.key, orphans.attempt);
    let is_of_this_boot = orphans.is_of_this_boot;
    let kill = move || {
        end_orphans(&run, &processes, is_of_this_boot, group.as_deref());
        let _ = inbox.send(Message::input(Input::OrphansEnded { key, attempt }));
    };
    let thread = std::thread::Builder::new().name("orphans".into());
    if thread.spawn(kill.clone()).is_err() {
        kill();
    }
}

/// Kills every process of a run: those in the runner's journal if pid and start time still match,
/// their descendants, every process with the run's id in its environment, and everything in the
/// runner's cgroup.
fn end_orphans(run: &RunId, processes: &[(i32, u64)], of_this_boot: bool, group: Option<&Path>) {
    let mark = format!("TOW_RUN_ID={run}");
    for _ in 0..500 {
        let mut alive: BTreeSet<i32> = BTreeSet::new();
        for (pid, facts) in process::all() {
            // A pid alone proves nothing, because pids are reused. Its start time must match the
            // journal, and a process group must be led by a rank or have no living leader.
            let is_rank = processes.contains(&(pid, facts.started));
            let of_rank = || {
                let leader = process::facts(facts.group).map(|leader| leader.started);
                processes.iter().any(|(known, started)| {
                    *known == facts.group
                        && facts.started >= *started
                        && leader.is_none_or(|leader| leader == *started)
                })
            };
            let written_down = of_this_boot && (is_rank || of_rank());
            let marked = || {
                std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
                    bytes
                        .split(|byte| *byte == 0)
                        .any(|entry| entry == mark.as_bytes())
                })
            };
            if !facts.zombie && (written_down || marked()) {
                alive.insert(pid);
            }
        }
        let below: Vec<i32> = alive
            .iter()
            .flat_map(|pid| process::descendants(*pid))
            .collect();
        alive.extend(below);
        if let Some(group) = group {
            towline_host::cgroup::kill(group);
        }
        if alive.is_empty() && group.is_none_or(towline_host::cgroup::is_empty) {
            group.into_iter().for_each(towline_host::cgroup::remove);
            return;
        }
        for pid in &alive {
            process::signal(*pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
        // As the subreaper, we may have become their parent.
        for pid in &alive {
            process::collect(*pid);
        }
    }
    log(&format!("{run}: some of its processes cannot be ended"));
}
