//! Every byte, mode, time, link and unusual name comes back.

mod support;

use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Barrier;
use support::{Bench, describe, noise, os_name};
use towline_snapshot::read::read_part;
use towline_snapshot::root::read_root;
use towline_snapshot::shed::{absent, shed};

#[test]
fn odd_trees_come_back_exactly() {
    let bench = Bench::new();
    bench.write("plain.txt", "hello\n");
    bench.write("empty", "");
    bench.write("deep/er/and/deeper/still", "x");
    bench.write("large.bin", noise(1, 9_000_000));
    bench.write("zeros", vec![0; 3_000_000]);
    bench.write("same-1", noise(2, 5000));
    bench.write("same-2", noise(2, 5000));
    bench.write("with space/and \"quotes\"\n and newline", "odd");
    bench.write(".hidden/.dot", "dot");
    fs::write(bench.tree().join(os_name(b"not-\xff\xfe-utf8")), "bytes").expect("written");
    fs::create_dir(bench.tree().join("hollow")).expect("made");
    bench.link("link", "plain.txt");
    bench.link("dangling", "/nowhere/at all");
    bench.link("deep/er/up", "../..");
    bench.link("folder-link", "deep");
    bench.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(
        bench.tree().join("run.sh"),
        fs::Permissions::from_mode(0o755),
    )
    .expect("set");
    fs::set_permissions(
        bench.tree().join("plain.txt"),
        fs::Permissions::from_mode(0o400),
    )
    .expect("set");
    bench.write("locked/inside", "x");
    fs::set_permissions(
        bench.tree().join("locked"),
        fs::Permissions::from_mode(0o555),
    )
    .expect("set");
    let taken = bench.take();
    assert_eq!((taken.files, taken.was_there), (12, false));
    bench.round_trip(&taken.id, "out");
}

#[test]
fn sparse_files_stay_sparse_and_are_not_read_through() {
    let bench = Bench::new();
    let path = bench.tree().join("sparse");
    let file = fs::File::create(&path).expect("made");
    file.set_len(20 << 30).expect("long");
    std::os::unix::fs::FileExt::write_all_at(&file, b"island", 7 << 30).expect("written");
    drop(file);
    let taken = bench.take();
    assert!(taken.stored < 100_000, "{} bytes stored", taken.stored);
    let out = bench
        .lay(&taken.id, "out")
        .expect("laid out")
        .join("sparse");
    let meta = fs::metadata(&out).expect("there");
    assert_eq!(meta.len(), 20 << 30);
    assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    let mut island = [0; 6];
    std::os::unix::fs::FileExt::read_exact_at(
        &fs::File::open(out).expect("open"),
        &mut island,
        7 << 30,
    )
    .expect("read");
    assert_eq!(&island, b"island");
}

#[test]
fn an_unchanged_tree_is_not_read_and_a_changed_file_only_itself() {
    let bench = Bench::new();
    for number in 0..50 {
        bench.write(&format!("f{number}"), noise(number, 3000));
    }
    let later = |options: &mut towline_snapshot::take::Options| options.now += 10_000_000_000;
    let mut options = bench.options();
    later(&mut options);
    let first = bench.take_with(&options).expect("taken");
    assert_eq!(first.read, 50);
    let second = bench.take_with(&options).expect("taken");
    assert_eq!(
        (second.read, second.stored, second.was_there, second.id),
        (0, 0, true, first.id)
    );
    bench.write("f7", noise(99, 3000));
    let third = bench.take_with(&options).expect("taken");
    assert_eq!(third.read, 1);
    assert_ne!(third.id, first.id);
    assert!(third.stored < 3000 + 4000, "{}", third.stored);
    bench.round_trip(&third.id, "out");
}

#[test]
fn a_file_changed_at_once_after_it_was_read_is_read_again() {
    let bench = Bench::new();
    bench.write("f", "one");
    let first = bench.take();
    // Size and modification time are unchanged; only the inode's change time shows it.
    let path = bench.tree().join("f");
    let before = fs::metadata(&path)
        .expect("there")
        .modified()
        .expect("a time");
    fs::write(&path, "two").expect("written");
    fs::File::options()
        .write(true)
        .open(&path)
        .expect("open")
        .set_modified(before)
        .expect("set");
    let second = bench.take();
    assert_ne!(first.id, second.id);
    bench.round_trip(&second.id, "out");
}

