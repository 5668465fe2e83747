//! Workspaces on the nodes of a real Slurm cluster: on an allocation, on a run's node, and from one
//! node to the next.

use crate::tree::{Tree, differences, look};
use crate::{backups, home, ids, status, until_within};
use std::fs;
use std::os::unix::fs::MetadataExt;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, Output};

/// A user here, and a cluster whose nodes each have a `/scratch` of their own.
struct Lab {
    home: Home,
    slurm: Slurm,
}

const WORK: &str = "/scratch/alice/work";

impl Lab {
    fn new(options: &Options) -> Self {
        let slurm = Slurm::start(options);
        let home = home().freezing();
        home.configure(&format!(
            "default_cluster: lab\nclusters:\n  lab: {{kind: slurm, host: \
            login, ssh_config: {}}}\n",
            slurm.ssh_config().display()
        ));
        let lab = Self { home, slurm };
        for node in 1..=options.nodes {
            lab.slurm
                .root(
                    &format!("c{node}"),
                    ["mkdir", "-p", "-m", "1777", "/scratch"],
                )
                .ok();
        }
        lab
    }

    fn on(&self, node: &str, script: &str) -> Output {
        self.slurm.exec(node, "alice", ["sh", "-c", script])
    }

    /// The hashes of what the workspace has on a node.
    fn sums(&self, node: &str) -> String {
        self.on(
            node,
            &format!(
                "cd {WORK} && find . -type f -exec sha256sum {{}} + | sort && find \
            . -printf '%p %m %T@\\n' | sort"
            ),
        )
        .ok()
        .stdout
    }

