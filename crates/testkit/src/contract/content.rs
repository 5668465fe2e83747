//! The part of the contract that is about code sent to a cluster, and logs and files read from it.

use super::{Subject, nobody, plan, submit, wait_for_end};
use std::sync::atomic::{AtomicU32, Ordering};
use towline_core::cluster::{Cursor, LogSource, RunRef};

pub(super) fn check(subject: &dyn Subject) {
    blobs_are_stored_once_and_in_order(subject);
    logs_go_on_from_any_byte(subject);
    files_of_a_run_are_its_own(subject);
}

fn blobs_are_stored_once_and_in_order(subject: &dyn Subject) {
    let cluster = subject.cluster();
    // Another cluster of the same suite may use the same store.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let packs: Vec<(String, Vec<u8>)> = (0..3)
        .map(|_| pack(NUMBER.fetch_add(1, Ordering::Relaxed)))
        .collect();
    let names: Vec<String> = packs.iter().map(|(name, _)| name.clone()).collect();
    let missing = || cluster.missing(names.clone()).expect("it can be asked");
    assert_eq!(missing(), names);
    let put = |some: &[(String, Vec<u8>)]| {
        let bytes = |pack: &(String, Vec<u8>)| Ok(pack.clone());
        cluster
            .put(&mut some.iter().map(bytes))
            .expect("they are taken");
    };
    put(&packs[..2]);
    assert_eq!(missing(), names[2..]);
    // A present blob is left unchanged.
    put(&packs);
    assert!(missing().is_empty());
    // An error of the source is passed on, and the blobs before it are kept.
    let broken = towline_core::Error::refused("no more of this");
    let failed = cluster.put(&mut std::iter::once(Err(broken)));
    assert!(failed.is_err());
    assert!(missing().is_empty());
}

/// Some bytes under the name of their content.
fn pack(number: u32) -> (String, Vec<u8>) {
    let bytes = format!("pack {number} of {}", std::process::id()).into_bytes();
    let digest = blake3::hash(&bytes).to_hex();
    (format!("packs/{}/{digest}", &digest[..2]), bytes)
}

fn at(offset: u64) -> Cursor {
    Cursor {
        attempt: 1,
        source: LogSource::Rank(0),
        offset,
    }
}

fn logs_go_on_from_any_byte(subject: &dyn Subject) {
    let cluster = subject.cluster();
    let text = b"a\rb\0c\nno newline at the end";
    let plan = plan(subject, r"printf 'a\rb\000c\nno newline at the end'", 1);
    let run = &submit(subject, &plan)[0];
    subject.live(&run.run, text, true);
    wait_for_end(subject, run);
    let read = |from: &Cursor, most: u64| {
        let log = cluster.log_bytes(run, from, most);
        log.expect("logs can be read")
    };
    for offset in 0..=text.len() {
        let log = read(&at(offset as u64), 1 << 20);
        assert_eq!(log.bytes, &text[offset..], "{:?}", cluster.logs(run));
        assert_eq!(log.truncated_to(offset as u64), None);
    }
    assert_eq!(
        read(&at(2), 3).bytes,
        &text[2..5],
        "no more than was asked for"
    );
    let beyond = read(&at(1 << 20), 1);
    assert_eq!(
        beyond.truncated_to(1 << 20),
        Some(text.len() as u64),
        "a shorter log is told"
    );
    let other = Cursor {
        attempt: 2,
        ..at(0)
    };
    assert!(read(&other, 10).bytes.is_empty(), "none of another attempt");
    let logs = cluster.logs(run).expect("they can be listed");
    let of_rank = logs
        .iter()
        .find(|log| (log.attempt, log.source) == (1, LogSource::Rank(0)));
    assert_eq!(of_rank.map(|log| log.length), Some(text.len() as u64));
    assert!(cluster.logs(&nobody(3)).expect("none").is_empty());
    cluster.platform_log(run).expect("what there is of it");
}

/// Reads a file below `outputs`, which every kind keeps.
fn files_of_a_run_are_its_own(subject: &dyn Subject) {
    let cluster = subject.cluster();
    // A run that starts in the user's own folder has its files elsewhere.
    let folder = if cluster.caps().is_here {
        "\"$TOW_RUN_DIR\"/outputs"
    } else {
        "outputs"
    };
    let script = format!("mkdir -p {folder}/deep && printf 0123456789 > {folder}/deep/file");
    let plan = plan(subject, &script, 1);
    let run = &submit(subject, &plan)[0];
    subject.live(&run.run, b"", true);
    wait_for_end(subject, run);
    let roots = ["outputs", "code/outputs"];
    let found = crate::until("what the run left", || {
        let listed = roots.map(|root| (root, cluster.files(run, root).expect("it can be listed")));
        listed.into_iter().find(|(_, files)| !files.is_empty())
    });
    let (root, files) = found;
    let file = files.iter().find(|file| file.path == "deep/file");
    let file = file.unwrap_or_else(|| panic!("{files:?}"));
    assert_eq!((file.size, file.is_folder), (10, false));
    let read = |run: &RunRef, path: &str, offset, most| cluster.file_bytes(run, path, offset, most);
    let path = format!("{root}/deep/file");
    assert_eq!(read(run, &path, 3, 4).expect("it can be read"), b"3456");
    assert_eq!(read(run, &path, 10, 4).expect("its end"), b"");
    assert!(cluster.files(run, "outputs/none").expect("none").is_empty());
    for path in ["../../etc/passwd", "outputs/../../../etc/passwd"] {
        let leaves = read(run, path, 0, 10).unwrap_or_default();
        assert!(leaves.is_empty(), "nothing outside is read: {path}");
    }
}
