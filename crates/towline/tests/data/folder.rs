//! Up and down against a folder datastore.

use super::{home, modified, noise, only, tree, write};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use towline_testkit::disk::Disk;

#[test]
fn a_tree_goes_up_and_comes_down_as_it_was() {
    let (home, there) = home();
    for (name, bytes) in [
        ("data/a.txt", b"a".to_vec()),
        ("data/deep/er/b", vec![]),
        ("data/deep/c d%#?+ü", noise(70_000, 1)),
        ("data/big", noise(9 << 20, 2)),
    ] {
        write(&home, name, &bytes);
    }
    let up = home.tow(["up", "data", "--json"]).ok().json();
    assert_eq!(
        (&only(&up)["sent"], &only(&up)["equal_by_time"]),
        (&4.into(), &0.into())
    );
    assert_eq!(tree(&home.project().join("data")), tree(&there));
    assert_eq!(
        modified(&home.project().join("data/big")),
        modified(&there.join("big"))
    );
    let again = home.tow(["up", "data", "--json"]).ok().json();
    assert_eq!(
        (&only(&again)["sent"], &only(&again)["equal_by_time"]),
        (&0.into(), &4.into())
    );

    fs::rename(home.project().join("data"), home.project().join("before")).unwrap();
    home.tow(["down", "data"]).ok();
    assert_eq!(
        tree(&home.project().join("before")),
        tree(&home.project().join("data"))
    );
    assert_eq!(
        modified(&home.project().join("before/a.txt")),
        modified(&home.project().join("data/a.txt"))
    );
    assert_eq!(
        fs::metadata(home.project().join("data/big"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o644
    );
    let down = home.tow(["down", "data", "--json"]).ok().json();
    assert_eq!(only(&down)["sent"], 0);
}

#[test]
fn what_differs_is_replaced_and_nothing_else_is_touched() {
    let (home, there) = home();
    let file = write(&home, "data/x", b"one");
    write(&home, "data/y", b"same");
    home.tow(["up", "data"]).ok();
    fs::write(there.join("extra"), "stays").unwrap();
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "two").unwrap();
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(
        only(&home.tow(["up", "data", "--json"]).ok().json())["sent"],
        0,
        "size and time are equal"
    );
    let checked = home.tow(["up", "data", "--checksum", "--json"]).ok().json();
    assert_eq!(
        (&only(&checked)["sent"], &only(&checked)["equal_by_hash"]),
        (&1.into(), &1.into())
    );
    assert_eq!(fs::read_to_string(there.join("x")).unwrap(), "two");
    assert_eq!(fs::read_to_string(there.join("extra")).unwrap(), "stays");
}

#[test]
fn a_dry_run_changes_nothing() {
    let (home, there) = home();
    let sizes = [900_000, 3, 70_000, 1, 400_000, 20];
    for (number, size) in sizes.iter().enumerate() {
        write(&home, &format!("data/{number}"), &vec![b'x'; *size]);
    }
    let output = home.tow(["up", "data", "--dry-run"]).ok();
    let listed: Vec<&str> = output
        .stdout
        .lines()
        .filter(|line| line.starts_with("send"))
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    // By name, whichever was looked at first.
    let expected: Vec<String> = (0..sizes.len())
        .map(|number| format!("alice/data/{number}"))
        .collect();
    assert_eq!(listed, expected, "{output:?}");
    assert!(!there.exists());
}

#[test]
fn delete_needs_a_yes_and_removes_only_what_is_extra() {
    let (home, there) = home();
    write(&home, "data/x", b"one");
    home.tow(["up", "data"]).ok();
    fs::create_dir(there.join("old")).unwrap();
    fs::write(there.join("old/extra"), "goes").unwrap();
    let refused = home.tow(["up", "data", "--delete"]);
    assert_eq!(refused.code, 123, "{refused:?}");
    assert!(there.join("old/extra").exists());
    let planned = home.tow(["up", "data", "--delete", "--dry-run"]).ok();
    assert!(
        planned.stdout.contains("remove") && planned.stdout.contains("old/extra"),
        "{planned:?}"
    );
    assert!(there.join("old/extra").exists());
    let done = home
        .tow(["up", "data", "--delete", "--yes", "--json"])
        .ok()
        .json();
    assert_eq!(only(&done)["removed"], 1);
    assert!(!there.join("old").exists() && there.join("x").exists());
    fs::write(home.project().join("data/local"), "extra").unwrap();
    home.tow(["down", "data", "--delete", "--yes"]).ok();
    assert!(!home.project().join("data/local").exists());
}

#[test]
fn files_with_holes_keep_them() {
    let (home, there) = home();
    let path = write(&home, "data/sparse", b"begin");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 33 << 20).unwrap();
    drop(file);
    home.tow(["up", "data"]).ok();
    assert_eq!(
        fs::read(&path).unwrap(),
        fs::read(there.join("sparse")).unwrap()
    );
    assert!(fs::metadata(there.join("sparse")).unwrap().blocks() * 512 < 4 << 20);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_and_an_old_file_stays() {
    let (home, there) = home();
    write(&home, "data/x", b"one");
    home.tow(["up", "data"]).ok();
    // In the place of the part file something that is no file: nobody can write there, not even
    // root.
    fs::create_dir(there.join(".x.tow-part")).unwrap();
    write(&home, "data/x", b"longer");
    let output = home.tow(["up", "data"]);
    assert_eq!(output.code, 123, "{output:?}");
    assert!(output.stderr.contains("alice/data/x"), "{output:?}");
    assert_eq!(fs::read_to_string(there.join("x")).unwrap(), "one");
}

#[test]
fn a_full_disk_is_said_and_harms_nothing() {
    let (home, there) = home();
    let Some(_disk) = Disk::mount(&home.path("nas"), 4 << 10) else {
        towline_testkit::ability::not_run("a full disk: this user may not mount one");
        return;
    };
    write(&home, "data/huge", &noise(9 << 20, 3));
    let output = home.tow(["up", "data/huge"]);
    assert_eq!(output.code, 123, "{output:?}");
    assert!(output.stderr.contains("no space"), "{output:?}");
    assert!(!there.join("huge").exists());
    // Holes take no space, here or there.
    let holes = write(&home, "data/holes", b"begin");
    let file = fs::File::options().write(true).open(holes).unwrap();
    file.set_len(64 << 20).unwrap();
    home.tow(["up", "data/holes"]).ok();
    assert_eq!(fs::metadata(there.join("holes")).unwrap().len(), 64 << 20);
}

#[test]
fn links_are_left_out_or_followed_inside() {
    let (home, there) = home();
    write(&home, "data/real", b"r");
    for (link, target) in [
        ("inside", "real"),
        ("outside", "/etc/hostname"),
        ("folder", "."),
    ] {
        std::os::unix::fs::symlink(target, home.project().join("data").join(link)).unwrap();
    }
    let output = home.tow(["up", "data"]).ok();
    assert_eq!(tree(&there).keys().collect::<Vec<_>>(), ["inside", "real"]);
    assert!(
        output.stderr.contains("left out outside") && output.stderr.contains("left out folder"),
        "{output:?}"
    );
    let given = home.project().join("data/given");
    std::os::unix::fs::symlink("/etc/hostname", &given).unwrap();
    home.tow(["up", "data/given"]).ok();
    assert_eq!(
        fs::read(there.join("given")).unwrap(),
        fs::read("/etc/hostname").unwrap()
    );
}
