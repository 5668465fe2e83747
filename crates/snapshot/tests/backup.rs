//! Backups of a workspace are exact, and whole or not there. The last good one stays.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::{Bench, describe, noise};
use towline_snapshot::backup::{BackedUp, Place, back_up, list};
use towline_snapshot::check::check;
use towline_snapshot::layout::lay_out;
use towline_snapshot::problem::{Problem, Result};
use towline_snapshot::progress::Progress;
use towline_snapshot::prune::{Policy, carry_out, plan};
use towline_snapshot::root::read;
use towline_snapshot::rules::Rules;
use towline_snapshot::store::{Blob, BlobKind, BlobStore, FolderStore, Stored};

fn back_up_to(bench: &Bench, store: &dyn BlobStore, ignore: &[String]) -> Result<BackedUp> {
    let rules = Rules::of_workspace(&bench.tree(), ignore).expect("rules");
    let place = Place {
        host: "node".into(),
        folder: bench.tree().display().to_string(),
        ..Place::default()
    };
    back_up(
        &bench.tree(),
        &rules,
        store,
        &bench.options(),
        &place,
        &Progress::default(),
    )
}

fn backed_up(bench: &Bench) -> BackedUp {
    back_up_to(bench, &bench.store, &[]).expect("backed up")
}

fn restore(bench: &Bench, blob: &Blob, name: &str) -> Result<PathBuf> {
    let target = bench.folder.path().join(name);
    let root = read(&bench.store, blob)?;
    lay_out(
        &root,
        &bench.store,
        &target,
        &Progress::default(),
        &AtomicBool::new(false),
    )?;
    Ok(target)
}

fn own(path: &Path) -> (u32, i64) {
    let meta = fs::metadata(path).expect("there");
    (
        meta.permissions().mode(),
        meta.mtime() * 1_000_000_000 + meta.mtime_nsec(),
    )
}

#[test]
fn everything_is_there_that_a_code_snapshot_leaves_out() {
    let bench = Bench::new();
    for path in [
        ".git/HEAD",
        "node_modules/x/index.js",
        "__pycache__/a.pyc",
        ".venv/bin/python",
        "assets/query/1",
        "data/a",
        ".gitignore",
    ] {
        bench.write(path, path);
    }
    bench.write(".gitignore", "data\n");
    bench.write(".towignore", "*\n");
    symlink("../../elsewhere", bench.tree().join("out")).expect("linked");
    symlink("/etc/passwd", bench.tree().join("absolute")).expect("linked");
    symlink("nowhere", bench.tree().join("dangling")).expect("linked");
    fs::create_dir_all(bench.tree().join("empty/deep")).expect("made");
    let made = backed_up(&bench);
    assert!(!made.was_there && made.left_out.is_empty(), "{made:?}");
    let target = restore(&bench, &made.blob, "out").expect("restored");
    assert_eq!(describe(&bench.tree()), describe(&target));
    assert_eq!(own(&bench.tree()), own(&target));
}

#[test]
fn modes_times_sparse_files_and_names_of_one_file_come_back() {
    let bench = Bench::new();
    bench.write("dir/a", noise(1, 3_000_000));
    bench.write("small", "x");
    fs::hard_link(bench.tree().join("dir/a"), bench.tree().join("dir/b")).expect("linked");
    fs::hard_link(bench.tree().join("dir/a"), bench.tree().join("z")).expect("linked");
    let sparse = fs::File::create(bench.tree().join("sparse")).expect("made");
    sparse.set_len(64 << 20).expect("long");
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"in the middle", 30 << 20).expect("written");
    fs::set_permissions(bench.tree().join("dir"), fs::Permissions::from_mode(0o2750)).expect("set");
    fs::set_permissions(
        bench.tree().join("small"),
        fs::Permissions::from_mode(0o400),
    )
    .expect("set");
    fs::set_permissions(bench.tree(), fs::Permissions::from_mode(0o711)).expect("set");
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(bench.tree().join("small"))
        .expect("open")
        .set_modified(old)
        .expect("set");
    let made = backed_up(&bench);
    let target = restore(&bench, &made.blob, "out").expect("restored");
    assert_eq!(describe(&bench.tree()), describe(&target));
    assert_eq!(own(&bench.tree()), own(&target));
    let inode = |name: &str| fs::metadata(target.join(name)).expect("there").ino();
    assert_eq!(
        (inode("dir/a"), inode("dir/a")),
        (inode("dir/b"), inode("z"))
    );
    assert!(
        fs::metadata(target.join("sparse")).expect("there").blocks() < 8192,
        "the holes came back as zeros"
    );
    // If only the second name is wanted, it becomes a file by itself.
    let part = read(&bench.store, &made.blob)
        .expect("read")
        .only(|entry| &*entry.path == b"dir/b");
    let only = bench.folder.path().join("only");
    lay_out(
        &part,
        &bench.store,
        &only,
        &Progress::default(),
        &AtomicBool::new(false),
    )
    .expect("restored");
    assert_eq!(
        fs::read(only.join("dir/b")).expect("read"),
        fs::read(bench.tree().join("z")).expect("read")
    );
}

