//! Backups that are killed: here, over there, with the node they run on, or by a link that breaks,
//! at random moments and at every named point. Whatever is listed restores, exactly; the last good
//! one always does.
//!
//! A seeded tenth runs here; `TOW_SOAK=1` runs all.

use crate::tree::{Look, Tree, differences, look};
use crate::{home, until_within};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use towline_host::crash::WORKSPACE_POINTS;
use towline_testkit::campaign::{Seeded, is_soak, seed};
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, Output};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    KillClient,
    /// At a named point of whoever makes the backup.
    Point(&'static str),
    /// `tow` on the node.
    KillFar,
    DropConnections,
    /// The node's link is gone for a while.
    CutLink,
    PowerCut,
}

struct Campaign {
    home: Home,
    tree: Tree,
    random: Seeded,
    /// What each backup that was made held.
    states: BTreeMap<String, Look>,
    /// Where backups are brought back to.
    out: PathBuf,
    /// How long a whole backup takes.
    took: Duration,
    slurm: Option<Slurm>,
    kills: usize,
    /// By a fault at a random moment.
    cut_short: usize,
}

const NODE: &str = "c1";

impl Campaign {
    fn local() -> Self {
        let (home, random) = (home(), Seeded(seed()));
        let tree = Tree::new(home.path("scratch/work"), seed(), None);
        let out = home.path("out");
        Self {
            home,
            tree,
            random,
            states: BTreeMap::new(),
            out,
            took: Duration::ZERO,
            slurm: None,
            kills: 0,
            cut_short: 0,
        }
    }

    /// On a node, which has the folder from this machine so that we see it.
    fn on_a_node(shared: &Path) -> Self {
        let slurm = Slurm::start(&Options {
            nodes: 1,
            gpus: 0,
            expose: vec![shared.to_owned()],
            ..Options::default()
        });
        let alice = fs::metadata(slurm.home("alice")).unwrap().uid();
        std::os::unix::fs::chown(shared, Some(alice), Some(alice)).unwrap();
        let tree = Tree::new(shared.join("work"), seed(), Some(alice));
        Self {
            home: home(),
            tree,
            random: Seeded(seed()),
            states: BTreeMap::new(),
            out: shared.join("out"),
            took: Duration::ZERO,
            slurm: Some(slurm),
            kills: 0,
            cut_short: 0,
        }
    }

    fn create(&mut self) {
        let path = self.tree.root.to_str().unwrap().to_owned();
        let mut words = vec![
            "scratch".to_owned(),
            "create".into(),
            "work".into(),
            "--path".into(),
            path,
        ];
        if let Some(slurm) = &self.slurm {
            words.extend([
                "--on".into(),
                NODE.into(),
                "--ssh-config".into(),
                slurm.ssh_config().display().to_string(),
            ]);
        }
        self.home.tow(&words).ok();
        self.judge("the first");
        assert_eq!(self.states.len(), 1);
        self.tree.change();
        let begun = Instant::now();
        self.home.tow(["scratch", "backup", "work"]).ok();
        self.took = begun.elapsed();
        self.judge("the second");
    }

    /// Each fault in turn, at random moments, until some backup was cut short: how many are is up
    /// to the moments.
    fn random_rounds(&mut self, faults: &[Fault], count: usize) {
        const MOST: usize = 60;
        for (number, fault) in faults.iter().cycle().enumerate() {
            if number >= count && (self.cut_short > 0 || number >= MOST) {
                break;
            }
            self.round(*fault);
        }
    }

    /// A change, and its backup with a fault in it.
    fn round(&mut self, fault: Fault) {
        self.tree.change();
        let prefix = if self.slurm.is_some() {
            "TOW_FAR_"
        } else {
            "TOW_"
        };
        if let Fault::Point(point) = fault {
            self.home.set(&format!("{prefix}CRASH_AT"), point);
        }
        let begun = Instant::now();
        let mut child = self.home.spawn(["scratch", "backup", "work", "--json"]);
        if !matches!(fault, Fault::Point(_)) {
            // What strikes over there takes a moment to get there.
            let most = usize::try_from(self.took.as_millis()).unwrap()
                * if self.slurm.is_some() { 7 } else { 11 }
                / 10;
            std::thread::sleep(Duration::from_millis(self.random.next(most.max(1)) as u64));
            self.strike(fault, &mut child);
        }
        let output = Output::from(child.wait_with_output().unwrap());
        self.home.unset(&format!("{prefix}CRASH_AT"));
        self.recover(fault);
        self.kills += 1;
        match output.code {
            0 => self.took = (self.took + begun.elapsed().min(self.took * 2)) / 2,
            125 | 126 | 137 => {}
            _ => panic!("{fault:?}: {output:?}"),
        }
        if let Fault::Point(_) = fault {
            assert_ne!(output.code, 0, "{fault:?} was not passed");
        } else {
            self.cut_short += usize::from(output.code != 0);
        }
        let before = self.states.len();
        self.judge(&format!("{fault:?}"));
        let is_new = self.states.len() > before;
        assert!(
            output.code != 0 || is_new,
            "{fault:?}: it was said to be there: {output:?}"
        );
        if let Fault::Point(point) = fault {
            assert_eq!(is_new, point == "backup.root.done", "{point}");
        }
    }

