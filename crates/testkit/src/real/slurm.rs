//! A real Slurm cluster of several hosts on this machine, made by `slurm-up.sh`: a bastion, a login
//! host, a controller and nodes, each in namespaces of its own. Needs root. No process of it
//! outlives the test program, however that ends.

use super::parts;
use crate::Output;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

pub(crate) const SLURM_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/real/slurm-up.sh");

/// The exit code by which the script reports its own failure, not that of a command it ran in a
/// host.
const SCRIPT_FAILURE_CODE: i32 = 125;

/// The parts of a cluster. Fake GPUs are devices that Slurm counts and allocates; they compute
/// nothing.
#[derive(Debug, Clone)]
pub struct Options {
    /// `c1`, `c2`, …
    pub nodes: u32,
    /// Per node, as `gpu:h200`.
    pub gpus: u32,
    /// Per node, with 512 MB of memory for each.
    pub cpus: u32,
    /// slurmdbd and MariaDB: account `lab`, QOS `basic`, `standard` (the default) and `premium`,
    /// partitions `main` and `debug`. Without it there are the partitions `standard`, `premium` and
    /// `basic`, and `sacct` fails.
    pub accounting: bool,
    /// slurmrestd on `ctl`, port 6820, with tokens.
    pub rest: bool,
    /// Memory is limited by control groups. There is one such cluster at a time: a second waits for
    /// the first to end.
    pub cgroup: bool,
    /// Another Debian release as the hosts' root, and with it another Slurm; see
    /// [`Options::debian`].
    pub root: Option<PathBuf>,
    /// Paths of this machine that hosts do not see. They never see homes, `/tmp` and the workspace.
    pub hide: Vec<PathBuf>,
    /// Paths of this machine that hosts share with it.
    pub expose: Vec<PathBuf>,
    /// Lines of `slurm.conf`; each replaces the one with the same key.
    pub conf: Vec<String>,
    /// Seconds until Slurm gives up a node that does not answer. In practice it takes up to three
    /// times as long.
    pub slurmd_timeout: u32,
    pub users: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 3,
            gpus: 4,
            cpus: 8,
            accounting: true,
            rest: false,
            cgroup: false,
            root: None,
            hide: Vec::new(),
            expose: Vec::new(),
            conf: Vec::new(),
            slurmd_timeout: 10,
            users: ["alice", "bob", "carol"].map(Into::into).into(),
        }
    }
}

impl Options {
    /// Hosts with the packages of another Debian release: `bullseye` (Slurm 20.11) or `trixie`
    /// (24.11).
    #[must_use]
    #[track_caller]
    pub fn debian(mut self, release: &str) -> Self {
        self.root = Some(parts::file(release));
        self
    }

    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: &OsStr| words.extend([name.into(), value.to_owned()]);
        for (name, number) in [
            ("--nodes", self.nodes),
            ("--gpus", self.gpus),
            ("--cpus", self.cpus),
            ("--slurmd-timeout", self.slurmd_timeout),
        ] {
            add(name, number.to_string().as_ref());
        }
        add("--users", self.users.join(",").as_ref());
        self.hide
            .iter()
            .map(PathBuf::as_path)
            .chain([parts::workspace()])
            .for_each(|path| add("--hide", path.as_ref()));
        self.expose
            .iter()
            .for_each(|path| add("--expose", path.as_ref()));
        self.conf
            .iter()
            .for_each(|line| add("--conf", line.as_ref()));
        self.root
            .iter()
            .for_each(|path| add("--root", path.as_ref()));
        let switches = [
            (!self.accounting, "--no-acct"),
            (!self.rest, "--no-rest"),
            (self.cgroup, "--cgroup"),
        ];
        words.extend(
            switches
                .into_iter()
                .filter(|(on, _)| *on)
                .map(|(_, word)| word.into()),
        );
        words
    }
}

#[derive(Debug)]
pub struct Slurm {
    folder: PathBuf,
    port: u16,
    /// The script. It ends the cluster and removes its folder when its standard input is closed, at
    /// the latest with us.
    keeper: Child,
}

impl Slurm {
    /// Ready for jobs and logins when this returns: after some 3 s, with 150 MB of memory.
    #[track_caller]
    pub fn start(options: &Options) -> Self {
        let made = tempfile::Builder::new()
            .prefix("tow-slurm-")
            .tempdir()
            .unwrap();
        let folder = made.keep();
        let mut log = tempfile::tempfile().unwrap();
        let mut command = script("run", [folder.as_os_str()]);
        command
            .args(options.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone().unwrap());
        // An interrupt from the keyboard is for us; the keeper ends when we do.
        let mut keeper = command.process_group(0).spawn().unwrap();
        let mut answer = String::new();
        let _ = keeper
            .stdout
            .take()
            .map(|stdout| BufReader::new(stdout).read_line(&mut answer));
        let port = answer
            .trim()
            .strip_prefix("ready ")
            .and_then(|port| port.parse().ok());
        let Some(port) = port else {
            let _ = keeper.wait();
            let _ = fs::remove_dir(&folder);
            panic!("no Slurm cluster: {}", text(&mut log));
        };
        Self {
            folder,
            port,
            keeper,
        }
    }

