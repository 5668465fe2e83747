//! Why a run waits, why it failed, and why it was never taken.

use crate::lab::Lab;
use towline_testkit::aml::{Trouble, When};

impl Lab {
    /// What `tow why` says of a run.
    #[track_caller]
    fn why(&self, run: &str) -> String {
        let said = self.tow(["why", run]).ok();
        said.stdout + &said.stderr
    }
}

#[test]
fn a_queued_run_is_explained_with_what_it_waits_for() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
    let id = lab.home.submit_file(
        "resources: {tier: premium, nodes: 4}\nscript: echo never\n",
        &["-c", "sing"],
    );
    lab.until_word(&id, "Queued");
    let why = lab.why(&id);
    for part in [
        "the service calls it Queued since",
        "Premium has 16 of 64 GPUs of NDAMv4 free",
        "it needs 32 (4 × ND96amrs_A100_v4)",
        "its page: https://",
    ] {
        assert!(why.contains(part), "`{part}`: {why}");
    }
    let waiting = lab.tow(["submit", "echo", "never"]).ok().id();
    lab.until_word(&waiting, "Queued");
    assert!(lab.why(&waiting).contains("Queued since"));
    lab.aml.show_status(&waiting, Some("Paused"));
    lab.until_word(&waiting, "Paused");
    assert!(
        lab.why(&waiting).contains("paused it"),
        "{}",
        lab.why(&waiting)
    );
    lab.tow(["abort", &id, &waiting]).ok();
}

#[test]
fn a_failed_run_is_explained_by_its_first_failure() {
    let lab = Lab::new();
    let job = "launch: 4\nscript: |\n  [ $RANK = 2 ] || exec sleep 600\n  printf 'Traceback (most \
        recent call last):\\n  File \"train.py\", line 1, in <module>\\n    import apex\\n' \
            >&2\n  echo \"ModuleNotFoundError: No module named 'apex'\" >&2; exit 3\n";
    let id = lab.home.submit_file(job, &["-c", "sing"]);
    let record = lab.ended(&id);
    assert_eq!(
        (
            record["state"].as_str(),
            record["reason"].as_str(),
            record["exit_code"].as_i64()
        ),
        (Some("failed"), Some("exit_code"), Some(3)),
        "{record}"
    );
    let why = lab.why(&id);
    assert!(
        why.contains("rank 2") && why.contains("No module named 'apex'"),
        "{why}"
    );
    let slow = lab
        .home
        .submit_file("resources: {time: 1s}\nscript: sleep 600\n", &[]);
    assert_eq!(lab.ended(&slow)["reason"], "time_limit");
    assert!(lab.why(&slow).contains("time"), "{}", lab.why(&slow));
    lab.until_gone(&slow);
}

#[test]
fn a_job_that_never_began_is_explained_in_the_services_words() {
    let lab = Lab::new();
    let words = "Failed to pull Docker image lab.azurecr.io/none:1. This error may occur because \
        the compute could not authenticate.";
    lab.aml
        .conditions(|conditions| conditions.broken_start = Some(words.to_owned()));
    let id = lab.home.submit_file(
        "environment: {image: 'lab.azurecr.io/none:1'}\nscript: echo never\n",
        &[],
    );
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), record["reason"].as_str()),
        (Some("failed"), Some("image_pull")),
        "{record}"
    );
    let why = lab.why(&id);
    assert!(why.contains("lab.azurecr.io/none:1"), "{why}");
    lab.aml.conditions(|conditions| {
        conditions.broken_start =
            Some("The job could not be placed: internal error 17.".to_owned());
    });
    let id = lab
        .home
        .submit_file("script: echo never\n", &["-c", "sing"]);
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), record["reason"].as_str()),
        (Some("failed"), Some("not_started")),
        "{record}"
    );
    assert!(
        lab.why(&id).contains("internal error 17"),
        "{}",
        lab.why(&id)
    );
}

#[test]
fn a_job_that_cannot_be_is_refused_before_anything_is_kept() {
    let lab = Lab::new();
    for (job, cluster, parts) in [
        (
            "resources: {instance_type: Standard_NC24rs_v3}\nscript: x\n",
            "aml",
            &[
                "machines of the kind STANDARD_ND96AMSR_A100_V4",
                "instance_type",
            ][..],
        ),
        (
            "resources: {instance_type: ND12am_A100_v4, gpus_per_node: 8}\nscript: x\n",
            "sing",
            &["8 GPUs per node", "ND12am_A100_v4 has 1"],
        ),
        (
            "resources: {nodes: 9}\nscript: x\n",
            "aml",
            &["9 nodes", "at most 8"],
        ),
        (
            "resources: {memory: 99T}\nscript: x\n",
            "aml",
            &["99T per node", "can never start"],
        ),
        (
            "resources: {cpus_per_node: 1000}\nscript: x\n",
            "aml",
            &["1000 CPUs per node", "can never start"],
        ),
        (
            "resources: {instance_type: ND96arms_A100_v4}\nscript: x\n",
            "sing",
            &["ND96arms_A100_v4", "did you mean `ND96amrs_A100_v4`?"],
        ),
        (
            "io: {a: {datastore: workspaceblobstor, path: x}}\nscript: x\n",
            "aml",
            &["`workspaceblobstor`", "did you mean `workspaceblobstore`?"],
        ),
        (
            "io: {'a$(touch pwned)': {datastore: workspaceblobstore, path: x}}\nscript: x\n",
            "aml",
            &["a name has letters"],
        ),
        (
            "identity: managed:tom\nscript: x\n",
            "aml",
            &["no identity `tom`", "tow"],
        ),
        (
            "environment: {secrets: [HF_TOKEN]}\nscript: x\n",
            "aml",
            &["HF_TOKEN", "managed:tow"],
        ),
        ("script: x\n", "lost", &["cpy", "cpu"]),
    ] {
        lab.home.write("job.yaml", job);
        let refused = lab
            .home
            .command(["submit", "-f", "job.yaml", "-c", cluster])
            .env("HF_TOKEN", "x")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && parts.iter().all(|part| said.contains(part)),
            "{job}: {said}"
        );
    }
    assert!(
        lab.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_the_service_refuses_is_told_with_its_words() {
    let lab = Lab::new();
    lab.aml.trouble(
        1,
        "PUT",
        "/jobs/",
        Trouble::Status {
            status: 400,
            retry_after: None,
        },
        When::Before,
    );
    let refused = lab.tow(["submit", "echo", "never"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("The service was told to say so."),
        "{refused:?}"
    );
    assert_eq!(lab.aml.troubles_left(), 0);
    // Whatever passes by itself is not told at all.
    for (trouble, when) in [
        (
            Trouble::Status {
                status: 503,
                retry_after: None,
            },
            When::Before,
        ),
        (Trouble::Cut, When::After),
    ] {
        lab.aml.trouble(1, "PUT", "/jobs/", trouble, when);
        let id = lab.tow(["submit", "echo", "through"]).ok().id();
        assert_eq!(lab.ended(&id)["state"], "succeeded", "{trouble:?}");
        assert_eq!(lab.log(&id, 1, 0), "through\n", "{trouble:?}");
    }
    assert_eq!(lab.aml.troubles_left(), 0);
}
