//! A program that a tunnel goes through; it listens on a port of loopback. A guard process starts
//! it. The guard waits for the end of a pipe that we hold, so that the program and its children end
//! with us, however we end.

use super::azure;
use crate::machine::is_missing;
use crate::machine::running::Running;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use towline_core::tunnel::filled;
use towline_core::{Error, Result};
use towline_wire::tunnel::COMMAND_VERB;

/// How long a program may take until it listens. The Azure CLI takes ten seconds on a good day.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the guard may take to end every process below it.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to check whether the program listens.
const LISTEN_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes at the end of the program's output that are kept.
const OUTPUT_KEPT_BYTES: usize = 64 << 10;

pub(super) struct Program {
    name: String,
    port: u16,
    running: Mutex<Running>,
    /// The guard ends the program when this pipe is closed.
    lifeline: Mutex<Option<Box<dyn io::Write + Send>>>,
    stdout: crate::machine::running::CapturedOutput,
}

impl Program {
    /// Starts the program, and returns once it listens.
    pub(super) fn start(argv: &[String]) -> Result<Self> {
        let name = argv.first().cloned().unwrap_or_default();
        check(&name)?;
        let port = free_port()?;
        let failed = |error: io::Error| {
            Error::bug("the guard of a program cannot be started").source_error(error)
        };
        let mut running = Running::start(
            Command::new("/proc/self/exe")
                .arg(COMMAND_VERB)
                .args(filled(argv, port))
                .current_dir("/"),
        )
        .map_err(failed)?;
        let (Some(lifeline), Some(output)) = (running.input(), running.output()) else {
            return Err(Error::bug("a program has no pipes"));
        };
        let stdout =
            crate::machine::running::CapturedOutput::listen(output, false).map_err(failed)?;
        let program = Self {
            name,
            port,
            running: Mutex::new(running),
            lifeline: Mutex::new(Some(lifeline)),
            stdout,
        };
        let begun = Instant::now();
        // We do not test by connecting, because some programs take only one connection.
        while !towline_host::ports::is_listening(port) {
            if let Some(error) = program.exit_error() {
                return Err(error);
            }
            if begun.elapsed() > LISTEN_TIMEOUT {
                let error = Error::unreachable(format!(
                    "`{}` does not listen on its port {port} after {} s",
                    program.name,
                    LISTEN_TIMEOUT.as_secs()
                ));
                return Err(azure::explain_failure(&program.name, &program.output())
                    .unwrap_or_else(|| {
                        error.hint(format!("it said: {}", azure::main_line(&program.output())))
                    }));
            }
            std::thread::sleep(LISTEN_POLL_INTERVAL);
        }
        Ok(program)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn is_alive(&self) -> bool {
        self.code().is_none()
    }

    fn code(&self) -> Option<i32> {
        self.running().ended()
    }

    /// The end of what it has written so far.
    pub(super) fn output(&self) -> String {
        let mut bytes = self.stdout.so_far();
        bytes.extend(self.running().stderr().so_far());
        let from = bytes.len().saturating_sub(OUTPUT_KEPT_BYTES);
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }

    /// The error of a program that has ended; `None` while it runs.
    pub(super) fn exit_error(&self) -> Option<Error> {
        let code = self.code()?;
        self.stdout.wait_for_all();
        let output = self.output();
        Some(
            azure::explain_failure(&self.name, &output).unwrap_or_else(|| {
                Error::unreachable(format!(
                    "`{}` ended with code {code}: {}",
                    self.name,
                    azure::main_line(&output)
                ))
                .hint("try it by hand, with a port in the place of {port}")
            }),
        )
    }
}

impl Drop for Program {
    /// Lets the guard end the program and its children, which no signal from here could reach.
    fn drop(&mut self) {
        drop(
            self.lifeline
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let _ = self.running().wait(Some(Instant::now() + EXIT_TIMEOUT));
    }
}

/// An error if there is no such program.
pub fn check(name: &str) -> Result<()> {
    let found = match Path::new(name).components().count() {
        1 => !is_missing(
            name.as_ref(),
            &io::Error::from(io::ErrorKind::PermissionDenied),
        ),
        _ => Path::new(name).is_file(),
    };
    if found {
        return Ok(());
    }
    let error = Error::config(format!("the program `{name}` is not on this machine"));
    Err(match name {
        "az" => error
            .hint("install the Azure CLI: https://learn.microsoft.com/cli/azure/install-azure-cli")
            .hint("then: az login"),
        _ => error.hint("install it, or give its whole path"),
    })
}

/// A port that nobody uses now.
fn free_port() -> Result<u16> {
    let failed = |error: io::Error| Error::from_io("no port of loopback can be opened", error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    Ok(listener.local_addr().map_err(failed)?.port())
}

/// The guard process: runs a program until it ends, or until our stdin is closed. Then it kills
/// every process that is left.
pub fn command_main(argv: &[std::ffi::OsString]) -> io::Result<i32> {
    let _ = rustix::process::setsid();
    towline_host::process::become_subreaper()?;
    let Some((program, rest)) = argv.split_first() else {
        return Err(io::Error::other("no words"));
    };
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .spawn()?;
    let listening = std::thread::Builder::new().spawn(|| {
        let mut byte = [0; 1];
        while !matches!(io::stdin().read(&mut byte), Ok(0) | Err(_)) {}
        towline_host::process::kill_all_descendants();
        #[expect(
            clippy::exit,
            reason = "the main thread waits for a child that was already reaped"
        )]
        std::process::exit(0);
    });
    // Without the listening thread the program would outlive us, so it is killed at once.
    let status: io::Result<ExitStatus> = listening.and_then(|_| child.wait());
    towline_host::process::kill_all_descendants();
    use std::os::unix::process::ExitStatusExt;
    status.map(|status| {
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_an_error() {
        assert!(check("sh").is_ok() && check("/bin/sh").is_ok());
        let error = check("no-such-program").expect_err("none");
        assert_eq!(
            error.to_string(),
            "the program `no-such-program` is not on this machine"
        );
        assert!(check("/nowhere/az").is_err());
    }
}
