//! Samples of every message between this program and a folder on another host.

use super::call::{Answer, Call, FOLDER_VERB, FolderHello, PROTOCOL_VERSION};
use std::path::{Path, PathBuf};
use towline_samples::Samples;
use towline_wire::daemon::Refusal;

fn check(mut samples: Samples) {
    samples.covered_elsewhere::<Refusal>();
    samples.check::<FolderHello>("hello");
    samples
        .check::<Call>("call")
        .check::<Answer>("answer")
        .finish();
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/far_folder.json")
}

#[test]
fn every_message_is_still_read() {
    check(Samples::open(file()));
    assert_eq!((FOLDER_VERB, PROTOCOL_VERSION), ("__folder", 1));
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(Samples::append(file(), &drafts));
}
