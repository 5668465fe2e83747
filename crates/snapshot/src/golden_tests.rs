//! A store as an earlier version left it: a snapshot of code, a backup, a list of pending deletions,
//! the index and the stat cache. Every later version reads it.

use crate::backup::{Place, back_up, list};
use crate::check::check;
use crate::continues::{Mark, Marked};
use crate::digest::Digest;
use crate::index::Index;
use crate::layout::lay_out;
use crate::manifest::{Flavor, Kind, Piece};
use crate::pack::Compression;
use crate::progress::Progress;
use crate::prune::{Policy, carry_out, plan};
use crate::root::{Root, read};
use crate::rules::Rules;
use crate::store::{Blob, BlobKind, BlobStore, FolderStore};
use crate::take::{Options, take};
use crate::walk::Limits;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, UNIX_EPOCH};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// One line for each entry: mode, time, path, content. Holes are read as zeros.
fn describe(root: &Path, folder: &Path, lines: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("read").flatten() {
        let path = entry.path();
        let meta = fs::symlink_metadata(&path).expect("there");
        let content = if meta.is_symlink() {
            fs::read_link(&path)
                .expect("a link")
                .into_os_string()
                .into_vec()
        } else if meta.is_dir() {
            describe(root, &path, lines);
            b"/".to_vec()
        } else {
            fs::read(&path).expect("read")
        };
        let shown = match content.len() {
            ..100 => content.escape_ascii().to_string(),
            length => format!("{length} bytes, {}", Digest::of(&content)),
        };
        let name = path
            .strip_prefix(root)
            .expect("below")
            .as_os_str()
            .as_bytes();
        let (mode, seconds, nanos) = (meta.mode(), meta.mtime(), meta.mtime_nsec());
        lines.insert(format!(
            "{} {mode:o} {seconds}.{nanos:09} {shown}",
            name.escape_ascii()
        ));
    }
}

fn laid_out(store: &FolderStore, root: &Root, at: &Path) -> String {
    let target = at.join(root.id().to_string());
    lay_out(
        root,
        store,
        &target,
        &Progress::default(),
        &AtomicBool::new(false),
    )
    .expect("laid out");
    let mut lines = BTreeSet::new();
    describe(&target, &target, &mut lines);
    lines
        .into_iter()
        .fold(String::new(), |text, line| text + &line + "\n")
}

fn roots(store: &FolderStore) -> Vec<Root> {
    let blobs = [BlobKind::Root, BlobKind::Backup].map(|kind| store.list(kind).expect("listed"));
    blobs
        .iter()
        .flatten()
        .map(|stored| read(store, &stored.blob).expect("a root"))
        .collect()
}

#[test]
fn every_stored_tree_comes_back() {
    let here = tempfile::tempdir().expect("a folder");
    copy(&golden().join("store"), here.path().join("store").as_path());
    let store = FolderStore::new(here.path().join("store"));
    let roots = roots(&store);
    let flavors: Vec<Flavor> = roots.iter().map(|root| root.manifest.flavor).collect();
    assert_eq!(flavors, [Flavor::Code, Flavor::Workspace]);
    for (root, name) in roots.iter().zip(["code.txt", "workspace.txt"]) {
        let then = fs::read_to_string(golden().join(name)).expect("a list");
        assert_eq!(laid_out(&store, root, here.path()), then, "{name}");
        let again = root.encode().expect("it encodes");
        assert_eq!(&Root::decode(&again, &root.id()).expect("it decodes"), root);
    }
    assert_eq!(
        (roots[0].about.taken, roots[0].about.name.as_str()),
        (NOW_MILLIS, "tree")
    );
    let checked = check(&store, None, &Progress::default()).expect("checked");
    assert!(
        checked.damage.is_empty() && checked.snapshots == 2,
        "{checked:?}"
    );
    let listed = store.list(BlobKind::PendingDeletion).expect("listed");
    assert_eq!(listed.len(), 1);
}

/// A tree that is taken again has the same id, so nothing of it is sent again.
#[test]
fn the_same_tree_has_the_same_id() {
    let here = tempfile::tempdir().expect("a folder");
    make_tree(&here.path().join("tree"));
    let store = FolderStore::new(here.path().join("store"));
    let id = take_tree(here.path(), &store);
    let kept = FolderStore::new(golden().join("store"))
        .list(BlobKind::Root)
        .expect("listed");
    assert_eq!(kept[0].blob, Blob::Root(id));
}

#[test]
fn a_backup_is_listed_by_its_summary() {
    let listed = list(&FolderStore::new(golden().join("store"))).expect("listed");
    let summary = listed[0].summary.as_ref().expect("a summary");
    let (host, folder) = (summary.host.as_str(), summary.folder.as_str());
    assert_eq!(
        (host, folder, summary.name.as_str()),
        ("node-a", "/scratch/alice/work", "tree")
    );
    assert_eq!((listed[0].at, summary.taken), (NOW_MILLIS, NOW_MILLIS));
    assert_eq!((summary.files, summary.doubtful), (7, 0));
}

