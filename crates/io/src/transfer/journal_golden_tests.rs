//! Samples of the journal of a transfer: its lines, and a whole one as an earlier version left it.

use super::{Journal, Record, Subject};
use std::path::{Path, PathBuf};
use towline_samples::Samples;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn check(mut samples: Samples) {
    samples.check::<Record>("line").finish();
}

#[test]
fn every_line_is_still_read() {
    check(Samples::open(folder().join("transfer.json")));
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(Samples::append(folder().join("transfer.json"), &drafts));
}

fn subject() -> Subject {
    Subject {
        version: 1,
        source: "/home/alice/a.bin".to_owned(),
        source_version: "1763189280.5 10".to_owned(),
        target: "research:a.bin".to_owned(),
        size: 10,
        block: 4,
    }
}

/// The name tells what is copied, so a later version finds the file and goes on.
const NAME: &str = "fe1f36e927d14af58ff12206c1182497.journal";

#[test]
fn a_transfer_that_was_cut_off_goes_on() {
    let here = tempfile::tempdir().expect("a folder");
    std::fs::copy(
        folder().join("transfers").join(NAME),
        here.path().join(NAME),
    )
    .expect("copied");
    let journal = Journal::open(here.path(), &subject()).expect("opens");
    assert_eq!(journal.upload.as_deref(), Some("upload-1"));
    assert_eq!(journal.done.len(), 2);
    assert_eq!(journal.done[&1].value, [1; 32]);
    assert_eq!(journal.done[&1].tag, "\"tag\"\n");
}

/// Makes the file once; its name is to be written above.
#[test]
#[ignore = "writes the journal of a transfer, if it is missing"]
fn write_a_journal() {
    let target = folder().join("transfers");
    assert!(!target.exists(), "samples are never made again");
    let journal = Journal::open(&target, &subject()).expect("opens");
    journal.note_upload("upload-1").expect("noted");
    journal.note_block(0, [0; 32], "tag").expect("noted");
    journal.note_block(1, [1; 32], "\"tag\"\n").expect("noted");
}
