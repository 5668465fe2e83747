//! `tow ps --watch`.

use super::home;
use super::screen::Screen;

#[test]
fn the_table_follows_and_stays_where_it_is() {
    let home = home();
    home.configure("clusters: {local: {cpus: 8}}\n");
    let run = home
        .tow(["submit", "--name", "long", "sleep", "1000"])
        .ok()
        .id();
    home.wait_for_state(&run, "running");
    let screen = Screen::new(&home, 100, 12);
    screen.types("$TOW ps --watch");
    screen.shows("running");
    for number in 0..20 {
        home.tow(["submit", "--name", &format!("short-{number}"), "true"])
            .ok();
    }
    // More runs than lines: the newest are there, and nothing scrolls.
    let shown = screen.shows("short-19");
    assert!(shown.starts_with("ID "), "{shown}");
    screen.keys(&["C-c"]);
    screen.types("clear");
    home.tow(["abort", &run]).ok();
    screen.types("$TOW ps --watch --cluster local --state cancelled");
    let shown = screen.shows("cancelled");
    assert!(
        shown.contains("long") && !shown.contains("short"),
        "{shown}"
    );
    screen.keys(&["C-c"]);
    screen.types("echo it is over");
    screen.shows("\nit is over");
    assert_eq!(screen.modes(), "0 0 1\n");
}

#[test]
fn it_needs_a_terminal_and_says_so() {
    let home = home();
    for words in [&["ps", "--watch"][..], &["ps", "-w", "--json"]] {
        let refused = home.tow(words);
        assert_eq!(refused.code, 120, "{refused:?}");
        assert!(refused.stderr.contains("tow api --stdio"), "{refused:?}");
    }
}
