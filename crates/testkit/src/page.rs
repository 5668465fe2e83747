//! Runs the commands of documentation pages, in their order.

use crate::{Home, Output};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The script that the page of the MSRA Intern's Toolkit shows.
pub const TOOLKIT_SCRIPT: &str = "\
PAT=github_pat_....

cd /tmp
git clone https://$PAT@github.com/AaronFengZY/HOI_moge.git
cd HOI_moge
git checkout hoimoge
ln -s ${{blobmnt_fzy}} blobmnt

export GRADIENT_ACCUMULATION_STEPS=1
export BATCH_SIZE_FORWARD=2
export NUM_MACHINES=4
export NUM_PROCESSES=32
export CONFIG=configs/revision/fzy_ft/vitl_contitrain.json
export WORKSPACE=blobmnt/workspace/fzy_ft/vitl_contitrain
export CHECKPOINT=latest
export SCRIPT=scripts/train/train.py
export GRADIENT_CHECKPOINTING=True

sh scripts/shell/train.sh\n";

/// The commands of a page, in order: the lines of its blocks of shell.
#[track_caller]
pub fn commands(page: impl AsRef<Path>) -> Vec<String> {
    blocks(page.as_ref(), "sh")
}

/// The configuration that a page asks its reader to write: its blocks of YAML.
#[track_caller]
pub fn settings(page: impl AsRef<Path>) -> String {
    blocks(page.as_ref(), "yaml").join("\n") + "\n"
}

/// The lines of all blocks of one language, without empty ones.
#[track_caller]
fn blocks(page: &Path, language: &str) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let mut lines = Vec::new();
    let mut is_wanted = false;
    for line in text.lines() {
        if let Some(word) = line.strip_prefix("```") {
            is_wanted = word == language;
        } else if is_wanted && !line.trim().is_empty() {
            lines.push(line.to_owned());
        }
    }
    assert!(
        !lines.is_empty(),
        "{} has no block of {language}",
        page.display()
    );
    lines
}

/// Runs a line as the page's reader would: `tow` by its name, and `ssh` with this configuration. A
/// line that names a configuration itself uses that one.
pub fn run(home: &Home, ssh_config: &Path, line: &str) -> Output {
    let bin = home.path("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(home.binary(), bin.join("tow")).unwrap();
        let script = "#!/bin/sh\ncase \" $* \" in *' -F '*) exec /usr/bin/ssh \"$@\";; esac\nexec \
            /usr/bin/ssh -F \"$READER_SSH_CONFIG\" -o BatchMode=yes \"$@\"\n";
        crate::program(&bin.join("ssh"), script);
    }
    let known = home.command([""; 0]);
    let mut command = Command::new("bash");
    command.args(["-c", line]).env_clear().envs(
        known
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command
        .env("PATH", path)
        .env("READER_SSH_CONFIG", ssh_config)
        .current_dir(home.project())
        .stdin(Stdio::null());
    command.output().unwrap().into()
}