    fn alloc(&self, node: &str) -> String {
        self.home
            .tow(["alloc", "--node", node, "--time", "1h", "--json"])
            .ok()
            .json()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

#[test]
fn a_workspace_on_an_allocation_follows_to_the_next_node() {
    let lab = Lab::new(&Options {
        gpus: 0,
        ..Options::default()
    });
    let first = lab.alloc("c1");
    let made = lab
        .home
        .tow([
            "scratch",
            "create",
            "work",
            "--on",
            "tow-node",
            "--path",
            "/scratch/$USER/work",
            "--setup",
            "mkdir -p src && date > src/made",
        ])
        .ok();
    assert!(
        made.stdout
            .contains("workspace `work`: /scratch/alice/work on tow-node"),
        "{made:?}"
    );
    lab.on(
        "c1",
        &format!(
            "cd {WORK} && seq 100000 > numbers && ln -s numbers link && ln numbers \
        twin && chmod 640 numbers"
        ),
    )
    .ok();
    let second = lab.home.tow(["scratch", "backup", "--json"]).ok().json();
    assert_eq!(
        (&second["backup"]["host"], &second["place"]),
        (&"c1".into(), &"/home/alice/.towline/backups/work".into()),
        "{second}"
    );
    let wanted = lab.sums("c1");
    lab.home.tow(["scratch", "auto", "--every", "10s"]).ok();
    // A connection to the node stays open between questions, and goes with the allocation.
    let masters = |run: &str| {
        let sign = format!("tow-{}.", &run[run.len() - 5..]);
        let words =
            |pid: i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        towline_host::process::all()
            .into_keys()
            .filter(|pid| words(*pid).contains("ssh") && words(*pid).contains(&sign))
            .count()
    };
    assert!(masters(&first) > 0, "nothing is kept open");
    lab.home.tow(["release", &first]).ok();
    until_within(20, "connections to the node to be gone", || {
        (masters(&first) == 0).then_some(())
    });

    // No node has it now; the backups are there all the same.
    let gone = lab.home.tow(["scratch", "ls", "work"]);
    assert!(
        gone.code == 122
            && gone.stderr.contains("no allocation is active")
            && gone.stderr.contains("--on login"),
        "{gone:?}"
    );
    for host in ["login", "lab"] {
        let listed = lab
            .home
            .tow(["scratch", "ls", "work", "--on", host, "--json"]);
        assert!(
            listed.json()["backups"].as_array().unwrap().len() == 2,
            "by the cluster's own way: {listed:?}"
        );
    }
    until_within(90, "the failure of the automatic one to be told", || {
        (status(&lab.home, "work")["state"] == "failing").then_some(())
    });
    assert!(
        lab.home
            .tow(["ps"])
            .ok()
            .stderr
            .contains("no allocation is active")
    );

    let held = lab.alloc("c2");
    let back = lab.home.tow(["scratch", "restore"]).ok();
    assert!(
        back.stdout
            .contains("restored to /scratch/alice/work on tow-node"),
        "{back:?}"
    );
    assert_eq!(lab.sums("c2"), wanted);
    assert_eq!(
        lab.on("c2", &format!("stat -c %h {WORK}/twin")).stdout,
        "2\n"
    );
    lab.on("c2", &format!("echo more >> {WORK}/src/made")).ok();
    until_within(90, "automatic backups to go on from the new node", || {
        let row = status(&lab.home, "work");
        (row["state"] == "good" && row["status"]["backup"]["host"] == "c2").then_some(())
    });
    assert_eq!(backups(&lab.home, "work")[0]["host"], "c2");
    lab.home.tow(["scratch", "check"]).ok();
    lab.home.tow(["scratch", "auto", "--off"]).ok();
    lab.home.tow(["release", &held]).ok();

    // The first node again, with the copy that it had: nobody takes that for what was done since.
    let again = lab.alloc("c1");
    let before = ids(&lab.home, "work");
    lab.on("c1", &format!("echo old > {WORK}/old")).ok();
    let stale = lab.home.tow(["scratch", "backup"]);
    assert!(
        stale.code == 123
            && stale.stderr.contains("made on c2")
            && stale.stderr.contains("nothing was stored"),
        "{stale:?}"
    );
    let restored = lab.home.tow(["scratch", "restore"]);
    assert!(
        restored.code == 123
            && restored.stderr.contains("older than the newest backup")
            && restored.stderr.contains("c2"),
        "{restored:?}"
    );
    assert_eq!(ids(&lab.home, "work"), before);
    lab.home.tow(["release", &again]).ok();
}

#[test]
fn a_workspace_on_the_node_of_a_run_and_on_a_host() {
    let shared = tempfile::Builder::new()
        .prefix("tow-run-scratch-")
        .tempdir()
        .unwrap();
    let lab = Lab::new(&Options {
        nodes: 2,
        gpus: 0,
        expose: vec![shared.path().to_owned()],
        ..Options::default()
    });
    let alice = fs::metadata(lab.slurm.home("alice")).unwrap().uid();
    std::os::unix::fs::chown(shared.path(), Some(alice), Some(alice)).unwrap();
    let run = lab.home.tow(["submit", "sleep", "600"]).ok().id();
    until_within(120, "the run", || {
        (lab.home.state_of(&run) == "running").then_some(())
    });
    let tree = Tree::new(shared.path().join("work"), 11, Some(alice));
    let alias = format!("tow-{}", &run[run.len() - 5..]);
    lab.home
        .tow([
            "scratch",
            "create",
            "work",
            "--on",
            &alias,
            "--path",
            tree.root.to_str().unwrap(),
        ])
        .ok();
    lab.home.tow(["abort", &run, "--wait"]).ok();
    let ended = lab.home.tow(["scratch", "backup"]);
    assert!(
        ended.code == 122 && ended.stderr.contains(&alias),
        "{ended:?}"
    );

    // Onto a host by its own name; from then on it is there.
    fs::rename(&tree.root, shared.path().join("before")).unwrap();
    let strange = lab
        .home
        .tow(["scratch", "restore", "--on", "nosuchhost.invalid"]);
    assert_eq!(strange.code, 121, "{strange:?}");
    lab.home.tow(["scratch", "restore", "--on", "login"]).ok();
    assert_eq!(
        differences(&look(&shared.path().join("before")), &look(&tree.root)),
        Vec::<String>::new()
    );
    assert_eq!(status(&lab.home, "work")["on"], "login");
    fs::write(tree.root.join("round"), "2").unwrap();
    lab.home.tow(["scratch", "backup"]).ok();
    assert_eq!(ids(&lab.home, "work").len(), 2);
    // Two at once: one is told that the other is at work, or both are well.
    let again = [
        lab.home.spawn(["scratch", "backup"]),
        lab.home.spawn(["scratch", "backup"]),
    ]
    .map(|child| Output::from(child.wait_with_output().unwrap()));
    assert!(
        again
            .iter()
            .all(|output| output.code == 0 || output.stderr.contains("right now")),
        "{again:?}"
    );
}
