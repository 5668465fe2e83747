//! The commands that make a workspace's environment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use towline_core::{Error, Result};

/// Runs each command in the folder, by a login shell if there is one; stops at the first failure.
#[expect(clippy::disallowed_methods, reason = "set-up commands are programs")]
pub(crate) fn run(folder: &Path, commands: &[String], say: &mut dyn FnMut(String)) -> Result<()> {
    for command in commands {
        say(format!("$ {command}"));
        let failed = |error| Error::from_io(format!("`{command}` cannot be started"), error);
        // One pipe for both streams, so that lines stay in their order.
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let shell = if Path::new("/bin/bash").exists() {
            ["/bin/bash", "-lc"]
        } else {
            ["/bin/sh", "-lc"]
        };
        let mut child = Command::new(shell[0]);
        child
            .args([shell[1], command])
            .current_dir(folder)
            .stdin(Stdio::null());
        child
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer);
        let mut running = child.spawn().map_err(failed)?;
        drop(child);
        for line in BufReader::new(reader).split(b'\n') {
            let Ok(line) = line else { break };
            say(String::from_utf8_lossy(&line).into_owned());
        }
        let status = running.wait().map_err(failed)?;
        if !status.success() {
            let how = status.code().map_or_else(
                || "was killed".to_owned(),
                |code| format!("failed with code {code}"),
            );
            return Err(Error::refused(format!("`{command}` {how}")).hint(format!(
                "it ran in {}; mend it and try again",
                folder.display()
            )));
        }
    }
    Ok(())
}
