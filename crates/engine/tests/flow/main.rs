//! The flow with a program of the test's own around it: no process, no daemon, no terminal.
#![allow(clippy::unwrap_used)]

mod program;

use program::TestProgram;
use std::fs;
use towline_core::job::{Io, IoMode, Job, OneOrMany};
use towline_core::redact::SecretSet;
use towline_core::secret_name::SecretName;
use towline_engine::flow::{self, CodeChoice, Origin, Outside, code, data};

fn job() -> Job {
    Job {
        command: OneOrMany::Many(vec!["python".to_owned(), "train.py".to_owned()]),
        ..Job::default()
    }
}

fn origin(program: &TestProgram, job: &Job) -> Origin {
    Origin {
        place: flow::code_place(job, &program.project()).unwrap(),
        environment: Vec::new(),
        resubmits: None,
        code: CodeChoice::Today { any_size: false },
        data: None,
    }
}

#[test]
fn a_plan_is_made_before_anything_is_stored_or_sent() {
    let program = TestProgram::new("");
    fs::write(program.project().join("train.py"), "print(1)").unwrap();
    let prepared = flow::plan_for(&program, job(), "toy", None, origin(&program, &job())).unwrap();
    let frozen = prepared.plan.resolved.code.unwrap();
    assert_eq!(prepared.plan.cluster, "toy");
    // `towline.yaml` is one of the two.
    assert_eq!((frozen.files, frozen.snapshot), (2, None));
    assert!(!program.state().unwrap().snapshots().exists());
    assert_eq!(program.toy.calls(), 0, "what is remembered is enough");
}

#[test]
fn what_the_cluster_cannot_do_is_refused_with_the_plan() {
    let program = TestProgram::new("datastores: {nas: {kind: folder, path: /mnt/nas}}");
    let mut job = job();
    let io = Io {
        datastore: "nas".to_owned(),
        path: "data".to_owned(),
        mode: IoMode::Read,
        options: Vec::new(),
    };
    job.io.insert("data".to_owned(), io);
    let origin = origin(&program, &job);
    let refused = flow::plan_for(&program, job, "toy", None, origin).unwrap_err();
    assert!(refused.to_string().contains("datastores"), "{refused}");
}

#[test]
fn code_is_taken_under_the_eyes_of_the_user() {
    let program = TestProgram::new("");
    fs::write(program.project().join("train.py"), "print(1)").unwrap();
    let place = flow::code_place(&job(), &program.project()).unwrap();
    let (layers, state) = (program.layers().unwrap(), program.state().unwrap());
    let wish = code::Wish::default();
    let survey = || code::survey(layers, state, &place, &wish).unwrap();
    let store = code::local_store(state).unwrap();
    let taken = code::take_here(&program, survey(), &store).unwrap();
    assert_eq!((taken.files, taken.was_there), (2, false));
    let again = code::take_here(&program, survey(), &store).unwrap();
    assert_eq!((again.id, again.was_there), (taken.id, true));
    assert_eq!(
        program.watched.borrow().as_slice(),
        ["snapshot", "snapshot"]
    );
}

#[test]
fn what_a_credential_leads_to_is_asked_of_the_program_and_held_apart() {
    let program = TestProgram::new(
        "datastores: {blobs: {kind: azure_blob, account: a, container: c, credential: \
        {account_key: env:KEY}}}",
    );
    let mut secrets = SecretSet::default();
    let named = data::store(&program, "`io.data`", "blobs", false, &mut secrets).unwrap();
    assert_eq!(program.checked.borrow().as_slice(), ["blobs"]);
    let secret = &secrets.0[&SecretName::Datastore("env:KEY".into())];
    assert_eq!(secret.expose(), "datastore `blobs` account_key env:KEY");
    let stored = serde_json::to_string(&named.datastore).unwrap();
    assert!(stored.contains("env:KEY") && !stored.contains("account_key env:KEY"));
    let error = data::store(&program, "`copy`", "blob", false, &mut secrets).unwrap_err();
    assert!(error.hints()[0].contains("blobs"), "{error}");
}
