//! Damage by name: whatever bit of the backups is flipped, `check` finds it and says which files it
//! touches; `--repair` and the next backup make the newest whole again.

use crate::tree::{Tree, differences, look};
use crate::{home, ids, restored, work};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use towline_testkit::Home;
use towline_testkit::campaign::{Seeded, is_soak, noise, seed};

/// What is kept, without what is only known here.
fn kept(home: &Home) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = ["backups/packs", "backups/backups"]
        .map(|name| home.path(name))
        .to_vec();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Files are written once and cannot be written to: damage comes as another file.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    replace(path, &bytes);
}

/// The files that a check names, of all backups.
fn named(checked: &Value) -> Vec<String> {
    let damage = checked["damage"].as_array().unwrap().iter();
    let touches = damage.flat_map(|damage| damage["touches"].as_array().unwrap());
    touches
        .flat_map(|touched| touched["files"].as_array().unwrap())
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn any_flipped_bit_is_found() {
    let home = home();
    let folder = work(&home);
    fs::write(folder.join("a"), noise(120, 1)).unwrap();
    fs::hard_link(folder.join("a"), folder.join("b")).unwrap();
    home.tow(["scratch", "backup"]).ok();
    let files = kept(&home);
    let bits: Vec<(usize, usize)> = files
        .iter()
        .enumerate()
        .flat_map(|(number, file)| {
            (0..fs::read(file).unwrap().len() * 8).map(move |bit| (number, bit))
        })
        .collect();
    let mut random = Seeded(seed());
    let chosen: Vec<(usize, usize)> = if is_soak() {
        bits
    } else {
        (0..300).map(|_| bits[random.next(bits.len())]).collect()
    };
    for (number, bit) in &chosen {
        let file = &files[*number];
        let good = fs::read(file).unwrap();
        flip(file, *bit);
        let checked = home.tow(["scratch", "check", "--json"]);
        let json = checked.json();
        assert!(
            checked.code == 123 && json["ok"] == false,
            "{} bit {bit}: {checked:?}",
            file.display()
        );
        let touched = json["damage"]
            .as_array()
            .unwrap()
            .iter()
            .any(|damage| !damage["touches"].as_array().unwrap().is_empty());
        assert!(
            touched,
            "{} bit {bit} touches nothing: {json}",
            file.display()
        );
        replace(file, &good);
    }
    home.tow(["scratch", "check"]).ok();
    println!("flipped bits: {} found, every byte there", chosen.len());
}

#[test]
fn the_files_that_damage_touches_are_named_and_repair_makes_the_newest_whole() {
    let home = home();
    let mut tree = Tree::new(home.path("scratch/work"), 9, None);
    home.tow([
        "scratch",
        "create",
        "work",
        "--path",
        tree.root.to_str().unwrap(),
        "--to",
        home.path("backups").to_str().unwrap(),
    ])
    .ok();
    tree.change();
    home.tow(["scratch", "backup"]).ok();
    let wanted = tree.look();
    let largest = kept(&home)
        .into_iter()
        .max_by_key(|file| fs::metadata(file).unwrap().len())
        .unwrap();
    flip(&largest, 4096 * 8);
    let checked = home.tow(["scratch", "check", "--json"]);
    assert_eq!(checked.code, 123);
    let names = named(&checked.json());
    assert!(
        !names.is_empty()
            && names
                .iter()
                .all(|name| wanted.contains_key(name.as_bytes()) || name.contains('\u{fffd}')),
        "{names:?}"
    );
    let told = home.tow(["scratch", "check"]);
    assert!(
        told.code == 123
            && told.stdout.contains("touches backup")
            && told.stderr.contains("--repair"),
        "{told:?}"
    );
    let id = ids(&home, "work")[0].clone();
    let failed = home.tow([
        "scratch",
        "restore",
        "work",
        "--backup",
        &id,
        "--path",
        home.path("out").to_str().unwrap(),
    ]);
    assert!(
        failed.code == 123
            && !home.path("out").exists()
            && failed.stderr.contains("tow scratch check"),
        "never a wrong byte: {failed:?}"
    );

    home.tow(["scratch", "check", "--repair"]).ok();
    assert_eq!(
        home.tow(["scratch", "check"]).code,
        123,
        "nothing was stored anew yet"
    );
    let made = home.tow(["scratch", "backup", "--json"]).ok().json();
    assert_eq!(
        made["unchanged"], false,
        "what is damaged is stored anew: {made}"
    );
    let newest = ids(&home, "work")[0].clone();
    restored(&home, "work", &newest, &home.path("out"));
    assert_eq!(
        differences(&wanted, &look(&home.path("out"))),
        Vec::<String>::new()
    );
    assert_eq!(
        home.tow(["scratch", "backup", "--json"]).ok().json()["unchanged"],
        true,
        "once is enough"
    );
    home.tow(["scratch", "check", "work", "--backup", "latest"])
        .ok();
    // What is known, and mended since, is no news; what is new is.
    let checked = home.tow(["scratch", "check", "--json"]).ok().json();
    let damage = checked["damage"].as_array().unwrap();
    assert!(
        checked["ok"] == true
            && !damage.is_empty()
            && damage.iter().all(|damage| damage["set_aside"] == true),
        "{checked}"
    );
    let told = home.tow(["scratch", "check"]).ok();
    assert!(
        told.stdout.contains("set aside before") && told.stdout.contains("touches backup"),
        "{told:?}"
    );
    let largest = kept(&home)
        .into_iter()
        .filter(|file| *file != largest)
        .max_by_key(|file| fs::metadata(file).unwrap().len())
        .unwrap();
    flip(&largest, 512 * 8);
    assert_eq!(home.tow(["scratch", "check"]).code, 123);
}

#[test]
fn a_root_that_is_gone_or_cut_short_harms_no_other() {
    let home = home();
    let folder = work(&home);
    fs::write(folder.join("notes"), "second\n").unwrap();
    home.tow(["scratch", "backup"]).ok();
    let roots: Vec<PathBuf> = kept(&home)
        .into_iter()
        .filter(|file| file.to_string_lossy().contains("/backups/backups/"))
        .collect();
    let half = fs::read(&roots[1]).unwrap();
    replace(&roots[1], &half[..half.len() / 2]);
    let rows = crate::backups(&home, "work");
    assert_eq!(rows.len(), 2);
    assert_eq!(home.tow(["scratch", "check"]).code, 123);
    let older = rows[1]["id"].as_str().unwrap();
    restored(&home, "work", older, &home.path("out"));
    assert_eq!(
        fs::read_to_string(home.path("out/notes")).unwrap(),
        "first\n"
    );
    home.tow(["scratch", "check", "--repair"]).ok();
    home.tow(["scratch", "backup"]).ok();
    restored(&home, "work", "latest", &home.path("out"));
    assert_eq!(
        fs::read_to_string(home.path("out/notes")).unwrap(),
        "second\n"
    );
    home.tow(["scratch", "check"]).ok();
}
