//! Failures that no rule knows: what is shown of them. The logs are as the programs write them.

use super::{Class, Form, LogError, read, root_cause};

/// What people are shown, in one text: message, place, source, what it ended as.
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

fn of_rank(rank: u32, text: &str) -> String {
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
        assert!(super::frame::is_own(file.as_bytes()), "{file}");
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
        assert!(!super::frame::is_own(file.as_bytes()), "{file}");
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

const CHAINED_LOG: &str = r#"Traceback (most recent call last):
  File "/job/a.py", line 5, in main
    load("a")
  File "/job/a.py", line 2, in load
    return {}["lr"]
KeyError: 'lr'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/job/a.py", line 8, in <module>
    main()
  File "/job/a.py", line 7, in main
    raise RuntimeError("cannot load the configuration") from error
RuntimeError: cannot load the configuration
"#;

#[test]
fn the_first_cause_of_a_chain_is_the_root() {
    let want = "KeyError: 'lr'\n@ /job/a.py:2 in load\n> return {}[\"lr\"]\n= RuntimeError: cannot \
        load the configuration";
    assert_eq!(shown(CHAINED_LOG), want);
    let handling = CHAINED_LOG.replace(
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    );
    assert_eq!(shown(&handling), want);
    let three = format!(
        "{CHAINED_LOG}\nDuring handling of the above exception, another exception occurred:\n\n{}",
        KEY_ERROR_LOG.replace("KeyError: 'lr'", "TypeError: x")
    );
    assert_eq!(
        shown(&three),
        want.replace(
            "RuntimeError: cannot load the configuration",
            "TypeError: x"
        )
    );
}

/// `cache[key]` failed, so the program computed the value, and that failed.
#[test]
fn a_fallback_that_fails_is_shown() {
    let log = r#"Traceback (most recent call last):
  File "/job/a.py", line 5, in get
    return cache[key]
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/job/a.py", line 7, in get
    return compute(key)
  File "/job/a.py", line 12, in compute
    return 1 / n
ZeroDivisionError: division by zero
"#;
    assert_eq!(
        shown(log),
        "ZeroDivisionError: division by zero\n@ /job/a.py:12 in compute\n> return 1 / n"
    );
}

#[test]
fn a_worker_of_a_pool() {
    let log = r#"multiprocessing.pool.RemoteTraceback: 
"""
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/pool.py", line 125, in worker
    result = (True, func(*args, **kwds))
  File "/job/mp.py", line 3, in work
    assert x != 2
           ^^^^^^
AssertionError
"""

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/job/mp.py", line 7, in <module>
    pool.map(work, [2])
  File "/usr/lib/python3.11/multiprocessing/pool.py", line 774, in get
    raise self._value
AssertionError
"#;
    assert_eq!(
        shown(log),
        "AssertionError\n@ /job/mp.py:3 in work\n> assert x != 2"
    );
}

#[test]
fn a_process_of_its_own() {
    let log = "Process Process-1:\nTraceback (most recent call \
        last):\n  File \"/usr/lib/python3.11/multiprocessing/process.py\", line 108, in \
            run\n    self._target(*self._args)\n  File \"/job/proc.py\", line 3, in \
                work\n    raise ValueError(\"bad shard 7\")\nValueError: bad shard 7\n";
    assert_eq!(
        shown(log),
        "ValueError: bad shard 7\n@ /job/proc.py:3 in work\n> raise ValueError(\"bad shard 7\")"
    );
}

#[test]
fn a_worker_of_a_data_loader() {
    let log = r#"Traceback (most recent call last):
  File "/job/train.py", line 20, in <module>
    for batch in loader:
  File "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 701, in __next__
    data = self._next_data()
  File "/opt/conda/lib/python3.11/site-packages/torch/_utils.py", line 733, in reraise
    raise exception
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/conda/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 351, in _worker_loop
    data = fetcher.fetch(index)
  File "/job/dataset.py", line 14, in __getitem__
    return self.labels[index]
KeyError: 17

"#;
    assert_eq!(
        shown(log),
        "KeyError: 17\n@ /job/dataset.py:14 in __getitem__\n> return self.labels[index]"
    );
}

const EXCEPTION_GROUP_LOG: &str = r#"  + Exception Group Traceback (most recent call last):
  |   File "/job/group.py", line 8, in <module>
  |     asyncio.run(main())
  |   File "/usr/lib/python3.11/asyncio/runners.py", line 190, in run
  |     return runner.run(main)
  |            ^^^^^^^^^^^^^^^^
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/job/group.py", line 2, in a
    |     async def a(): raise ValueError("first")
    |                    ^^^^^^^^^^^^^^^^^^^^^^^^^
    | ValueError: first
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/job/group.py", line 4, in b
    |     raise TypeError("second")
    | TypeError: second
    +------------------------------------
"#;

#[test]
fn the_first_of_an_exception_group() {
    let want =
        "ValueError: first\n@ /job/group.py:2 in a\n> async def a(): raise ValueError(\"first\")";
    assert_eq!(
        shown(EXCEPTION_GROUP_LOG),
        format!("{want}\n= TypeError: second")
    );
    assert_eq!(
        shown(&of_rank(2, EXCEPTION_GROUP_LOG)),
        format!("{want}\n= TypeError: second")
    );
    let known = EXCEPTION_GROUP_LOG.replace(
        "ValueError: first",
        "ModuleNotFoundError: No module named 'einops'",
    );
    assert_eq!(
        read(known.as_bytes())
            .finding
            .map(|finding| (finding.class, finding.evidence)),
        Some((
            Class::MissingModule,
            "ModuleNotFoundError: No module named 'einops'".to_owned()
        ))
    );
    let without_calls = "  + Exception Group Traceback (most recent call \
        last):\n  |   File \"/job/a.py\", line 13, in main\n  |     raise group\n  | \
            ExceptionGroup: outer (2 sub-exceptions)\n  +-+---------------- 1 \
                ----------------\n    | OSError: x\n    | \n    +---------------- 2 \
                    ----------------\n    | OSError: \
                        y\n    +------------------------------------\n";
    assert!(
        shown(without_calls).starts_with("OSError: x"),
        "{}",
        shown(without_calls)
    );
}

#[test]
fn a_group_within_a_group_and_a_chain() {
    let log = r#"  + Exception Group Traceback (most recent call last):
  |   File "/job/g.py", line 13, in main
  |     raise ExceptionGroup("outer", [g])
  | ExceptionGroup: outer (1 sub-exception)
  +-+---------------- 1 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "/job/g.py", line 11, in main
    |     try: raise ExceptionGroup("nested", es)
    | ExceptionGroup: nested (1 sub-exception)
    +-+---------------- 1 ----------------
      | Traceback (most recent call last):
      |   File "/job/g.py", line 3, in inner
      |     {}["x"]
      |     ~~^^^^^
      | KeyError: 'x'
      | 
      | The above exception was the direct cause of the following exception:
      | 
      | Traceback (most recent call last):
      |   File "/job/g.py", line 5, in inner
      |     raise ValueError("in group") from e
      | ValueError: in group
      +------------------------------------
"#;
    assert_eq!(
        shown(log),
        "KeyError: 'x'\n@ /job/g.py:3 in inner\n> {}[\"x\"]\n= ValueError: in group"
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

const TORCHRUN_LOG: &str = r#"Traceback (most recent call last):
  File "/opt/conda/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/opt/conda/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 260, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2025-10-12_12:00:02
  host      : n1
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 4710)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-10-12_12:00:00
  host      : n1
  rank      : 3 (local_rank: 1)
  exitcode  : 1 (pid: 4713)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"#;

#[test]
fn the_rank_that_torchrun_saw_fail_first() {
    let other = of_rank(
        0,
        &KEY_ERROR_LOG.replace("KeyError: 'lr'", "ValueError: lost the others"),
    );
    let root = of_rank(3, KEY_ERROR_LOG);
    for log in [
        format!("{root}{other}{TORCHRUN_LOG}"),
        format!("{other}{root}{TORCHRUN_LOG}"),
    ] {
        assert_eq!(shown(&log), shown(KEY_ERROR_LOG));
        assert_eq!(error(&log).rank, Some(3));
    }
    let by_local_rank = format!(
        "{}{}{TORCHRUN_LOG}",
        other.replace("[rank0]:", "[default0]:"),
        root.replace("[rank3]:", "[default1]:")
    );
    assert_eq!(error(&by_local_rank).message, "KeyError: 'lr'");
    let both = root.replace("[rank3]:", "[default1]:[rank3]:");
    assert_eq!(
        (shown(&format!("{both}{TORCHRUN_LOG}")), error(&both).rank),
        (shown(KEY_ERROR_LOG), Some(3))
    );
}

#[test]
fn all_there_is_is_the_table() {
    assert_eq!(
        shown(TORCHRUN_LOG),
        "torchrun saw rank 3 fail first on n1 with code 1; its traceback is not in this log"
    );
    assert_eq!(
        (error(TORCHRUN_LOG).rank, error(TORCHRUN_LOG).form),
        (Some(3), Form::Launcher)
    );
    let without_prefix = format!("{KEY_ERROR_LOG}{TORCHRUN_LOG}");
    assert_eq!(
        shown(&without_prefix),
        shown(KEY_ERROR_LOG),
        "older versions of torch put no rank before it"
    );
}

#[test]
fn the_traceback_in_the_table() {
    let quoted = "  traceback : Traceback (most recent call \
        last):\n    File \"/opt/conda/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py\", line 355, in wrapper\n      return f(*args, **kwargs)\n    File \"/job/train.py\", line 10, in main\n      raise ValueError(\"bad shard\")\n  ValueError: bad shard\n";
    let (above, root) = TORCHRUN_LOG.split_once("Root Cause").expect("a root");
    let entry = root
        .lines()
        .find(|line| line.contains("traceback"))
        .expect("an entry");
    let log = format!(
        "{above}Root Cause{}",
        root.replace(&format!("{entry}\n"), quoted)
            .replace("<N/A>", "/tmp/torchelastic_x/none_y/attempt_0/3/error.json")
    );
    assert_eq!(
        shown(&log),
        "ValueError: bad shard\n@ /job/train.py:10 in main\n> raise ValueError(\"bad shard\")"
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

/// A rank that lost its peers, or was told to end, is not blamed; an exception that no rule knows
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
