//! If the file system can share blocks, a large file of a layout takes no room of its own. The
//! writes of a run change only its own file.
#![allow(clippy::disallowed_methods)]

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{lay, noise};
use towline_snapshot::progress::Progress;
use towline_snapshot::rules::Rules;
use towline_snapshot::store::FolderStore;
use towline_snapshot::take::{Options, take};
use towline_snapshot::walk::Limits;

/// A small btrfs in a file; it is unmounted at the end.
struct Shared {
    _folder: tempfile::TempDir,
    point: PathBuf,
}

impl Shared {
    /// `None` if this user may not mount one.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let (image, point) = (folder.path().join("image"), folder.path().join("point"));
        fs::File::create(&image)
            .and_then(|file| file.set_len(400 << 20))
            .expect("made");
        fs::create_dir(&point).expect("made");
        let good =
            |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let mounted = good(Command::new("mkfs.btrfs").arg("-q").arg(&image))
            && good(
                Command::new("mount")
                    .args(["-o", "loop"])
                    .arg(&image)
                    .arg(&point),
            );
        mounted.then_some(Self {
            _folder: folder,
            point,
        })
    }
    fn used(&self) -> u64 {
        let _ = Command::new("sync").arg("-f").arg(&self.point).status();
        let stat = rustix::fs::statvfs(&self.point).expect("there");
        (stat.f_blocks - stat.f_bfree) * stat.f_frsize
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.point).status();
    }
}

fn options(point: &Path) -> Options {
    Options {
        limits: Limits::none(),
        compression: towline_snapshot::pack::Compression::QUICK,
        name: "tree".into(),
        now: towline_host::clock::nanoseconds(),
        stat_cache: point.join("stat"),
        index: point.join("store/index"),
    }
}

#[test]
fn large_files_share_their_blocks_until_they_are_written() {
    let Some(shared) = Shared::new() else {
        let _ = writeln!(
            std::io::stderr(),
            "not run: clones of large files: no btrfs can be mounted here"
        );
        return;
    };
    let tree = shared.point.join("tree");
    fs::create_dir(&tree).expect("made");
    let large = noise(1, 40 << 20);
    fs::write(tree.join("large"), &large).expect("written");
    fs::write(tree.join("small"), "small").expect("written");
    let store = FolderStore::new(shared.point.join("store"));
    let rules = Rules::new(&tree, &[], []).expect("rules");
    let taken = take(
        &tree,
        &rules,
        &store,
        &options(&shared.point),
        &Progress::default(),
    )
    .expect("taken");
    let first = lay(&store, &taken.id, &shared.point.join("one")).expect("laid out");
    let before = shared.used();
    let second = lay(&store, &taken.id, &shared.point.join("two")).expect("laid out");
    let grown = shared.used() - before;
    assert!(grown < 8 << 20, "the second layout took {grown} bytes");
    // A job writes through its own file only.
    let file = fs::File::options()
        .write(true)
        .open(first.join("large"))
        .expect("open");
    file.write_all_at(b"changed", 1000).expect("written");
    drop(file);
    assert!(fs::read(second.join("large")).expect("read") == large);
    let third = lay(&store, &taken.id, &shared.point.join("three")).expect("laid out");
    assert!(fs::read(third.join("large")).expect("read") == large);
    // A damaged file is not used, and is made anew.
    let kept = fs::read_dir(shared.point.join("store/whole"))
        .expect("there")
        .flatten()
        .next()
        .expect("one")
        .path();
    let mut permissions = fs::metadata(&kept).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    fs::set_permissions(&kept, permissions).expect("set");
    fs::File::options()
        .write(true)
        .open(&kept)
        .expect("open")
        .write_all_at(b"!", 5_000_000)
        .expect("written");
    let fourth = lay(&store, &taken.id, &shared.point.join("four")).expect("laid out");
    assert!(fs::read(fourth.join("large")).expect("read") == large);
    assert!(fs::read(&kept).expect("kept anew") == large);
}
