//! A flipped bit anywhere is found, by a layout and by a check.

mod support;

use std::fs;
use std::path::PathBuf;
use support::{Bench, lay, noise};
use towline_snapshot::check::check;
use towline_snapshot::progress::Progress;
use towline_snapshot::store::{Blob, FolderStore};

fn stored(bench: &Bench) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![
        bench.folder.path().join("store/packs"),
        bench.folder.path().join("store/snapshots"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("read") {
            let path = entry.expect("read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_flipped_bit_is_found() {
    let bench = Bench::new();
    bench.write("text", "hello hello hello hello\n".repeat(9));
    bench.write("noise", noise(1, 300));
    bench.write("folder/empty", "");
    bench.link("link", "text");
    let taken = bench.take();
    let mut flips = 0;
    for path in stored(&bench) {
        let good = fs::read(&path).expect("read");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::remove_file(&path).expect("removed");
            fs::write(&path, &bad).expect("written");
            // A fresh store: nothing of the good file is held open.
            let store = FolderStore::new(bench.store.root());
            let target = bench.folder.path().join("out");
            assert!(
                lay(&store, &taken.id, &target).is_err(),
                "bit {bit} of {} was not found at layout",
                path.display()
            );
            assert!(!target.exists(), "something was left after damage");
            let checked = check(&store, None, &Progress::default()).expect("checks");
            assert!(
                !checked.damage.is_empty(),
                "bit {bit} of {} was not found by check",
                path.display()
            );
            assert!(checked.damage.iter().any(|damage| {
                damage
                    .touches
                    .iter()
                    .any(|(root, _)| root.digest() == taken.id)
            }));
            flips += 1;
        }
        fs::remove_file(&path).expect("removed");
        fs::write(&path, good).expect("put back");
    }
    assert!(flips > 4000, "{flips}");
    bench.round_trip(&taken.id, "good");
    assert!(
        check(&bench.store, None, &Progress::default())
            .expect("checks")
            .damage
            .is_empty()
    );
}

#[test]
fn a_missing_or_cut_pack_is_found_and_named_with_its_files() {
    let bench = Bench::new();
    bench.write("a", noise(1, 4000));
    let first = bench.take();
    bench.write("b", noise(2, 4000));
    let second = bench.take();
    let packs: Vec<PathBuf> = stored(&bench)
        .into_iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "packs"))
        .collect();
    assert_eq!(packs.len(), 2);
    for path in &packs {
        let good = fs::read(path).expect("read");
        fs::remove_file(path).expect("removed");
        let store = FolderStore::new(bench.store.root());
        let checked = check(&store, None, &Progress::default()).expect("checks");
        let touched: Vec<_> = checked
            .damage
            .iter()
            .flat_map(|damage| damage.touches.clone())
            .collect();
        // The first snapshot needs one of them, the second both.
        assert!(
            touched
                .iter()
                .any(|(root, files)| root.digest() == second.id && files.len() == 1),
            "{touched:?}"
        );
        assert!(lay(&store, &second.id, &bench.folder.path().join("out")).is_err());
        fs::write(path, &good[..good.len() - 1]).expect("written");
        assert!(
            !check(&store, Some(&[Blob::Root(second.id)]), &Progress::default())
                .expect("checks")
                .damage
                .is_empty()
        );
        fs::remove_file(path).expect("removed");
        fs::write(path, good).expect("put back");
    }
    bench.lay(&first.id, "first").expect("still whole");
    bench.round_trip(&second.id, "second");
}
