//! `tow logs`: bytes as they were written.

use super::{busy_home, ended, finish, gate, home, read_until, send, spawn_in_terminal};
use rustix::process::Signal;
use serde_json::Value;
use towline_testkit::until;

#[test]
fn raw_bytes_and_nothing_else() {
    let home = home();
    let id = ended(
        &home,
        &["printf", r"10%%\r20%%\r\000\377\n\033[1mbold\tno newline"],
    );
    let output = home.tow(["logs", &id]).ok();
    assert_eq!(output.raw, b"10%\r20%\r\0\xff\n\x1b[1mbold\tno newline");
    assert_eq!(output.stderr, "");
    let followed = home.tow(["logs", "-f", &id]).ok();
    assert_eq!(followed.raw, output.raw);
}

#[test]
fn stdout_and_stderr_in_the_order_they_were_written() {
    let home = home();
    let id = ended(
        &home,
        &["sh", "-c", "echo 1; echo 2 >&2; echo 3; echo 4 >&2"],
    );
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "1\n2\n3\n4\n");
}

#[test]
fn rank_0_unless_told() {
    let home = home();
    let id = ended(
        &home,
        &["--launch", "3", "sh", "-c", "echo a$RANK; printf b$RANK"],
    );
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "a0\nb0");
    assert_eq!(home.tow(["logs", &id, "--rank", "2"]).ok().stdout, "a2\nb2");
    let all = home.tow(["logs", &id, "--rank", "all"]).ok();
    let mut lines: Vec<&str> = all.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["[0] a0", "[0] b0", "[1] a1", "[1] b1", "[2] a2", "[2] b2"],
        "every line with its rank"
    );
    for rank in ["3", "-1", "x"] {
        let output = home.tow(["logs", &id, &format!("--rank={rank}")]);
        assert_eq!((output.code, output.stdout.as_str()), (122, ""), "{rank}");
        assert!(output.stderr.contains("ranks 0 to 2"), "{}", output.stderr);
    }
}

#[test]
fn last_lines_without_a_newline_come_in_the_order_of_ranks() {
    let home = home();
    let id = ended(&home, &["--launch", "8", "sh", "-c", "printf end$RANK"]);
    let expected: Vec<String> = (0..8).map(|rank| format!("[{rank}] end{rank}")).collect();
    assert_eq!(
        home.tow(["logs", &id, "--rank", "all"])
            .ok()
            .stdout
            .lines()
            .collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn only_lines_that_match() {
    let home = home();
    let id = ended(
        &home,
        &[
            "--launch",
            "2",
            "sh",
            "-c",
            r"printf 'step 1 loss=0.5\nnoise\nstep 20 loss=0.25\nloss=\377\nlast loss=0'",
        ],
    );
    assert_eq!(
        home.tow(["logs", &id, "--grep", r"loss=0\.\d+$"])
            .ok()
            .stdout,
        "step 1 loss=0.5\nstep 20 loss=0.25\n"
    );
    assert_eq!(
        home.tow(["logs", &id, "--grep", "^last"]).ok().stdout,
        "last loss=0\n",
        "a line without a newline counts"
    );
    assert_eq!(
        home.tow(["logs", &id, "--grep", "nothing like it"])
            .ok()
            .stdout,
        ""
    );
    assert_eq!(
        home.tow(["logs", &id, "--grep", "^loss="]).ok().raw,
        b"loss=\xff\n"
    );
    let both = home
        .tow(["logs", &id, "--rank", "all", "--grep", "step 20"])
        .ok();
    assert_eq!(
        both.stdout,
        "[0] step 20 loss=0.25\n[1] step 20 loss=0.25\n"
    );
}

#[test]
fn one_attempt_or_all() {
    let home = home();
    home.write(
        "job.yaml",
        "command: 'echo attempt $TOW_ATTEMPT; [ $TOW_ATTEMPT = 3 ]'\nretry: \
        {when: [exit_code], max: 3}\n",
    );
    let id = ended(&home, &["-f", "job.yaml"]);
    assert_eq!(
        home.tow(["logs", &id]).ok().stdout,
        "attempt 1\nattempt 2\nattempt 3\n"
    );
    for attempt in 1..=3 {
        assert_eq!(
            home.tow(["logs", &id, "--attempt", &attempt.to_string()])
                .ok()
                .stdout,
            format!("attempt {attempt}\n")
        );
    }
    for attempt in ["0", "4"] {
        let output = home.tow(["logs", &id, "--attempt", attempt]);
        assert_eq!((output.code, output.stdout.as_str()), (122, ""));
        assert!(output.stderr.contains("it has had 3"), "{}", output.stderr);
    }
}

#[test]
fn following_goes_over_a_retry_without_a_gap() {
    let home = home();
    home.write(
        "job.yaml",
        &format!(
            "command: 'echo begin $TOW_ATTEMPT; {}; printf \"end $TOW_ATTEMPT|\"; [ $TOW_ATTEMPT = \
                2 ]'\nretry: {{when: [exit_code], max: 2}}\n",
            gate("go-$TOW_ATTEMPT")
        ),
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    let mut child = home.spawn(["logs", "-f", &id]);
    let mut before = read_until(&mut child, "begin 1\n");
    home.write("go-1", "");
    before.extend(read_until(&mut child, "begin 2\n"));
    home.write("go-2", "");
    let output = finish(child, before);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "begin 1\nend 1|begin 2\nend 2|")
    );
}

#[test]
fn following_begins_before_the_run_does() {
    let (home, holder) = busy_home();
    let id = home.tow(["submit", "echo", "at last"]).ok().id();
    let child = home.spawn(["logs", "--follow", &id]);
    home.tow(["abort", &holder]).ok();
    let output = finish(child, Vec::new());
    assert_eq!((output.code, output.stdout.as_str()), (0, "at last\n"));
}

#[test]
fn following_all_ranks_and_a_pattern() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "--launch",
            "2",
            "sh",
            "-c",
            &format!(
                "echo hit $RANK; echo miss; {}; printf 'hit end'",
                gate("go")
            ),
        ])
        .ok()
        .id();
    let mut child = home.spawn(["logs", "-f", &id, "--rank", "all", "--grep", "hit"]);
    let mut before = read_until(&mut child, "] hit ");
    before.extend(read_until(&mut child, "] hit "));
    home.write("go", "");
    let output = finish(child, before);
    let mut lines: Vec<&str> = output.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        (output.code, lines),
        (
            0,
            vec!["[0] hit 0", "[0] hit end", "[1] hit 1", "[1] hit end"]
        )
    );
}

