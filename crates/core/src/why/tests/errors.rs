//! Failures that no rule knows, and what is shown of them. The logs are as the programs write them.

use crate::why::{Form, LogError, read, root_cause};

/// The shown parts in one text: message, place, source, last exception.
#[track_caller]
pub(super) fn shown(log: &str) -> String {
    let error = error(log);
    let mut text = error.message.clone();
    for line in &error.more {
        text += &format!("\n+ {line}");
    }
    if let Some(place) = &error.place {
        text += &format!("\n@ {}", place.short());
        text += &place
            .function
            .as_ref()
            .map(|function| format!(" in {function}"))
            .unwrap_or_default();
        text += &place
            .source
            .as_ref()
            .map(|source| format!("\n> {source}"))
            .unwrap_or_default();
    }
    text + &error
        .ended_as
        .map(|last| format!("\n= {last}"))
        .unwrap_or_default()
}

#[track_caller]
pub(super) fn error(log: &str) -> LogError {
    read(log.as_bytes())
        .error
        .unwrap_or_else(|| panic!("no error in:\n{log}"))
}

pub(super) fn of_rank(rank: u32, text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("[rank{rank}]: {line}\n"))
        .collect();
    lines.concat()
}

pub(super) const KEY_ERROR_LOG: &str = r#"Traceback (most recent call last):
  File "/job/train.py", line 88, in <module>
    main()
  File "/job/train.py", line 61, in main
    lr = config["lr"]
         ~~~~~~^^^^^^
KeyError: 'lr'
"#;

#[test]
fn an_exception_with_its_line() {
    assert_eq!(
        shown(KEY_ERROR_LOG),
        "KeyError: 'lr'\n@ /job/train.py:61 in main\n> lr = config[\"lr\"]"
    );
    assert_eq!(error(KEY_ERROR_LOG).form, Form::Exception);
    assert!(read(KEY_ERROR_LOG.as_bytes()).finding.is_none());
}

#[test]
fn the_deepest_line_of_the_users_own_code() {
    let log = r#"Traceback (most recent call last):
  File "/opt/conda/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/job/train.py", line 4, in <module>
    load()
  File "/job/data/reader.py", line 3, in load
    return json.loads("{")
           ^^^^^^^^^^^^^^^
  File "/opt/conda/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
  File "/job/.venv/lib/python3.11/site-packages/pandas/io.py", line 9, in read
    raise ValueError(x)
  File "<frozen importlib._bootstrap>", line 1204, in _gcd_import
json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
"#;
    let want = "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: \
        line 1 column 2 (char 1)\n@ /job/data/reader.py:3 in load\n> return json.loads(\"{\")";
    assert_eq!(shown(log), want);
}

#[test]
fn whose_code_a_file_is() {
    let own = [
        "/job/train.py",
        "train.py",
        "/home/me/torch/train.py",
        "/job/lib/model.py",
        "<string>",
        "<stdin>",
        "src/python3/x.py",
        "/job/bin/train.py",
        "/home/me/my torch/nn.py",
    ];
    for file in own {
        assert!(crate::why::frame::is_own(file.as_bytes()), "{file}");
    }
    let foreign = [
        "/usr/lib/python3.10/subprocess.py",
        "/usr/lib/python3/dist-packages/yaml/__init__.py",
        "/root/.pyenv/versions/3.11.7/lib/python3.11/json/decoder.py",
        "/opt/conda/envs/a/lib/python3.9/site-packages/torch/nn/modules/module.py",
        "/usr/local/lib64/python3.9/site-packages/a.py",
        "/opt/pytorch/pytorch/torch/nn/modules/module.py",
        "C:\\Python311\\Lib\\json\\decoder.py",
        "<frozen runpy>",
        "<__array_function__ internals>",
        "/usr/local/bin/torchrun",
        "/opt/conda/bin/accelerate",
        "/tmp/torchinductor_me/ab/cab.py",
    ];
    for file in foreign {
        assert!(!crate::why::frame::is_own(file.as_bytes()), "{file}");
    }
}

#[test]
fn code_without_a_file() {
    let log = "Traceback (most recent call last):\n  File \"<string>\", line 1, in \
        <module>\nValueError: x\n";
    assert_eq!(shown(log), "ValueError: x\n@ <string>:1 in <module>");
    let made_up = "Traceback (most recent call last):\n  File \"/job/a.py\", line 2, in \
        <module>\n    exec(text)\n  File \"<string>\", line 2, in g\nKeyError: 1\n";
    assert_eq!(
        shown(made_up),
        "KeyError: 1\n@ /job/a.py:2 in <module>\n> exec(text)"
    );
    let foreign = "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/runpy.py\", \
        line 2, in _run\n    exec(text)\nKeyError: 1\n";
    assert_eq!(
        shown(foreign),
        "KeyError: 1\n@ /usr/lib/python3.11/runpy.py:2 in _run\n> exec(text)"
    );
}

