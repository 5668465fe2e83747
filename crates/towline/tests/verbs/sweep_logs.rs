//! `tow logs` of a sweep: its runs one after another, or all at once.

use super::{busy_home, ended, finish, gate, home, read_until, send, short};
use rustix::process::Signal;
use serde_json::{Value, json};
use towline_testkit::{Home, Output};

/// A machine with room for so many runs at a time.
fn home_for(runs: u32) -> Home {
    let home = home();
    home.configure(&format!(
        "clusters:\n  local: {{kind: local, cpus: {runs}}}\n"
    ));
    home
}

/// A sweep whose runs print, wait for `go-1`, `go-2`, …, and print again.
fn gated(home: &Home, runs: u32) -> String {
    let command = format!("echo begin; {}; echo end", gate("go-${{a}}"));
    let values = format!("a=1-{runs}");
    home.tow(["submit", "--sweep", &values, "sh", "-c", &command])
        .ok()
        .id()
}

fn documents(output: &Output) -> Vec<Value> {
    let lines = output.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn run_after_run_below_a_heading() {
    let home = home();
    let words = [
        "--sweep",
        "a=1-3",
        "sh",
        "-c",
        r"printf 'x\ny${{a}}'; exit $((${{a}} == 2))",
    ];
    let sweep = ended(&home, &words);
    let short = short(&sweep);
    let expected = format!(
        "==> {short}-1 a=1: succeeded <==\nx\ny1\n\
         ==> {short}-2 a=2: failed <==\nx\ny2\n\
         ==> {short}-3 a=3: succeeded <==\nx\ny3\n"
    );
    for words in [&["logs", &sweep][..], &["logs", "@"], &["logs", "-f", "@"]] {
        let shown = home.tow(words).ok();
        assert_eq!(
            (shown.stdout.as_str(), shown.stderr.as_str()),
            (expected.as_str(), ""),
            "{words:?}"
        );
    }
}

#[test]
fn a_heading_is_one_line_and_no_value_colours_it() {
    let home = home();
    home.write(
        "job.yaml",
        "sweep: {a: [\"x\\n==> y\\e[31m\", z]}\ncommand: [\"true\"]\n",
    );
    let sweep = ended(&home, &["-f", "job.yaml"]);
    let short = short(&sweep);
    assert_eq!(
        home.tow(["logs", &sweep]).ok().stdout,
        format!(
            "==> {short}-1 a=x ==> y\\x1b[31m: succeeded <==\n==> {short}-2 a=z: succeeded <==\n"
        )
    );
}

#[test]
fn a_filter_shows_only_runs_that_match() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1-3", "echo", "loss", "${{a}}"]);
    let shown = home.tow(["logs", &sweep, "--grep", "loss [13]"]).ok();
    let short = short(&sweep);
    assert_eq!(
        shown.stdout,
        format!(
            "==> {short}-1 a=1: succeeded <==\nloss 1\n\
             ==> {short}-3 a=3: succeeded <==\nloss 3\n"
        )
    );
    let shown = home.tow(["logs", &sweep, "--grep", "1", "--json"]).ok();
    assert_eq!(
        documents(&shown),
        [json!({"run": format!("{sweep}-1"), "attempt": 1, "rank": 0, "line": "loss 1"})]
    );
}

#[test]
fn ranks_and_attempts_of_each_run() {
    let home = home();
    let words = [
        "--launch",
        "2",
        "--sweep",
        "a=1,2",
        "sh",
        "-c",
        "echo ${{a}}/$RANK",
    ];
    let sweep = ended(&home, &words);
    let shown = home.tow(["logs", &sweep, "--rank", "1"]).ok().stdout;
    assert!(
        shown.contains("1/1\n") && shown.contains("2/1\n") && !shown.contains("/0"),
        "{shown}"
    );
    let shown = home.tow(["logs", &sweep, "--rank", "all"]).ok().stdout;
    assert!(
        shown.contains("[0] 2/0\n") && shown.contains("[1] 2/1\n"),
        "{shown}"
    );
    for words in [["--rank", "2"], ["--attempt", "2"]] {
        let none = home.tow([&["logs", &sweep][..], &words].concat());
        assert_eq!((none.code, none.stdout.as_str()), (122, ""), "{words:?}");
    }
}

#[test]
fn runs_that_have_not_begun_are_named_and_not_shown() {
    let (home, _) = busy_home();
    let sweep = home.tow(["submit", "--sweep", "a=1-3", "true"]).ok().id();
    let shown = home.tow(["logs", &sweep]).ok();
    assert_eq!(shown.stdout, "");
    assert!(
        shown.stderr.contains("has begun") && shown.stderr.contains("tow why"),
        "{}",
        shown.stderr
    );
}

