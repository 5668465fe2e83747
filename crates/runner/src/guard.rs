//! The guard: above the runner, there only for the day the runner is killed.

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
    // A session of its own: the daemon's end, or a closed terminal, is not ours.
    let _ = rustix::process::setsid();
    towline_host::process::become_subreaper()?;
    // What a shell in the background, or `nohup`, had ignored would be ignored by every job. A
    // signal that is handled here is as usual again in what we start.
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

/// The runner's control group is empty and of no more use.
fn remove_group(name: &str) {
    let file = format!("{name}.cgroup");
    if let Ok(path) = std::fs::read_to_string(&file) {
        towline_host::cgroup::remove(path.as_ref());
        let _ = std::fs::remove_file(file);
    }
}

/// The runner is gone and nothing of its run is alive: the attempt it had open ends here.
fn settle(name: &str) -> io::Result<()> {
    let path = format!("{name}.journal");
    let records = journal::read(path.as_ref())?;
    let Some((run, attempt)) = journal::open_attempt(&records) else {
        return Ok(());
    };
    // The programs behind its mounts are gone; what hangs there would hang whoever looks.
    if let Some(state) = std::env::current_dir()?.parent() {
        let folder = state.join("runs").join(run.as_str());
        towline_host::mounts::release_below(&folder.join("io"));
        // Nobody is left who knows whether they hold tokens.
        for what in crate::launch::SCRIPT_ENDINGS {
            let _ = std::fs::remove_file(folder.join(format!("attempt-{attempt}.{what}")));
        }
    }
    // A rank had failed and only the nodes were kept: that failure is the ending.
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