    fn strike(&self, fault: Fault, child: &mut Child) {
        match (fault, &self.slurm) {
            (Fault::KillClient, _) => drop(child.kill()),
            (Fault::KillFar, Some(slurm)) => drop(slurm.root(
                NODE,
                [
                    "pkill",
                    "-KILL",
                    "-u",
                    "alice",
                    "-f",
                    "tow-[0-9a-f]* __scratch",
                ],
            )),
            (Fault::DropConnections, Some(slurm)) => slurm.drop_connections(),
            (Fault::CutLink, Some(slurm)) => {
                slurm.cut(NODE);
                std::thread::sleep(Duration::from_millis(500));
                slurm.heal(NODE);
            }
            (Fault::PowerCut, Some(slurm)) => slurm.kill_host(NODE),
            _ => {}
        }
    }

    /// The node is there again, and nothing of ours is at work on it.
    fn recover(&self, fault: Fault) {
        let Some(slurm) = &self.slurm else { return };
        if fault == Fault::PowerCut {
            slurm.start_host(NODE);
        }
        until_within(60, "the end of what runs on the node", || {
            slurm
                .root(NODE, ["pgrep", "-u", "alice", "-f", "__scratch"])
                .stdout
                .is_empty()
                .then_some(())
        });
    }

    fn listed(&self) -> Vec<Value> {
        // After a cut the first call may find that its connection is gone.
        let listed = until_within(60, "a list of backups", || {
            let listed = self.home.tow(["scratch", "ls", "work", "--json"]);
            (listed.code != 125).then_some(listed)
        });
        assert!([0, 123].contains(&listed.code), "{listed:?}");
        listed.json()["backups"].as_array().unwrap().clone()
    }

    /// Whatever is listed is known to be whole, or is the state of now; the newest is brought back.
    fn judge(&mut self, what: &str) {
        let listed = self.listed();
        for (number, row) in listed.iter().enumerate() {
            let id = row["id"].as_str().unwrap().to_owned();
            assert_eq!(row["readable"], true, "{what}: {row}");
            if !self.states.contains_key(&id) {
                assert_eq!(
                    number, 0,
                    "{what}: an unknown backup is not the newest: {row}"
                );
                self.states.insert(id, self.tree.look());
            }
        }
        assert_eq!(listed.len(), self.states.len(), "{what}: a backup is gone");
        if let Some(newest) = listed.first() {
            self.bring_back(what, newest["id"].as_str().unwrap());
        }
    }

    fn bring_back(&self, what: &str, id: &str) {
        let _ = fs::remove_dir_all(&self.out);
        self.home
            .tow([
                "scratch",
                "restore",
                "work",
                "--backup",
                id,
                "--path",
                self.out.to_str().unwrap(),
            ])
            .ok();
        let differ = differences(&self.states[id], &look(&self.out));
        assert!(
            differ.is_empty(),
            "{what}: backup {id} is not what it was: {differ:#?}"
        );
    }

    /// Backups of any age are whole, the store has no damage, and a last one goes through.
    fn end(mut self, what: &str) {
        self.tree.change();
        self.home.tow(["scratch", "backup", "work"]).ok();
        self.judge("the last");
        let all: Vec<String> = self.states.keys().cloned().collect();
        for id in all.iter().step_by(all.len().div_ceil(8)) {
            self.bring_back("at the end", id);
        }
        let checked = self
            .home
            .tow(["scratch", "check", "work", "--json"])
            .ok()
            .json();
        assert_eq!(
            (&checked["ok"], checked["backups"].as_u64()),
            (&true.into(), Some(self.states.len() as u64)),
            "{checked}"
        );
        let _ = fs::remove_dir_all(&self.out);
        assert!(
            self.cut_short > 0,
            "no backup was cut short at a random moment"
        );
        println!(
            "{what}: {} kills, {} backups cut short, {} made, every byte there",
            self.kills,
            self.cut_short,
            self.states.len()
        );
    }
}

#[test]
fn a_backup_that_is_killed_here_leaves_the_last_good_one() {
    let mut campaign = Campaign::local();
    campaign.create();
    for point in WORKSPACE_POINTS {
        campaign.round(Fault::Point(point));
    }
    campaign.random_rounds(&[Fault::KillClient], if is_soak() { 50 } else { 6 });
    campaign.end("backups killed here");
}

#[test]
fn a_backup_whose_node_or_link_fails_leaves_the_last_good_one() {
    let shared = tempfile::Builder::new()
        .prefix("tow-node-scratch-")
        .tempdir()
        .unwrap();
    let mut campaign = Campaign::on_a_node(shared.path());
    campaign.create();
    for point in WORKSPACE_POINTS {
        campaign.round(Fault::Point(point));
    }
    let faults = [
        Fault::KillClient,
        Fault::KillFar,
        Fault::DropConnections,
        Fault::CutLink,
        Fault::PowerCut,
    ];
    campaign.random_rounds(&faults, if is_soak() { 50 } else { faults.len() });
    campaign.end("backups of a node");
}
