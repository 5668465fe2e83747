//! Makes the sample of a stage folder that `towline-wire` keeps. Every later version reads it.

use crate::lab::{Lab, until_within};
use std::fs;
use std::path::Path;

/// Logs and records of a usual run are shorter.
const MOST_BYTES: u64 = 16 << 10;

#[test]
#[ignore = "writes wire/tests/golden/stage-slurm, if it is missing"]
fn write_a_stage_folder() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/golden/stage-slurm");
    assert!(!target.exists(), "samples are never made again");
    let lab = Lab::own(&towline_testkit::real::slurm::Options::default());
    lab.home.write("say.txt", "said\n");
    let submit = |name: &str, text: &str| {
        lab.home.write("job.yaml", text);
        let words = ["submit", "-f", "job.yaml", "--name", name];
        lab.tow(words).ok().id()
    };
    let wide = "resources: {nodes: 2}\nretry: {when: [exit_code], max: 3}\n\
        environment: {setup: [echo ready], env: {A: b}}\nscript: cat say.txt; test $TOW_ATTEMPT -ge 2\n";
    let ended = submit("retried", wide);
    lab.ended(&ended);
    let sweep = submit("sweep", "sweep: {lr: [1, 2]}\nscript: echo ${{lr}}\n");
    lab.tow(["wait", &sweep, "--timeout", "3m"]).ok();
    let cancelled = submit("cancelled", "script: sleep 600\n");
    lab.until_state(&cancelled, "running");
    lab.tow(["abort", &cancelled, "--wait"]).ok();
    let held = submit("held", "hold_on_failure: 10m\nscript: exit 3\n");
    until_within(120, "its nodes to be held", || {
        lab.home.show(&held)["held_until"].is_string().then_some(())
    });
    lab.tow(["abort", &held, "--wait"]).ok();
    copy(&lab, &lab.stage(), &target);
}

/// The records without programs, code and snapshots; paths of this machine become those of a user.
fn copy(lab: &Lab, from: &Path, to: &Path) {
    let here = lab.home.path("").display().to_string();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !["bin", "snapshots", "code"]
                .iter()
                .any(|known| name == *known)
            {
                copy(lab, &path, &to.join(name));
            }
        } else if entry.metadata().unwrap().len() <= MOST_BYTES {
            let text = fs::read_to_string(&path).unwrap();
            fs::create_dir_all(to).unwrap();
            let text = text.replace(here.trim_end_matches('/'), "/home/alice");
            fs::write(to.join(name), text).unwrap();
        }
    }
}
