//! The file of trusted folders, as an earlier version wrote it.

use super::{Holding, Record, TRUSTED_FILE, Trusted};
use std::path::{Path, PathBuf};
use towline_samples::Samples;

fn check(mut samples: Samples) {
    samples.check::<Record>("record").finish();
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/trust.json")
}

#[test]
fn a_folder_that_was_trusted_is_trusted() {
    check(Samples::open(file()));
    let all: Vec<Record> = Samples::open(file()).read("record");
    let home = tempfile::tempdir().expect("a folder");
    assert_eq!(TRUSTED_FILE, "trusted.json");
    let text = serde_json::to_vec(&all[0]).expect("it encodes");
    towline_host::once::create(&home.path().join(TRUSTED_FILE), &text).expect("written");
    let (trusted, project) = (
        Trusted::of(Some(home.path())),
        Path::new("/home/alice/project"),
    );
    let digests = [
        (
            Holding::Project,
            "7c699ae1818586d067473038034b900cdc0606447ad0a0003cb22ef5d3feec7b",
        ),
        (
            Holding::Act,
            "c9e3a4960df3ca5e3efd837d8f08f7fe69764950611810f0d1facb54ef58518a",
        ),
    ];
    for (holding, digest) in digests {
        assert!(
            trusted.is(project, holding, digest).expect("it is read"),
            "{holding:?}"
        );
    }
}

/// A digest that changed would make every user agree again.
#[test]
fn the_digest_of_files_is_the_same() {
    let digest = super::digest([(
        Path::new("towline.yaml"),
        b"default_cluster: gpu\n".as_slice(),
    )]);
    assert_eq!(
        digest,
        "4c0d2967a2d55147420a5c128ba837977bfbe9ba101350d82ce5a650841a1312"
    );
}

#[test]
#[ignore = "appends the samples of TOW_GOLDEN_DRAFTS"]
fn append_samples() {
    let drafts = towline_samples::drafts();
    check(Samples::append(file(), &drafts));
}
