//! What a run leaves in `outputs` is there when its nodes are gone.

use crate::lab::{FLAVOURS, Lab};
use std::fs;
use std::io::{BufRead, BufReader};

#[test]
fn files_of_outputs_are_kept_and_nothing_else() {
    let lab = Lab::new();
    lab.home.write(
        "sub/train.sh",
        "mkdir -p outputs/deep; echo best > outputs/model.bin; echo \
        $RANK > \"outputs/deep/of $RANK\"; ln -s /etc/passwd outputs/link; echo no > other; exit \
            $1\n",
    );
    for (flavour, code) in FLAVOURS.iter().zip(["0", "3", "0"]) {
        let job = format!(
            "code: {{workdir: sub}}\ncommand: [sh, train.sh, '{code}']\nresources: {{nodes: 2}}\n"
        );
        let id = lab.home.submit_file(&job, &["-c", flavour]);
        assert_eq!(
            lab.ended(&id)["exit_code"],
            code.parse::<i64>().unwrap(),
            "{flavour}"
        );
        // The service may still be storing the files: `get` waits for that.
        let got = lab.tow(["get", &id, "outputs/model.bin"]).ok();
        let file = lab
            .home
            .project()
            .join("assets")
            .join(&id)
            .join("outputs/model.bin");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "best\n",
            "{flavour}: {got:?}"
        );
        let got = lab.tow(["get", &id, "outputs", "--to", flavour]).ok();
        assert_eq!(
            got.stdout.lines().count(),
            2,
            "of node 0, and no link: {got:?}"
        );
        assert_eq!(
            fs::read_to_string(lab.home.project().join(flavour).join("outputs/deep/of 0")).unwrap(),
            "0\n"
        );
        let other = lab.tow(["get", &id, "other"]);
        assert!(
            other.code == 122 && other.stderr.contains("other"),
            "{flavour}: {other:?}"
        );
    }
}

#[test]
fn outputs_of_an_aborted_run_are_kept_too() {
    let lab = Lab::new();
    let id = lab.home.submit_file(
        "script: |\n  mkdir outputs; echo half > outputs/last.ckpt; echo ready; exec sleep 600\n",
        &[],
    );
    lab.until_logged(&id, "ready");
    lab.tow(["abort", &id]).ok();
    assert_eq!(lab.ended(&id)["state"], "cancelled");
    lab.tow(["get", &id, "outputs/last.ckpt", "--to", "here"])
        .ok();
    assert_eq!(lab.home.read("here/outputs/last.ckpt"), "half\n");
}

#[test]
fn files_that_the_service_is_still_storing_are_waited_for() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.hold_in = Some("Finalizing".to_owned()));
    let job = "script: |\n  mkdir outputs; echo best > outputs/model.bin\n";
    let id = lab.home.submit_file(job, &[]);
    lab.ended(&id);
    let mut get = lab.home.spawn(["get", &id, "outputs"]);
    let (mut line, mut told) = (String::new(), BufReader::new(get.stderr.take().unwrap()));
    told.read_line(&mut line).unwrap();
    assert!(line.contains("still storing the run's files"), "{line}");
    assert!(get.try_wait().unwrap().is_none(), "it waits");
    lab.aml.conditions(|conditions| conditions.hold_in = None);
    let got = get.wait_with_output().unwrap();
    assert!(got.status.success(), "{got:?}");
    assert_eq!(
        lab.home.read(&format!("assets/{id}/outputs/model.bin")),
        "best\n"
    );
}
