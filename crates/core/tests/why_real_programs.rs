//! The classifier against programs that really fail: what they print is what it must know.
#![allow(clippy::unwrap_used)]

mod why_real {
    use std::process::{Command, Stdio};
    use towline_core::why::{Class, Finding, classify};

    /// What the program prints, both streams in one as in a job's log. It must fail.
    fn log_of(program: &str, arguments: &[&str]) -> String {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
        assert!(!child.wait().unwrap().success(), "{program} {arguments:?} was to fail");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[track_caller]
    fn expect(program: &str, arguments: &[&str], class: Class, transient: bool) -> Finding {
        let log = log_of(program, arguments);
        let finding = classify(log.as_bytes()).unwrap_or_else(|| panic!("no finding in:\n{log}"));
        assert_eq!((finding.class, finding.transient), (class, transient), "in:\n{log}");
        assert!(log.lines().any(|line| line.contains(&finding.evidence)), "{finding:?} in:\n{log}");
        finding
    }

    fn python(code: &str, class: Class, transient: bool) -> Finding {
        expect("python3", &["-c", code], class, transient)
    }

    /// A folder of its own, gone at the end.
    struct Folder(std::path::PathBuf);
    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("towline-why-{}-{name}", std::process::id()));
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
        assert!(finding.next_step.contains("pip install no_such_module_of_ours"), "{finding:?}");
        expect("python3", &["-m", "no_such_module_of_ours"], Class::MissingModule, false);
        expect("python3", &["-m", "no_such_package.main"], Class::MissingModule, false);
    }

    #[test]
    fn missing_module_reworded() {
        let code = "try:\n  import no_such_module_of_ours\nexcept ImportError:\n  raise RuntimeError('the fast path needs it')";
        python(code, Class::MissingModule, false);
        let code = "try:\n  import no_such_module_of_ours\nexcept ImportError as error:\n  raise RuntimeError('the fast path needs it') from error";
        python(code, Class::MissingModule, false);
    }

    #[test]
    fn missing_library() {
        python("import ctypes; ctypes.CDLL('libnosuchthing.so.1')", Class::MissingLibrary, false);
    }

    #[test]
    fn missing_file() {
        let finding = python("open('/no/such/file.yaml')", Class::FileNotFound, false);
        assert!(finding.next_step.contains("`/no/such/file.yaml`"), "{finding:?}");
        expect("python3", &["/no/such/train.py"], Class::FileNotFound, false);
        expect("bash", &["-ec", "cat /no/such/file; echo not reached"], Class::FileNotFound, false);
        expect("bash", &["-c", "/no/such/program"], Class::FileNotFound, false);
        expect("sh", &["-c", "/no/such/program"], Class::FileNotFound, false);
        expect("bash", &["-ec", "cd /no/such/folder; ls"], Class::FileNotFound, false);
    }

    #[test]
    fn missing_file_in_a_worker() {
        let code = "from multiprocessing import Pool\nif __name__ == '__main__':\n  with Pool(2) as pool:\n    pool.map(open, ['/no/such/image.png'])";
        python(code, Class::FileNotFound, false);
    }

    #[test]
    fn a_fallback_that_fails() {
        let code = "def big():\n  return bytearray(1 << 62)\ntry:\n  open('/no/such/cache')\nexcept FileNotFoundError:\n  big()";
        python(code, Class::OutOfMemory, false);
    }

    #[test]
    fn permission_denied() {
        // The kernel refuses these to root too.
        python("open('/proc/sys/kernel/osrelease', 'w')", Class::PermissionDenied, false);
        expect("bash", &["-c", "/etc/passwd"], Class::PermissionDenied, false);
        expect("sh", &["-c", "/etc/passwd"], Class::PermissionDenied, false);
    }

    #[test]
    fn disk_full() {
        python("with open('/dev/full', 'w') as file: file.write('x' * 100_000)", Class::DiskFull, false);
        expect("bash", &["-ec", "echo hello > /dev/full; echo not reached"], Class::DiskFull, false);
        expect("cp", &["/etc/passwd", "/dev/full"], Class::DiskFull, false);
    }

    #[test]
    fn out_of_memory() {
        expect("bash", &["-c", "ulimit -v 2000000; exec python3 -c 'x = bytearray(1 << 40)'"], Class::OutOfMemory, false);
        let code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); import mmap; mmap.mmap(-1, 1 << 40)";
        python(code, Class::OutOfMemory, false);
    }

    #[test]
    fn segmentation_fault() {
        expect("bash", &["-c", "bash -c 'kill -SEGV $$'; exit 3"], Class::Segfault, false);
        expect("sh", &["-c", "sh -c 'kill -SEGV $$'; exit 3"], Class::Segfault, false);
        expect("python3", &["-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)"], Class::Segfault, false);
    }

    #[test]
    fn killed() {
        expect("bash", &["-c", "bash -c 'kill -KILL $$'; exit 3"], Class::Killed, false);
        expect("sh", &["-c", "sh -c 'kill -KILL $$'; exit 3"], Class::Killed, false);
    }

    #[test]
    fn port_in_use() {
        let code = "import socket\none = socket.socket(); one.bind(('127.0.0.1', 0)); one.listen()\ntwo = socket.socket(); two.bind(one.getsockname())";
        python(code, Class::PortInUse, true);
    }

    #[test]
    fn connection_refused() {
        let code = "import socket\none = socket.socket(); one.bind(('127.0.0.1', 0)); place = one.getsockname(); one.close()\nsocket.create_connection(place)";
        python(code, Class::Network, true);
    }

    #[test]
    fn command_not_found() {
        let folder = Folder::new("command");
        let script = folder.file("job.sh", "set -e\necho started\nno_such_command_of_ours --fast\necho not reached\n");
        for arguments in [&["-c", "no_such_command_of_ours"][..], &[script.as_str()][..]] {
            for shell in ["bash", "sh"] {
                let finding = expect(shell, arguments, Class::CommandNotFound, false);
                assert!(finding.next_step.contains("`no_such_command_of_ours`"), "{finding:?}");
            }
        }
        expect("bash", &["-c", "exec no_such_command_of_ours"], Class::CommandNotFound, false);
        expect("env", &["no_such_command_of_ours"], Class::CommandNotFound, false);
        python("import subprocess; subprocess.run(['no_such_command_of_ours'])", Class::CommandNotFound, false);
    }

    #[test]
    fn not_a_number() {
        python("int(float('nan'))", Class::NotANumber, false);
        python("loss = float('inf') - float('inf')\nif loss != loss: raise FloatingPointError(f'loss is {loss}')", Class::NotANumber, false);
        python("loss = float('nan')\nassert loss == loss, f'loss is {loss} at step 3'", Class::NotANumber, false);
    }

    /// Real programs that fail for reasons of their own.
    #[test]
    fn nothing_to_say() {
        let quiet = [
            ("python3", "assert 1 == 2, 'shapes differ'"),
            ("python3", "import argparse; argparse.ArgumentParser().parse_args(['--no-such'])"),
            ("python3", "import sys; sys.exit('giving up: no such file or directory')"),
            (
                "python3",
                "import traceback\ntry: open('/no/such/cache')\nexcept OSError: traceback.print_exc()\nprint('no cache', flush=True)\nraise KeyError('nan')",
            ),
            ("python3", "import threading\nt = threading.Thread(target=open, args=('/no/such',)); t.start(); t.join()\nraise KeyError('x')"),
            ("bash", "no_such_command_of_ours\necho 'evaluating without it'\nexit 3"),
            ("bash", "exit 3"),
        ];
        for (program, code) in quiet {
            let log = log_of(program, &["-c", code]);
            assert_eq!(classify(log.as_bytes()), None, "in:\n{log}");
        }
    }
}
