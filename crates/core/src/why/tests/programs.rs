//! The last messages of other programs than Python's: options, shells, compilers, crashes, panics.

use super::errors::{KEY_ERROR_LOG, error, shown};
use crate::why::{Class, Form, read};

#[test]
fn options_that_are_wrong() {
    let argparse = "usage: train.py [-h] [--learning-rate \
        LEARNING_RATE]\n                [--on-nan {stop,skip}]\ntrain.py: error: unrecognized \
            arguments: --lerning-rate 0.1\n";
    assert_eq!(
        shown(argparse),
        "train.py: error: unrecognized arguments: --lerning-rate 0.1"
    );
    assert_eq!(
        (error(argparse).form, error(argparse).form.transient()),
        (Form::Usage, Some(false))
    );
    assert_eq!(
        error("usage: tool fit [-h]\ntool fit: error: argument --n: invalid int value: 'x'\n").form,
        Form::Usage
    );
    let click =
        "Usage: train [OPTIONS]\nTry 'train --help' for help.\n\nError: No such option: --lr\n";
    assert_eq!(
        (shown(click), error(click).form),
        ("Error: No such option: --lr".to_owned(), Form::Usage)
    );
    let absl = "FATAL Flags parsing error:\n  Unknown command line flag 'lr'. Did you mean: l \
        ?\nPass --helpshort or --helpfull to see help on flags.\n";
    assert_eq!(
        shown(absl),
        "FATAL Flags parsing error:\n+ Unknown command line flag 'lr'. Did you mean: l ?"
    );
    let hydra = "Could not override 'lr'.\nTo append to your config use +lr=1\nKey 'lr' is not in \
        struct\n    full_key: lr\n    object_type=dict\n\nSet the environment variable \
            HYDRA_FULL_ERROR=1 for a complete stack trace.\n";
    assert_eq!(
        shown(hydra),
        "Key 'lr' is not in struct\n+ full_key: lr\n+ object_type=dict"
    );
    let below_a_wrapper = format!(
        "{argparse}{}",
        KEY_ERROR_LOG.replace(
            "KeyError: 'lr'",
            "subprocess.CalledProcessError: Command '['python', \
            'train.py']' returned non-zero exit status 2."
        )
    );
    assert_eq!(error(&below_a_wrapper).form, Form::Usage);
}

#[test]
fn shells() {
    let unbound = "/tmp/job.sh: line 7: DATA: unbound variable\n";
    assert_eq!(
        shown(unbound),
        "/tmp/job.sh: line 7: DATA: unbound variable\n@ /tmp/job.sh:7"
    );
    let syntax =
        "bash: -c: line 1: syntax error near unexpected token `)'\nbash: -c: line 1: `foo )'\n";
    assert_eq!(
        shown(syntax),
        "bash: -c: line 1: syntax error near unexpected token `)'"
    );
    assert_eq!(
        shown("sh: 1: Syntax error: \"fi\" unexpected\n"),
        "sh: 1: Syntax error: \"fi\" unexpected"
    );
    assert_eq!(
        error("train.sh: 3: cd: can't cd to out\n").form,
        Form::Shell
    );
}

#[test]
fn python_that_crashed() {
    let log = "step 3\nFatal Python error: Aborted\n\nThread 0x00007f9dc480fb81 (most recent call \
        first):\n  File \"/usr/lib/python3.11/threading.py\", line 320 in \
            wait\n  File \"/job/other.py\", line 1 in w\n\nCurrent thread 0x00007f9dc480fb80 (most \
                recent call first):\n  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 \
                    in string_at\n  File \"/job/seg.py\", line 3 in crash\n  File \"/job/seg.py\", \
                        line 4 in <module>\n\nExtension modules: numpy.core._multiarray_umath \
                            (total: 1)\nAborted (core dumped)\n";
    assert_eq!(
        shown(log),
        "Fatal Python error: Aborted\n@ /job/seg.py:3 in crash"
    );
    assert_eq!(error(log).form, Form::Crash);
    let fault = log.replace("Aborted", "Segmentation fault")
        + "job.sh: line 3:  4711 Segmentation fault      (core dumped) python seg.py\n";
    let reading = read(fault.as_bytes());
    assert_eq!(
        reading.finding.map(|finding| finding.class),
        Some(Class::Segfault)
    );
    assert_eq!(
        shown(&fault),
        "Fatal Python error: Segmentation fault\n@ /job/seg.py:3 in crash"
    );
}

#[test]
fn cpp_and_c() {
    let thrown = "terminate called after throwing an instance of \
        'std::runtime_error'\n  what():  no such index\nAborted (core dumped)\n";
    assert_eq!(shown(thrown), "std::runtime_error: no such index");
    assert_eq!(
        shown("terminate called without an active exception\nAborted\n"),
        "terminate called without an active exception"
    );
    assert_eq!(
        shown(
            "libc++abi: terminating due to uncaught exception of type std::out_of_range: map::at\n"
        ),
        "libc++abi: terminating due to uncaught exception of type std::out_of_range: map::at"
    );
    assert_eq!(
        shown("free(): invalid pointer\nAborted (core dumped)\n"),
        "free(): invalid pointer"
    );
    assert_eq!(
        shown("a.out: main.c:12: run: Assertion `n > 0' failed.\nAborted\n"),
        "a.out: main.c:12: run: Assertion `n > 0' failed.\n@ main.c:12 in run"
    );
    assert_eq!(
        shown("*** stack smashing detected ***: terminated\nAborted\n"),
        "*** stack smashing detected ***: terminated"
    );
}