#[test]
fn following_a_failed_run_shows_it_and_is_no_failure_itself() {
    let home = home();
    let id = ended(&home, &["sh", "-c", "echo out; exit 3"]);
    let output = home.tow(["logs", "-f", &id]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "out\n"));
    assert!(
        output.stderr.contains("left with code 3"),
        "{}",
        output.stderr
    );
    assert_eq!(home.tow(["logs", &id]).ok().stderr, "");
}

#[test]
fn interrupted_it_leaves_the_run_alone() {
    let home = home();
    let id = home
        .tow(["submit", &format!("echo begun; {}", gate("go"))])
        .ok()
        .id();
    let mut child = home.spawn(["logs", "-f", &id]);
    let before = read_until(&mut child, "begun\n");
    send(&child, Signal::INT);
    assert_eq!(finish(child, before).code, 130);
    let run = home.show(&id);
    assert_eq!(
        (run["state"].as_str(), run["cancel_requested"].as_bool()),
        (Some("running"), Some(false))
    );
    home.write("go", "");
    home.tow(["wait", &id]).ok();
}

#[test]
fn a_run_without_output_yet_is_empty() {
    let home = home();
    let id = home.tow(["submit", &gate("go")]).ok().id();
    home.wait_for_state(&id, "running");
    let output = home.tow(["logs", &id]).ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    home.write("go", "");
}

#[test]
fn set_up_has_a_log_of_its_own() {
    let home = home();
    home.write(
        "job.yaml",
        "environment: {setup: [echo preparing, echo ready]}\ncommand: echo job\n",
    );
    let id = ended(&home, &["-f", "job.yaml"]);
    assert_eq!(
        home.tow(["logs", &id, "--setup"]).ok().stdout,
        "preparing\nready\n"
    );
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "job\n");
}

#[test]
fn for_programs_every_line_is_json() {
    let home = home();
    let id = ended(
        &home,
        &["--launch", "2", "sh", "-c", "echo line one; echo line two"],
    );
    for words in [
        &["logs", "--json", &id][..],
        &["logs", "--json", "-f", &id],
        &["logs", "--json", "--rank", "all", &id],
    ] {
        let output = home.tow(words).ok();
        assert!(
            output.stdout.contains("line one") && output.stdout.contains("line two"),
            "{words:?}: {output:?}"
        );
        for line in output.stdout.lines() {
            assert!(
                serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object()),
                "{words:?}: not JSON: {line:?}"
            );
        }
    }
}

#[test]
fn what_is_there_is_shown_while_the_run_goes_on() {
    let home = home();
    let id = home
        .tow(["submit", &format!("echo begun; {}", gate("go"))])
        .ok()
        .id();
    until("its first line", || {
        (home.tow(["logs", &id]).ok().stdout == "begun\n").then_some(())
    });
    // The line may be there before the start has been written down.
    home.wait_for_state(&id, "running");
    home.write("go", "");
    home.tow(["wait", &id]).ok();
}

