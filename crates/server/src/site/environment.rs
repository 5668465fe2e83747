//! Where the scheduler's commands are. Some sites put them on the path in `/etc/profile.d` or by a
//! module, which only a login shell reads; ours is none. A login shell is asked once, and what it
//! says is remembered in the stage folder.

use std::path::Path;
use std::time::Duration;
use towline_core::transport::Transport;
use towline_host::program::find_program;
use towline_host::surroundings;
use towline_wire::stage::StageFolder;

/// The command that every such site has.
const SUBMIT_COMMAND: &str = "sbatch";
/// A profile that loads modules may take its time.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(30);
/// What else of a login shell's variables the commands go by.
const OTHER_VARIABLES: [&str; 2] = ["SLURM_CONF", "LD_LIBRARY_PATH"];

/// The variables, as `NAME=value`, that the commands need beyond ours; none where our own path
/// leads to them, or nothing does.
pub(super) fn find(stage: &StageFolder, bin: Option<&str>, here: &dyn Transport) -> Vec<String> {
    let path = surroundings::variable("PATH").unwrap_or_default();
    if let Some(bin) = bin {
        // The user's own word comes first.
        return vec![format!("PATH={bin}:{path}")];
    }
    if find_program(SUBMIT_COMMAND, &path).is_some() {
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
    // It is only asked again where it cannot be written.
    let _ = towline_host::once::replace(&file, found.join("\n").as_bytes());
    found
}

fn has_command(environment: &[String]) -> bool {
    environment
        .iter()
        .find_map(|line| line.strip_prefix("PATH="))
        .is_some_and(|path| find_program(SUBMIT_COMMAND, path).is_some())
}

/// What `env` says in a login shell: the user's own, else the one that most profiles are written
/// for.
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
                .and_then(|path| find_program(SUBMIT_COMMAND, path))
                .map(|_| said)
        })
}

fn value<'s>(said: &'s str, name: &str) -> Option<&'s str> {
    said.lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .next_back()
}

/// Our own path with the folder of the commands behind it, and what else they go by.
fn needed(said: &str, path: &str) -> Vec<String> {
    let program = value(said, "PATH").and_then(|path| find_program(SUBMIT_COMMAND, path));
    let Some(folder) = program
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::to_str)
    else {
        return Vec::new();
    };
    let others = OTHER_VARIABLES
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
        let program = folder.path().join(SUBMIT_COMMAND);
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