#[test]
fn the_same_tree_has_the_same_id_wherever_and_whenever() {
    let (one, two) = (Bench::new(), Bench::new());
    for bench in [&one, &two] {
        bench.write("a/b", "x");
        bench.write("c", noise(3, 2_500_000));
    }
    fs::File::options()
        .write(true)
        .open(two.tree().join("c"))
        .expect("open")
        .set_modified(std::time::UNIX_EPOCH)
        .expect("set");
    assert_eq!(one.take().id, two.take().id);
    fs::set_permissions(two.tree().join("c"), fs::Permissions::from_mode(0o755)).expect("set");
    assert_ne!(one.take().id, two.take().id);
}

#[test]
fn a_change_in_the_middle_of_a_large_file_stores_little() {
    let bench = Bench::new();
    let mut bytes = noise(5, 30_000_000);
    bench.write("large", &bytes);
    bench.take();
    bytes.splice(15_000_000..15_000_000, b"inserted".iter().copied());
    bench.write("large", &bytes);
    let taken = bench.take();
    assert!(taken.stored < 9_000_000, "{} stored", taken.stored);
    bench.round_trip(&taken.id, "out");
}

#[test]
fn many_take_and_lay_out_at_once() {
    let bench = Bench::new();
    for number in 0..300u16 {
        bench.write(
            &format!("d{}/f{number}", number % 7),
            noise(number.into(), 2000 + usize::from(number) * 37),
        );
    }
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (bench, barrier) = (&bench, &barrier);
            scope.spawn(move || {
                let mut options = bench.options();
                options.stat_cache = bench.folder.path().join(format!("stat-{number}"));
                barrier.wait();
                let taken = bench.take_with(&options).expect("taken");
                bench.round_trip(&taken.id, &format!("out-{number}"));
            });
        }
    });
}

/// A path of one to three parts from a small alphabet, so that trees clash and nest.
#[test]
fn a_shed_tree_has_only_what_the_run_wrote() {
    let bench = Bench::new();
    for (path, text) in [
        ("a.py", "a"),
        ("deep/b.py", "b"),
        ("changed", "1"),
        ("set back", "same"),
        ("removed", "x"),
        ("moved/precious", "p"),
        ("run.sh", "r"),
    ] {
        bench.write(path, text);
    }
    bench.write("large", noise(3, 9_000_000));
    bench.link("link", "a.py");
    let taken = bench.take();
    let root = read_root(&bench.store, &taken.id).expect("there");
    let tree = bench.lay(&taken.id, "out").expect("laid out");
    fs::write(tree.join("changed"), "2").expect("written");
    let back = fs::metadata(tree.join("set back"))
        .and_then(|meta| meta.modified())
        .expect("its time");
    fs::write(tree.join("set back"), "SAME").expect("written");
    fs::File::open(tree.join("set back"))
        .and_then(|file| file.set_modified(back))
        .expect("set back");
    fs::remove_file(tree.join("removed")).expect("removed");
    fs::rename(tree.join("moved"), bench.folder.path().join("elsewhere")).expect("moved");
    std::os::unix::fs::symlink(bench.folder.path().join("elsewhere"), tree.join("moved"))
        .expect("linked");
    fs::write(tree.join("deep/new"), "n").expect("written");
    fs::set_permissions(tree.join("run.sh"), fs::Permissions::from_mode(0o700)).expect("its mode");

    let gone: Vec<String> = absent(&root, &tree)
        .iter()
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    assert_eq!(gone, ["moved/precious", "removed"]);
    assert!(
        !shed(&root, &tree, &|| true).expect("stopped"),
        "it was told to stop"
    );
    assert!(tree.join("a.py").exists());
    for _ in 0..2 {
        assert!(shed(&root, &tree, &|| false).expect("shed"));
        let left: Vec<String> = describe(&tree)
            .into_keys()
            .map(|path| String::from_utf8_lossy(&path).into_owned())
            .collect();
        assert_eq!(
            left,
            ["changed", "deep", "deep/new", "moved", "run.sh", "set back"]
        );
    }
    assert_eq!(
        fs::read(bench.folder.path().join("elsewhere/precious")).expect("there"),
        b"p",
        "nothing is removed behind a link"
    );
}

