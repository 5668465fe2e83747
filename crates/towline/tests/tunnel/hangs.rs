//! Somebody on the way takes connections and never answers, or stops answering.

use crate::lab::{
    assert_says, banner, free_port, home, hosts, nothing_is_left, row, supervisors, until_state,
};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::real::Sshd;
use towline_testkit::{Home, until};

#[test]
fn a_target_that_accepts_and_never_answers_is_found_and_named() {
    let (slurm, home, port) = (hosts(), home(), free_port());
    let mut mute = slurm
        .command(
            "c1",
            "root",
            ["socat", "TCP-LISTEN:2222,fork,reuseaddr", "EXEC:sleep 1000"],
        )
        .spawn()
        .unwrap();
    home.configure(&format!(
        "tunnels:\n  mute: {{to: 'c1:2222', via: login, port: {port}, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    home.tow(["tunnel", "open", "mute", "--no-wait"]).ok();
    let told = until("it to be told", || {
        row(&home, "mute")["reason"]
            .as_str()
            .filter(|why| why.contains("does not answer"))
            .map(str::to_owned)
    });
    assert_eq!(told, "`c1` accepts connections and does not answer");
    assert_says(&home.tow(["doctor"]), 125, &[]);
    mute.kill().unwrap();
    mute.wait().unwrap();
    let _ = slurm.root("c1", ["pkill", "-9", "socat"]);
    until("the other case", || {
        row(&home, "mute")["reason"]
            .as_str()
            .filter(|why| *why == "`c1` refuses connections at port 2222")
            .map(drop)
    });
    home.tow(["tunnel", "close", "mute"]).ok();
    nothing_is_left(&home);
}

/// A tunnel `box` that is open.
fn open_box() -> (Sshd, Home, u16) {
    let (sshd, home, port) = (Sshd::start(), home(), free_port());
    home.configure(&format!(
        "tunnels:\n  box: {{to: 'localhost:{}', via: {}, probe: ssh, port: {port}, ssh_config: \
            {}}}\n",
        sshd.port(),
        sshd.host(),
        sshd.config().display()
    ));
    home.tow(["tunnel", "open", "box"]).ok();
    (sshd, home, port)
}

/// As if the network had gone without a word: nobody hangs up on the connection there is.
#[test]
fn a_hop_that_stops_answering_is_left_for_a_new_connection() {
    let (sshd, home, port) = open_box();
    let signed_in = sshd.authentications();
    sshd.freeze_connections();
    let begun = Instant::now();
    until("a new connection", || {
        (sshd.authentications() > signed_in).then_some(())
    });
    until("it to be back", || banner(port));
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "after {:?}",
        begun.elapsed()
    );
    until_state(&home, "box", "open");
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

/// A master that does not even hear us is killed and another made.
#[test]
fn a_master_that_hangs_is_put_an_end_to() {
    let (_sshd, home, port) = open_box();
    let master = || {
        crate::lab::alive(&home)
            .into_iter()
            .find(|(_, words)| words.contains(" -M "))
            .map(|(pid, _)| pid)
    };
    let hung = master().unwrap();
    process::signal(hung, Signal::STOP);
    until("another master", || master().filter(|pid| *pid != hung));
    until("it to be back", || banner(port));
    assert!(process::facts(hung).is_none_or(|facts| facts.zombie));
    assert_eq!(supervisors(&home).len(), 1);
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

/// Who comes while the way is down is kept waiting, not sent away; after a loss that nobody has
/// noticed yet, too.
#[test]
fn who_comes_while_the_way_is_down_waits_for_it() {
    let (mut sshd, home, port) = open_box();
    let until_master_is_gone = || {
        until("the master to be gone", || {
            crate::lab::alive(&home)
                .iter()
                .all(|(_, words)| !words.contains(" -M "))
                .then_some(())
        });
    };
    for _ in 0..5 {
        sshd.kill_connections();
        until_master_is_gone();
        assert!(
            banner_after(port, Duration::from_secs(9)).is_some(),
            "the first who comes is served"
        );
    }
    sshd.stop();
    let waiting = std::thread::spawn(move || banner_after(port, Duration::from_secs(9)));
    until("it to be noticed", || {
        (row(&home, "box")["state"] != "open").then_some(())
    });
    sshd.restart();
    assert!(waiting.join().unwrap().is_some(), "{}", row(&home, "box"));
    // But not for ever. A connection that the dying master still took would end with it.
    sshd.stop();
    until_master_is_gone();
    let begun = Instant::now();
    assert_eq!(banner_after(port, Duration::from_secs(30)), None);
    assert!(
        (9..20).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

/// The greeting, on one connection.
fn banner_after(port: u16, patience: Duration) -> Option<String> {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    let mut first = [0; 64];
    let count = stream.read(&mut first).ok().filter(|count| *count > 0)?;
    Some(String::from_utf8_lossy(&first[..count]).into_owned())
}
