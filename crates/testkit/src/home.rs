//! A home of its own for every test: state, configuration and project in a temporary folder. No
//! process of Towline is alive when it is dropped.

use rustix::process::Signal;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use towline_host::process;
use towline_wire::layout::StateFolder;

/// The result of a finished `tow`, or of another program.
#[derive(Debug, Clone)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub raw: Vec<u8>,
}

impl Output {
    /// stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
    /// The id on the first line.
    pub fn id(&self) -> String {
        self.stdout.lines().next().unwrap_or_default().to_owned()
    }
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output
                .status
                .code()
                .unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            raw: output.stdout,
        }
    }
}

#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    binary: PathBuf,
    variables: Vec<(String, String)>,
}

impl Home {
    /// `built` is the binary of the test profile; `TOW_TEST_BINARY` names the shipped one instead.
    pub fn new(built: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tow-test-")
            .tempdir()
            .unwrap();
        let binary =
            std::env::var_os("TOW_TEST_BINARY").map_or_else(|| PathBuf::from(built), PathBuf::from);
        let home = Self {
            folder,
            binary,
            variables: vec![
                ("TOW_GRACE_MILLIS".into(), "1500".into()),
                ("TOW_IN_PLACE".into(), "true".into()),
            ],
        };
        for name in ["project", "state", "config/towline", "home"] {
            fs::create_dir_all(home.path(name)).unwrap();
        }
        home
    }

    /// Runs get a snapshot of the code, as they do for users. Without it they start in the
    /// project's folder, so that a test can communicate with them through files there.
    #[must_use]
    pub fn freezing(mut self) -> Self {
        self.unset("TOW_IN_PLACE");
        self
    }

