//! A tunnel from its definition to its removal.

use crate::lab::{
    assert_says, banner, echo, free_port, home, hosts, nothing_is_left, row, rows, ssh,
    supervisors, until_state,
};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::{Output, until};

#[test]
fn added_opened_used_closed_and_removed() {
    let (slurm, home) = (hosts(), home());
    let config = slurm.ssh_config().display().to_string();
    let port = free_port().to_string();
    let added = home
        .tow([
            "tunnel",
            "add",
            "box",
            "--to",
            "c1",
            "--via",
            "login",
            "--ssh-config",
            &config,
            "--port",
            &port,
        ])
        .ok();
    assert_eq!(added.stdout, format!("box  127.0.0.1:{port} to c1\n"));
    assert!(
        added.stderr.contains("tow tunnel open box") && added.stderr.contains("tow tunnel include"),
        "{added:?}"
    );
    let file = home.path("config/towline/tunnels/box.yaml");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(row(&home, "box")["state"], "closed");
    assert!(home.daemon().is_none(), "a definition needs no daemon");

    let opened = home.tow(["tunnel", "open", "box"]).ok();
    assert_eq!(opened.stdout, format!("box  127.0.0.1:{port}\n"));
    assert!(opened.stderr.contains("tow-box"), "{opened:?}");
    let open = row(&home, "box");
    assert_eq!(
        (
            &open["state"],
            &open["port"],
            &open["to"],
            &open["via"],
            &open["reconnects"]
        ),
        (
            &"open".into(),
            &port.parse::<u16>().unwrap().into(),
            &"c1".into(),
            &"login".into(),
            &0.into()
        ),
        "{open}"
    );
    assert!(banner(port.parse().unwrap()).is_some());
    assert_eq!(ssh(&home, "tow-box", &["hostname"]).ok().stdout, "c1\n");
    let doctor = home.tow(["doctor"]);
    assert!(
        doctor.stdout.contains("tunnel box") && doctor.stdout.contains("to c1, open since"),
        "{doctor:?}"
    );

    // What is open stays as it is, whoever asks for it again, and whatever becomes of the daemon.
    let before = supervisors(&home);
    assert_eq!(
        home.tow(["tunnel", "open", "box", "--json"]).ok().json()["tunnels"][0]["state"],
        "open"
    );
    let mut session = echo(&home, "tow-box");
    let (mut to, mut from) = (
        session.stdin.take().unwrap(),
        BufReader::new(session.stdout.take().unwrap()),
    );
    let mut say = |word: &str| {
        writeln!(to, "{word}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    };
    say("before");
    assert!(home.kill_daemon());
    say("after a kill");
    until("the next daemon", || home.daemon());
    home.tow(["daemon", "stop"]).ok();
    // It is not started by a tunnel: it was told to leave.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        say("after a stop");
        assert!(home.daemon().is_none());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(supervisors(&home), before);
    assert_says(
        &home.tow(["tunnel", "rm", "box"]),
        123,
        &["`box` is open", "tow tunnel close box"],
    );

    assert_eq!(
        home.tow(["tunnel", "close", "box"]).ok().stdout,
        "closed box\n"
    );
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    session.wait().unwrap();
    assert_eq!(row(&home, "box")["state"], "closed");
    nothing_is_left(&home);
    assert!(banner(port.parse().unwrap()).is_none());
    assert!(
        !fs::read_to_string(home.state().ssh().join("config"))
            .unwrap()
            .contains("tow-box")
    );
    assert_eq!(
        home.tow(["tunnel", "close", "box"]).ok().stdout,
        "box was closed already\n"
    );
    home.tow(["tunnel", "rm", "box"]).ok();
    assert!(!file.exists() && rows(&home).is_empty());
}

/// A machine that was switched off has neither daemon nor supervisor; the definition in the
/// configuration is the user's.
#[test]
fn what_was_open_is_open_again_after_a_restart() {
    let (slurm, home) = (hosts(), home());
    let port = free_port();
    home.configure(&format!(
        "tunnels:\n  box: {{to: c1, via: login, port: {port}, user: alice, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    home.tow(["tunnel", "open", "--all"]).ok();
    assert!(home.kill_daemon());
    let killed = supervisors(&home);
    assert!(killed.len() == 1 && banner(port).is_some());
    for pid in killed {
        process::signal(pid, rustix::process::Signal::KILL);
    }
    until("the port to be free", || {
        banner(port).is_none().then_some(())
    });
    home.tow(["tunnel", "ls"]).ok();
    until_state(&home, "box", "open");
    assert_eq!(supervisors(&home).len(), 1);
    assert_eq!(ssh(&home, "tow-box", &["hostname"]).ok().stdout, "c1\n");
    assert_says(
        &home.tow(["tunnel", "rm", "box"]),
        123,
        &["config.yaml:2", "remove it there"],
    );
    home.tow(["tunnel", "close", "--all"]).ok();
    nothing_is_left(&home);
}

/// Two of them share what they can, and neither ends with the other.
#[test]
fn several_tunnels_live_side_by_side() {
    let (slurm, home) = (hosts(), home());
    let (one, two) = (free_port(), free_port());
    let config = slurm.ssh_config();
    home.configure(&format!(
        "tunnels:\n  one: {{to: c1, via: login, port: {one}, ssh_config: {0}}}\n  two: {{to: \
            localhost, via: login, port: {two}, ssh_config: {0}}}\n",
        config.display()
    ));
    home.tow(["tunnel", "open", "one", "two"]).ok();
    assert_eq!(
        (
            ssh(&home, "tow-one", &["hostname"]).ok().stdout,
            ssh(&home, "tow-two", &["hostname"]).ok().stdout
        ),
        ("c1\n".into(), "login\n".into())
    );
    home.tow(["tunnel", "close", "one"]).ok();
    assert!(banner(one).is_none() && banner(two).is_some());
    assert_eq!(ssh(&home, "tow-two", &["hostname"]).ok().stdout, "login\n");
    home.tow(["tunnel", "close", "--all"]).ok();
    nothing_is_left(&home);
}

/// However many ask at once, and whatever is asked next.
#[test]
fn many_who_open_it_have_one_supervisor_and_it_closes_at_once() {
    let (slurm, home) = (hosts(), home());
    let port = free_port();
    home.configure(&format!(
        "tunnels:\n  box: {{to: c1, via: login, port: {port}, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    for _ in 0..3 {
        let all: Vec<_> = (0..4)
            .map(|_| home.spawn(["tunnel", "open", "box"]))
            .collect();
        for child in all {
            Output::from(child.wait_with_output().unwrap()).ok();
        }
        assert_eq!(supervisors(&home).len(), 1);
        let begun = Instant::now();
        let all: Vec<_> = (0..2)
            .map(|_| home.spawn(["tunnel", "close", "box"]))
            .collect();
        for child in all {
            Output::from(child.wait_with_output().unwrap()).ok();
        }
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        nothing_is_left(&home);
    }
    // Also while a host is waited for that does not answer.
    home.configure(&format!(
        "tunnels:\n  box: {{to: c1, via: 10.255.255.1, port: {port}}}\n"
    ));
    home.tow(["tunnel", "open", "box", "--no-wait"]);
    let begun = Instant::now();
    home.tow(["tunnel", "close", "box"]).ok();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    nothing_is_left(&home);
}
