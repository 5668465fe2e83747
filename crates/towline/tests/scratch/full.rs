//! A disk that is full: what is listed stays whole, the user is told, and the next backup goes on.

use crate::tree::{Tree, differences, look};
use crate::{backups, home, restored};
use std::fs;
use towline_testkit::ability::not_run;
use towline_testkit::campaign::{Seeded, is_soak, noise, seed};
use towline_testkit::disk::Disk;

#[test]
fn a_full_disk_leaves_the_last_good_one_and_says_so() {
    let (home, mut random) = (home(), Seeded(seed()));
    let Some(disk) = Disk::mount(&home.path("disk"), 400 << 10) else {
        return not_run("backups to a full disk: nothing may be mounted here");
    };
    let mut tree = Tree::new(home.path("scratch/work"), seed(), None);
    let target = disk.path().join("backups");
    home.tow([
        "scratch",
        "create",
        "work",
        "--path",
        tree.root.to_str().unwrap(),
        "--to",
        target.to_str().unwrap(),
    ])
    .ok();
    let (mut good, mut failures) = (tree.look(), 0);
    for round in 0..if is_soak() { 20 } else { 3 } {
        tree.change();
        // More than what is left, by any measure.
        fs::write(tree.root.join("fresh"), noise(9 << 20, 1000 + round)).unwrap();
        let listed = backups(&home, "work").len();
        disk.leave(random.next(9 << 20) as u64);
        let failed = home.tow(["scratch", "backup", "work"]);
        assert!(
            failed.code == 123
                && failed.stderr.contains("disk is full")
                && failed.stderr.contains("tow scratch prune"),
            "{failed:?}"
        );
        failures += 1;
        let rows = backups(&home, "work");
        assert_eq!(rows.len(), listed, "nothing half-written is listed");
        let told = home.tow(["scratch", "ls"]);
        assert!(
            told.code == 123 && told.stdout.contains("failing"),
            "{told:?}"
        );
        restored(
            &home,
            "work",
            rows[0]["id"].as_str().unwrap(),
            &home.path("out"),
        );
        assert_eq!(
            differences(&good, &look(&home.path("out"))),
            Vec::<String>::new()
        );
        disk.relieve();
        home.tow(["scratch", "backup", "work"]).ok();
        good = tree.look();
        assert_eq!(backups(&home, "work").len(), listed + 1);
        assert_eq!(home.tow(["scratch", "ls"]).code, 0, "it is good again");
    }
    home.tow(["scratch", "check", "work"]).ok();
    println!("a full disk: {failures} times, every byte there");
}
