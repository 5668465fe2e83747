//! A program that a tunnel goes through: it listens on a port of loopback. It, and all that it
//! starts, ends with us, whatever ends us: a guard above it waits for the end of a pipe that we
//! hold.

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
    /// Held for as long as the program is to live.
    line: Mutex<Option<Box<dyn io::Write + Send>>>,
    out: crate::machine::running::Said,
}

impl Program {
    /// Listens when this returns.
    pub(super) fn start(words: &[String]) -> Result<Self> {
        let name = words.first().cloned().unwrap_or_default();
        check(&name)?;
        let port = free_port()?;
        let failed = |error: io::Error| {
            Error::bug("the guard of a program cannot be started").source_error(error)
        };
        let mut running = Running::start(
            Command::new("/proc/self/exe")
                .arg(COMMAND_VERB)
                .args(filled(words, port))
                .current_dir("/"),
        )
        .map_err(failed)?;
        let (Some(line), Some(output)) = (running.input(), running.output()) else {
            return Err(Error::bug("a program has no pipes"));
        };
        let out = crate::machine::running::Said::listen(output, false).map_err(failed)?;
        let program = Self {
            name,
            port,
            running: Mutex::new(running),
            line: Mutex::new(Some(line)),
            out,
        };
        let begun = Instant::now();
        // A connection would tell too, and would be one: some programs take only one at a time.
        while !towline_host::ports::is_listening(port) {
            if let Some(error) = program.end_told() {
                return Err(error);
            }
            if begun.elapsed() > LISTEN_TIMEOUT {
                let error = Error::unreachable(format!(
                    "`{}` does not listen on its port {port} after {} s",
                    program.name,
                    LISTEN_TIMEOUT.as_secs()
                ));
                return Err(
                    azure::trouble(&program.name, &program.said()).unwrap_or_else(|| {
                        error.hint(format!("it said: {}", azure::last_words(&program.said())))
                    }),
                );
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

    /// What it has said so far, the end of it.
    pub(super) fn said(&self) -> String {
        let mut bytes = self.out.so_far();
        bytes.extend(self.running().said().so_far());
        let from = bytes.len().saturating_sub(OUTPUT_KEPT_BYTES);
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }

    /// The error of a program that has ended.
    pub(super) fn end_told(&self) -> Option<Error> {
        let code = self.code()?;
        self.out.at_last();
        let said = self.said();
        Some(azure::trouble(&self.name, &said).unwrap_or_else(|| {
            Error::unreachable(format!(
                "`{}` ended with code {code}: {}",
                self.name,
                azure::last_words(&said)
            ))
            .hint("try it by hand, with a port in the place of {port}")
        }))
    }
}

impl Drop for Program {
    /// The guard ends all below it, which no signal from here could.
    fn drop(&mut self) {
        drop(
            self.line
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

/// One that nobody has now.
fn free_port() -> Result<u16> {
    let failed =
        |error: io::Error| Error::refused("no port of loopback can be opened").source_error(error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    Ok(listener.local_addr().map_err(failed)?.port())
}

/// The guard: runs words until they end, or until nobody holds our stdin any more. Then nothing of
/// them is left.
pub fn command_main(words: &[std::ffi::OsString]) -> io::Result<i32> {
    let _ = rustix::process::setsid();
    towline_host::process::become_subreaper()?;
    let Some((program, rest)) = words.split_first() else {
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
            reason = "the main thread waits for a child that was taken from it"
        )]
        std::process::exit(0);
    });
    // Nobody would end it with us.
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
    fn a_program_that_is_not_there_is_told() {
        assert!(check("sh").is_ok() && check("/bin/sh").is_ok());
        let error = check("no-such-program").expect_err("none");
        assert_eq!(
            error.to_string(),
            "the program `no-such-program` is not on this machine"
        );
        assert!(check("/nowhere/az").is_err());
    }
}
