//! The guard: the parent of the runner, which cleans up if the runner is killed.

use crate::control::Control;
use crate::journal::{self, Journal};
use rustix::process::WaitOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use towline_core::reason::{Cause, Ending};
use towline_wire::journal::JournalRecord;
use towline_wire::runner::FromRunner;

/// Runs in the runners' folder, with the control socket as stdin and the locked journal as stdout.
pub fn guard_main(name: &str) -> io::Result<()> {
    // A session of its own, so that the end of the daemon or a closed terminal does not end us.
    let _ = rustix::process::setsid();
    towline_host::process::become_subreaper()?;
    // Every job would inherit signals that a background shell or `nohup` ignores. A signal that is
    // handled here has its default action again in children.
    for signal in [
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGQUIT,
    ] {
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
    let runner = Command::new("/proc/self/exe")
        .arg0("tow")
        .args([crate::RUNNER_VERB, name])
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .spawn()?;
    let pid = rustix::process::Pid::from_child(&runner);
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) if status.exit_status() == Some(0) => {
                remove_group(name);
                return Ok(());
            }
            Ok(Some((_, status))) if status.exited() || status.signaled() => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    towline_host::process::kill_all_descendants();
    remove_group(name);
    settle(name)
}

/// Removes the runner's control group, which is empty.
fn remove_group(name: &str) {
    let file = format!("{name}.cgroup");
    if let Ok(path) = std::fs::read_to_string(&file) {
        towline_host::cgroup::remove(path.as_ref());
        let _ = std::fs::remove_file(file);
    }
}

/// The runner is gone and no process of its run is alive: ends the attempt that it had open.
fn settle(name: &str) -> io::Result<()> {
    let path = format!("{name}.journal");
    let records = journal::read(path.as_ref())?;
    let Some((run, attempt)) = journal::open_attempt(&records) else {
        return Ok(());
    };
    // The programs of its mounts are gone. A dead mount would block every process that reads there.
    if let Some(state) = std::env::current_dir()?.parent() {
        let folder = state.join("runs").join(run.as_str());
        towline_host::mounts::release_below(&folder.join("io"));
        // It is no longer known whether they hold tokens.
        for what in crate::launch::SCRIPT_ENDINGS {
            let _ = std::fs::remove_file(folder.join(format!("attempt-{attempt}.{what}")));
        }
    }
    // A rank had failed and only the nodes were held: that failure is the ending.
    let held = journal::trace(&records, &run, attempt)
        .held
        .map(|(_, ending)| ending);
    let ending =
        held.unwrap_or_else(|| Ending::cause(Cause::NodeFailed).detail("the runner was killed"));
    let at = towline_host::clock::now();
    let mut journal = Journal::from_descriptor(rustix::stdio::stdout())?;
    journal.append_end(&JournalRecord::End {
        run: run.clone(),
        attempt,
        at,
        ending: ending.clone(),
    })?;
    if let Ok(mut control) = Control::from_stdin() {
        let _ = control.send(&FromRunner::Ended {
            run,
            attempt,
            at,
            ending,
        });
    }
    crate::control::start_daemon_if_gone();
    Ok(())
}