    /// The cluster of this test program, with accounting. Tests that share it do not touch hosts
    /// and daemons.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Slurm> = LazyLock::new(|| Slurm::start(&Options::default()));
        &SHARED
    }

    /// Whether such a cluster could be started here, without starting or installing anything; else
    /// the script's error.
    pub fn check(options: &Options) -> Result<(), String> {
        let output = Output::from(script("check", options.words()).output().unwrap());
        if output.code == 0 {
            Ok(())
        } else {
            Err(output.stderr)
        }
    }

    /// The folder of the cluster. Logs of each host's daemons are in `hosts/HOST/log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// A user's home, which is `/home/USER` on every host, as this machine sees it.
    pub fn home(&self, user: &str) -> PathBuf {
        self.folder.join("home").join(user)
    }
    /// For `ssh -F`: knows the hosts `login` and `c1`… behind the `bastion`, and `direct`, the
    /// login host without it. As the first user.
    pub fn ssh_config(&self) -> PathBuf {
        self.folder.join("ssh/config")
    }
    /// The port of the bastion; the next one is that of the login host.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a command on a host, in the user's home, without SSH.
    #[track_caller]
    pub fn exec<S: AsRef<OsStr>>(
        &self,
        host: &str,
        user: &str,
        words: impl IntoIterator<Item = S>,
    ) -> Output {
        asked(&mut self.command(host, user, words))
    }
    #[track_caller]
    pub fn root<S: AsRef<OsStr>>(&self, host: &str, words: impl IntoIterator<Item = S>) -> Output {
        self.exec(host, "root", words)
    }
    /// As [`Self::exec`], to be started by the caller.
    pub fn command<S: AsRef<OsStr>>(
        &self,
        host: &str,
        user: &str,
        words: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = script("exec", [self.folder.as_os_str()]);
        command
            .args([host, "-u", user, "--"])
            .args(words)
            .stdin(Stdio::null());
        command
    }
    /// A change of accounts, users or limits, such as `modify user bob set MaxSubmitJobs=2`.
    #[track_caller]
    pub fn sacctmgr(&self, line: &str) {
        self.root(
            "ctl",
            ["sacctmgr", "-i"]
                .into_iter()
                .chain(line.split_whitespace()),
        )
        .ok();
    }

    /// A power cut: all its processes are gone in one instant, without notice.
    #[track_caller]
    pub fn kill_host(&self, host: &str) {
        self.act("node-kill", &[host]);
    }
    /// Starts it again. It answers SSH when this returns; its Slurm daemons are starting. Its disk
    /// is empty, except for the state of Slurm and the database on `ctl`.
    #[track_caller]
    pub fn start_host(&self, host: &str) {
        self.act("node-start", &[host]);
    }
    /// SIGKILL for one daemon: `slurmctld`, `slurmdbd`, `mariadbd`, `slurmrestd` on `ctl`, `slurmd`
    /// on nodes, `munged`, or `sshd` with its sessions.
    #[track_caller]
    pub fn kill_service(&self, host: &str, name: &str) {
        self.act("svc-kill", &[host, name]);
    }
    /// Starts one daemon again. It answers when this returns.
    #[track_caller]
    pub fn start_service(&self, host: &str, name: &str) {
        self.act("svc-start", &[host, name]);
    }
    /// Takes the host's network link down: all open connections hang.
    #[track_caller]
    pub fn cut(&self, host: &str) {
        self.act("net-cut", &[host]);
    }
    #[track_caller]
    pub fn heal(&self, host: &str) {
        self.act("net-heal", &[host]);
    }
    /// Cuts every SSH connection from outside that is open now. Processes on the hosts go on.
    #[track_caller]
    pub fn drop_connections(&self) {
        self.act("ssh-drop", &[]);
    }

    #[track_caller]
    fn act(&self, verb: &str, words: &[&str]) {
        asked(script(verb, [self.folder.as_os_str()]).args(words)).ok();
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let ended = self.keeper.wait().is_ok_and(|status| status.success());
        if !ended {
            // The keeper was killed, and with it the cluster.
            let _ = script("stop", [self.folder.as_os_str()])
                .arg("--wipe")
                .output();
        }
    }
}

fn script<S: AsRef<OsStr>>(verb: &str, words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("bash");
    command
        .arg(SLURM_SCRIPT)
        .arg(verb)
        .args(words)
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn asked(command: &mut Command) -> Output {
    let output = Output::from(command.output().unwrap());
    assert!(
        output.code != SCRIPT_FAILURE_CODE || !output.stderr.contains("[slurm-up] error"),
        "{}",
        output.stderr
    );
    output
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
