//! Snapshots in a datastore: cheap to repeat, whole or not there, and damage is found before it is
//! used.

use super::{azure_home_at, home, noise, tree, write};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_testkit::real::{Azurite, Fault, FaultProxy, Rule, Seen};
use towline_testkit::{Home, until};

/// A home with `az` behind a proxy, and a tree that makes several packs.
fn remote(container: &str, files: u64, size: usize) -> (FaultProxy, Home) {
    let azurite = Azurite::shared();
    azurite.make_container(container);
    let proxy = FaultProxy::before(azurite.endpoint());
    let home = azure_home_at(&proxy.account(azurite.first()), container);
    (0..files).for_each(|number| {
        drop(write(
            &home,
            &format!("src/m{}/f {number}.py", number % 7),
            &noise(size, number + 1),
        ));
    });
    (proxy, home)
}

fn init(home: &Home) -> serde_json::Value {
    home.tow(["init", "--to", "az", "--json"]).ok().json()
}

fn id(made: &serde_json::Value) -> String {
    made["id"].as_str().unwrap().to_owned()
}

/// Turns one bit of a stored object over, by Microsoft's client.
fn flip(home: &Home, container: &str, blob: &str) {
    let (client, file) = (Azurite::shared().client(), home.path("flipped"));
    client
        .run([
            "get".as_ref(),
            container.as_ref(),
            blob.as_ref(),
            file.as_os_str(),
        ])
        .json();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&file, bytes).unwrap();
    client
        .run([
            "put".as_ref(),
            container.as_ref(),
            blob.as_ref(),
            file.as_os_str(),
        ])
        .json();
}

