//! Errors of chained exceptions, of workers and of launchers, in the log's own words.

use super::errors::{KEY_ERROR_LOG, error, of_rank, shown};
use crate::why::{Class, Form, read};

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