#[test]
fn an_unchanged_tree_is_not_backed_up_twice_and_a_new_time_is_a_change() {
    let bench = Bench::new();
    bench.write("a", noise(1, 5000));
    let first = backed_up(&bench);
    let again = backed_up(&bench);
    assert!(again.was_there && again.blob == first.blob, "{again:?}");
    fs::File::open(bench.tree().join("a"))
        .expect("open")
        .set_modified(std::time::UNIX_EPOCH)
        .expect("set");
    let touched = backed_up(&bench);
    assert!(
        !touched.was_there && touched.summary.stored == 0,
        "{touched:?}"
    );
    assert_eq!(
        list(&bench.store)
            .expect("listed")
            .iter()
            .map(|listed| listed.blob)
            .collect::<Vec<_>>(),
        [first.blob, touched.blob]
    );
    let summary = list(&bench.store)
        .expect("listed")
        .pop()
        .and_then(|listed| listed.summary)
        .expect("a summary");
    assert_eq!(
        (
            summary.name.as_str(),
            summary.host.as_str(),
            summary.files,
            summary.bytes
        ),
        ("tree", "node", 1, 5000)
    );
}

#[test]
fn a_state_that_comes_back_is_the_newest_backup() {
    let bench = Bench::new();
    bench.write("a", "one");
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let settle = || {
        fs::File::open(bench.tree().join("a"))
            .expect("open")
            .set_modified(old)
            .expect("set");
        fs::File::open(bench.tree())
            .expect("open")
            .set_modified(old)
            .expect("set");
    };
    settle();
    let first = backed_up(&bench);
    bench.write("a", "two");
    settle();
    let second = backed_up(&bench);
    bench.write("a", "one");
    settle();
    let third = backed_up(&bench);
    assert_eq!(third.blob.digest(), first.blob.digest());
    assert!(!third.was_there && third.blob > second.blob, "{third:?}");
}

#[test]
fn an_empty_or_vanished_workspace_is_refused() {
    let bench = Bench::new();
    bench.write("a/b", "x");
    let first = backed_up(&bench);
    fs::remove_file(bench.tree().join("a/b")).expect("removed");
    assert!(matches!(
        back_up_to(&bench, &bench.store, &[]),
        Err(Problem::Empty(_))
    ));
    fs::remove_dir_all(bench.tree()).expect("removed");
    assert!(back_up_to(&bench, &bench.store, &[]).is_err());
    fs::write(bench.tree(), "a file").expect("written");
    assert!(back_up_to(&bench, &bench.store, &[]).is_err());
    assert_eq!(list(&bench.store).expect("listed").len(), 1);
    restore(&bench, &first.blob, "out").expect("the last good one restores");
}

#[test]
fn ignored_and_special_entries_are_left_out_and_listed() {
    let bench = Bench::new();
    bench.write("keep", "x");
    bench.write("build/a.o", "x");
    let _socket =
        std::os::unix::net::UnixListener::bind(bench.tree().join("socket")).expect("bound");
    let made = back_up_to(&bench, &bench.store, &["build/".to_owned()]).expect("backed up");
    let mut left: Vec<String> = made
        .left_out
        .iter()
        .map(|left| String::from_utf8_lossy(&left.path).into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["build", "socket"]);
    assert_eq!(made.summary.files, 1);
}

