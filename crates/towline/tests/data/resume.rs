//! Killed in the middle, and begun again: only what is missing travels.

use super::{azure_home_at, noise, noted, only, write};
use std::fs;
use towline_testkit::real::{Azurite, Fault, FaultProxy, Rule};
use towline_testkit::{Home, until};

const BLOCKS: usize = 12;
const SIZE: usize = BLOCKS * (4 << 20) - 1000;

/// A service that answers slowly enough to be met half-way.
fn slow(container: &str, method: &str, path: &str) -> (FaultProxy, Home) {
    let azurite = Azurite::shared();
    azurite.make_container(container);
    let proxy = FaultProxy::before(azurite.endpoint());
    // From the fourth on no answer comes: the transfer stands still until it is killed.
    (4..=BLOCKS * 3).for_each(|n| proxy.inject(Rule::new(Fault::Silence).to(method, path).nth(n)));
    let home = azure_home_at(&proxy.account(azurite.first()), container);
    (proxy, home)
}

fn kill_when(home: &Home, words: &[&str], ready: impl Fn() -> bool) {
    let mut child = home.spawn(words);
    until("the transfer to be half-way", || ready().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_upload_sends_no_block_twice() {
    let (proxy, home) = slow("resume-up", "PUT", "comp=block&");
    let path = write(&home, "big", &noise(SIZE, 5));
    let answered = || {
        proxy
            .seen()
            .iter()
            .filter(|seen| seen.kind == "block" && seen.status == Some(201))
            .count()
    };
    kill_when(&home, &["cp", "big", "az:big"], || answered() >= 5);
    proxy.heal();
    let before = proxy.times("PUT", "comp=block&");
    let kept: Vec<String> = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.kind == "block" && seen.status == Some(201))
        .map(|seen| seen.path)
        .collect();
    let resumed = home.tow(["cp", "big", "az:big", "--json"]).ok().json();
    assert!(
        only(&resumed)["resumed_bytes"].as_u64().unwrap() >= 3 << 20,
        "{resumed}"
    );
    let after = proxy.times("PUT", "comp=block&");
    for path in kept {
        assert_eq!(
            before.get(&path),
            after.get(&path),
            "a block the service had was sent again"
        );
    }
    let back = home.project().join("back");
    Azurite::shared()
        .client()
        .run([
            "get".as_ref(),
            "resume-up".as_ref(),
            "big".as_ref(),
            back.as_os_str(),
        ])
        .json();
    assert!(fs::read(back).unwrap() == fs::read(path).unwrap());
}

#[test]
fn a_source_that_changed_is_sent_as_it_is_now() {
    let (proxy, home) = slow("resume-changed", "PUT", "comp=block&");
    let mut bytes = noise(SIZE, 6);
    write(&home, "big", &bytes);
    kill_when(&home, &["cp", "big", "az:big"], || {
        proxy.count("PUT", "comp=block&") >= 5
    });
    proxy.heal();
    bytes[10] ^= 1;
    write(&home, "big", &bytes);
    home.tow(["cp", "big", "az:big"]).ok();
    home.tow(["cp", "az:big", "back"]).ok();
    assert!(fs::read(home.project().join("back")).unwrap() == bytes);
}

#[test]
fn a_download_fetches_only_what_is_missing() {
    let (proxy, home) = slow("resume-down", "GET", "/big");
    let path = write(&home, "big", &noise(SIZE, 7));
    proxy.heal();
    home.tow(["cp", "big", "az:big"]).ok();
    proxy.forget();
    (4..=BLOCKS * 3).for_each(|n| proxy.inject(Rule::new(Fault::Silence).to("GET", "/big").nth(n)));
    fs::write(home.project().join("back"), "an older file").unwrap();
    let done = || {
        proxy
            .seen()
            .iter()
            .filter(|seen| seen.range.is_some() && seen.status == Some(206) && seen.fault.is_none())
            .count()
    };
    kill_when(&home, &["cp", "az:big", "back"], || {
        done() >= 3 && noted(&home, 5)
    });
    assert_eq!(
        fs::read(home.project().join("back")).unwrap(),
        b"an older file",
        "it stays until the new one is whole"
    );
    proxy.heal();
    proxy.forget();
    let resumed = home.tow(["cp", "az:big", "back", "--json"]).ok().json();
    assert!(
        only(&resumed)["resumed_bytes"].as_u64().unwrap() >= 8 << 20,
        "{resumed}"
    );
    let fetched = proxy
        .seen()
        .iter()
        .filter(|seen| seen.range.is_some())
        .count();
    assert!(
        fetched <= BLOCKS - 3,
        "{fetched} of {BLOCKS} blocks were fetched"
    );
    assert!(fs::read(home.project().join("back")).unwrap() == fs::read(&path).unwrap());
    assert!(!home.project().join(".back.tow-part").exists());
    assert_eq!(
        fs::read_dir(home.state().root().join("transfers"))
            .unwrap()
            .count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn a_part_that_rotted_is_fetched_again() {
    let (proxy, home) = slow("resume-rot", "GET", "/big");
    proxy.heal();
    let path = write(&home, "big", &noise(SIZE, 8));
    home.tow(["cp", "big", "az:big"]).ok();
    (4..=BLOCKS * 3).for_each(|n| proxy.inject(Rule::new(Fault::Silence).to("GET", "/big").nth(n)));
    let part = home.project().join(".back.tow-part");
    kill_when(&home, &["cp", "az:big", "back"], || noted(&home, 5));
    proxy.heal();
    let file = fs::File::options().write(true).open(&part).unwrap();
    for block in 0..BLOCKS as u64 {
        std::os::unix::fs::FileExt::write_all_at(&file, b"rotten", block * (4 << 20) + 17).unwrap();
    }
    drop(file);
    home.tow(["cp", "az:big", "back"]).ok();
    assert!(fs::read(home.project().join("back")).unwrap() == fs::read(&path).unwrap());
}

#[test]
fn ctrl_c_says_how_to_go_on() {
    let (proxy, home) = slow("resume-int", "PUT", "comp=block&");
    write(&home, "big", &noise(SIZE, 9));
    let child = home.spawn(["cp", "big", "az:big"]);
    until("some blocks", || {
        (proxy.count("PUT", "comp=block&") >= 4).then_some(())
    });
    towline_host::process::signal(
        i32::try_from(child.id()).unwrap(),
        rustix::process::Signal::INT,
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("goes on where it stopped"),
        "{output:?}"
    );
}
