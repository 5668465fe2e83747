//! Snapshots that no walk of ours makes. They are refused, or laid out exactly and nowhere else.

use crate::digest::Digest;
use crate::layout::lay_out;
use crate::manifest::{Entry, Flavor, Kind, Manifest, Piece};
use crate::pack::{Compression, Frame, Packer};
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::{Place, Root, Summary, read_root};
use crate::store::{Blob, BlobStore, FolderStore};
use proptest::prelude::*;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A good snapshot of one file `f`, for the tests to damage.
fn good(store: &FolderStore, content: &[u8]) -> Root {
    let mut packer = Packer::new(Compression::QUICK).expect("a packer");
    let digest = Digest::of(content);
    assert!(packer.add(digest, content).expect("packed").is_none());
    let pack = packer.finish().expect("packed").expect("a pack");
    store
        .put(&Blob::Pack(pack.digest), &pack.bytes)
        .expect("put");
    let file = Kind::File(vec![Piece::Chunk {
        digest,
        length: content.len() as u64,
    }]);
    Root {
        manifest: Manifest {
            entries: vec![entry("f", file)],
            ..Manifest::default()
        },
        packs: vec![pack.digest],
        frames: vec![(0, pack.frames[0].0.clone())],
        places: vec![Place {
            frame: 0,
            offset: 0,
        }],
        ..Root::default()
    }
}

fn entry(path: &str, kind: Kind) -> Entry {
    Entry {
        path: path.as_bytes().into(),
        mode: 0o644,
        kind,
        modified: 1,
    }
}

fn folder(path: &str) -> Entry {
    Entry {
        mode: 0o755,
        ..entry(path, Kind::Folder)
    }
}

fn link(path: &str, target: &str) -> Entry {
    entry(path, Kind::Link(target.as_bytes().into()))
}

fn empty(path: &str) -> Entry {
    entry(path, Kind::File(Vec::new()))
}

/// Stores a root as an attacker would, then lays it out as a node does.
fn store_and_lay(root: &Root, place: &Path, store: &FolderStore) -> Result<()> {
    let id = root.id();
    let _ = fs::remove_file(store.root().join(Blob::Root(id).path()));
    store.put(&Blob::Root(id), &root.encode()?)?;
    let read = read_root(store, &id)?;
    lay_out(
        &read,
        store,
        &place.join("out"),
        &Progress::default(),
        &AtomicBool::new(false),
    )
}

/// The error of a changed root; nothing may be left behind or touched outside.
fn refused(change: impl FnOnce(&mut Root)) -> String {
    let place = tempfile::tempdir().expect("a folder");
    let store = FolderStore::new(place.path().join("store"));
    let mut root = good(&store, b"content");
    change(&mut root);
    let work = place.path().join("work");
    fs::create_dir(&work).expect("made");
    let problem = store_and_lay(&root, &work, &store).expect_err("refused");
    assert_eq!(
        fs::read_dir(&work).expect("read").count(),
        0,
        "something was left behind: {problem}"
    );
    problem.to_string()
}

#[test]
fn paths_that_leave_the_tree_are_refused() {
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "..",
        ".",
        "a//b",
        "",
        "a/",
        "./a",
        "nul\0byte",
    ] {
        let message = refused(|root| root.manifest.entries.insert(0, empty(path)));
        assert!(
            message.contains("refused") || message.contains("damaged"),
            "{path:?}: {message}"
        );
    }
    let long = "x".repeat(256);
    refused(|root| root.manifest.entries.push(empty(&long)));
    let deep = vec!["d"; 3000].join("/");
    refused(|root| root.manifest.entries.push(empty(&deep)));
}

#[test]
fn nothing_goes_through_a_link_or_a_file() {
    refused(|root| root.manifest.entries = vec![link("a", "/tmp"), empty("a/x")]);
    refused(|root| root.manifest.entries = vec![empty("a"), empty("a/x")]);
    refused(|root| root.manifest.entries = vec![empty("missing/x")]);
    // The same name as link and as folder.
    refused(|root| root.manifest.entries = vec![link("a", "/tmp"), folder("a"), empty("a/x")]);
    refused(|root| root.manifest.entries = vec![folder("a"), link("a", "/tmp"), empty("a/x")]);
    refused(|root| root.manifest.entries.push(link("z", "")));
    refused(|root| root.manifest.entries.push(link("z", "nul\0")));
}

