//! `tow run`: the job's output, the job's code.

use super::{
    assert_is_run, assert_matches, finish, gate, home, last_line, read_until, send, short,
    wait_for_name,
};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn the_job_s_output_is_stdout_and_nothing_else_is_said() {
    let home = home();
    let output = home
        .tow(["run", "sh", "-c", "echo out; echo err >&2; echo more"])
        .ok();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("out\nerr\nmore\n", "")
    );
}

#[test]
fn the_code_is_the_job_s_and_the_last_line_says_so() {
    let home = home();
    for code in [1, 3, 42, 120, 124, 127, 255] {
        let output = home.tow(["run", "sh", "-c", &format!("echo out; exit {code}")]);
        assert_eq!((output.code, output.stdout.as_str()), (code, "out\n"));
        let id = home.show("@")["id"].as_str().unwrap().to_owned();
        assert_eq!(
            last_line(&output.stderr),
            format!("{id} failed: rank 0 left with code {code}; code {code}")
        );
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    let home = home();
    for (signal, name, code) in [
        ("KILL", "SIGKILL", 137),
        ("SEGV", "SIGSEGV", 139),
        ("TERM", "SIGTERM", 143),
        ("INT", "SIGINT", 130),
    ] {
        let output = home.tow(["run", &format!("kill -{signal} $$")]);
        assert_eq!(output.code, code, "{output:?}");
        assert!(
            output
                .stderr
                .contains(&format!("rank 0 was ended by {name}; code {code}")),
            "{}",
            output.stderr
        );
        let run = home.show("@");
        assert_eq!(
            (
                run["state"].as_str(),
                run["reason"].as_str(),
                run["exit_code"].as_i64()
            ),
            (Some("failed"), Some("signal"), Some(code.into()))
        );
    }
}

#[test]
fn a_program_that_is_not_there() {
    let home = home();
    let output = home.tow(["run", "no-such-program"]);
    assert_eq!((output.code, output.stdout.as_str()), (127, ""));
    assert!(
        output.stderr.contains("no-such-program") && output.stderr.contains("not found"),
        "{}",
        output.stderr
    );
    assert_eq!(home.show("@")["reason"], "not_started");
    home.write("plain", "echo not executable\n");
    assert_eq!(home.tow(["run", "./plain"]).code, 126);
}

#[test]
fn a_failure_without_a_code_is_1() {
    let home = home();
    let output = home.tow(["run", "--time", "1s", "sleep", "300"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("time limit"), "{}", output.stderr);
    assert_eq!(home.show("@")["reason"], "time_limit");
}

#[test]
fn a_cancelled_run_is_143() {
    let home = home();
    let mut child = home.spawn([
        "run",
        "--name",
        "long",
        "sh",
        "-c",
        "echo here; exec sleep 300",
    ]);
    let before = read_until(&mut child, "here\n");
    let id = wait_for_name(&home, "long", "running");
    home.tow(["abort", &id]).ok();
    let output = finish(child, before);
    assert_eq!((output.code, output.stdout.as_str()), (143, "here\n"));
    assert!(
        output
            .stderr
            .contains(&format!("{id} cancelled: cancelled by the user; code 143")),
        "{}",
        output.stderr
    );
}

#[test]
fn interrupted_it_detaches_and_the_run_goes_on() {
    let home = home();
    let mut child = home.spawn([
        "run",
        "--name",
        "gated",
        &format!("echo begun; {}; echo done", gate("go")),
    ]);
    let before = read_until(&mut child, "begun\n");
    send(&child, Signal::INT);
    let output = finish(child, before);
    let id = wait_for_name(&home, "gated", "running");
    assert_eq!((output.code, output.stdout.as_str()), (130, "begun\n"));
    assert!(
        output.stderr.contains("detached") && output.stderr.contains(&id),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains(&format!("tow abort {}", short(&id))),
        "it says how to abort: {}",
        output.stderr
    );
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "begun\ndone\n");
}

#[test]
fn output_is_shown_as_it_comes() {
    let home = home();
    // Without a newline, and long before the end.
    let mut child = home.spawn(["run", &format!("printf 50%%; {}", gate("go"))]);
    let before = read_until(&mut child, "50%");
    home.write("go", "");
    assert_eq!(finish(child, before).code, 0);
}

#[test]
fn bytes_are_passed_on_raw() {
    let home = home();
    let output = home
        .tow(["run", "printf", r"10%%\r100%%\000\377\033[0m no newline"])
        .ok();
    assert_eq!(output.raw, b"10%\r100%\0\xff\x1b[0m no newline");
}

#[test]
fn several_ranks_are_told_apart() {
    let home = home();
    let output = home
        .tow(["run", "--launch", "2", "sh", "-c", "echo rank $RANK"])
        .ok();
    let mut lines: Vec<&str> = output.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] rank 0", "[1] rank 1"]);
}