#[test]
fn a_run_without_a_log_says_so() {
    let (home, _) = busy_home();
    let id = home.tow(["submit", "echo", "hi"]).ok().id();
    let queued = home.tow(["logs", &id]).ok();
    assert_eq!(queued.stdout, "");
    assert!(
        queued
            .stderr
            .contains(&format!("{id} has not begun, so it has no log yet")),
        "{}",
        queued.stderr
    );
    home.tow(["abort", &id, "--wait"]).ok();
    assert!(
        home.tow(["logs", &id]).ok().stderr.contains("never began"),
        "it was cancelled in the queue"
    );
    let home = super::home();
    let id = ended(&home, &["echo", "hi"]);
    std::fs::remove_file(home.state().log(
        &towline_core::RunId::try_from(id.clone()).unwrap(),
        1,
        towline_core::cluster::LogSource::Rank(0),
    ))
    .unwrap();
    assert!(
        home.tow(["logs", &id])
            .ok()
            .stderr
            .contains("there is no log of"),
        "it was removed"
    );
    let silent = ended(&home, &["true"]);
    assert_eq!(
        home.tow(["logs", &silent]).ok().stderr,
        "",
        "an empty log is an answer"
    );
}

/// Without an end of line nothing may be held back without bound.
#[test]
fn a_line_of_any_length_is_searched_in_pieces() {
    let home = home();
    let id = ended(
        &home,
        &["head -c 9000000 /dev/zero | tr '\\0' x; echo; echo last"],
    );
    let json: Vec<Value> = home
        .tow(["logs", &id, "--json"])
        .ok()
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let lengths: Vec<usize> = json
        .iter()
        .map(|line| line["line"].as_str().unwrap().len())
        .collect();
    assert_eq!(lengths, [4 << 20, 4 << 20, 9_000_000 - (8 << 20), 4]);
    assert_eq!(
        json.iter()
            .map(|line| line["continues"] == true)
            .collect::<Vec<_>>(),
        [true, true, false, false]
    );
    assert_eq!(
        home.tow(["logs", &id, "--grep", "^last$"]).ok().stdout,
        "last\n"
    );
    assert_eq!(
        home.tow(["logs", &id, "--grep", "x"]).ok().stdout.len(),
        9_000_000 + 3
    );
}

/// `script` is a terminal.
#[test]
fn progress_bars_of_several_ranks_are_shown_as_they_are_drawn() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "--launch",
            "2",
            "sh",
            "-c",
            r"printf '10%%\r'; until [ -e go ]; do sleep 0.01; done; printf '20%%\n'",
        ])
        .ok()
        .id();
    home.wait_for_state(&id, "running");
    let mut child = spawn_in_terminal(&home, &["logs", "-f", &id, "--rank", "all"]);
    let mut seen = read_until(&mut child, "[0] 10%");
    if !String::from_utf8_lossy(&seen).contains("[1] 10%") {
        seen.extend(read_until(&mut child, "[1] 10%"));
    }
    home.write("go", "");
    let all = finish(child, seen).stdout;
    assert!(
        all.contains("[0] 20%") && all.contains("[1] 20%"),
        "{all:?}"
    );
}

#[test]
fn the_last_lines_of_each_rank_and_of_the_latest_attempt() {
    let home = home();
    let script = "seq 1 5000 | sed \"s/^/$RANK-/\"; printf last";
    let id = ended(&home, &["--launch", "2", "sh", "-c", script]);
    let tail = |words: &[&str]| home.tow([&["logs", &id, "--tail"], words].concat()).ok();
    assert_eq!(tail(&["3"]).stdout, "0-4999\n0-5000\nlast");
    assert_eq!(tail(&["0"]).stdout, "");
    assert_eq!(tail(&["99999"]).raw, home.tow(["logs", &id]).ok().raw);
    let all = tail(&["2", "--rank", "all"]).stdout;
    let mut lines: Vec<&str> = all.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 0-5000", "[0] last", "[1] 1-5000", "[1] last"]);
    assert_eq!(tail(&["1", "-f"]).stdout, "last");
    let refused = home.tow(["logs", &id, "--tail", "1", "--grep", "x"]);
    assert_eq!(refused.code, 120, "{refused:?}");
    let sweep = home.tow(["submit", "--sweep", "a=1-2", "printf", "1\\n${{a}}"]);
    let sweep = sweep.ok().id();
    home.tow(["wait", &sweep]).ok();
    let of_each = home.tow(["logs", &sweep, "--tail", "1"]).ok().stdout;
    let lines: Vec<&str> = of_each
        .lines()
        .filter(|line| !line.starts_with("==>"))
        .collect();
    assert_eq!(lines, ["1", "2"], "{of_each}");
}