#[test]
fn any_part_of_a_file_is_read_without_the_rest() {
    let bench = Bench::new();
    let bytes = noise(4, 5_000_000);
    bench.write("large", &bytes);
    bench.write("small", "0123456789");
    let taken = bench.take();
    let root = read_root(&bench.store, &taken.id).expect("there");
    let entry = |path: &[u8]| {
        root.manifest
            .entries
            .iter()
            .find(|entry| &*entry.path == path)
            .expect("there")
    };
    let part = |path: &[u8], offset: u64, most: u64| {
        read_part(&root, &bench.store, entry(path), offset, most)
            .expect("read")
            .expect("a file")
    };
    for (offset, most) in [
        (0u64, 10u64),
        (0, 5_000_000),
        (1, 4_999_999),
        (1_234_567, 2_000_000),
        (4_999_990, 100),
        (5_000_000, 10),
        (9_000_000, 1),
    ] {
        let from = usize::try_from(offset).expect("small").min(bytes.len());
        let to = usize::try_from(offset + most)
            .expect("small")
            .min(bytes.len());
        assert!(
            part(b"large", offset, most) == bytes[from..to],
            "{offset} {most}"
        );
    }
    assert_eq!(part(b"small", 3, 4), b"3456");
}

fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::sample::select(vec![
            b"a".to_vec(),
            b"b".to_vec(),
            b"A".to_vec(),
            b"a b".to_vec(),
            b"-x".to_vec(),
            b"~".to_vec()
        ]),
        proptest::collection::vec(
            any::<u8>().prop_filter("a name", |byte| *byte != 0 && *byte != b'/'),
            1..12
        )
        .prop_filter("a name", |name| name != b"."
            && name != b".."
            && name != b".git"),
    ]
}

#[derive(Debug, Clone)]
enum Made {
    File(Vec<u8>, u32),
    Link(Vec<u8>),
    Folder,
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![
        4 => (proptest::collection::vec(any::<u8>(), 0..2000), proptest::sample::select(vec![0o644, 0o755, 0o400, 0o600, 0o666])).prop_map(|(bytes, mode)| Made::File(bytes, mode)),
        1 => part().prop_map(Made::Link),
        1 => Just(Made::Folder),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_comes_back_exactly(entries in proptest::collection::vec((proptest::collection::vec(part(), 1..4), made()), 0..25)) {
        let bench = Bench::new();
        for (parts, made) in entries {
            let path = parts.iter().fold(bench.tree(), |path, part| path.join(os_name(part)));
            let folder = path.parent().expect("a parent");
            // A path that clashes with an earlier entry is skipped.
            if fs::create_dir_all(folder).is_err() || !folder.canonicalize().is_ok_and(|folder| folder.starts_with(bench.tree().canonicalize().expect("there"))) {
                continue;
            }
            match made {
                Made::File(bytes, mode) => {
                    if !path.exists() && fs::symlink_metadata(&path).is_err() && fs::write(&path, bytes).is_ok() {
                        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
                    }
                }
                Made::Link(target) => drop(std::os::unix::fs::symlink(os_name(&target), &path)),
                Made::Folder => drop(fs::create_dir(&path)),
            }
        }
        // Ignore files would leave entries out, which other tests cover.
        let rules_free = describe(&bench.tree()).keys().all(|path| !path.ends_with(b".gitignore"));
        prop_assume!(rules_free);
        let taken = bench.take();
        let kept: Vec<_> = taken.left_out.iter().map(|left| left.path.clone()).collect();
        prop_assume!(kept.is_empty());
        bench.round_trip(&taken.id, "out");
    }
}
