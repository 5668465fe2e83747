//! `tow why`: why it waits, why it failed, what next.

use super::{busy_home, ended, home, short};
use serde_json::{Value, json};
use towline_testkit::Home;

#[test]
fn a_run_that_ended_well() {
    let home = home();
    let id = ended(&home, &["true"]);
    let output = home.tow(["why", &id]).ok();
    assert_eq!(output.stdout, format!("{id} succeeded: it ended well\n"));
    assert_eq!(
        home.tow(["why", &id, "--json"]).ok().json()["state"],
        "succeeded"
    );
}

#[test]
fn the_first_failing_rank_and_where_to_look() {
    let home = home();
    let id = ended(
        &home,
        &[
            "--launch",
            "3",
            "sh",
            "-c",
            "[ $RANK = 1 ] && exit 9; exec sleep 300",
        ],
    );
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(
        (
            &json["id"],
            &json["state"],
            &json["reason"],
            &json["first_failing_rank"]
        ),
        (&json!(id), &json!("failed"), &json!("exit_code"), &json!(1))
    );
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(text.contains("rank 1 left with code 9"), "{text}");
    assert!(text.contains(&format!("tow logs {}", short(&id))), "{text}");
}

#[test]
fn the_step_that_is_advised_shows_the_failing_rank() {
    let home = home();
    let id = ended(
        &home,
        &[
            "--launch",
            "3",
            "sh",
            "-c",
            "[ $RANK = 2 ] && { echo it was me; exit 9; }; exec sleep 300",
        ],
    );
    let step = home.tow(["why", &id, "--json"]).ok().json()["next_step"]
        .as_str()
        .unwrap()
        .to_owned();
    let words: Vec<&str> = step
        .split("tow ")
        .last()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(home.tow(words).ok().stdout, "it was me\n", "{step}");
}