#[test]
fn names_twice_and_out_of_order_are_refused() {
    refused(|root| root.manifest.entries.push(empty("f")));
    refused(|root| root.manifest.entries = vec![empty("b"), empty("a")]);
}

#[test]
fn modes_that_give_rights_are_refused() {
    for mode in [0o4755, 0o2755, 0o10_0644, u32::MAX] {
        refused(|root| root.manifest.entries[0].mode = mode);
    }
}

#[test]
fn content_that_is_not_where_it_says_is_refused() {
    refused(|root| root.places[0].offset = 1);
    refused(|root| root.places[0].frame = 7);
    refused(|root| root.places.clear());
    refused(|root| {
        root.places.push(Place {
            frame: 0,
            offset: 0,
        });
    });
    refused(|root| root.frames.clear());
    refused(|root| root.packs.clear());
    refused(|root| root.packs[0] = Digest::of(b"other"));
    refused(|root| root.frames[0].1.offset = u64::MAX);
    refused(|root| root.frames[0].1.stored = 1);
    refused(|root| root.frames[0].1.digest = Digest::of(b"other"));
    // The bytes are there, but they are not what the manifest names.
    refused(|root| {
        root.manifest.entries[0].kind = Kind::File(vec![Piece::Chunk {
            digest: Digest::of(b"another"),
            length: 7,
        }]);
    });
    refused(|root| {
        root.manifest.entries[0].kind = Kind::File(vec![Piece::Chunk {
            digest: Digest::of(b"content"),
            length: 6,
        }]);
    });
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let hole = |length| Piece::Hole { length };
    refused(|root| {
        root.manifest.entries.push(entry(
            "g",
            Kind::File(vec![hole(1 << 62), hole(1 << 62), hole(1 << 62)]),
        ));
    });
    refused(|root| {
        root.manifest
            .entries
            .push(entry("g", Kind::File(vec![hole((1 << 62) - 1)])));
    });
    let digest = Digest::of(b"content");
    refused(|root| {
        root.manifest.entries[0].kind = Kind::File(vec![
            Piece::Chunk { digest, length: 7 },
            Piece::Chunk {
                digest,
                length: 1 << 60,
            },
        ]);
    });
}

#[test]
fn bombs_do_not_unpack() {
    let place = tempfile::tempdir().expect("a folder");
    let store = FolderStore::new(place.path().join("store"));
    // A frame that says it is small and unpacks to 64 MiB.
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).expect("packed");
    let pack = Digest::of(&bomb);
    store.put(&Blob::Pack(pack), &bomb).expect("put");
    let mut root = good(&store, b"content");
    root.packs = vec![pack];
    let length = u32::try_from(bomb.len()).expect("small");
    for raw in [7, 8 << 20] {
        root.frames = vec![(
            0,
            Frame {
                offset: 0,
                stored: length,
                raw,
                packed: true,
                digest: pack,
            },
        )];
        let problem = store_and_lay(&root, place.path(), &store).expect_err("refused");
        assert!(matches!(problem, Problem::Damaged { .. }), "{problem}");
    }
    root.frames[0].1.raw = 64 << 20;
    assert!(store_and_lay(&root, place.path(), &store).is_err());
}

#[test]
fn a_manifest_that_unpacks_to_too_much_is_refused_without_the_memory() {
    // Sealed well, but its body says one size and is another.
    let body = zstd::bulk::compress(&vec![0; 200 << 20], 1).expect("packed");
    for announced in [10u64, 300 << 20, 1 << 40] {
        let mut bytes = b"towline snapshot 1\n".to_vec();
        crate::codec::put_number(&mut bytes, announced);
        bytes.extend_from_slice(&body);
        let seal = Digest::of(&bytes);
        bytes.extend_from_slice(&seal.0);
        assert!(Root::decode(&bytes, &Digest::of(b"x")).is_err());
    }
}

