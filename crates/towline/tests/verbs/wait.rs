//! `tow wait`: until ended, with the right code.

use super::{assert_is_run, busy_home, ended, finish, gate, home, last_line};
use serde_json::json;
use towline_testkit::until;

#[test]
fn a_good_end_is_0_and_a_bad_one_the_job_s_code() {
    let home = home();
    let good = home.tow(["submit", "true"]).ok().id();
    let output = home.tow(["wait", &good]).ok();
    assert_eq!(
        (output.stdout, output.stderr),
        (format!("{good} succeeded\n"), String::new())
    );
    let bad = home.tow(["submit", "sh", "-c", "exit 3"]).ok().id();
    for _ in 0..2 {
        let output = home.tow(["wait", &bad]);
        assert_eq!((output.code, output.stdout), (3, format!("{bad} failed\n")));
        assert_eq!(
            last_line(&output.stderr),
            format!("{bad} failed: rank 0 left with code 3; code 3")
        );
    }
}

#[test]
fn signals_cancels_and_failures_without_a_code() {
    let (home, holder) = busy_home();
    home.tow(["abort", &holder]).ok();
    let cancelled = home.tow(["wait", &holder]);
    assert_eq!(cancelled.code, 143);
    assert_eq!(
        last_line(&cancelled.stderr),
        format!("{holder} cancelled: cancelled by the user; code 143")
    );
    let killed = ended(&home, &["kill -9 $$"]);
    assert_eq!(home.tow(["wait", &killed]).code, 137);
    let late = ended(&home, &["--time", "1s", "sleep", "300"]);
    let output = home.tow(["wait", &late]);
    assert_eq!(output.code, 1);
    assert!(
        last_line(&output.stderr).contains("time limit"),
        "{}",
        output.stderr
    );
}

#[test]
fn of_several_the_first_that_is_not_0() {
    let home = home();
    let made = ["0", "5", "3"].map(|code| {
        home.tow(["submit", "sh", "-c", &format!("exit {code}")])
            .ok()
            .id()
    });
    let [good, five, three] = &made;
    let output = home.tow(["wait", good, five, three]);
    assert_eq!(
        (output.code, output.stdout),
        (
            5,
            format!("{good} succeeded\n{five} failed\n{three} failed\n")
        )
    );
    assert!(
        last_line(&output.stderr).starts_with(five.as_str()),
        "{}",
        output.stderr
    );
    assert_eq!(home.tow(["wait", three, good, five]).code, 3);
    assert_eq!(home.tow(["wait", good]).code, 0);
}

#[test]
fn without_a_name_all_that_are_active() {
    let home = home();
    ended(&home, &["false"]);
    let output = home.tow(["wait"]).ok();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("", ""),
        "nothing is active, and the old failure is over"
    );
    let one = home.tow(["submit", &gate("go")]).ok().id();
    let two = home
        .tow(["submit", &format!("{}; exit 9", gate("go"))])
        .ok()
        .id();
    home.wait_for_state(&one, "running");
    let mut child = home.spawn(["wait"]);
    until("the daemon to hear of it", || home.daemon());
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    home.write("go", "");
    let output = finish(child, Vec::new());
    assert_eq!(
        (output.code, output.stdout),
        (9, format!("{one} succeeded\n{two} failed\n"))
    );
}

#[test]
fn without_any_run_there_is_nothing_to_wait_for() {
    let home = home();
    let output = home.tow(["wait"]).ok();
    assert_eq!(output.stdout, "");
    assert_eq!(home.tow(["wait", "abcd"]).code, 122);
}

#[test]
fn the_timeout_is_124_and_the_run_goes_on() {
    let (home, holder) = busy_home();
    let output = home.tow(["wait", &holder, "--timeout", "1s"]);
    assert_eq!((output.code, output.stdout.as_str()), (124, ""));
    assert!(
        output.stderr.contains("not ended in time"),
        "{}",
        output.stderr
    );
    let run = home.show(&holder);
    assert_eq!(
        (&run["state"], &run["cancel_requested"]),
        (&json!("running"), &json!(false))
    );
    let failure: serde_json::Value =
        serde_json::from_str(&home.tow(["wait", "--json", "--timeout", "1s"]).stderr).unwrap();
    assert_eq!(
        (&failure["error"], &failure["exit_code"]),
        (&json!("timeout"), &json!(124))
    );
}