fn names(container: &str, folder: &str) -> Vec<String> {
    Azurite::shared()
        .client()
        .list(container, &format!("towline/{folder}/"))
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn what_is_unchanged_costs_a_request_and_one_file_a_few() {
    let (proxy, home) = remote("snapcheap", 40, 9_000);
    let made = init(&home);
    assert_eq!(
        (&made["was_there"], &made["files"]),
        (&false.into(), &40.into())
    );
    // Files of this very moment are read once more, until their times can be trusted.
    let asked = until("the files to be older than a clock's tick", || {
        proxy.forget();
        let again = init(&home);
        assert_eq!(
            (&again["id"], &again["was_there"], &again["stored"]),
            (&made["id"], &true.into(), &0.into())
        );
        (again["read"] == 0).then(|| proxy.seen())
    });
    assert!(asked.len() <= 1, "{asked:?}");

    write(&home, "src/m0/f 0.py", b"another");
    proxy.forget();
    let changed = init(&home);
    let asked = proxy.counts();
    assert!(
        (&changed["was_there"], &changed["read"]) == (&false.into(), &1.into()),
        "{changed}"
    );
    // The list of what is given up, one pack and one root.
    assert!(asked.values().sum::<usize>() <= 4, "{asked:?}");
    assert_eq!(asked.get("PUT blob"), Some(&2), "{asked:?}");
    assert!(changed["stored"].as_u64().unwrap() < 20_000, "{changed}");
}

#[test]
fn it_is_listed_checked_and_laid_out_as_it_was() {
    let (_proxy, home) = remote("snapround", 30, 400_000);
    std::os::unix::fs::symlink("f 0.py", home.project().join("src/m0/link")).unwrap();
    let made = init(&home);
    let listed = home
        .tow(["snapshot", "ls", "--in", "az", "--json"])
        .ok()
        .json();
    assert_eq!(
        (
            &listed["snapshots"][0]["id"],
            &listed["snapshots"][0]["files"]
        ),
        (&made["id"], &made["files"])
    );
    let checked = home
        .tow(["snapshot", "check", "--in", "az", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&checked["ok"], &checked["snapshots"]),
        (&true.into(), &1.into())
    );
    assert!(checked["packs"].as_u64().unwrap() >= 2, "{checked}");
    let back = home.path("back");
    home.tow([
        "snapshot",
        "get",
        &id(&made)[..12],
        back.to_str().unwrap(),
        "--from",
        "az",
    ])
    .ok();
    assert!(tree(&back) == tree(&home.project()));
    assert_eq!(
        fs::read_link(back.join("src/m0/link")).unwrap(),
        Path::new("f 0.py")
    );
    let there = home.tow([
        "snapshot",
        "get",
        &id(&made),
        back.to_str().unwrap(),
        "--from",
        "az",
    ]);
    assert_eq!(there.code, 123, "{there:?}");
    let none = home.tow(["snapshot", "get", "0123456789ab", "nowhere", "--from", "az"]);
    assert_eq!(none.code, 122, "{none:?}");
    assert!(!home.project().join("nowhere").exists());
}

#[test]
fn a_flipped_byte_is_found_and_nothing_is_laid_out() {
    for folder in ["packs", "snapshots"] {
        let container = format!("snapflip{folder}");
        let (_proxy, home) = remote(&container, 30, 50_000);
        let made = init(&home);
        let good = home.path("good");
        home.tow([
            "snapshot",
            "get",
            &id(&made),
            good.to_str().unwrap(),
            "--from",
            "az",
        ])
        .ok();
        flip(&home, &container, &names(&container, folder)[0]);
        let checked = home.tow(["snapshot", "check", "--in", "az", "--json"]);
        assert_eq!(checked.code, 123, "{checked:?}");
        let damage = checked.json()["damage"].clone();
        assert_eq!(damage[0]["touches"][0]["snapshot"], made["id"], "{damage}");
        let out = home.path("out/back");
        fs::create_dir(out.parent().unwrap()).unwrap();
        let got = home.tow([
            "snapshot",
            "get",
            &id(&made),
            out.to_str().unwrap(),
            "--from",
            "az",
        ]);
        assert_eq!(got.code, 123, "{got:?}");
        assert!(
            got.stderr.contains("other bytes than were stored"),
            "{got:?}"
        );
        assert_eq!(
            fs::read_dir(out.parent().unwrap()).unwrap().count(),
            0,
            "nothing is left behind"
        );
    }
}

/// Packs that came whole to the service.
fn packs_sent(proxy: &FaultProxy) -> Vec<Seen> {
    proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.method == "PUT" && seen.path.contains("/packs/") && seen.body > 0)
        .collect()
}

