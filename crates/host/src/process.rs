//! Processes as `/proc` shows them.

use crate::backoff::Backoff;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// One process: its parent and when it started, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessFacts {
    pub parent: i32,
    pub group: i32,
    pub started: u64,
    pub zombie: bool,
    /// Stopped by a signal, as by Ctrl-Z.
    pub stopped: bool,
}

/// Reads `/proc/<pid>/stat`. The name in it may hold blanks and brackets, so fields count from the
/// last `)`.
pub fn facts(pid: i32) -> Option<ProcessFacts> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
    let fields: Vec<&str> = std::str::from_utf8(after)
        .ok()?
        .split_ascii_whitespace()
        .collect();
    Some(ProcessFacts {
        zombie: matches!(*fields.first()?, "Z" | "X"),
        stopped: matches!(*fields.first()?, "T"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Every process there is.
pub fn all() -> HashMap<i32, ProcessFacts> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, facts(pid)?)))
        .collect()
}

/// All running descendants of `root`, without `root` itself.
pub fn descendants(root: i32) -> Vec<i32> {
    let table = all();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, process) in &table {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            open.push(*child);
            if table.get(child).is_some_and(|process| !process.zombie) {
                found.push(*child);
            }
        }
    }
    found
}

/// The argv of a process; empty if it cannot be read.
pub fn words(pid: i32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Sends SIGTERM to a process, and SIGCONT because a stopped process would not receive it.
pub fn terminate(pid: i32) {
    signal(pid, Signal::TERM);
    signal(pid, Signal::CONT);
}

/// The same for a whole process group.
pub fn terminate_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = rustix::process::kill_process_group(group, Signal::TERM);
        let _ = rustix::process::kill_process_group(group, Signal::CONT);
    }
}

/// Signals a process. It is not an error if the process is gone.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The result of waiting for any child.
#[derive(Debug)]
pub enum Reaped {
    Child(i32, WaitStatus),
    /// There are children, and all still run.
    NoneYet,
    /// There is no child left.
    NoChildren,
}

/// Reaps one ended child, without waiting.
pub fn reap() -> Reaped {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => return Reaped::Child(pid.as_raw_nonzero().get(), status),
            Ok(None) => return Reaped::NoneYet,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Reaped::NoChildren,
        }
    }
}

/// Reaps this child if it has ended. It is not an error if it is not our child.
pub fn collect(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Makes this process the parent of orphans below it, instead of init.
pub fn become_subreaper() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}

/// Kills every descendant until none is left, however fast they fork. This process must be a
/// subreaper, so that a process that leaves its parent becomes our child.
pub fn kill_all_descendants() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(100));
    loop {
        for pid in descendants(own) {
            signal(pid, Signal::KILL);
        }
        loop {
            match reap() {
                Reaped::Child(..) => {}
                Reaped::NoChildren => return,
                Reaped::NoneYet => break,
            }
        }
        // A killed process needs a moment to become a zombie, and longer if it waits for a disk.
        std::thread::sleep(backoff.pause());
    }
}

/// A short id of this boot of the machine. After another boot every process is gone.
pub fn boot() -> &'static str {
    static BOOT_ID: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    BOOT_ID.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let short: String = text
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(8)
            .collect();
        if short.is_empty() {
            "boot".to_owned()
        } else {
            short
        }
    })
}

/// The memory this process holds, in bytes.
pub fn own_memory() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
