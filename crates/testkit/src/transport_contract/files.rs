//! The part of the contract that is about files: `put` and `get`.

use super::{Stage, bytes, run};
use std::io::{self, Read};

pub(super) fn a_file_is_put_with_its_folders_and_its_mode(stage: &dyn Stage) {
    let folder = stage.folder();
    let mode = |path: &str| {
        String::from_utf8_lossy(&run(stage, &["stat", "-c", "%a", path], b"").out)
            .trim()
            .to_owned()
    };
    for (at, (bytes, wanted)) in [
        (bytes(10 << 20), 0o600),
        (b"#!/bin/sh\n".to_vec(), 0o755),
        (Vec::new(), 0o444),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{folder}/put/a b/it's \"$x\" \\ {at}\nend");
        for _ in 0..2 {
            stage
                .transport()
                .put(&path, &mut bytes.as_slice(), wanted)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(mode(&path), format!("{wanted:o}"));
            assert!(
                stage
                    .transport()
                    .get(&path, 0..u64::MAX)
                    .expect("it is read")
                    == Some(bytes.clone()),
                "{path}"
            );
        }
    }
    assert_eq!(
        (
            mode(&format!("{folder}/put")),
            mode(&format!("{folder}/put/a b"))
        ),
        ("700".to_owned(), "700".to_owned())
    );
    assert_eq!(left(stage, "put/a b"), 3, "nothing else is left there");
}

/// The number of entries in a folder of the test.
fn left(stage: &dyn Stage, below: &str) -> usize {
    let ran = run(
        stage,
        &[
            "sh",
            "-c",
            "cd \"$1\" && set -- * .t* && for each; do [ -e \"$each\" ] && printf x; done",
            "sh",
            &format!("{}/{below}", stage.folder()),
        ],
        b"",
    );
    ran.out.len()
}

/// A source that fails after so many bytes.
struct Breaks(usize);

impl Read for Breaks {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        if count == 0 {
            Err(io::Error::other("the disk is gone"))
        } else {
            Ok(count)
        }
    }
}

pub(super) fn a_put_that_fails_changes_nothing(stage: &dyn Stage) {
    let (transport, folder) = (stage.transport(), stage.folder());
    let path = format!("{folder}/kept/file");
    transport
        .put(&path, &mut &b"old"[..], 0o600)
        .expect("it is put");
    let error = transport
        .put(&path, &mut Breaks(1 << 20), 0o600)
        .expect_err("it cannot be read");
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    assert!(
        transport
            .put(&format!("{path}/below"), &mut &b"new"[..], 0o600)
            .is_err(),
        "a file is in the way"
    );
    assert!(
        transport
            .put(&format!("{folder}/kept"), &mut &b"new"[..], 0o600)
            .is_err(),
        "a folder is in the way"
    );
    crate::until("what was begun to be gone", || {
        (left(stage, "kept") == 1).then_some(())
    });
    assert_eq!(
        transport.get(&path, 0..10).expect("it is read"),
        Some(b"old".to_vec())
    );
}

pub(super) fn parts_of_files_are_read(stage: &dyn Stage) {
    let (transport, folder) = (stage.transport(), stage.folder());
    let (path, all) = (format!("{folder}/-parts"), bytes(100_000));
    transport
        .put(&path, &mut all.as_slice(), 0o600)
        .expect("it is put");
    for (from, to) in [
        (0, 0),
        (0, 1),
        (7, 99),
        (0, 100_000),
        (99_999, 100_000),
        (99_999, 200_000),
        (100_000, 100_001),
        (1 << 40, 1 << 41),
        (5, u64::MAX),
        (9, 3),
    ] {
        let part = transport
            .get(&path, from..to)
            .expect("it is read")
            .expect("it is there");
        let expected: Vec<u8> = all
            .iter()
            .skip(usize::try_from(from).expect("small"))
            .take(usize::try_from(to.saturating_sub(from)).expect("small"))
            .copied()
            .collect();
        assert!(part == expected, "{from}..{to}: {} bytes", part.len());
    }
    for missing in [
        format!("{folder}/nothing"),
        format!("{folder}/no/such/folder"),
        format!("{path}/below"),
        format!("{folder}/a: Permission denied"),
    ] {
        assert_eq!(
            transport.get(&missing, 0..10).expect("it can be asked"),
            None,
            "{missing}"
        );
    }
    assert!(
        transport.get(folder, 0..10).is_err(),
        "a folder is not a file"
    );
}

pub(super) fn paths_are_below_the_home(stage: &dyn Stage) {
    let name = format!("-tow test {}/file", std::process::id());
    stage
        .transport()
        .put(&name, &mut &b"home"[..], 0o600)
        .expect("it is put");
    assert_eq!(
        stage.transport().get(&name, 0..10).expect("it is read"),
        Some(b"home".to_vec())
    );
    assert_eq!(run(stage, &["cat", "--", &name], b"").out, b"home");
    run(
        stage,
        &["rm", "-r", "--", name.trim_end_matches("/file")],
        b"",
    );
}
