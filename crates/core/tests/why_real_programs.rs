//! The classifier against programs that really fail.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod why_real {
    use std::process::{Command, Stdio};
    use towline_core::why::{Class, Finding, Form, classify, read};

    /// The output of a program, both streams in one as in a job's log. It must fail.
    fn log_of(program: &str, arguments: &[&str]) -> String {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
        assert!(
            !child.wait().unwrap().success(),
            "{program} {arguments:?} was to fail"
        );
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[track_caller]
    fn expect(program: &str, arguments: &[&str], class: Class, transient: bool) -> Finding {
        let log = log_of(program, arguments);
        let finding = classify(log.as_bytes()).unwrap_or_else(|| panic!("no finding in:\n{log}"));
        assert_eq!(
            (finding.class, finding.transient),
            (class, transient),
            "in:\n{log}"
        );
        assert!(
            log.lines().any(|line| line.contains(&finding.evidence)),
            "{finding:?} in:\n{log}"
        );
        finding
    }

    fn python(code: &str, class: Class, transient: bool) -> Finding {
        expect("python3", &["-c", code], class, transient)
    }

    /// A folder that is removed at the end.
    struct Folder(std::path::PathBuf);
    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("towline-why-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
        fn file(&self, name: &str, text: &str) -> String {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        }
    }
    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn missing_module() {
        let finding = python("import no_such_module_of_ours", Class::MissingModule, false);
        assert!(
            finding.next_step.contains("`no_such_module_of_ours`")
                && !finding.next_step.contains("pip install"),
            "{finding:?}"
        );
        expect(
            "python3",
            &["-m", "no_such_module_of_ours"],
            Class::MissingModule,
            false,
        );
        expect(
            "python3",
            &["-m", "no_such_package.main"],
            Class::MissingModule,
            false,
        );
    }

    #[test]
    fn missing_module_reworded() {
        let code = "try:\n  import no_such_module_of_ours\nexcept ImportError:\n  raise \
            RuntimeError('the fast path needs it')";
        python(code, Class::MissingModule, false);
        let code = "try:\n  import no_such_module_of_ours\nexcept ImportError as error:\n  raise \
            RuntimeError('the fast path needs it') from error";
        python(code, Class::MissingModule, false);
    }

    #[test]
    fn missing_library() {
        python(
            "import ctypes; ctypes.CDLL('libnosuchthing.so.1')",
            Class::MissingLibrary,
            false,
        );
    }

    #[test]
    fn missing_file() {
        let finding = python("open('/no/such/file.yaml')", Class::FileNotFound, false);
        assert!(
            finding.next_step.contains("`/no/such/file.yaml`"),
            "{finding:?}"
        );
        expect(
            "python3",
            &["/no/such/train.py"],
            Class::FileNotFound,
            false,
        );
        expect(
            "bash",
            &["-ec", "cat /no/such/file; echo not reached"],
            Class::FileNotFound,
            false,
        );
        expect(
            "bash",
            &["-c", "/no/such/program"],
            Class::FileNotFound,
            false,
        );
        expect(
            "sh",
            &["-c", "/no/such/program"],
            Class::FileNotFound,
            false,
        );
        expect(
            "bash",
            &["-ec", "cd /no/such/folder; ls"],
            Class::FileNotFound,
            false,
        );
    }

    #[test]
    fn missing_file_in_a_worker() {
        let code = "from multiprocessing import Pool\nif __name__ == '__main__':\n  with Pool(2) \
            as pool:\n    pool.map(open, ['/no/such/image.png'])";
        python(code, Class::FileNotFound, false);
    }

    #[test]
    fn a_fallback_that_fails() {
        let code = "def big():\n  return bytearray(1 << \
            62)\ntry:\n  open('/no/such/cache')\nexcept FileNotFoundError:\n  big()";
        python(code, Class::OutOfMemory, false);
    }

    #[test]
    fn permission_denied() {
        // The kernel refuses these to root too.
        python(
            "open('/proc/sys/kernel/osrelease', 'w')",
            Class::PermissionDenied,
            false,
        );
        expect(
            "bash",
            &["-c", "/etc/passwd"],
            Class::PermissionDenied,
            false,
        );
        expect("sh", &["-c", "/etc/passwd"], Class::PermissionDenied, false);
    }

    #[test]
    fn disk_full() {
        python(
            "with open('/dev/full', 'w') as file: file.write('x' * 100_000)",
            Class::DiskFull,
            false,
        );
        expect(
            "bash",
            &["-ec", "echo hello > /dev/full; echo not reached"],
            Class::DiskFull,
            false,
        );
        expect("cp", &["/etc/passwd", "/dev/full"], Class::DiskFull, false);
    }

    #[test]
    fn out_of_memory() {
        expect(
            "bash",
            &[
                "-c",
                "ulimit -v 2000000; exec python3 -c 'x = bytearray(1 << 40)'",
            ],
            Class::OutOfMemory,
            false,
        );
        let code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); \
            import mmap; mmap.mmap(-1, 1 << 40)";
        python(code, Class::OutOfMemory, false);
    }

    #[test]
    fn segmentation_fault() {
        expect(
            "bash",
            &["-c", "bash -c 'kill -SEGV $$'; exit 3"],
            Class::Segfault,
            false,
        );
        expect(
            "sh",
            &["-c", "sh -c 'kill -SEGV $$'; exit 3"],
            Class::Segfault,
            false,
        );
        expect(
            "python3",
            &[
                "-X",
                "faulthandler",
                "-c",
                "import ctypes; ctypes.string_at(0)",
            ],
            Class::Segfault,
            false,
        );
    }

    #[test]
    fn killed() {
        expect(
            "bash",
            &["-c", "bash -c 'kill -KILL $$'; exit 3"],
            Class::Killed,
            false,
        );
        expect(
            "sh",
            &["-c", "sh -c 'kill -KILL $$'; exit 3"],
            Class::Killed,
            false,
        );
    }

    #[test]
    fn port_in_use() {
        let code = "import socket\none = socket.socket(); one.bind(('127.0.0.1', 0)); \
            one.listen()\ntwo = socket.socket(); two.bind(one.getsockname())";
        python(code, Class::PortInUse, true);
    }

    #[test]
    fn connection_refused() {
        let code = "import socket\none = socket.socket(); one.bind(('127.0.0.1', 0)); place = \
            one.getsockname(); one.close()\nsocket.create_connection(place)";
        python(code, Class::Network, true);
    }

    #[test]
    fn command_not_found() {
        let folder = Folder::new("command");
        let script = folder.file(
            "job.sh",
            "set -e\necho started\nno_such_command_of_ours --fast\necho not reached\n",
        );
        for arguments in [
            &["-c", "no_such_command_of_ours"][..],
            &[script.as_str()][..],
        ] {
            for shell in ["bash", "sh"] {
                let finding = expect(shell, arguments, Class::CommandNotFound, false);
                assert!(
                    finding.next_step.contains("`no_such_command_of_ours`"),
                    "{finding:?}"
                );
            }
        }
        expect(
            "bash",
            &["-c", "exec no_such_command_of_ours"],
            Class::CommandNotFound,
            false,
        );
        expect(
            "env",
            &["no_such_command_of_ours"],
            Class::CommandNotFound,
            false,
        );
        python(
            "import subprocess; subprocess.run(['no_such_command_of_ours'])",
            Class::CommandNotFound,
            false,
        );
    }

    #[test]
    fn not_a_number() {
        python("int(float('nan'))", Class::NotANumber, false);
        python(
            "loss = float('inf') - float('inf')\nif loss != loss: raise FloatingPointError(f'loss \
                is {loss}')",
            Class::NotANumber,
            false,
        );
        python(
            "loss = float('nan')\nassert loss == loss, f'loss is {loss} at step 3'",
            Class::NotANumber,
            false,
        );
    }

    /// Real programs that fail for reasons of their own.
    #[test]
    fn nothing_to_say() {
        let quiet = [
            ("python3", "assert 1 == 2, 'shapes differ'"),
            (
                "python3",
                "import argparse; argparse.ArgumentParser().parse_args(['--no-such'])",
            ),
            (
                "python3",
                "import sys; sys.exit('giving up: no such file or directory')",
            ),
            (
                "python3",
                "import traceback\ntry: open('/no/such/cache')\nexcept OSError: \
                    traceback.print_exc()\nprint('no cache', flush=True)\nraise KeyError('nan')",
            ),
            (
                "python3",
                "import threading\nt = threading.Thread(target=open, args=('/no/such',)); \
                    t.start(); t.join()\nraise KeyError('x')",
            ),
            (
                "bash",
                "no_such_command_of_ours\necho 'evaluating without it'\nexit 3",
            ),
            ("bash", "exit 3"),
        ];
        for (program, code) in quiet {
            let log = log_of(program, &["-c", code]);
            assert_eq!(classify(log.as_bytes()), None, "in:\n{log}");
        }
    }

    /// Runs a script of that text with Python and returns the shown parts of its failure: message,
    /// line and source.
    #[track_caller]
    fn shown(name: &str, text: &str) -> (String, Option<u32>, Option<String>, String) {
        let folder = Folder::new(name);
        let script = folder.file("train.py", text);
        let log = log_of("python3", &["-X", "faulthandler", &script]);
        let error = read(log.as_bytes())
            .error
            .unwrap_or_else(|| panic!("no error in:\n{log}"));
        let place = error.place.unwrap_or_else(|| panic!("no place in:\n{log}"));
        assert_eq!(place.file, script, "in:\n{log}");
        (
            error.message,
            place.line,
            place.source,
            error.ended_as.unwrap_or_default(),
        )
    }

    fn told(
        message: &str,
        line: u32,
        source: &str,
        ended_as: &str,
    ) -> (String, Option<u32>, Option<String>, String) {
        (
            message.to_owned(),
            Some(line),
            Some(source.to_owned()).filter(|source| !source.is_empty()),
            ended_as.to_owned(),
        )
    }

    #[test]
    fn exceptions_that_no_rule_knows() {
        let key = "def load(c):\n    return c['lr']\n\ndef main():\n    load({})\n\nmain()\n";
        assert_eq!(
            shown("key", key),
            told("KeyError: 'lr'", 2, "return c['lr']", "")
        );
        assert_eq!(
            shown("assert", "def check(n):\n    assert n == 10\n\ncheck(12)\n"),
            told("AssertionError", 2, "assert n == 10", "")
        );
        let inside = "import json\ndef load():\n    return json.loads('{')\nload()\n";
        let (message, line, source, _) = shown("inside", inside);
        assert!(
            message.starts_with("json.decoder.JSONDecodeError: ")
                && (line, source.as_deref()) == (Some(3), Some("return json.loads('{')")),
            "{message}"
        );
        let deep = "import sys\nsys.setrecursionlimit(200)\ndef f(n):\n    return f(n + 1)\nf(0)\n";
        let (message, line, ..) = shown("deep", deep);
        assert!(
            message.starts_with("RecursionError: ") && line == Some(4),
            "{message}"
        );
    }

    #[test]
    fn chains() {
        let caused = "def load():\n    return {}['lr']\ntry:\n    load()\nexcept KeyError as \
            error:\n    raise RuntimeError('cannot load') from error\n";
        assert_eq!(
            shown("caused", caused),
            told(
                "KeyError: 'lr'",
                2,
                "return {}['lr']",
                "RuntimeError: cannot load"
            )
        );
        let handling = "def main():\n    try:\n        {}['lr']\n    except \
            KeyError:\n        print(undefined)\nmain()\n";
        assert_eq!(
            shown("handling", handling),
            told(
                "KeyError: 'lr'",
                3,
                "{}['lr']",
                "NameError: name 'undefined' is not defined"
            )
        );
        let fallback = "def compute():\n    return 1 / 0\ntry:\n    {}['x']\nexcept \
            KeyError:\n    compute()\n";
        assert_eq!(
            shown("fallback", fallback),
            told("ZeroDivisionError: division by zero", 2, "return 1 / 0", "")
        );
    }

    #[test]
    fn processes_threads_and_groups() {
        let pool = "import multiprocessing\ndef work(n):\n    raise ValueError('bad shard')\nif \
            __name__ == '__main__':\n    with multiprocessing.Pool(1) as \
                pool:\n        pool.map(work, [1])\n";
        assert_eq!(
            shown("pool", pool),
            told(
                "ValueError: bad shard",
                3,
                "raise ValueError('bad shard')",
                ""
            )
        );
        let executor = pool
            .replace(
                "import multiprocessing",
                "from concurrent.futures import ProcessPoolExecutor",
            )
            .replace("multiprocessing.Pool(1)", "ProcessPoolExecutor(1)")
            .replace("pool.map(work, [1])", "list(pool.map(work, [1]))");
        assert_eq!(
            shown("executor", &executor),
            told(
                "ValueError: bad shard",
                3,
                "raise ValueError('bad shard')",
                ""
            )
        );
        let process = "import multiprocessing, sys\ndef work():\n    raise ValueError('bad \
            shard')\nif __name__ == '__main__':\n    p = multiprocessing.Process(target=work); \
                p.start(); p.join(); sys.exit(p.exitcode)\n";
        assert_eq!(
            shown("process", process),
            told(
                "ValueError: bad shard",
                3,
                "raise ValueError('bad shard')",
                ""
            )
        );
        let thread = "import threading, sys\ndef work():\n    raise ValueError('bad shard')\nt = \
            threading.Thread(target=work); t.start(); t.join(); sys.exit(1)\n";
        assert_eq!(
            shown("thread", thread),
            told(
                "ValueError: bad shard",
                3,
                "raise ValueError('bad shard')",
                ""
            )
        );
        // Exception groups came with Python 3.11.
        let group = "import asyncio\nasync def a():\n    raise ValueError('first')\nasync def \
            main():\n    async with asyncio.TaskGroup() as \
                group:\n        group.create_task(a())\nasyncio.run(main())\n";
        let has_groups = Command::new("python3")
            .args(["-c", "ExceptionGroup"])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success();
        if has_groups {
            assert_eq!(
                shown("group", group),
                told("ValueError: first", 3, "raise ValueError('first')", "")
            );
        }
    }

    #[test]
    fn code_that_cannot_be_read_or_crashes() {
        let (message, line, source, _) = shown("syntax", "def f(:\n    pass\n");
        assert!(
            message.starts_with("SyntaxError: ")
                && (line, source.as_deref()) == (Some(1), Some("def f(:")),
            "{message}"
        );
        let (message, line, ..) = shown("indentation", "def f():\nreturn 1\n");
        assert!(
            message.starts_with("IndentationError: ") && line == Some(2),
            "{message}"
        );
        let crash = "import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()\n";
        assert_eq!(
            shown("crash", crash),
            told("Fatal Python error: Segmentation fault", 3, "", "")
        );
        assert_eq!(
            shown("abort", "import os\ndef stop():\n    os.abort()\nstop()\n"),
            told("Fatal Python error: Aborted", 3, "", "")
        );
    }

    #[test]
    fn options_and_shells() {
        let error = |program: &str, arguments: &[&str]| {
            read(log_of(program, arguments).as_bytes()).error.unwrap()
        };
        let option = error(
            "python3",
            &[
                "-c",
                "import argparse; \
                    argparse.ArgumentParser(prog='train.py').parse_args(['--no-such'])",
            ],
        );
        assert_eq!(
            (option.form, option.message.as_str()),
            (
                Form::Usage,
                "train.py: error: unrecognized arguments: --no-such"
            )
        );
        for shell in ["bash", "sh"] {
            assert_eq!(
                error(shell, &["-euc", "echo $NO_SUCH_VARIABLE"]).form,
                Form::Shell,
                "{shell}"
            );
            assert_eq!(
                error(shell, &["-c", "if true; then echo )"]).form,
                Form::Shell,
                "{shell}"
            );
        }
    }

    #[test]
    fn an_end_without_an_error_line() {
        for (program, code) in [
            ("bash", "exit 3"),
            ("bash", "echo step 1; exit 3"),
            (
                "python3",
                "import sys; sys.exit('giving up: no such split')",
            ),
        ] {
            let log = log_of(program, &["-c", code]);
            let reading = read(log.as_bytes());
            assert_eq!((reading.finding, reading.error), (None, None), "in:\n{log}");
            assert_eq!(reading.last_lines, log.lines().collect::<Vec<_>>());
        }
    }
}
