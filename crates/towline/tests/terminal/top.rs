//! `tow top`: what it shows, and what can be done with it.

use super::home;
use super::screen::Screen;
use std::fs;
use towline_testkit::{Home, until};

/// A run that writes a line whenever the test wants one.
fn writing(home: &Home, name: &str) -> String {
    let script = "echo begun; until [ -e end ]; do [ -e more ] && rm more && echo a new line; sleep 0.05; done";
    let run = home
        .tow(["submit", "--name", name, "sh", "-c", script])
        .ok()
        .id();
    home.wait_for_state(&run, "running");
    run
}

#[test]
fn runs_their_logs_and_changes_are_seen_as_they_happen() {
    let home = home();
    home.configure("clusters: {local: {gpus: 4, cpus: 8}}\n");
    let screen = Screen::new(&home, 120, 30);
    screen.types("$TOW top; echo left with $?");
    screen.shows("tow run echo hello");
    let run = writing(&home, "first");
    let shown = screen.shows("begun");
    assert!(
        shown.contains("1 running") && shown.contains(&run[run.len() - 5..]),
        "{shown}"
    );
    assert!(
        shown.contains("local") && shown.contains("GPUs free: local 4/4"),
        "{shown}"
    );
    fs::write(home.project().join("more"), "").unwrap();
    screen.shows("a new line");
    let failed = home
        .tow([
            "submit",
            "--name",
            "second",
            "sh",
            "-c",
            "echo KeyError: lr; exit 3",
        ])
        .ok()
        .id();
    home.wait_for_state(&failed, "failed");
    screen.shows("1 failed");
    // The newest is on top; all about it, and why.
    screen.keys(&["g", "Enter"]);
    let shown = screen.shows("KeyError: lr");
    assert!(shown.contains("why") && shown.contains(&failed), "{shown}");
    screen.keys(&["Escape"]);
    // Only what fits a filter.
    screen.keys(&["f"]);
    screen.keys(&["-l", "sec"]);
    screen.keys(&["Enter"]);
    screen.shows_that("only the second run", |text| {
        text.contains("second") && !text.contains("first")
    });
    screen.keys(&["Escape"]);
    screen.shows("first");
    screen.keys(&["?"]);
    screen.shows("abort the run or sweep, after a question");
    screen.keys(&["Escape"]);
    screen.shows_that("no keys", |text| !text.contains("after a question"));
    screen.keys(&["q"]);
    screen.shows("left with 0");
}

#[test]
fn nothing_is_ended_without_a_yes() {
    let home = home();
    home.configure("clusters: {local: {cpus: 8}}\n");
    let run = writing(&home, "precious");
    let screen = Screen::new(&home, 100, 24);
    screen.types("$TOW top");
    screen.shows("begun");
    screen.keys(&["a"]);
    screen.shows(&format!("Abort precious ({run})?"));
    // Neither a yes nor a no; then a no.
    screen.keys(&["x", "n"]);
    screen.shows_that("no question", |text| !text.contains("Abort precious"));
    assert_eq!(home.state_of(&run), "running");
    screen.keys(&["a"]);
    screen.shows("Abort precious");
    screen.keys(&["y"]);
    screen.shows("1 cancelled");
    home.wait_for_state(&run, "cancelled");
}

#[test]
fn it_fits_sixty_columns_and_fifteen_lines_and_says_when_it_does_not() {
    let home = home();
    home.configure("clusters: {local: {cpus: 8}}\n");
    writing(&home, "small");
    let screen = Screen::new(&home, 60, 15);
    screen.types("$TOW top");
    let shown = screen.shows("begun");
    assert!(
        shown.contains("small") && shown.contains("running"),
        "{shown}"
    );
    screen.resize(59, 15);
    screen.shows("tow top needs 60 columns");
    screen.resize(200, 60);
    let shown = screen.shows_that("the run again", |text| {
        text.contains("small") && text.contains("begun")
    });
    assert!(shown.lines().all(|line| line.chars().count() <= 200));
}

#[test]
fn bytes_of_a_log_and_of_a_name_do_nothing_to_the_terminal() {
    let home = home();
    let text = "printf '\\033]0;owned\\007\\033[2J\\033[31mred\\033[0m\\342\\200\\256dlrow\\r\\n\\tend\\n'; sleep 1000";
    let run = home.tow([
        "submit",
        "--name",
        "na\u{202e}me\u{1b}[5m",
        "sh",
        "-c",
        text,
    ]);
    let run = if run.code == 0 {
        run.id()
    } else {
        home.tow(["submit", "--name", "name", "sh", "-c", text])
            .ok()
            .id()
    };
    home.wait_for_state(&run, "running");
    let screen = Screen::new(&home, 100, 24);
    let title = screen.tmux(&["display-message", "-p", "#{pane_title}"]);
    screen.types("$TOW top");
    let shown = screen.shows("end");
    assert!(shown.contains("red"), "{shown}");
    assert!(
        shown.contains("tow top"),
        "the screen was not cleared: {shown}"
    );
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
    assert_eq!(
        screen.tmux(&["display-message", "-p", "#{pane_title}"]),
        title
    );
    let coloured = screen.coloured();
    let red = coloured.lines().find(|line| line.contains("red")).unwrap();
    assert!(
        red.contains("[38;5;1m") && red.contains("mred\u{1b}[39m"),
        "its own colour is kept, and ends: {red:?}"
    );
}

#[test]
fn it_needs_a_terminal_and_says_so() {
    let home = home();
    let refused = home.tow(["top"]);
    assert_eq!(refused.code, 120, "{refused:?}");
    assert!(
        refused.stderr.contains("needs a terminal") && refused.stderr.contains("tow ps"),
        "{refused:?}"
    );
    assert_eq!(home.tow(["top", "--json"]).code, 120);
}

#[test]
fn it_goes_on_when_the_daemon_is_killed() {
    let home = home();
    home.configure("clusters: {local: {cpus: 8}}\n");
    writing(&home, "lasting");
    let screen = Screen::new(&home, 100, 24);
    screen.types("$TOW top");
    screen.shows("begun");
    assert!(home.kill_daemon());
    fs::write(home.project().join("more"), "").unwrap();
    screen.shows("a new line");
    let second = writing(&home, "second");
    screen.shows("second");
    until("both are shown", || {
        screen.text().contains("2 running").then_some(())
    });
    home.tow(["abort", &second]).ok();
    screen.shows("1 cancelled");
}
