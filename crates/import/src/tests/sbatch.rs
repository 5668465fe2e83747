//! Batch scripts of Slurm.

use super::*;

fn script(lines: &[&str], body: &str) -> Imported {
    let head = lines.join("\n#SBATCH ");
    imported(
        Kind::Sbatch,
        &[("x.sh", &format!("#!/bin/sh\n#SBATCH {head}\n{body}\n"))],
    )
}

#[test]
fn numbers_of_tasks_are_passed_on_to_the_script_s_own_srun() {
    let all = script(
        &[
            "-N 2 --ntasks-per-node=4",
            "--cpus-per-task=8 --gpus-per-task=1",
        ],
        "srun python x.py",
    );
    assert_values(
        &all,
        "x.tow.yaml",
        &[
            ("resources/cpus_per_node", "32"),
            ("resources/gpus_per_node", "4"),
            (
                "resources/native",
                "[\"--ntasks-per-node=4\", \"--cpus-per-task=8\"]",
            ),
            ("launch", "once"),
        ],
    );
    let report = &all.reports[0];
    for key in ["--ntasks-per-node", "--cpus-per-task"] {
        let said = says(&report.mapped, key);
        assert!(said.starts_with("resources.native"), "{key}: {report:#?}");
        assert_eq!(says(&report.not_mapped, key), "(nothing)");
    }
    assert!(warns(report, "its `srun` starts 8 tasks"), "{report:#?}");
    let uneven = script(&["-N 2 -n 5"], "srun python x.py");
    assert_eq!(
        value(&uneven, "x.tow.yaml", "resources/native"),
        "[\"--ntasks=5\", \"--ntasks-per-node=3\", \"--cpus-per-task=1\"]"
    );
    assert!(warns(&uneven.reports[0], "its `srun` starts 5 tasks"));
    let all = script(&["-n 16 --exclusive", "-c 2"], "srun python x.py");
    assert_eq!(
        value(&all, "x.tow.yaml", "resources/native"),
        "[\"--exclusive\", \"--ntasks-per-node=16\", \"--cpus-per-task=2\"]"
    );
    assert!(
        says(&all.reports[0].mapped, "--ntasks").starts_with("resources.native")
            && warns(&all.reports[0], "its `srun` starts 16 tasks")
    );
    let all = script(&["-N 1 --ntasks-per-node=4"], "srun python x.py");
    assert_eq!(
        value(&all, "x.tow.yaml", "resources/native"),
        "[\"--ntasks-per-node=4\", \"--cpus-per-task=1\"]"
    );
    // Numbers that are equal for both are reported as such.
    let report = &script(&["-N 1 -n 1 -c 8"], "python x.py").reports[0];
    assert_eq!(
        (
            says(&report.not_needed, "--ntasks"),
            says(&report.mapped, "--cpus-per-task")
        ),
        (
            "Towline starts one task per node",
            "resources.cpus_per_node"
        )
    );
    assert!(warns(
        &script(&["-n 16"], "srun x").reports[0],
        "without `--nodes`"
    ));
}

#[test]
fn values_keep_their_quotes() {
    let all = script(
        &["--comment \"hello world\" --constraint='a&b' --wckey=\"it's #1\""],
        "x",
    );
    let list = "[\"--comment='hello world'\", \"--constraint=a&b\", \"--wckey=\\\"it's #1\\\"\"]";
    assert_eq!(value(&all, "x.tow.yaml", "resources/native"), list);
}

#[test]
fn options_of_sbatch_are_known_and_others_are_not_passed_on() {
    let all = script(
        &[
            "-Q -vv -k -b now+1hour",
            "--signal=B:USR2@60",
            "--contraint=a100 --frobnicate",
            "--input=f",
        ],
        "x",
    );
    assert_eq!(
        value(&all, "x.tow.yaml", "resources/native"),
        "[\"--no-kill\", \"--begin=now+1hour\"]"
    );
    let report = &all.reports[0];
    assert!(
        says(&report.not_mapped, "--signal").contains("SIGTERM and a grace of ten seconds"),
        "{report:#?}"
    );
    assert_eq!(
        says(&report.not_mapped, "--contraint"),
        "`sbatch` does not know it: did you mean `--constraint`?"
    );
    assert!(
        warns(
            report,
            "x.sh:4:9: `sbatch` does not know `--contraint`: did you mean `--constraint`?"
        ),
        "{report:#?}"
    );
    assert!(
        warns(
            report,
            "`sbatch` does not know `--frobnicate`. It was not passed on"
        ),
        "{report:#?}"
    );
    assert_eq!(
        says(&report.not_needed, "--verbose"),
        says(&report.not_needed, "--quiet")
    );
    assert_ne!(says(&report.not_mapped, "--input"), "(nothing)");
}

#[test]
fn a_secret_has_the_line_of_its_file() {
    let all = script(&["--comment='PASSWORD=abc123def'"], "x");
    assert!(
        says(&all.reports[0].not_mapped, "--comment").contains("a secret")
            && !all.files[0].text.contains("abc123def"),
        "{all:#?}"
    );
    let report = &script(&["-N 1", "-t 5"], "\nexport HF_TOKEN=hf_0123456789abcdef").reports[0];
    assert!(warns(report, "line 5 of x.sh held a secret"), "{report:#?}");
    assert!(
        report.commands[0].ends_with("the value from line 5 of x.sh"),
        "{report:#?}"
    );
}

#[test]
fn gpus_of_the_whole_job_are_shared_out_and_parts_of_a_job_are_named() {
    let gpus = |lines: &[&str]| {
        let all = script(lines, "srun x");
        (
            value(&all, "x.tow.yaml", "resources/nodes"),
            value(&all, "x.tow.yaml", "resources/gpus_per_node"),
            warns(&all.reports[0], "on one node"),
        )
    };
    assert_eq!(
        gpus(&["--gpus=16 --gpus-per-task=1"]),
        ("(none)".into(), "16".into(), true)
    );
    assert_eq!(gpus(&["--gpus=16"]), ("(none)".into(), "16".into(), true));
    assert_eq!(
        gpus(&["-N 2 --gpus=16 --gpus-per-task=1"]),
        ("2".into(), "8".into(), false)
    );
    assert_eq!(
        gpus(&["-N 2 --gpus-per-task=1 --ntasks=16"]),
        ("2".into(), "8".into(), false)
    );
    assert_eq!(gpus(&["--gpus=1"]), ("(none)".into(), "1".into(), false));
    let all = script(
        &["-N 1 --gres=gpu:4", "hetjob", "-N 2 --partition=cpu"],
        "srun x",
    );
    assert_values(
        &all,
        "x.tow.yaml",
        &[
            ("resources/nodes", "1"),
            ("resources/gpus_per_node", "4"),
            ("resources/native", "(none)"),
        ],
    );
    assert!(
        says(&all.reports[0].not_mapped, "hetjob").contains("one kind of node"),
        "{:#?}",
        all.reports
    );
    assert!(
        warns(&all.reports[0], "only the first was imported"),
        "{:#?}",
        all.reports
    );
}