#[test]
fn any_flipped_bit_is_found_and_the_files_it_touches_are_named() {
    let bench = Bench::new();
    bench.write("a", noise(1, 300));
    bench.write("b", noise(2, 300));
    fs::hard_link(bench.tree().join("a"), bench.tree().join("c")).expect("linked");
    let made = backed_up(&bench);
    let path = bench.store.root().join(made.blob.path());
    let good = fs::read(&path).expect("read");
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::remove_file(&path).expect("removed");
        fs::write(&path, &bad).expect("written");
        let checked = check(&bench.store, None, &Progress::default()).expect("checks");
        assert!(
            checked
                .damage
                .iter()
                .any(|damage| damage.touches.iter().any(|(blob, _)| *blob == made.blob)),
            "bit {bit}: {checked:?}"
        );
        assert!(restore(&bench, &made.blob, "out").is_err(), "bit {bit}");
    }
    fs::remove_file(&path).expect("removed");
    fs::write(&path, good).expect("put back");
    let pack = bench.store.root().join(
        bench.store.list(BlobKind::Pack).expect("listed")[0]
            .blob
            .path(),
    );
    let mut bad = fs::read(&pack).expect("read");
    bad[10] ^= 1;
    fs::remove_file(&pack).expect("removed");
    fs::write(&pack, bad).expect("written");
    let checked = check(
        &FolderStore::new(bench.store.root()),
        None,
        &Progress::default(),
    )
    .expect("checks");
    assert_eq!(checked.damage[0].touches[0].1, ["a", "b", "c"]);
}

#[test]
fn pruning_drops_what_is_not_kept_and_leaves_the_rest_whole() {
    let bench = Bench::new();
    let mut made = Vec::new();
    for number in 0..4 {
        bench.write("a", noise(number, 4000));
        bench.write(&format!("only-{number}"), noise(100 + number, 4000));
        made.push(backed_up(&bench).blob);
    }
    let keep = |blob: &Blob, _: Option<i64>| *blob == made[0] || *blob == made[3];
    let policy = Policy {
        keep: &keep,
        grace: None,
        now: 1,
    };
    let planned = plan(&bench.store, &policy).expect("planned");
    carry_out(&bench.store, &planned, &policy).expect("carried out");
    assert_eq!(
        list(&bench.store)
            .expect("listed")
            .iter()
            .map(|listed| listed.blob)
            .collect::<Vec<_>>(),
        [made[0], made[3]]
    );
    assert!(
        check(&bench.store, None, &Progress::default())
            .expect("checks")
            .damage
            .is_empty()
    );
    let target = restore(&bench, &made[3], "out").expect("restored");
    assert_eq!(describe(&bench.tree()), describe(&target));
}

/// A store that fails at its `n`-th write.
struct Failing<'a>(&'a FolderStore, AtomicUsize);

impl BlobStore for Failing<'_> {
    fn place(&self) -> String {
        self.0.place()
    }
    fn has(&self, blob: &Blob) -> Result<bool> {
        self.0.has(blob)
    }
    fn put(&self, blob: &Blob, bytes: &[u8]) -> Result<()> {
        let full = || {
            Problem::file(
                self.0.root(),
                "written",
                std::io::Error::from(std::io::ErrorKind::StorageFull),
            )
        };
        self.1
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .map_err(|_| full())?;
        self.0.put(blob, bytes)
    }
    fn get(&self, blob: &Blob) -> Result<Option<Vec<u8>>> {
        self.0.get(blob)
    }
    fn get_range(&self, blob: &Blob, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.0.get_range(blob, offset, length)
    }
    fn list(&self, kind: BlobKind) -> Result<Vec<Stored>> {
        self.0.list(kind)
    }
    fn delete(&self, blobs: &[Blob]) -> Result<()> {
        self.0.delete(blobs)
    }
}

#[test]
fn a_full_store_leaves_the_last_good_one_and_the_next_goes_on() {
    let bench = Bench::new();
    bench.write("a", noise(1, 30_000_000));
    let first = backed_up(&bench);
    let before = describe(&bench.tree());
    bench.write("b", noise(2, 30_000_000));
    let mut failures = 0;
    for puts in 0.. {
        let outcome = back_up_to(&bench, &Failing(&bench.store, AtomicUsize::new(puts)), &[]);
        let listed: Vec<Blob> = list(&bench.store)
            .expect("listed")
            .iter()
            .map(|listed| listed.blob)
            .collect();
        if let Ok(made) = outcome {
            assert_eq!(listed, [first.blob, made.blob]);
            let target = restore(&bench, &made.blob, "new").expect("restored");
            assert_eq!(describe(&bench.tree()), describe(&target));
            break;
        }
        failures += 1;
        assert_eq!(listed, [first.blob]);
    }
    assert!(failures >= 2, "{failures}");
    let target = restore(&bench, &first.blob, "old").expect("restored");
    assert_eq!(before, describe(&target));
    assert!(
        check(&bench.store, None, &Progress::default())
            .expect("checks")
            .damage
            .is_empty()
    );
}