#[test]
fn a_job_s_124_is_told_from_ours() {
    let home = home();
    let id = ended(&home, &["sh", "-c", "exit 124"]);
    let output = home.tow(["wait", &id, "--timeout", "1h"]);
    assert_eq!(
        (output.code, output.stdout),
        (124, format!("{id} failed\n"))
    );
    assert!(
        last_line(&output.stderr).contains("rank 0 left with code 124"),
        "{}",
        output.stderr
    );
}

#[test]
fn for_programs_the_runs() {
    let home = home();
    let (good, bad) = (
        ended(&home, &["true"]),
        ended(&home, &["sh", "-c", "exit 3"]),
    );
    let output = home.tow(["wait", &good, &bad, "--json"]);
    assert_eq!(output.code, 3);
    let json = output.json();
    let listed = json["runs"].as_array().unwrap();
    assert_eq!(
        (
            &listed[0]["id"],
            &listed[0]["state"],
            &listed[0]["exit_code"]
        ),
        (&json!(good), &json!("succeeded"), &json!(0))
    );
    assert_eq!(
        (
            &listed[1]["id"],
            &listed[1]["state"],
            &listed[1]["reason"],
            &listed[1]["exit_code"]
        ),
        (
            &json!(bad),
            &json!("failed"),
            &json!("exit_code"),
            &json!(3)
        )
    );
    listed.iter().for_each(assert_is_run);
}

#[test]
fn a_run_that_ends_at_that_very_moment_has_ended() {
    let home = home();
    for _ in 0..5 {
        let sweep = home
            .tow(["submit", "--sweep", "a=1-40", "sh", "-c", "exit 3"])
            .ok()
            .id();
        let waiters: Vec<_> = (0..8).map(|_| home.spawn(["wait", &sweep])).collect();
        for waiter in waiters {
            let output = finish(waiter, Vec::new());
            let others: Vec<&str> = output
                .stdout
                .lines()
                .filter(|line| !line.ends_with(" failed"))
                .collect();
            assert!(
                others.is_empty() && output.stdout.lines().count() == 40,
                "waited for, and yet: {others:?} of {output:?}"
            );
            assert_eq!(output.code, 3);
        }
    }
}

#[test]
fn a_terminal_shows_how_the_runs_stand_and_programs_see_nothing() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let command = format!("{}; exit $((${{{{a}}}} / 2))", gate("go"));
    let sweep = home
        .tow(["submit", "--sweep", "a=1,2", "sh", "-c", &command])
        .ok()
        .id();
    home.wait_for_state(&format!("{sweep}-1"), "running");
    let mut terminal = super::spawn_in_terminal(&home, &["wait", &sweep]);
    let mut quiet = super::spawn_in_terminal(&home, &["wait", &sweep, "--json"]);
    let piped = home.spawn(["wait", &sweep]);
    let mut seen = super::read_until(&mut terminal, "waiting: 1 running, 1 queued; 0.");
    // The time goes on while nothing happens.
    seen.extend(super::read_until(
        &mut terminal,
        "\r\x1b[2Kwaiting: 1 running, 1 queued; 2.",
    ));
    home.write("go", "");
    let shown = finish(terminal, seen);
    assert_eq!(shown.code, 1, "{}", shown.stdout);
    let end = shown.stdout.rsplit("\r\x1b[2K").next().unwrap();
    assert!(
        end.starts_with(&format!("{sweep}-1 succeeded\r\n{sweep}-2 failed\r\n"))
            && !end.contains("waiting"),
        "the line is cleared: {:?}",
        shown.stdout
    );
    let first = super::read_until(&mut quiet, "}\r\n");
    let quiet = finish(quiet, first).stdout;
    assert!(quiet.starts_with("{\"runs\":["), "{quiet}");
    let piped = finish(piped, Vec::new());
    assert_eq!(
        piped.stderr.trim(),
        format!("{sweep}-2 failed: rank 0 left with code 1; code 1")
    );
}