#[test]
fn the_index_and_the_cache_are_still_read() {
    let store = FolderStore::new(golden().join("store"));
    let index = Index::load(&golden().join("index")).expect("read");
    assert!(!index.is_partial());
    for listed in store.list(BlobKind::PendingDeletion).expect("listed") {
        let path = listed.blob.path();
        assert!(index.knows_list(&Digest::of(path.as_bytes())), "{path}");
    }
    let known = crate::stat_cache::load(&golden().join("files"));
    let holes = |pieces: &Vec<Piece>| {
        pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Hole { .. }))
    };
    assert!(known.iter().any(|known| holes(&known.pieces)));
    let manifest = &roots(&store)[0].manifest;
    for entry in manifest.entries.iter().filter(|entry| entry.size() > 0) {
        let Kind::File(pieces) = &entry.kind else {
            continue;
        };
        assert!(
            entry.chunks().all(|(digest, _)| index.has(digest)),
            "{:?}",
            entry.path
        );
        let of_file = known
            .iter()
            .find(|known| known.path == entry.path)
            .expect("known");
        assert_eq!(
            (&of_file.pieces, of_file.stamp.size),
            (pieces, entry.size())
        );
    }
    let here = tempfile::tempdir().expect("a folder");
    crate::stat_cache::save(&here.path().join("files"), &known).expect("saved");
    let again = fs::read(here.path().join("files")).expect("read");
    assert_eq!(again, fs::read(golden().join("files")).expect("read"));
}

#[test]
fn the_mark_of_a_folder_is_still_read() {
    let here = tempfile::tempdir().expect("a folder");
    let place = Digest::of(b"/backups/work").short();
    let text =
        "1763189280123 0101010101010101010101010101010101010101010101010101010101010101 part";
    let file = here.path().join(format!(".towline-backups-{place}"));
    fs::write(file, format!("{text:<127}\n")).expect("written");
    let mark = Marked::new(here.path(), "/backups/work")
        .read()
        .expect("a mark");
    assert_eq!(
        mark,
        Mark {
            at: NOW_MILLIS,
            id: Digest([1; 32]),
            in_part: true
        }
    );
}

const NOW_MILLIS: i64 = 1_763_189_280_123;

fn make_tree(tree: &Path) {
    fs::create_dir_all(tree.join("folder/empty")).expect("made");
    let text = (0..200).fold(String::new(), |text, number| {
        text + &format!("line {number}\n")
    });
    for (name, bytes) in [
        ("plain.txt", "hello\n"),
        ("empty", ""),
        ("folder/text", &text),
    ] {
        fs::write(tree.join(name), bytes).expect("written");
    }
    fs::write(tree.join("run.sh"), "#!/bin/sh\n").expect("written");
    let odd = std::ffi::OsString::from_vec(b"not-\xff \"utf8\"\n".to_vec());
    fs::write(tree.join(odd), "odd").expect("written");
    let sparse = File::create(tree.join("sparse")).expect("made");
    sparse.set_len(4 << 20).expect("long");
    sparse.write_all_at(b"island", 2 << 20).expect("written");
    symlink("../plain.txt", tree.join("folder/link")).expect("linked");
    for (name, mode) in [
        ("run.sh", 0o755),
        ("plain.txt", 0o400),
        ("empty", 0o644),
        ("sparse", 0o600),
    ] {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    settle(tree);
}

/// Sets modes that a umask would change, and times.
fn settle(folder: &Path) {
    for entry in fs::read_dir(folder).expect("read").flatten() {
        let (path, meta) = (entry.path(), entry.metadata().expect("there"));
        if meta.is_dir() {
            settle(&path);
        }
        if meta.is_symlink() {
            continue;
        }
        if meta.is_dir() || meta.mode() & 0o077 == 0o044 {
            let mode = if meta.is_dir() { 0o750 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        }
        let then = UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
        File::open(&path)
            .expect("open")
            .set_modified(then)
            .expect("set");
    }
}

fn options(at: &Path) -> Options {
    Options {
        limits: Limits::none(),
        compression: Compression::QUICK,
        name: "tree".into(),
        now: NOW_MILLIS * 1_000_000,
        stat_cache: at.join("files"),
        index: at.join("index"),
    }
}

fn take_tree(at: &Path, store: &FolderStore) -> Digest {
    let tree = at.join("tree");
    let rules = Rules::new(&tree, &[], []).expect("rules");
    take(&tree, &rules, store, &options(at), &Progress::default())
        .expect("taken")
        .id
}

#[test]
#[ignore = "writes the store, if it is missing"]
fn write_a_store() {
    let here = golden();
    assert!(!here.exists(), "samples are never made again");
    let work = tempfile::tempdir().expect("a folder");
    let (at, store) = (work.path(), FolderStore::new(work.path().join("store")));
    make_tree(&at.join("tree"));
    fs::write(at.join("tree/gone"), "given up\n").expect("written");
    let gone = take_tree(at, &store);
    fs::remove_file(at.join("tree/gone")).expect("removed");
    let keep = |blob: &Blob, _: Option<i64>| *blob != Blob::Root(gone);
    // Long after, so that the packs of now may be listed for deletion.
    let policy = Policy {
        keep: &keep,
        grace: Some(1),
        now: 4_000_000_000_000,
    };
    let plan = plan(&store, &policy).expect("planned");
    carry_out(&store, &plan, &policy).expect("carried out");
    take_tree(at, &store);
    fs::hard_link(at.join("tree/plain.txt"), at.join("tree/same")).expect("linked");
    fs::set_permissions(at.join("tree/folder"), fs::Permissions::from_mode(0o2750)).expect("set");
    let rules = Rules::of_workspace(&at.join("tree"), &[]).expect("rules");
    let place = Place {
        host: "node-a".into(),
        folder: "/scratch/alice/work".into(),
        ..Place::default()
    };
    let own = Options {
        stat_cache: at.join("own"),
        ..options(at)
    };
    back_up(
        &at.join("tree"),
        &rules,
        &store,
        &own,
        &place,
        &Progress::default(),
    )
    .expect("done");
    copy(&at.join("store"), &here.join("store"));
    for name in ["index", "files"] {
        fs::copy(at.join(name), here.join(name)).expect("copied");
    }
    for (root, name) in roots(&store).iter().zip(["code.txt", "workspace.txt"]) {
        fs::write(here.join(name), laid_out(&store, root, at)).expect("written");
    }
}
