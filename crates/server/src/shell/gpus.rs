//! Queries the GPUs of this machine, which starts programs and takes time.

use super::Message;
use crate::daemon::Input;
use tokio::sync::mpsc::UnboundedSender;
use towline_backends::local::gpus;
use towline_core::cluster::GpuFacts;
use towline_wire::daemon::Limits;

/// Queries the GPUs in a thread.
pub(super) fn look(limits: Limits, inbox: &UnboundedSender<Message>) {
    let inbox = inbox.clone();
    let query = move || {
        let _ = inbox.send(Message::input(Input::GpusSeen(found(limits))));
    };
    // If no thread can be started, this one does it. (Tokio's own `spawn_blocking` would panic.)
    let thread = std::thread::Builder::new().name("gpus".into());
    if thread.spawn(query.clone()).is_err() {
        query();
    }
}

/// The GPUs with their users. A number from the configuration wins over the number found: a smaller
/// one limits, a larger one is believed.
fn found(limits: Limits) -> Vec<GpuFacts> {
    let mut found = gpus::detect(&is_ours);
    match limits.gpus.map(|count| count as usize) {
        Some(count) if count <= found.len() => found.truncate(count),
        Some(count) => {
            let declared = gpus::declared(u32::try_from(count).unwrap_or(u32::MAX));
            found.extend(declared.into_iter().skip(found.len()));
        }
        None => {}
    }
    found
}

/// Whether a process belongs to one of our runs: such a process has the run's id in its
/// environment.
fn is_ours(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
        bytes
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(b"TOW_RUN_ID="))
    })
}