#[test]
fn retries_are_followed_to_the_end() {
    let home = home();
    home.write(
        "job.yaml",
        "command: 'echo attempt $TOW_ATTEMPT; [ $TOW_ATTEMPT -ge 3 ]'\nretry: \
        {when: [exit_code], max: 5}\n",
    );
    let output = home.tow(["run", "-f", "job.yaml"]).ok();
    assert_eq!(output.stdout, "attempt 1\nattempt 2\nattempt 3\n");
    assert!(
        output.stderr.contains("attempt 3 begins"),
        "{}",
        output.stderr
    );
    home.write(
        "short.yaml",
        "command: 'echo attempt $TOW_ATTEMPT; exit 9'\nretry: {when: [exit_code], max: 2}\n",
    );
    let output = home.tow(["run", "-f", "short.yaml"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (9, "attempt 1\nattempt 2\n")
    );
}

#[test]
fn a_sweep_of_several_is_not_for_run() {
    let home = home();
    let output = home.tow(["run", "--sweep", "a=1,2", "touch", "made"]);
    assert_eq!((output.code, output.stdout.as_str()), (120, ""));
    assert!(output.stderr.contains("tow submit"), "{}", output.stderr);
    assert_eq!(super::runs(&home, &[]).len(), 0);
}

#[test]
fn for_programs_every_line_is_json_and_the_last_is_the_run() {
    let home = home();
    let output = home.tow(["run", "--json", "sh", "-c", "echo out; exit 3"]);
    assert_eq!(output.code, 3);
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line:?}")))
        .collect();
    let run = lines.last().unwrap();
    assert_eq!(
        (
            run["state"].as_str(),
            run["reason"].as_str(),
            run["exit_code"].as_i64()
        ),
        (Some("failed"), Some("exit_code"), Some(3))
    );
    assert_is_run(run);
}

#[test]
fn a_held_failure_is_told_and_its_code_passed_on_at_the_end() {
    let home = home();
    let mut child = home.spawn([
        "run",
        "--name",
        "held",
        "--hold-on-failure",
        "1h",
        "sh",
        "-c",
        "echo broken; exit 6",
    ]);
    let before = read_until(&mut child, "broken\n");
    let id = wait_for_name(&home, "held", "running");
    towline_testkit::until("it to be held", || {
        home.show(&id)["held_until"].is_string().then_some(())
    });
    home.tow(["abort", &id]).ok();
    let output = finish(child, before);
    assert_eq!(output.code, 6);
    assert_matches(&output.stderr, &format!("tow ssh {}", short(&id)));
}

#[test]
fn when_nobody_reads_any_more_it_says_that_the_run_goes_on() {
    let home = home();
    let mut child = home.spawn(["run", "yes"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let id = home.show("@")["id"].as_str().unwrap().to_owned();
    assert!(
        said.contains(&format!("{id} goes on")) && said.contains("tow abort"),
        "{said}"
    );
    home.tow(["abort", &id, "--wait"]).ok();
}
