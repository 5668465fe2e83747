//! Every document that is stored as a type of this crate: samples that earlier versions wrote are
//! read by every later one. See `towline_samples` for the rules.
//!
//! New samples are appended by hand, or from drafts by
//! `TOW_GOLDEN_DRAFTS=FOLDER cargo test -p towline-core --test golden -- --ignored`.

use std::path::{Path, PathBuf};
use towline_core::ErrorKind;
use towline_core::cloud::Who;
use towline_core::cluster::{Cursor, Facts};
use towline_core::command::Program;
use towline_core::config::{Bastion, Cluster, Folder, Tunnel};
use towline_core::event::{Recorded, RunEvent};
use towline_core::job::{Image, Job, Launch, OneOrMany};
use towline_core::obstacle::Obstacle;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::record::{AttemptRecord, RunRecord};
use towline_core::resolve::{NamedStore, Resolved};
use towline_core::state::{Native, Phase, RunState};
use towline_core::sweep::Parameters;
use towline_core::tunnel::Definition;
use towline_core::workspace::Workspace;
use towline_samples::{Samples, assert_every_variant};

type Open = dyn Fn(&str) -> Samples;

fn samples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

#[test]
fn every_stored_document_is_still_read() {
    check(&|name| Samples::open(samples(name)));
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(&move |name| Samples::append(samples(name), &drafts));
}

fn check(open: &Open) {
    check_job(open);
    check_plan(open);
    check_state(open);
    check_events(open);
    check_clusters(open);
    let mut records = open("record.json");
    records
        .covered_elsewhere::<RunState>()
        .covered_elsewhere::<Ending>();
    records
        .check::<RunRecord>("run")
        .check::<AttemptRecord>("attempt")
        .finish();
    open("workspace.json")
        .check::<Workspace>("workspace")
        .finish();
    let mut tunnels = open("tunnel.json");
    tunnels
        .check::<Tunnel>("tunnel")
        .check::<Definition>("definition")
        .finish();
}

fn check_job(open: &Open) {
    let mut samples = open("job.json");
    let jobs: Vec<Job> = samples.read("job");
    // These are read by hand-written code, which does not tell its variants.
    assert_every_variant!(
        jobs.iter().map(|job| &job.command),
        OneOrMany::None,
        OneOrMany::One(_),
        OneOrMany::Many(_)
    );
    assert_every_variant!(
        jobs.iter().filter_map(|job| job.environment.image.as_ref()),
        Image::Any(_),
        Image::PerMake(_)
    );
    assert_every_variant!(
        jobs.iter().filter_map(|job| job.launch),
        Launch::PerNode,
        Launch::PerGpu,
        Launch::Once,
        Launch::Ranks(_)
    );
    samples.finish();
}

fn check_plan(open: &Open) {
    let mut samples = open("plan.json");
    samples.covered_elsewhere::<Job>();
    samples.covered_elsewhere::<towline_core::reason::Cause>();
    samples
        .check::<Plan>("plan")
        .check::<Resolved>("resolved")
        .check::<Program>("program");
    samples.check::<Parameters>("parameters").finish();
}

fn check_state(open: &Open) {
    let mut samples = open("state.json");
    samples.check::<Phase>("phase").check::<RunState>("state");
    let endings: Vec<Ending> = samples.read("ending");
    // These are read by hand-written code, which does not tell its variants.
    assert_every_variant!(
        endings.iter().filter_map(|ending| ending.obstacle),
        Obstacle::NoRoom,
        Obstacle::CodeLayout,
        Obstacle::StageNotShared
    );
    let refusals = endings.iter().filter_map(|ending| ending.refusal.as_ref());
    let kinds: Vec<ErrorKind> = refusals.map(|refusal| refusal.kind).collect();
    assert_every_variant!(
        kinds,
        ErrorKind::Usage,
        ErrorKind::Config,
        ErrorKind::NotFound,
        ErrorKind::Ambiguous,
        ErrorKind::Refused,
        ErrorKind::Denied,
        ErrorKind::Unsupported,
        ErrorKind::TooLarge,
        ErrorKind::Conflict,
        ErrorKind::NoRoom,
        ErrorKind::Timeout,
        ErrorKind::Unreachable,
        ErrorKind::Lost,
        ErrorKind::Bug
    );
    samples.check::<Native>("native").finish();
}

fn check_events(open: &Open) {
    let mut samples = open("event.json");
    let events: Vec<RunEvent> = samples.read("event");
    let recorded: Vec<Recorded> = samples.read("recorded");
    for events in [
        events,
        recorded
            .into_iter()
            .map(|recorded| recorded.event)
            .collect(),
    ] {
        assert_every_variant!(
            events,
            RunEvent::Drafted,
            RunEvent::StageIntent,
            RunEvent::SubmitIntent,
            RunEvent::Submitted { .. },
            RunEvent::AttemptIntent { .. },
            RunEvent::AttemptUnclaimed { .. },
            RunEvent::AttemptStarted { .. },
            RunEvent::AttemptHeld { .. },
            RunEvent::AttemptEnded { .. },
            RunEvent::CancelIntent { .. },
            RunEvent::CancelRefused { .. },
            RunEvent::PreemptIntent { .. },
            RunEvent::PutOnHold,
            RunEvent::Resumed,
            RunEvent::AfterMet { .. },
            RunEvent::Edited { .. },
            RunEvent::Tagged { .. },
            RunEvent::Ended { .. },
            RunEvent::NeverHeard,
            RunEvent::Observed { .. },
        );
    }
    samples.finish();
}

fn check_clusters(open: &Open) {
    let mut samples = open("cluster.json");
    samples
        .covered_elsewhere::<RunState>()
        .covered_elsewhere::<Job>();
    samples.check::<Facts>("facts");
    samples
        .check::<Cursor>("cursor")
        .check::<Cluster>("cluster")
        .check::<NamedStore>("datastore");
    samples
        .check::<Folder>("folder")
        .check::<Bastion>("bastion")
        .check::<Who>("who")
        .finish();
}

/// OneOrMany that the history stores in columns, and that people and scripts read.
#[test]
fn every_stored_word_is_the_same() {
    let words: Vec<&str> = Phase::ALL.iter().map(|phase| phase.word()).collect();
    assert_eq!(
        words.join(" "),
        "drafted staging submitting queued running succeeded failed cancelled lost"
    );
    let events: Vec<RunEvent> = Samples::open(samples("event.json")).read("event");
    for event in events {
        let json = serde_json::to_value(&event).expect("it encodes");
        assert_eq!(json["event"], event.word());
    }
    let endings: Vec<Ending> = Samples::open(samples("state.json")).read("ending");
    for cause in endings.iter().filter_map(|ending| ending.cause) {
        assert_eq!(
            serde_json::to_value(cause).expect("it encodes"),
            cause.word()
        );
    }
}