#[test]
fn all_that_are_active_are_followed_until_the_last_ends() {
    let home = home_for(2);
    let sweep = gated(&home, 3);
    let short = short(&sweep);
    let mut child = home.spawn(["logs", "-f", &sweep]);
    let mut seen = read_until(&mut child, "begin\n");
    seen.extend(read_until(&mut child, "begin\n"));
    let text = String::from_utf8_lossy(&seen).into_owned();
    assert!(
        text.contains(&format!("[{short}-1] begin\n"))
            && text.contains(&format!("[{short}-2] begin\n")),
        "{text}"
    );
    // The third one has no place yet; it is followed when it begins.
    home.write("go-2", "");
    let third = format!("[{short}-3] begin\n");
    seen.extend(read_until(&mut child, &third));
    let text = String::from_utf8_lossy(&seen).into_owned();
    assert!(text.contains(&format!("[{short}-2] end\n")), "{text}");
    assert!(home.kill_daemon(), "the next daemon is asked");
    home.write("go-3", "");
    seen.extend(read_until(&mut child, &format!("[{short}-3] end\n")));
    home.write("go-1", "");
    let all = finish(child, seen);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert_eq!(
        all.stdout.lines().count(),
        6,
        "each line once: {}",
        all.stdout
    );
    for number in 1..=3 {
        assert!(
            all.stderr.contains(&format!("{short}-{number} succeeded")),
            "{}",
            all.stderr
        );
    }
    assert!(
        all.stderr.contains(&format!("{sweep}: 3 succeeded")),
        "{}",
        all.stderr
    );
}

#[test]
fn programs_get_lines_and_then_the_runs() {
    let home = home_for(2);
    let sweep = gated(&home, 2);
    let mut child = home.spawn(["logs", "-f", &sweep, "--json"]);
    let mut seen = read_until(&mut child, "begin");
    seen.extend(read_until(&mut child, "begin"));
    home.write("go-1", "");
    home.write("go-2", "");
    let all = finish(child, seen);
    assert_eq!(all.code, 0, "{}", all.stderr);
    let documents = documents(&all);
    for number in 1..=2 {
        let id = json!(format!("{sweep}-{number}"));
        let lines: Vec<&Value> = documents
            .iter()
            .filter(|one| one["run"] == id)
            .map(|one| &one["line"])
            .collect();
        assert_eq!(lines, ["begin", "end"]);
        let ends = documents.iter().filter(|one| one["id"] == id);
        let states: Vec<&Value> = ends.map(|one| &one["state"]).collect();
        assert_eq!(states, ["succeeded"]);
    }
    assert_eq!(documents.len(), 6);
    // The same when all have ended.
    let again = home.tow(["logs", "-f", &sweep, "--json"]).ok();
    assert_eq!(again.stdout.lines().count(), 6, "{}", again.stdout);
}

#[test]
fn what_ended_before_is_said_and_a_failure_has_a_next_step() {
    let home = home_for(2);
    let command = format!(
        "echo x; [ ${{{{a}}}} = 1 ] || {{ {}; exit 4; }}",
        gate("go")
    );
    let sweep = home
        .tow(["submit", "--sweep", "a=1,2", "sh", "-c", &command])
        .ok()
        .id();
    home.wait_for_state(&format!("{sweep}-1"), "succeeded");
    let mut child = home.spawn(["logs", "-f", &sweep]);
    let seen = read_until(&mut child, "x\n");
    home.write("go", "");
    let all = finish(child, seen);
    let short = short(&sweep);
    assert_eq!(
        (all.code, all.stdout.as_str()),
        (0, format!("[{short}-2] x\n").as_str())
    );
    for part in [
        "1 of 2 runs had ended before",
        &format!("{short}-2 failed: rank 0 left with code 4"),
        &format!("{sweep}: 1 failed, 1 succeeded"),
        &format!("tow why {short}"),
    ] {
        assert!(all.stderr.contains(part), "no {part:?} in {}", all.stderr);
    }
}

#[test]
fn ctrl_c_leaves_the_runs_alone() {
    let home = home_for(2);
    let sweep = gated(&home, 2);
    let mut child = home.spawn(["logs", "-f", &sweep]);
    let seen = read_until(&mut child, "begin\n");
    send(&child, Signal::INT);
    assert_eq!(finish(child, seen).code, 130);
    for number in 1..=2 {
        assert_eq!(home.state_of(&format!("{sweep}-{number}")), "running");
    }
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_is_not_waited_for() {
    let home = home_for(1);
    let sweep = gated(&home, 2);
    let mut child = home.spawn(["logs", "-f", &sweep]);
    let seen = read_until(&mut child, "begin\n");
    home.tow(["abort", "--wait", &format!("{sweep}-2")]).ok();
    home.write("go-1", "");
    let all = finish(child, seen);
    let short = short(&sweep);
    assert_eq!(
        (all.code, all.stdout.as_str()),
        (0, format!("[{short}-1] begin\n[{short}-1] end\n").as_str())
    );
    assert!(
        all.stderr.contains(&format!("{short}-2 cancelled"))
            && all
                .stderr
                .contains(&format!("{sweep}: 1 cancelled, 1 succeeded")),
        "{}",
        all.stderr
    );
}