#[test]
fn the_cause_is_read_from_the_log() {
    let home = home();
    let traceback = "Traceback (most recent call last):\n  File \"train.py\", line 1, in \
        <module>\n    import nothere\nModuleNotFoundError: No module named 'nothere'\n";
    home.write("trace.txt", traceback);
    let id = ended(&home, &["cat trace.txt; exit 1"]);
    let output = home.tow(["why", &id]).ok();
    assert!(
        output.stdout.contains("No module named 'nothere'"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("not transient"), "{}", output.stdout);
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(
        (&json["cause"], &json["transient"]),
        (&json!("missing_module"), &json!(false))
    );
    assert!(
        json["evidence"].as_str().unwrap().contains("nothere") && json["next_step"].is_string(),
        "{json}"
    );
}

#[test]
fn a_program_that_is_not_there_and_a_set_up_that_failed() {
    let home = home();
    let id = ended(&home, &["no-such-program"]);
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(
        text.contains("no-such-program") && text.contains("PATH"),
        "{text}"
    );
    home.write(
        "job.yaml",
        "environment: {setup: ['echo no space; exit 2']}\ncommand: 'true'\n",
    );
    let id = ended(&home, &["-f", "job.yaml"]);
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(json["reason"], "set_up");
    assert!(
        json["next_step"].as_str().unwrap().contains("--setup"),
        "{json}"
    );
}

#[test]
fn a_queued_run_waits_for_something_that_somebody_holds() {
    let (home, holder) = busy_home();
    let id = home.tow(["submit", "true"]).ok().id();
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(
        text.starts_with(&format!("{id} queued: it waits for 1 CPU")),
        "{text}"
    );
    assert!(
        text.contains(&format!("held by {}", short(&holder))),
        "{text}"
    );
    let json = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(
        (&json["state"], json["waiting"].is_object()),
        (&json!("queued"), true)
    );
}

#[test]
fn running_and_cancelled_runs() {
    let (home, holder) = busy_home();
    let text = home.tow(["why", &holder]).ok().stdout;
    assert!(
        text.contains("it is running") && text.contains("tow logs -f"),
        "{text}"
    );
    home.tow(["abort", "--wait", &holder]).ok();
    let text = home.tow(["why", &holder]).ok().stdout;
    assert!(
        text.contains("cancelled by the user")
            && text.contains(&format!("tow resubmit {}", short(&holder))),
        "{text}"
    );
}

#[test]
fn a_held_run_failed_and_says_what_can_be_done() {
    let home = home();
    let id = home
        .tow(["submit", "--hold-on-failure", "1h", "sh", "-c", "exit 4"])
        .ok()
        .id();
    towline_testkit::until("it to be held", || {
        home.show(&id)["held_until"].is_string().then_some(())
    });
    let text = home.tow(["why", &id]).ok().stdout;
    assert!(
        text.starts_with(&format!("{id} failed, held: rank 0 left with code 4")),
        "{text}"
    );
    assert!(
        text.contains("tow ssh") && text.contains("tow abort"),
        "{text}"
    );
    home.tow(["abort", "--wait", &id]).ok();
}

/// Submits a Python program of that text and waits for its end; what `why` says, for people and for
/// programs.
#[track_caller]
fn failed_script(home: &Home, text: &str) -> (String, Value) {
    home.write("train.py", text);
    why(home, &["python3", "train.py"])
}

#[track_caller]
fn why(home: &Home, words: &[&str]) -> (String, Value) {
    let id = ended(home, words);
    let text = home.tow(["why", &id]).ok().stdout;
    (
        text.trim_end().replace(&id, "ID").replace(short(&id), "ID"),
        home.tow(["why", &id, "--json"]).ok().json(),
    )
}

#[test]
fn an_exception_that_no_rule_knows_is_shown_with_the_users_own_line() {
    let home = home();
    let (text, json) = failed_script(
        &home,
        "import json\n\ndef load(text):\n    return json.loads(text)\n\nload('{')\n",
    );
    let message = json["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("json.decoder.JSONDecodeError: "),
        "{json}"
    );
    let want = format!(
        "ID failed: rank 0 left with code 1; rank 0's log shows: {message}\nat train.py:4 in \
            load\n  | return json.loads(text)\nnext: look at train.py:4; the whole log: tow logs ID"
    );
    assert_eq!(text, want);
    assert_eq!(
        (
            &json["cause"],
            &json["transient"],
            &json["rank"],
            &json["evidence"]
        ),
        (&Value::Null, &Value::Null, &json!(0), &json!(message))
    );
    let error = json!({"kind": "exception", "message": message, "file": "train.py", "line": 4, "function": "load", "source": "return json.loads(text)", "ended_as": null, "rank": null});
    assert_eq!(json["error"], error);
}

#[test]
fn the_root_of_a_chain_and_what_it_became() {
    let home = home();
    let (text, json) = failed_script(
        &home,
        "def load(config):\n    return config['lr']\n\ntry:\n    load({})\nexcept KeyError as \
            error:\n    raise RuntimeError('cannot load') from error\n",
    );
    assert!(
        text.contains(
            "shows: KeyError: 'lr'\nat train.py:2 in load\n  | return \
        config['lr']\nin the end: RuntimeError: cannot load\n"
        ),
        "{text}"
    );
    assert_eq!(json["error"]["ended_as"], "RuntimeError: cannot load");
}

#[test]
fn a_known_cause_keeps_its_advice_and_gets_the_line() {
    let home = home();
    let (text, json) = failed_script(&home, "open('/no/such/data.bin')\n");
    assert_eq!(json["cause"], "file_not_found");
    assert!(
        text.contains(
            "  | FileNotFoundError: [Errno 2] No such file or directory: \
            '/no/such/data.bin'\nat train.py:1\n  | open('/no/such/data.bin')\n"
        ),
        "{text}"
    );
    assert!(
        json["next_step"]
            .as_str()
            .unwrap()
            .contains("`/no/such/data.bin`"),
        "{json}"
    );
}

#[test]
fn options_and_syntax_are_not_transient() {
    let home = home();
    let (text, json) = failed_script(
        &home,
        "import argparse\nargparse.ArgumentParser().parse_args(['--lerning-rate'])\n",
    );
    assert!(
        text.contains(
            "left with code 2; rank 0's log shows: train.py: error: unrecognized \
        arguments: --lerning-rate\nnot transient"
        ),
        "{text}"
    );
    assert_eq!(
        (&json["error"]["kind"], &json["transient"]),
        (&json!("usage"), &json!(false))
    );
    let (text, json) = failed_script(&home, "x = 1\ndef f(:\n    pass\n");
    assert!(
        text.contains("SyntaxError: ")
            && text.contains("\nat train.py:2\n  | def f(:\nnot transient"),
        "{text}"
    );
    assert_eq!(
        (&json["error"]["kind"], &json["transient"]),
        (&json!("syntax_error"), &json!(false))
    );
}

#[test]
fn a_log_without_an_error_line_says_so_and_shows_its_end() {
    let home = home();
    let (text, json) = why(&home, &["sh", "-c", "exit 4"]);
    assert_eq!(
        text,
        "ID failed: rank 0 left with code 4; its log is empty\nnext: read the end of its log: tow \
            logs ID"
    );
    assert_eq!((&json["error"], &json["rank"]), (&Value::Null, &json!(0)));
    let (text, json) = why(
        &home,
        &[
            "sh",
            "-c",
            "echo loading; echo no such split: valid; exit 1",
        ],
    );
    assert_eq!(
        text,
        "ID failed: rank 0 left with code 1; its log has no error line and ends with\n  | \
            loading\n  | no such split: valid\nnext: read the end of its log: tow logs ID"
    );
    assert_eq!(
        json["last_lines"],
        json!(["loading", "no such split: valid"])
    );
    let (text, _) = why(&home, &["sh", "-c", "exit 127"]);
    assert!(
        text.contains("code 127 means that a command was not found"),
        "{text}"
    );
}

#[test]
fn nobody_is_told_to_install_their_own_module() {
    let home = home();
    home.write("src/mypkg/__init__.py", "");
    let (text, json) = failed_script(&home, "import mypkg\n");
    assert_eq!(json["cause"], "missing_module");
    assert!(
        text.contains("`mypkg` is your own code, in `src`")
            && text.contains("`PYTHONPATH: src`")
            && !text.contains("pip install"),
        "{text}"
    );
    // The advice is right.
    home.tow(["run", "env", "PYTHONPATH=src", "python3", "train.py"])
        .ok();
    let (text, _) = failed_script(
        &home,
        "import sys; sys.path.insert(0, 'src')\nimport mypkg.models\n",
    );
    assert!(
        text.contains("`mypkg` is your own code and has no `mypkg.models`"),
        "{text}"
    );
    let (text, _) = why(&home, &["--in-place", "python3", "-c", "import mypkg"]);
    assert!(
        text.contains("`mypkg` is your own code, in `src`"),
        "{text}"
    );
    let (text, _) = failed_script(&home, "import nothere_at_all\n");
    assert!(
        text.contains("if `nothere_at_all` is your own code") && !text.contains("pip install"),
        "{text}"
    );
}

#[test]
fn of_several_ranks_the_one_that_failed_first_is_named() {
    let home = home();
    home.write(
        "train.py",
        "import os, time\ndef step():\n    raise KeyError(os.environ['RANK'])\nif \
            os.environ['RANK'] == '2':\n    step()\ntime.sleep(300)\n",
    );
    let (text, json) = why(&home, &["--launch", "3", "python3", "train.py"]);
    assert!(
        text.contains(
            "rank 2 left with code 1; rank 2's log shows: KeyError: '2'\nat train.py:3 in step\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("tow logs ID --rank 2"), "{text}");
    assert_eq!(
        (&json["first_failing_rank"], &json["rank"]),
        (&json!(2), &json!(2))
    );
}

/// Rank 0 ends first, because it lost rank 1, which has failed and hangs.
#[test]
fn a_rank_that_only_lost_its_peer_is_not_blamed() {
    let home = home();
    let script = "import os, time\nif os.environ['RANK'] == \
        '1':\n    try:\n        {}['lr']\n    except KeyError:\n        import traceback; \
            traceback.print_exc(); open('failed', 'w'); time.sleep(300)\nwhile not \
                os.path.exists('failed'):\n    time.sleep(0.01)\nclass \
                    DistBackendError(Exception): pass\nraise DistBackendError('NCCL error in: \
                        x.cpp:1')\n";
    home.write("train.py", script);
    let (text, json) = why(&home, &["--launch", "2", "python3", "train.py"]);
    assert!(
        text.contains("rank 0 left with code 1; rank 1's log shows: KeyError: 'lr'"),
        "{text}"
    );
    assert_eq!(
        (&json["first_failing_rank"], &json["rank"], &json["cause"]),
        (&json!(0), &json!(1), &Value::Null)
    );
}

/// What a program said before it was killed from outside is shown, and the advice stays that of the
/// signal.
#[test]
fn a_killed_program_is_not_explained_by_what_it_said_before() {
    let home = home();
    let (text, json) = why(
        &home,
        &["sh", "-c", "echo 'ERROR: no cache'; kill -KILL $$"],
    );
    assert!(
        text.contains(
            "rank 0 was ended by SIGKILL; rank 0's log shows: ERROR: no cache\nnext: \
        SIGKILL comes from outside"
        ),
        "{text}"
    );
    assert_eq!(json["error"]["kind"], "error_line");
}

#[test]
fn what_is_quoted_cannot_write_to_the_terminal() {
    let home = home();
    let (text, json) = failed_script(
        &home,
        "raise ValueError('\\x1b]0;owned\\x07\\x1b[2Jred\\u202e' + 'y' * 5000)\n",
    );
    assert!(
        text.contains("ValueError: red") && !text.contains(['\x1b', '\x07', '\u{202e}']),
        "{text}"
    );
    assert!(
        json["error"]["message"].as_str().unwrap().chars().count() <= 300 && text.len() < 2000,
        "{text}"
    );
}

/// One line of a gigabyte, and the error behind it.
#[test]
fn only_the_end_of_a_large_log_is_read() {
    let home = home();
    let (text, _) = failed_script(
        &home,
        "import os\nos.ftruncate(1, 1 << 30)\nos.lseek(1, 0, os.SEEK_END)\nraise \
            KeyError('late')\n",
    );
    assert!(text.contains("KeyError: 'late'\nat train.py:4\n"), "{text}");
}