#[test]
fn a_root_cut_anywhere_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let root = good(&FolderStore::new(place.path()), b"content");
    let bytes = root.encode().expect("encoded");
    for cut in 0..bytes.len() {
        assert!(
            Root::decode(&bytes[..cut], &root.id()).is_err(),
            "cut at {cut}"
        );
    }
    assert_eq!(Root::decode(&bytes, &root.id()).expect("whole"), root);
}

fn any_path() -> impl Strategy<Value = Vec<u8>> {
    let part = proptest::sample::select(vec!["a", "b", "..", ".", "", "c", "A", "x\0", "é"]);
    proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join("/").into_bytes())
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let kind = prop_oneof![
        Just(Kind::Folder),
        Just(Kind::File(Vec::new())),
        Just(Kind::File(vec![Piece::Chunk {
            digest: Digest::of(b"content"),
            length: 7
        }])),
        (1u64..10_000_000).prop_map(|length| Kind::File(vec![Piece::Hole { length }])),
        any_path().prop_map(|target| Kind::Link(target.into())),
        any_path().prop_map(|first| Kind::Same(first.into())),
    ];
    let mode = prop_oneof![3 => Just(0o755u32), 1 => any::<u32>()];
    (any_path(), mode, kind, any::<i64>()).prop_map(|(path, mode, kind, modified)| Entry {
        path: path.into(),
        mode,
        kind,
        modified,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever an attacker writes: it is refused, or exactly what it says lies in its own folder.
    #[test]
    fn any_manifest_is_refused_or_laid_out_exactly(mut entries in proptest::collection::vec(any_entry(), 0..12), sorted: bool, exact: bool) {
        let place = tempfile::tempdir().expect("a folder");
        let store = FolderStore::new(place.path().join("store"));
        let mut root = good(&store, b"content");
        if sorted {
            entries.sort_by(|a, b| a.path.cmp(&b.path));
            entries.dedup_by(|a, b| a.path == b.path);
        }
        if !entries.iter().any(|entry| entry.chunks().next().is_some()) {
            root.places.clear();
        }
        root.manifest.entries = entries;
        if exact {
            root.manifest.flavor = Flavor::Workspace;
            root.summary = Some(Summary::default());
        }
        let work = place.path().join("work/inner");
        fs::create_dir_all(&work).expect("made");
        let outcome = store_and_lay(&root, &work, &store);
        let names = |folder: &Path| fs::read_dir(folder).expect("read").map(|entry| entry.expect("read").file_name()).collect::<Vec<_>>();
        prop_assert_eq!(names(place.path()).len(), 2);
        prop_assert_eq!(names(&place.path().join("work")).len(), 1);
        if outcome.is_err() {
            prop_assert_eq!(names(&work).len(), 0);
            return Ok(());
        }
        prop_assert_eq!(names(&work), ["out"]);
        for entry in &root.manifest.entries {
            let path = work.join("out").join(std::ffi::OsStr::from_bytes(&entry.path));
            let meta = fs::symlink_metadata(&path).expect("laid out");
            match &entry.kind {
                Kind::Folder => prop_assert!(meta.is_dir()),
                Kind::Link(target) => prop_assert!(fs::read_link(&path).expect("a link").as_os_str().as_bytes() == &**target),
                Kind::File(_) => prop_assert_eq!((meta.is_file(), meta.len()), (true, entry.size())),
                Kind::Same(first) => {
                    let file = fs::symlink_metadata(work.join("out").join(std::ffi::OsStr::from_bytes(first))).expect("laid out");
                    prop_assert!(meta.is_file() && (meta.dev(), meta.ino()) == (file.dev(), file.ino()));
                }
            }
        }
    }

    /// Bytes that were changed and sealed again: an error or another good snapshot, never a panic.
    #[test]
    fn any_bytes_are_read_or_refused(cuts in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let place = tempfile::tempdir().expect("a folder");
        let root = good(&FolderStore::new(place.path()), b"content");
        let mut body = root.encode().expect("encoded");
        body.truncate(body.len() - 32);
        for (at, byte) in cuts {
            let at = at % body.len();
            body[at] = byte;
        }
        let seal = Digest::of(&body);
        body.extend_from_slice(&seal.0);
        let _ = Root::decode(&body, &root.id());
    }
}