#[test]
fn an_assertion_without_a_message_shows_its_line() {
    let log = "Traceback (most recent call last):\n  File \"/job/a.py\", line 4, in \
        <module>\n    check(12)\n  File \"/job/a.py\", line 2, in check\n    assert n == \
            10\n           ^^^^^^^\nAssertionError\n";
    assert_eq!(
        shown(log),
        "AssertionError\n@ /job/a.py:2 in check\n> assert n == 10"
    );
}

#[test]
fn a_message_of_several_lines() {
    let log = "Traceback (most recent call last):\n  File \"/job/a.py\", line 4, in \
        <module>\n    net.load_state_dict(state)\nRuntimeError: Error(s) in loading state_dict for \
            Net:\n\tMissing key(s) in state_dict: \"head.weight\". \n\tsize mismatch for \
                fc.weight\nsrun: error: n1: task 0: Exited with exit code 1\n";
    assert_eq!(
        shown(log),
        "RuntimeError: Error(s) in loading state_dict for Net:\n+ Missing key(s) in \
            state_dict: \"head.weight\".\n+ size mismatch for fc.weight\n@ /job/a.py:4 in \
                <module>\n> net.load_state_dict(state)"
    );
}

#[test]
fn code_that_python_cannot_read() {
    let alone =
        "  File \"/job/syn.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
    assert_eq!(
        shown(alone),
        "SyntaxError: invalid syntax\n@ /job/syn.py:1\n> def f(:"
    );
    assert_eq!(shown(&format!("starting\n{alone}")), shown(alone));
    assert_eq!(error(alone).form, Form::Syntax);
    let imported = format!(
        "Traceback (most recent call last):\n  File \"/job/syn2.py\", line 1, in \
            <module>\n    import syn\n{alone}"
    );
    assert_eq!(shown(&imported), shown(alone));
    let indentation = "hello\n  File \"/job/ind.py\", line 2\n    return \
        1\n    ^\nIndentationError: expected an indented block after function definition on line \
            1\n";
    assert_eq!(
        shown(indentation),
        "IndentationError: expected an indented block after function definition on line 1\n@ \
            /job/ind.py:2\n> return 1"
    );
    let tab = "x\n  File \"/job/tab.py\", line 3\n    pass\nTabError: inconsistent use of tabs and \
        spaces in indentation\n";
    assert_eq!(
        shown(tab),
        "TabError: inconsistent use of tabs and spaces in indentation\n@ /job/tab.py:3\n> pass"
    );
}

#[test]
fn boxes_of_rich_and_marks_of_loguru() {
    let rich = "╭───────────────────── Traceback (most recent call last) \
        ──────────────────────╮\n│ /job/a.py:7 in \
            <module>                                                      │\n│                                                                              │\n│   5                                                                          │\n│ ❱ 7 main()                                                                   │\n│                                                                              │\n│ /job/a.py:4 in main                                                          │\n│                                                                              │\n│   3 def main():                                                              │\n│ ❱ 4 │   raise ValueError(\"bad shard\")                                        │\n│   5                                                                          │\n╰──────────────────────────────────────────────────────────────────────────────╯\nValueError: bad shard\n";
    assert_eq!(
        shown(rich),
        "ValueError: bad shard\n@ /job/a.py:4 in main\n> raise ValueError(\"bad shard\")"
    );
    let loguru = "2025-01-01 12:00:00.000 | ERROR    | __main__:<module>:12 - An error has been \
        caught in function '<module>', process 'MainProcess' (1), thread 'MainThread' \
            (1):\nTraceback (most recent call last):\n\n> File \"/job/a.py\", line 12, in \
                <module>\n    main()\n    └ <function main at 0x7f00>\n\n  File \"/job/a.py\", \
                    line 8, in main\n    1 / x\n        └ 0\n\nZeroDivisionError: division by \
                        zero\n";
    assert_eq!(
        shown(loguru),
        "ZeroDivisionError: division by zero\n@ /job/a.py:8 in main\n> 1 / x"
    );
}

#[test]
fn calls_that_ray_quotes() {
    let log = "Traceback (most recent call last):\n  File \"/job/r.py\", line 10, in \
        <module>\n    ray.get(f.remote())\nray.exceptions.RayTaskError(ValueError): ray::f() \
            (pid=123, ip=10.0.0.1)\n  File \"/job/r.py\", line 6, in f\n    raise \
                ValueError(\"bad\")\nValueError: bad\n";
    assert_eq!(
        shown(log),
        "ValueError: bad\n@ /job/r.py:6 in f\n> raise ValueError(\"bad\")"
    );
}

#[test]
fn a_log_without_an_error() {
    for log in [
        "",
        "\n\n",
        "no such split: valid\n",
        "all good\n0 errors, 3 warnings\nerror rate 0.1\nterror: 3\n",
        "srun: error: n1: task 0: Exited with exit code 4\n",
    ] {
        let reading = read(log.as_bytes());
        assert_eq!((reading.finding, reading.error), (None, None), "{log}");
    }
    assert_eq!(
        read(b"one\ntwo\nthree\nfour\n").last_lines,
        ["two", "three", "four"]
    );
}