#[test]
fn killed_in_the_middle_it_goes_on_with_what_is_missing() {
    let (proxy, home) = remote("snapkill", 90, 700_000);
    // From the fourth pack on many answers do not come: it is slow, and then stands still until it
    // is killed.
    (4..=40).for_each(|n| proxy.inject(Rule::new(Fault::Silence).to("PUT", "/packs/").nth(n)));
    let mut child = home.spawn(["init", "--to", "az"]);
    let digest = |seen: &Seen| {
        seen.path
            .split('?')
            .next()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    let known = |pack: &str| {
        let bytes: Vec<u8> = (0..32)
            .map(|at| u8::from_str_radix(&pack[at * 2..at * 2 + 2], 16).unwrap())
            .collect();
        let indexes = fs::read_dir(home.state().root().join("indexes"))
            .into_iter()
            .flatten()
            .flatten();
        indexes
            .map(|entry| fs::read(entry.path()).unwrap())
            .any(|index| index.windows(32).any(|window| window == bytes))
    };
    let kept: Vec<Seen> = until("three packs to be there", || {
        let is_kept =
            |seen: &Seen| seen.fault.is_none() && seen.status == Some(201) && known(&digest(seen));
        let kept: Vec<Seen> = packs_sent(&proxy).into_iter().filter(is_kept).collect();
        (kept.len() >= 3).then_some(kept)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        names("snapkill", "snapshots").is_empty(),
        "without all its content there is no snapshot"
    );
    proxy.heal();
    proxy.forget();
    let made = init(&home);
    let again = packs_sent(&proxy);
    let twice: BTreeSet<String> = again
        .iter()
        .map(digest)
        .filter(|pack| kept.iter().any(|seen| digest(seen) == *pack))
        .collect();
    assert!(twice.is_empty(), "{twice:?} had arrived");
    let (before, after): (u64, u64) = (
        kept.iter().map(|seen| seen.body).sum(),
        again.iter().map(|seen| seen.body).sum(),
    );
    let all = 90 * 700_000;
    assert!(
        before + after < all + (all / 20),
        "{before} bytes were there and {after} sent again, of {all}"
    );
    home.tow(["snapshot", "check", "--in", "az"]).ok();
    let back = home.path("back");
    home.tow([
        "snapshot",
        "get",
        &id(&made),
        back.to_str().unwrap(),
        "--from",
        "az",
    ])
    .ok();
    assert!(tree(&back) == tree(&home.project()));
}

#[test]
fn a_store_that_was_emptied_is_filled_again() {
    let (_proxy, home) = remote("snapempty", 20, 9_000);
    let made = init(&home);
    home.tow(["rm", "az:towline", "--yes"]).ok();
    let again = init(&home);
    assert_eq!(
        (&again["id"], &again["was_there"]),
        (&made["id"], &false.into())
    );
    let back = home.path("back");
    home.tow([
        "snapshot",
        "get",
        &id(&made),
        back.to_str().unwrap(),
        "--from",
        "az",
    ])
    .ok();
    assert!(tree(&back) == tree(&home.project()));
}

#[test]
fn in_a_shared_store_a_prune_lets_young_packs_be() {
    let (_proxy, home) = remote("snapprune", 20, 9_000);
    let first = init(&home);
    write(&home, "src/new.py", b"new");
    let second = init(&home);
    let packs = names("snapprune", "packs");
    let kept = home
        .tow(["snapshot", "prune", "--in", "az", "--yes", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&kept["kept"], &kept["snapshots"]),
        (&2.into(), &serde_json::json!([])),
        "both are younger than a week"
    );
    let planned = until("both to be older than a second", || {
        let planned = home
            .tow([
                "snapshot",
                "prune",
                "--in",
                "az",
                "--older-than",
                "1s",
                "--json",
            ])
            .ok()
            .json();
        (planned["snapshots"].as_array().unwrap().len() == 2).then_some(planned)
    });
    assert_eq!(planned["done"], false);
    assert_eq!(
        names("snapprune", "snapshots").len(),
        2,
        "a plan changes nothing"
    );
    home.tow([
        "snapshot",
        "prune",
        "--in",
        "az",
        "--older-than",
        "1s",
        "--yes",
    ])
    .ok();
    assert!(names("snapprune", "snapshots").is_empty());
    assert_eq!(
        names("snapprune", "packs"),
        packs,
        "somebody may be about to name them"
    );
    // They serve whoever comes next.
    let again = init(&home);
    assert_eq!(
        (&again["id"], id(&first) == id(&second)),
        (&second["id"], false)
    );
    home.tow(["snapshot", "check", "--in", "az"]).ok();
}

/// Every pack of a folder's store.
fn pack_files(root: &Path) -> Vec<PathBuf> {
    let below = |folder: PathBuf| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    below(root.join("packs")).flat_map(below).collect()
}

#[test]
fn old_packs_are_marked_first_and_go_a_day_later() {
    const DAYS: Duration = Duration::from_secs(3 * 86_400);
    let (home, _) = home();
    let there = home.path("nas/towline");
    (0..20).for_each(|number| {
        drop(write(
            &home,
            &format!("src/{number}"),
            &noise(9_000, number),
        ));
    });
    home.tow(["init", "--to", "nas"]).ok();
    let prune = || {
        home.tow([
            "snapshot",
            "prune",
            "--in",
            "nas",
            "--older-than",
            "1d",
            "--yes",
            "--json",
        ])
        .ok()
        .json()
    };
    let packs = pack_files(&there);
    let roots = fs::read_dir(there.join("snapshots"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for file in packs.iter().cloned().chain(roots) {
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let file = fs::File::options().write(true).open(&file).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() - DAYS)
            .unwrap();
    }
    let first = prune();
    assert_eq!(
        (
            first["snapshots"].as_array().unwrap().len(),
            first["doomed"].as_array().unwrap().len()
        ),
        (1, packs.len()),
        "{first}"
    );
    assert_eq!(first["packs"], serde_json::json!([]), "{first}");
    let second = prune();
    assert_eq!(
        (&second["packs"], pack_files(&there).len()),
        (&serde_json::json!([]), packs.len()),
        "marked, and not yet a day ago: {second}"
    );
    // A day later: the mark's name holds its time.
    let marks: Vec<PathBuf> = fs::read_dir(there.join("doomed"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(marks.len(), 1, "{marks:?}");
    let (at, digest) = marks[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .split_once('-')
        .unwrap();
    let earlier = at.parse::<u128>().unwrap() - DAYS.as_millis();
    fs::rename(
        &marks[0],
        there.join(format!("doomed/{earlier:020}-{digest}")),
    )
    .unwrap();
    // Whoever takes a snapshot meanwhile does not build on what is marked.
    let made = home.tow(["init", "--to", "nas", "--json"]).ok().json();
    let third = home
        .tow(["snapshot", "prune", "--in", "nas", "--yes", "--json"])
        .ok()
        .json();
    assert_eq!(
        (third["packs"].as_array().unwrap().len(), &third["kept"]),
        (packs.len(), &1.into()),
        "{third}"
    );
    assert!(packs.iter().all(|pack| !pack.exists()));
    home.tow(["snapshot", "check", "--in", "nas"]).ok();
    let back = home.path("back");
    home.tow([
        "snapshot",
        "get",
        &id(&made),
        back.to_str().unwrap(),
        "--from",
        "nas",
    ])
    .ok();
    assert!(tree(&back) == tree(&home.project()));
}

#[test]
fn through_a_failing_network_it_is_right_or_said_not_to_be() {
    let (proxy, home) = remote("snapfaults", 60, 300_000);
    let faults = [
        Fault::ResetBefore,
        Fault::ResetWithin,
        Fault::ResetAfter,
        Fault::LostAnswer,
        Fault::Answer {
            status: 503,
            retry_after_seconds: Some(0),
        },
        Fault::Truncated,
        Fault::Shortened,
        Fault::Flipped,
    ];
    let mut done = [0, 0];
    for seed in 0..6 {
        write(&home, "src/changed", &noise(2 << 20, 1000 + seed));
        proxy.inject(Rule::one_of(&faults).share(30, seed));
        let made = home.tow(["init", "--to", "az"]);
        proxy.heal();
        assert!([0, 123, 125].contains(&made.code), "seed {seed}: {made:?}");
        done[0] += usize::from(made.code == 0);
        let id = if made.code == 0 {
            made.id()
        } else {
            home.tow(["init", "--to", "az"]).ok().id()
        };
        home.tow(["snapshot", "check", &id, "--in", "az"]).ok();
        let back = home.path(&format!("out-{seed}/back"));
        fs::create_dir(back.parent().unwrap()).unwrap();
        proxy.inject(Rule::one_of(&faults).share(30, seed));
        let got = home.tow([
            "snapshot",
            "get",
            &id,
            back.to_str().unwrap(),
            "--from",
            "az",
        ]);
        proxy.heal();
        assert!([0, 123, 125].contains(&got.code), "seed {seed}: {got:?}");
        if got.code == 0 {
            done[1] += 1;
            assert!(tree(&back) == tree(&home.project()), "seed {seed}");
        } else {
            assert_eq!(
                fs::read_dir(back.parent().unwrap()).unwrap().count(),
                0,
                "seed {seed}: {got:?}"
            );
        }
    }
    assert!(proxy.faults() > 0 && done[0] > 0, "{done:?}");
}