#[test]
fn compilers() {
    let log = "nvcc -c kernel.cu\nkernel.cu(12): error: identifier \"x\" is \
        undefined\nkernel.cu(14): error: expected a \";\"\n2 errors detected in the compilation \
            of \"kernel.cu\".\nmake: *** [Makefile:3: kernel.o] Error 2\n";
    assert_eq!(
        shown(log),
        "kernel.cu(12): error: identifier \"x\" is undefined\n@ kernel.cu:12"
    );
    assert_eq!(
        shown("main.c:3:5: error: 'x' undeclared\nmake: *** [main.o] Error 1\n"),
        "main.c:3:5: error: 'x' undeclared\n@ main.c:3"
    );
}

#[test]
fn rust_and_go() {
    let now = "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3 but \
        the index is 5\nnote: run with `RUST_BACKTRACE=1` environment variable to display a \
            backtrace\n";
    assert_eq!(
        shown(now),
        "panicked: index out of bounds: the len is 3 but the index is 5\n@ src/main.rs:4"
    );
    assert_eq!(shown(&now.replace("'main'", "'main' (4711)")), shown(now));
    let before = "thread 'main' panicked at 'no file', src/main.rs:4:5\nnote: run with \
        `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
    assert_eq!(shown(before), "panicked: no file\n@ src/main.rs:4");
    let go = "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 \
        [running]:\nruntime.goPanicIndex(0x5, 0x3)\n\t/usr/local/go/src/runtime/panic.go:114 \
            +0x74\nmain.work({0xc00, 0x3})\n\t/home/me/x.go:7 \
                +0x1d\nmain.main()\n\t/home/me/x.go:12 +0x1d\nexit status 2\n";
    assert_eq!(
        shown(go),
        "panic: runtime error: index out of range [5] with length 3\n@ /home/me/x.go:7 in main.work"
    );
    assert_eq!(error(go).form, Form::Panic);
}

#[test]
fn java_javascript_julia_and_r() {
    let java = "Exception in thread \"main\" java.lang.RuntimeException: cannot start\n\tat \
        com.me.Main.main(Main.java:9)\nCaused by: java.lang.IllegalStateException: no shard\n\tat \
            java.base/java.util.Objects.requireNonNull(Objects.java:208)\n\tat \
                com.me.Reader.read(Reader.java:5)\n\t... 1 more\n";
    assert_eq!(
        shown(java),
        "java.lang.IllegalStateException: no shard\n@ Reader.java:5 in com.me.Reader.read"
    );
    let node = "/job/x.js:2\n  throw new Error(\"bad shard\");\n  ^\n\nError: bad shard\n    at \
        work (/job/x.js:2:9)\n    at Object.<anonymous> (/job/x.js:4:1)\n    at Module._compile \
            (node:internal/modules/cjs/loader:1105:14)\n\nNode.js v18.1.0\n";
    assert_eq!(shown(node), "Error: bad shard\n@ /job/x.js:2 in work");
    let julia = "ERROR: LoadError: DomainError with -1.0:\nsqrt was called with a negative real \
        argument\nStacktrace:\n [1] throw_complex_domainerror(f::Symbol, x::Float64)\n   @ \
            Base.Math ./math.jl:33\n [2] f(x::Float64)\n   @ Main /job/a.jl:3\nin expression \
                starting at /job/a.jl:5\n";
    assert_eq!(shown(julia), "DomainError with -1.0:\n@ /job/a.jl:3");
    assert_eq!(
        shown("Error in f(1) : no shard\nCalls: f\nExecution halted\n"),
        "Error in f(1) : no shard"
    );
}

#[test]
fn a_test_that_fails() {
    let log = "=================== FAILURES ===================\n__________ test_a \
        __________\n>       assert load('a.yaml') == {}\nE       assert 1 == \
            {}\n\ntests/test_a.py:9: AssertionError\n=========== short test summary info \
                ============\nFAILED tests/test_a.py::test_a - assert 1 == {}\nFAILED \
                    tests/test_b.py::test_b - assert 2 == {}\n============ 2 failed, 41 passed in \
                        2.13s ============\n";
    assert_eq!(
        shown(log),
        "FAILED tests/test_a.py::test_a - assert 1 == {}"
    );
}

#[test]
fn lines_that_call_themselves_errors() {
    let pip = "Collecting nothere\nERROR: Could not find a version that satisfies the requirement \
        nothere (from versions: none)\nERROR: No matching distribution found for nothere\n";
    assert_eq!(
        shown(pip),
        "ERROR: No matching distribution found for nothere"
    );
    let logged = "2025-01-01 12:00:00,123 - trainer - INFO - starting\n2025-01-01 12:00:00,124 - \
        trainer - ERROR - no checkpoint in out\nbye\n";
    assert_eq!(
        shown(logged),
        "2025-01-01 12:00:00,124 - trainer - ERROR - no checkpoint in out\n+ bye"
    );
    assert_eq!(
        shown(
            "slurmstepd: error: Job credential expired\nsrun: error: n1: task 0: Exited with exit \
                code 1\n"
        ),
        "slurmstepd: error: Job credential expired"
    );
    assert_eq!(error("ERROR:root:no data\n").form, Form::ErrorLine);
}