#[test]
fn what_was_caught_earlier_is_not_the_error() {
    let handled = "ERROR:t:no cache\nTraceback (most recent call last):\n  File \"/job/a.py\", \
        line 5, in <module>\n    {}[\"x\"]\nFileNotFoundError: [Errno 2] No such file or \
            directory: 'cache'\ngo\n";
    let log = format!("{handled}{KEY_ERROR_LOG}");
    assert_eq!(
        (shown(&log), read(log.as_bytes()).finding),
        (shown(KEY_ERROR_LOG), None)
    );
    let warned = format!(
        "W: CUDA out of memory. Tried to allocate 2.00 GiB, using a smaller batch\nRuntimeError: \
            CUDA out of memory. Tried to allocate 2.00 GiB\njob.sh: line 2: module: command not \
                found\n{KEY_ERROR_LOG}"
    );
    assert_eq!(
        (shown(&warned), read(warned.as_bytes()).finding),
        (shown(KEY_ERROR_LOG), None)
    );
    let nccl = format!(
        "[E1012 12:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation \
            timeout: WorkNCCL(SeqNum=88)\n{KEY_ERROR_LOG}"
    );
    assert_eq!(
        (shown(&nccl), read(nccl.as_bytes()).finding),
        (shown(KEY_ERROR_LOG), None)
    );
}

#[test]
fn a_program_that_went_on_is_told_with_doubt() {
    let log = format!("{KEY_ERROR_LOG}{}", "row written\n".repeat(60));
    assert!(error(&log).went_on);
    assert_eq!(error(&log).message, "KeyError: 'lr'");
    assert!(!error(KEY_ERROR_LOG).went_on);
    assert_eq!(
        error(&format!("{log}Error: no rows left\n")).message,
        "Error: no rows left",
        "its last word is more certain"
    );
}

#[test]
fn threads_wrappers_and_what_they_report() {
    let thread = format!("Exception in thread Thread-1 (w):\n{KEY_ERROR_LOG}");
    assert!(error(&thread).thread);
    let task = KEY_ERROR_LOG.replace("KeyError: 'lr'", "ValueError: of a task");
    assert_eq!(
        shown(&format!(
            "{KEY_ERROR_LOG}Task exception was never retrieved\nfuture: <Task finished name='Task-1' \
                exception=ValueError('of a task')>\n{task}"
        )),
        shown(KEY_ERROR_LOG)
    );
    assert_eq!(
        shown(&format!(
            "{KEY_ERROR_LOG}Error in atexit._run_exitfuncs:\n{task}"
        )),
        shown(KEY_ERROR_LOG)
    );
    let wrapped = KEY_ERROR_LOG.replace(
        "KeyError: 'lr'",
        "subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.",
    );
    assert!(error(&wrapped).report);
    assert_eq!(
        shown(&format!("{KEY_ERROR_LOG}{wrapped}")),
        shown(KEY_ERROR_LOG),
        "the child's own traceback is the cause"
    );
}

/// A rank that lost its peers, or was stopped, is not the cause. An exception that no rule knows
/// counts as a cause.
#[test]
fn between_ranks_a_cause_of_its_own_beats_an_echo() {
    let nccl = KEY_ERROR_LOG.replace(
        "KeyError: 'lr'",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1",
    );
    let told_to_end = KEY_ERROR_LOG.replace("KeyError: 'lr'", "KeyboardInterrupt");
    let ranks = |logs: &[&str]| {
        logs.iter()
            .zip(0..)
            .map(|(log, rank)| (rank, read(log.as_bytes())))
            .collect::<Vec<_>>()
    };
    let root = |logs: &[&str]| root_cause(&ranks(logs)).map(|(rank, _)| *rank);
    assert_eq!(root(&[&nccl, KEY_ERROR_LOG, &told_to_end]), Some(1));
    assert_eq!(
        root(&[&told_to_end, "fine\n", KEY_ERROR_LOG, KEY_ERROR_LOG]),
        Some(2)
    );
    assert_eq!(root(&["fine\n", ""]), None);
}

#[test]
fn what_is_quoted_is_clean_and_short() {
    let log = KEY_ERROR_LOG
        .replace(
            "'lr'",
            &format!(
                "\x1b]0;title\x07\x1b[31m\u{202e}evil\u{200b}\x1b[0m\u{9b}{}",
                "y".repeat(9000)
            ),
        )
        .replace("config[", &format!("\x1b[2Jconfig{}[", "z".repeat(900)));
    let error = error(&log);
    let source = error
        .place
        .and_then(|place| place.source)
        .expect("a source");
    assert!(
        error.message.starts_with("KeyError: evily") && error.message.chars().count() == 300,
        "{}",
        error.message
    );
    assert!(
        source.starts_with("lr = configz") && source.chars().count() == 300,
        "{source}"
    );
    assert!(
        !error
            .message
            .contains(['\x1b', '\u{202e}', '\u{200b}', '\u{9b}'])
    );
}

#[test]
fn an_error_behind_a_line_without_end() {
    let mut log = vec![0; 3 << 20];
    log.extend_from_slice(KEY_ERROR_LOG.as_bytes());
    assert_eq!(read(&log).error, Some(error(KEY_ERROR_LOG)));
}