    /// Sets a variable for every `tow` from here on.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }
    pub fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }
    pub fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }
    pub fn use_binary(&mut self, binary: &Path) {
        binary.clone_into(&mut self.binary);
    }
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A copy of the program in this home. Another process writes it: a descriptor of ours that is
    /// open for writing, inherited by a child of another thread, would keep it from starting.
    #[track_caller]
    pub fn copy_binary(&self, name: &str) -> PathBuf {
        let copy = self.path(name);
        let status = Command::new("cp").arg(self.binary()).arg(&copy).status();
        assert!(status.is_ok_and(|status| status.success()), "a copy");
        copy
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }
    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
    pub fn configure(&self, text: &str) {
        fs::write(self.path("config/towline/config.yaml"), text).unwrap();
    }
    /// Trusts the present configuration of the project.
    #[track_caller]
    pub fn trust(&self) {
        self.tow(["trust", "--yes"]).ok();
    }
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    /// The state folder of this host, as `tow` makes it.
    pub fn state(&self) -> StateFolder {
        let root = self.path("state/towline");
        let host = fs::read_dir(&root)
            .ok()
            .and_then(|mut entries| entries.next())
            .and_then(Result::ok)
            .map(|entry| entry.path());
        StateFolder::new(host.unwrap_or(root))
    }

    pub fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(words)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("TOW_DAEMON_IDLE_SECONDS", "60")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs `tow`. What it prints with `--json` is as its schema says.
    #[track_caller]
    pub fn tow<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Output {
        let mut command = self.command(words);
        let output = command.output().unwrap().into();
        let words: Vec<OsString> = command.get_args().map(OsStr::to_owned).collect();
        crate::answers::check(&words, &output);
        output
    }

    /// `tow` from a shell with umask 0.
    #[track_caller]
    pub fn tow_with_open_umask<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
    ) -> Output {
        let tow = self.command(words);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "umask 000; exec \"$0\" \"$@\""])
            .arg(tow.get_program())
            .args(tow.get_args());
        shell
            .current_dir(self.project())
            .env_clear()
            .envs(
                tow.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null());
        shell.output().unwrap().into()
    }

    /// Submits a job file, with more options; returns the id.
    #[track_caller]
    pub fn submit_file(&self, text: &str, more: &[&str]) -> String {
        self.write("job.yaml", text);
        self.tow(
            ["submit", "-f", "job.yaml"]
                .into_iter()
                .chain(more.iter().copied()),
        )
        .ok()
        .id()
    }

    /// Starts `tow` with its output piped.
    pub fn spawn<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Child {
        self.command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The run's record.
    #[track_caller]
    pub fn show(&self, run: &str) -> Value {
        self.tow(["show", run, "--json"]).ok().json()
    }

    /// The state of a run in one word.
    #[track_caller]
    pub fn state_of(&self, run: &str) -> String {
        self.show(run)["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    #[track_caller]
    pub fn wait_for_state(&self, run: &str, state: &str) {
        crate::until(&format!("{run} to be {state}"), || {
            (self.state_of(run) == state).then_some(())
        });
    }

    /// The daemon's pid, if it runs.
    pub fn daemon(&self) -> Option<i32> {
        let status = self.tow(["daemon", "status", "--json"]).json();
        status["status"]["pid"]
            .as_i64()
            .and_then(|pid| i32::try_from(pid).ok())
    }

    /// Kills the daemon by SIGKILL. Another may start at once, because a client that follows a run
    /// starts it. Returns whether there was one to kill.
    pub fn kill_daemon(&self) -> bool {
        let pid = self.daemon();
        if let Some(pid) = pid {
            process::signal(pid, Signal::KILL);
            crate::until("the daemon to die", || {
                process::facts(pid)
                    .is_none_or(|facts| facts.zombie)
                    .then_some(())
            });
        }
        pid.is_some()
    }

    /// Guards and runners of this home.
    pub fn runner_processes(&self) -> Vec<(i32, String)> {
        let folder = self.state().runners();
        let of_ours =
            |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
        let words = |pid: i32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .replace('\0', " ")
        };
        process::all()
            .into_keys()
            .filter(of_ours)
            .map(|pid| (pid, words(pid)))
            .filter(|(_, words)| words.contains("__"))
            .collect()
    }

    /// Every process that carries a run's id or descends from a runner of ours.
    pub fn job_processes(&self) -> Vec<i32> {
        let marker = format!("TOW_RUN_DIR={}", self.folder.path().display());
        let marked = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
                bytes
                    .split(|b| *b == 0)
                    .any(|entry| entry.starts_with(marker.as_bytes()))
            })
        };
        let alive = process::all()
            .into_iter()
            .filter(|(_, facts)| !facts.zombie)
            .map(|(pid, _)| pid);
        alive.filter(marked).collect()
    }
}

impl Home {
    /// Removes control groups of runners that were killed.
    fn remove_groups(&self) {
        for entry in fs::read_dir(self.state().runners())
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.path().extension().is_some_and(|end| end == "cgroup")
                && let Ok(group) = fs::read_to_string(entry.path())
            {
                towline_host::cgroup::kill(group.as_ref());
                crate::until("a control group to be empty", || {
                    towline_host::cgroup::is_empty(group.as_ref()).then_some(())
                });
                towline_host::cgroup::remove(group.as_ref());
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.variables
            .retain(|(name, _)| !name.starts_with("TOW_CRASH"));
        if std::thread::panicking() {
            let log = fs::read_to_string(self.state().daemon_log()).unwrap_or_default();
            std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("daemon log:\n{log}\n{}\n", self.tow(["ps"]).stdout).as_bytes(),
            )
            .unwrap();
        }
        // A run that ends may start another daemon, so repeat until nothing is left.
        let lock = self.state().daemon_lock();
        crate::until("everything of this home to be gone", || {
            if towline_host::lock::is_held(&lock).unwrap_or(false) {
                let _ = self.command(["daemon", "stop"]).output();
            }
            let mut alive: Vec<i32> = self
                .runner_processes()
                .into_iter()
                .map(|(pid, _)| pid)
                .collect();
            alive.extend(alive.clone().into_iter().flat_map(process::descendants));
            alive.extend(self.job_processes());
            for pid in &alive {
                process::signal(*pid, Signal::KILL);
            }
            (alive.is_empty() && !towline_host::lock::is_held(&lock).unwrap_or(false)).then_some(())
        });
        self.remove_groups();
    }
}
