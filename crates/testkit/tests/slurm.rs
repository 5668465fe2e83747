//! The real Slurm cluster does what tests rely on, checked by OpenSSH, by Slurm's own commands and
//! by the kernel. As root.

#![expect(clippy::unwrap_used, clippy::too_many_lines, reason = "tests")]

use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use towline_host::process;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Output, ability, until};

/// As users connect: OpenSSH, through the bastion, one string for the remote shell.
#[track_caller]
fn ssh(slurm: &Slurm, host: &str, line: &str) -> Output {
    let mut command = Command::new("ssh");
    command
        .arg("-F")
        .arg(slurm.ssh_config())
        .args([host, line])
        .stdin(Stdio::null());
    command.output().unwrap().into()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Slurm's state of a node; a mark at its end says that it does not answer.
fn state(slurm: &Slurm, node: &str) -> String {
    slurm
        .exec(
            "login",
            "alice",
            ["sinfo", "-h", "-n", node, "-N", "-o", "%t"],
        )
        .stdout
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn takes_jobs_on_all_nodes(slurm: &Slurm) {
    assert_eq!(
        sorted(&ssh(slurm, "login", "srun -N3 hostname").ok().stdout),
        ["c1", "c2", "c3"]
    );
    let devices = ssh(
        slurm,
        "direct",
        "srun -N2 --gpus-per-node=2 sh -c 'echo $SLURM_NODEID:$CUDA_VISIBLE_DEVICES'",
    )
    .ok()
    .stdout;
    assert_eq!(sorted(&devices), ["0:0,1", "1:0,1"]);
    // Homes are one folder, here and on all hosts; the rest of this machine is invisible there.
    ssh(slurm, "login", "srun -N1 -w c2 sh -c 'hostname > from_job'").ok();
    assert_eq!(
        fs::read_to_string(slurm.home("alice").join("from_job")).unwrap(),
        "c2\n"
    );
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    assert_ne!(slurm.root("c1", ["test", "-e", sources]).code, 0);
    assert_ne!(
        slurm
            .root("c1", ["test", "-e", slurm.folder().to_str().unwrap()])
            .code,
        0
    );
}

#[test]
fn with_accounting_jobs_run_and_are_remembered() {
    let slurm = Slurm::shared();
    takes_jobs_on_all_nodes(slurm);
    let job = slurm.exec(
        "login",
        "bob",
        [
            "sbatch",
            "--parsable",
            "--qos=premium",
            "--wait",
            "--wrap",
            "exit 3",
        ],
    );
    assert_eq!(job.code, 3, "{job:?}");
    let words = [
        "sacct",
        "-nPX",
        "-o",
        "User,QOS,State,ExitCode",
        "-j",
        job.stdout.trim(),
    ];
    until("the job's row", || {
        (slurm.exec("login", "bob", words).stdout == "bob|premium|FAILED|3:0\n").then_some(())
    });
}

#[test]
fn limits_are_kept() {
    let slurm = Slurm::shared();
    slurm.sacctmgr("modify user carol set MaxSubmitJobs=0");
    let refused = until("the limit to hold", || {
        let asked = slurm.exec("login", "carol", ["sbatch", "--wrap", "true"]);
        (asked.code != 0).then_some(asked)
    });
    assert!(
        refused.stderr.contains("AssocMaxSubmitJobLimit"),
        "{refused:?}"
    );
}

#[test]
fn without_accounting_nodes_lose_power_and_come_back() {
    let slurm = Slurm::start(&Options {
        accounting: false,
        slurmd_timeout: 2,
        ..Options::default()
    });
    takes_jobs_on_all_nodes(&slurm);
    assert_ne!(slurm.exec("login", "alice", ["sacct"]).code, 0);
    slurm.root("c3", ["touch", "/var/tmp/on_disk"]).ok();
    slurm.kill_host("c3");
    assert!(!ssh(&slurm, "c3", "true").stderr.is_empty());
    until("Slurm to give the node up", || {
        state(&slurm, "c3").starts_with("down").then_some(())
    });
    assert_eq!(
        ssh(&slurm, "login", "srun -N2 hostname")
            .ok()
            .stdout
            .lines()
            .count(),
        2
    );
    slurm.start_host("c3");
    assert_eq!(
        ssh(&slurm, "c3", "hostname; ls /var/tmp | grep on_disk; true")
            .ok()
            .stdout,
        "c3\n"
    );
    until("the node to take jobs", || {
        (state(&slurm, "c3") == "idle").then_some(())
    });
    assert_eq!(
        ssh(&slurm, "login", "srun -N3 hostname")
            .ok()
            .stdout
            .lines()
            .count(),
        3
    );
}

#[test]
fn links_daemons_and_connections_break_and_heal() {
    let slurm = Slurm::start(&Options {
        nodes: 1,
        conf: vec!["MaxArraySize=7".into()],
        ..Options::default()
    });
    let shown = slurm
        .exec("login", "alice", ["scontrol", "show", "config"])
        .ok();
    assert!(
        shown
            .stdout
            .lines()
            .any(|line| line.starts_with("MaxArraySize") && line.ends_with("= 7")),
        "{shown:?}"
    );
    // A connection is cut, and the command it started goes on.
    let mut session = Command::new("ssh");
    session
        .arg("-F")
        .arg(slurm.ssh_config())
        .args(["login", "echo begun; sleep 600"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut session = session.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(session.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "begun\n");
    slurm.drop_connections();
    assert_eq!(session.wait().unwrap().code(), Some(255));
    slurm.root("login", ["pkill", "-x", "sleep"]).ok();
    ssh(&slurm, "login", "true").ok();

    slurm.cut("c1");
    assert_ne!(
        slurm
            .root(
                "login",
                ["timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/c1/22"]
            )
            .code,
        0
    );
    slurm.heal("c1");
    until("the link", || {
        (slurm
            .root(
                "login",
                ["timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/c1/22"],
            )
            .code
            == 0)
            .then_some(())
    });

    slurm.kill_service("ctl", "slurmctld");
    assert_eq!(slurm.root("ctl", ["pgrep", "-x", "slurmctld"]).code, 1);
    slurm.start_service("ctl", "slurmctld");
    for (host, daemon) in [
        ("c1", "slurmd"),
        ("login", "munged"),
        ("bastion", "sshd"),
        ("ctl", "slurmdbd"),
        ("ctl", "mariadbd"),
    ] {
        slurm.kill_service(host, daemon);
        slurm.start_service(host, daemon);
    }
    let runs = || (ssh(&slurm, "login", "timeout 20 srun hostname").stdout == "c1\n").then_some(());
    until("jobs to run again", runs);

    // Power fails on the controller: its disk keeps accounts and the state of Slurm.
    slurm.sacctmgr("add qos urgent");
    slurm.kill_host("ctl");
    slurm.start_host("ctl");
    until("jobs to run again", runs);
    let known = slurm.exec(
        "login",
        "alice",
        ["sacctmgr", "-nP", "show", "qos", "format=name"],
    );
    assert!(
        known.stdout.lines().any(|name| name == "urgent"),
        "{known:?}"
    );
}

#[test]
fn memory_is_limited_by_control_groups() {
    if !Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
        return ability::not_run("Slurm's memory limits, without version 1 of control groups");
    }
    let slurm = Slurm::start(&Options {
        nodes: 1,
        cgroup: true,
        ..Options::default()
    });
    let greedy = "head -c 200M /dev/zero | tail -c 200M";
    let job = slurm
        .exec(
            "login",
            "alice",
            [
                "sbatch",
                "--parsable",
                "--wait",
                "--mem=64",
                "--output=/dev/null",
                "--wrap",
                greedy,
            ],
        )
        .stdout;
    let words = ["sacct", "-nPX", "-o", "State,ExitCode", "-j", job.trim()];
    until("the job's row", || {
        (slurm.exec("login", "alice", words).stdout == "OUT_OF_MEMORY|0:125\n").then_some(())
    });
}

#[test]
fn other_releases_run_beside_the_machines_own() {
    for (release, version) in [("bullseye", "20.11"), ("trixie", "24.11")] {
        let slurm = Slurm::start(&Options::default().debian(release));
        let told = slurm.exec("login", "alice", ["sinfo", "-V"]).ok().stdout;
        assert!(told.contains(version), "{told}");
        takes_jobs_on_all_nodes(&slurm);
    }
}

#[test]
fn what_fails_says_why() {
    let wrong = Options {
        root: Some("/var/empty-of-slurm".into()),
        ..Options::default()
    };
    let told = Slurm::check(&wrong).unwrap_err();
    assert!(
        told.contains("not there") || told.contains("not installed"),
        "{told}"
    );
    Slurm::check(&Options::default()).unwrap();
}

/// Everything that could be left: processes by pid and start, processes that have mounted something
/// of it, and its folder.
struct Traces {
    folder: PathBuf,
    processes: Vec<(i32, u64)>,
}

impl Traces {
    fn of(folder: &Path) -> Self {
        let keeper: i32 = fs::read_to_string(folder.join("keeper"))
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let pids = process::descendants(keeper).into_iter().chain([keeper]);
        let processes: Vec<_> = pids
            .filter_map(|pid| Some((pid, process::facts(pid)?.started)))
            .collect();
        assert!(processes.len() > 20, "{processes:?}");
        let traces = Self {
            folder: folder.to_owned(),
            processes,
        };
        assert!(!traces.mounted().is_empty());
        traces
    }
    fn processes(&self) -> Vec<i32> {
        let lives = |(pid, started): &(i32, u64)| {
            process::facts(*pid).is_some_and(|facts| facts.started == *started && !facts.zombie)
        };
        self.processes
            .iter()
            .filter(|process| lives(process))
            .map(|(pid, _)| *pid)
            .collect()
    }
    /// Processes that see a mount of it.
    fn mounted(&self) -> Vec<i32> {
        let name = self.folder.file_name().unwrap().to_str().unwrap();
        let sees = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/mountinfo"))
                .is_ok_and(|text| text.contains(name))
        };
        process::all().into_keys().filter(sees).collect()
    }
    #[track_caller]
    fn are_gone(&self) {
        assert_eq!(
            (self.processes(), self.mounted(), self.folder.exists()),
            (Vec::new(), Vec::new(), false)
        );
    }
}

/// The links of this machine's own network.
fn links() -> BTreeSet<String> {
    fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn two_at_once_do_not_meet_and_nothing_is_left_of_them() {
    let (links_before, mounts_before) =
        (links(), fs::read_to_string("/proc/self/mountinfo").unwrap());
    let small = Options {
        nodes: 1,
        accounting: false,
        ..Options::default()
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| Slurm::start(&small));
        let second = Slurm::start(&small);
        (first.join().unwrap(), second)
    });
    assert!(first.port().abs_diff(second.port()) > 1);
    // The same names and addresses, but separate jobs.
    for (slurm, word) in [(&first, "first"), (&second, "second")] {
        ssh(
            slurm,
            "login",
            &format!("srun sh -c 'hostname -I; echo {word} > word'"),
        )
        .ok();
        assert_eq!(
            fs::read_to_string(slurm.home("alice").join("word")).unwrap(),
            format!("{word}\n")
        );
    }
    let traces = [Traces::of(first.folder()), Traces::of(second.folder())];
    drop(first);
    traces[0].are_gone();
    assert_eq!(ssh(&second, "login", "srun hostname").ok().stdout, "c1\n");
    let panicked = std::thread::spawn(move || {
        let _held = second;
        std::panic::resume_unwind(Box::new("as a failing test does"));
    });
    panicked.join().unwrap_err();
    traces[1].are_gone();
    assert_eq!(
        (links(), fs::read_to_string("/proc/self/mountinfo").unwrap()),
        (links_before, mounts_before)
    );
}

/// Started by the tests below as a program of its own, to be killed.
#[test]
#[ignore = "the other program of tests that kill it"]
fn holds_a_cluster() {
    let slurm = Slurm::start(&Options {
        nodes: 1,
        accounting: false,
        ..Options::default()
    });
    fs::write(
        std::env::var_os("TOW_TEST_TELL").unwrap(),
        format!("{}\n", slurm.folder().display()),
    )
    .unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// That program, and the traces of its cluster.
fn another_program() -> (std::process::Child, Traces) {
    let told = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "holds_a_cluster", "--ignored"])
        .env("TOW_TEST_TELL", told.path());
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = until("a cluster of another program", || {
        fs::read_to_string(told.path())
            .unwrap()
            .strip_suffix('\n')
            .map(PathBuf::from)
    });
    (child, Traces::of(&folder))
}

#[test]
fn a_killed_test_takes_its_cluster_along() {
    let (mut child, traces) = another_program();
    child.kill().unwrap();
    child.wait().unwrap();
    until("the cluster to go", || {
        (!traces.folder.exists()).then_some(())
    });
    traces.are_gone();
}

#[test]
fn what_nobody_could_remove_the_next_one_does() {
    let (mut child, traces) = another_program();
    // Both at once, as when an administrator ends all of a session: no time to remove anything.
    let script = process::all()
        .into_iter()
        .find(|(_, facts)| facts.parent == i32::try_from(child.id()).unwrap())
        .unwrap()
        .0;
    process::signal(script, Signal::KILL);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the cluster to die", || {
        traces.processes().is_empty().then_some(())
    });
    drop(Slurm::start(&Options {
        nodes: 1,
        accounting: false,
        ..Options::default()
    }));
    traces.are_gone();
}
