//! However `tow top` ends, the terminal is as it was.

use super::home;
use super::screen::Screen;
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use towline_host::process;
use towline_testkit::{Home, until};

/// Begins `tow top` in a shell that writes down the modes of its terminal before and after.
fn begun(home: &Home) -> (Screen, i32) {
    home.tow(["submit", "sleep", "1000"]).ok();
    let screen = Screen::new(home, 90, 20);
    assert_eq!(screen.modes(), "0 0 1\n");
    screen.types("stty -g > before; $TOW top & echo $! > pid; fg > /dev/null; echo left with $?; stty -g > after");
    screen.shows("tow top");
    until("its screen is the second one", || {
        (screen.modes() == "1 1 0\n").then_some(())
    });
    let pid = fs::read_to_string(home.project().join("pid")).unwrap();
    (screen, pid.trim().parse().unwrap())
}

/// A shell makes the file before the program writes into it.
fn is_written(file: &Path) -> bool {
    fs::read(file).is_ok_and(|bytes| bytes.ends_with(b"\n"))
}

#[track_caller]
fn is_as_it_was(home: &Home, screen: &Screen, code: &str) {
    screen.shows(&format!("left with {code}"));
    until("the shell goes on", || {
        is_written(&home.project().join("after")).then_some(())
    });
    assert_eq!(screen.modes(), "0 0 1\n", "second screen, mouse, cursor");
    assert_eq!(home.read("before"), home.read("after"));
    screen.types("echo it reads what is typed");
    screen.shows("\nit reads what is typed");
}

#[test]
fn after_a_key() {
    let home = home();
    let (screen, _) = begun(&home);
    screen.keys(&["q"]);
    is_as_it_was(&home, &screen, "0");
}

#[test]
fn after_a_signal_that_ends_it() {
    for (signal, code) in [(Signal::TERM, "143"), (Signal::HUP, "129")] {
        let home = home();
        let (screen, pid) = begun(&home);
        process::signal(pid, signal);
        is_as_it_was(&home, &screen, code);
    }
}

/// A shell whose job dies of this signal gives up the rest of its line.
#[test]
fn after_an_interrupt_from_outside() {
    let home = home();
    let (screen, pid) = begun(&home);
    process::signal(pid, Signal::INT);
    until("it gave it back", || {
        (screen.modes() == "0 0 1\n").then_some(())
    });
    screen.types("stty -g > after");
    until("the shell goes on", || {
        is_written(&home.project().join("after")).then_some(())
    });
    assert_eq!(home.read("before"), home.read("after"));
}

#[test]
fn while_it_is_suspended() {
    let home = home();
    let (screen, _) = begun(&home);
    screen.keys(&["C-z"]);
    until("it stands still", || {
        (screen.modes() == "0 0 1\n").then_some(())
    });
    screen.types("echo meanwhile");
    screen.shows("\nmeanwhile");
    screen.types("fg");
    until("it has the terminal again", || {
        (screen.modes() == "1 1 0\n").then_some(())
    });
    screen.shows("1 running");
    screen.keys(&["q"]);
    until("it gave it back", || {
        (screen.modes() == "0 0 1\n").then_some(())
    });
}
