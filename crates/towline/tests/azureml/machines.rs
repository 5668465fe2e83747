//! `--instance-type`: the kind of machine that a job asks for.

use crate::lab::Lab;

#[test]
fn a_job_chooses_its_machines_by_an_option() {
    let lab = Lab::new();
    let dry = |words: &[&str]| {
        let all = [&["submit", "--dry-run", "-c", "sing"], words, &["true"]].concat();
        lab.tow(all)
    };
    let planned = dry(&["--instance-type", "ND96amrs_A100_v4", "--nodes", "1"]).ok();
    assert!(
        planned
            .stdout
            .contains("\"instanceType\": \"Singularity.ND96amrs_A100_v4\""),
        "{planned:?}"
    );
    // A typo names what is near; nothing is sent.
    let typo = dry(&["--instance-type", "ND96amrs_A100_v4x", "--nodes", "1"]);
    assert!(
        typo.code == 121 && typo.stderr.contains("did you mean `ND96amrs_A100_v4`?"),
        "{typo:?}"
    );
    // A compute has the machines that it has.
    let other = lab.tow([
        "submit",
        "--dry-run",
        "-c",
        "aml",
        "--instance-type",
        "Standard_ND96isr_H100_v5",
        "true",
    ]);
    assert!(
        other.code == 123 && other.stderr.contains("has machines of the kind"),
        "{other:?}"
    );
}

/// A shell completes what the cluster last listed, and asks nobody.
#[test]
fn a_shell_completes_the_kinds_that_the_cluster_listed() {
    let lab = Lab::new();
    let complete = |line: &str| lab.tow(["__complete", "bash", line, ""]).stdout;
    assert_eq!(complete("tow submit -c sing --instance-type "), "values\n");
    lab.tow(["nodes", "-c", "sing"]).ok();
    let before = lab.aml.asked().len();
    let named = complete("tow submit -c sing --instance-type ");
    assert!(named.contains("ND96amrs_A100_v4\n"), "{named}");
    assert_eq!(
        complete("tow submit --cluster=sing --instance-type "),
        named
    );
    assert_eq!(complete("tow resubmit @ --to sing --instance-type "), named);
    assert_eq!(complete("tow submit -c local --instance-type "), "values\n");
    assert_eq!(lab.aml.asked().len(), before, "the service was asked");
}

#[test]
fn a_resubmission_may_have_other_machines() {
    let lab = Lab::new();
    let id = lab
        .tow([
            "submit",
            "-c",
            "sing",
            "--nodes",
            "1",
            "--instance-type",
            "ND96amrs_A100_v4",
            "true",
        ])
        .ok()
        .id();
    lab.ended(&id);
    let again = lab
        .tow(["resubmit", &id, "--instance-type", "ND12am_A100_v4"])
        .ok()
        .id();
    let put = lab.put(&again);
    assert_eq!(
        put["resources"]["properties"]["AISuperComputer"]["instanceType"],
        "Singularity.ND12am_A100_v4"
    );
    lab.ended(&again);
    let here = lab.tow(["resubmit", &id, "--to", "local", "--instance-type", "h200"]);
    assert!(
        here.code == 123
            && here
                .stderr
                .contains("cluster `local` has no kinds of machines"),
        "{here:?}"
    );
}
