//! Finds the scheduler's commands. Some sites add them to the PATH in `/etc/profile.d` or by a
//! module, which only a login shell reads, and our shell is not one. So a login shell is asked
//! once, and its answer is stored in the stage folder.

use std::path::Path;
use std::time::Duration;
use towline_core::transport::Transport;
use towline_host::program::find_program;
use towline_host::surroundings;
use towline_slurm::environment::LOGIN_VARIABLES;
use towline_slurm::submit;
use towline_wire::stage::StageFolder;

/// A profile that loads modules may take some time.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(30);

/// The variables, as `NAME=value`, that the commands need beyond ours. None if they are on our own
/// PATH, or nowhere.
pub(super) fn find(stage: &StageFolder, bin: Option<&str>, here: &dyn Transport) -> Vec<String> {
    let path = surroundings::variable("PATH").unwrap_or_default();
    if let Some(bin) = bin {
        // The user's setting comes first.
        return vec![format!("PATH={bin}:{path}")];
    }
    if find_program(submit::PROGRAM, &path).is_some() {
        return Vec::new();
    }
    let file = stage.scheduler_environment();
    let remembered: Vec<String> = std::fs::read_to_string(&file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect();
    if has_command(&remembered) {
        return remembered;
    }
    let found = ask(here)
        .map(|said| needed(&said, &path))
        .unwrap_or_default();
    if found.is_empty() {
        return found;
    }
    // If this cannot be written, the shell is asked again next time.
    let _ = towline_host::once::replace(&file, found.join("\n").as_bytes());
    found
}

fn has_command(environment: &[String]) -> bool {
    environment
        .iter()
        .find_map(|line| line.strip_prefix("PATH="))
        .is_some_and(|path| find_program(submit::PROGRAM, path).is_some())
}

/// The output of `env` in a login shell: the user's own, else the one that most profiles are
/// written for.
fn ask(here: &dyn Transport) -> Option<String> {
    let own = surroundings::variable("SHELL").filter(|shell| Path::new(shell).is_absolute());
    let shells = own
        .into_iter()
        .chain(["/bin/bash".to_owned(), "/bin/sh".to_owned()]);
    shells
        .filter_map(|shell| {
            here.run(&[&shell, "-l", "-c", "env"], b"", PROFILE_TIMEOUT)
                .ok()
        })
        .find_map(|ran| {
            let said = String::from_utf8_lossy(&ran.out).into_owned();
            value(&said, "PATH")
                .and_then(|path| find_program(submit::PROGRAM, path))
                .map(|_| said)
        })
}

fn value<'s>(said: &'s str, name: &str) -> Option<&'s str> {
    said.lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .next_back()
}

/// Our own PATH followed by the folder of the commands, and the further variables.
fn needed(said: &str, path: &str) -> Vec<String> {
    let program = value(said, "PATH").and_then(|path| find_program(submit::PROGRAM, path));
    let Some(folder) = program
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::to_str)
    else {
        return Vec::new();
    };
    let others = LOGIN_VARIABLES
        .iter()
        .filter(|name| surroundings::variable_os(name).is_none());
    let others = others.filter_map(|name| value(said, name).map(|value| format!("{name}={value}")));
    [format!("PATH={path}:{folder}")]
        .into_iter()
        .chain(others)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_login_shell_tells_the_folder_and_the_configuration() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(submit::PROGRAM);
        std::fs::write(&program, "#!/bin/sh\n").expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            .expect("its mode");
        let bin = folder.path().display();
        let said = format!(
            "Welcome!\nPATH=/nowhere\nHOME=/home/a\nSLURM_CONF=/etc/our/slurm.conf\nPATH=/nowhere/else:{bin}\n"
        );
        let found = needed(&said, "/bin");
        assert_eq!(
            found,
            [
                format!("PATH=/bin:{bin}"),
                "SLURM_CONF=/etc/our/slurm.conf".to_owned()
            ]
        );
        assert!(has_command(&found) && !has_command(&[]));
        assert!(needed("PATH=/nowhere\n", "/bin").is_empty());
    }
}
