//! `tow ssh` into a run with its own code.

use super::home;

#[test]
fn a_shell_starts_where_the_run_does() {
    let home = home();
    home.write("a", "frozen");
    let run = home
        .tow(["submit", "sh", "-c", "echo more > b; sleep 100"])
        .ok()
        .id();
    home.wait_for_state(&run, "running");
    home.write("a", "today");
    towline_testkit::until("the run to have written", || {
        (home.tow(["ssh", &run, "--", "cat", "a", "b"]).stdout == "frozenmore\n").then_some(())
    });
    home.tow(["abort", &run]).ok();
    home.tow(["wait", &run]);
    assert_eq!(
        home.tow(["ssh", &run, "--", "cat", "a"]).ok().stdout,
        "frozen"
    );
}
