//! Any bytes as the body of a snapshot, sealed as an attacker would: refused, or laid out in its
//! own folder and nowhere else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::sync::atomic::AtomicBool;
use towline_snapshot::layout::lay_out;
use towline_snapshot::progress::Progress;
use towline_snapshot::root::Root;
use towline_snapshot::store::FolderStore;

fuzz_target!(|body: &[u8]| {
    let mut bytes = b"towline snapshot 1\n".to_vec();
    let mut length = body.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(zstd::bulk::compress(body, 1).expect("compresses"));
    let seal = blake3::hash(&bytes);
    bytes.extend(seal.as_bytes());
    let Ok(root) = Root::decode_any(&bytes, "fuzz") else {
        return;
    };
    if root.manifest.bytes() > 1 << 20 || root.manifest.entries.len() > 100 {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let work = place.path().join("work");
    fs::create_dir(&work).expect("made");
    let store = FolderStore::new(place.path().join("store"));
    let outcome = lay_out(
        &root,
        &store,
        &work.join("out"),
        &Progress::default(),
        &AtomicBool::new(false),
    );
    let left = fs::read_dir(&work).expect("read").count();
    assert_eq!(
        left,
        usize::from(outcome.is_ok()),
        "something is left, or nothing is there"
    );
    assert!(
        fs::read_dir(place.path()).expect("read").count() <= 2,
        "something lies outside"
    );
});
