//! The page for users of the PyTorch AWS helper: every command on it, in order, on a real cluster.

use crate::{backups, home, status, until_within};
use towline_testkit::ability::not_run;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, Output, page};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/guide/from-pytorch-aws-helper.md"
);

/// Somebody who types what the page says, and what came of it so far.
struct Reader {
    slurm: Slurm,
    home: Home,
    /// The node that the last allocation named.
    node: String,
    /// What the workspace held when its first node was released.
    kept: String,
    releases: usize,
    restores: usize,
}

impl Reader {
    /// The ssh configuration that the wiki made lies at its place; the page's own settings lead to
    /// it.
    fn new() -> Self {
        let slurm = Slurm::start(&Options::default());
        let home = home().freezing().with("USER", "alice");
        home.configure(&page::settings(PAGE));
        let folder = home.path("home/.ssh/ai_ssh/alice");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(slurm.ssh_config(), folder.join("config")).unwrap();
        for node in ["c1", "c2", "c3"] {
            slurm
                .root(node, ["mkdir", "-p", "-m", "1777", "/scratch"])
                .ok();
        }
        Self {
            slurm,
            home,
            node: String::new(),
            kept: String::new(),
            releases: 0,
            restores: 0,
        }
    }

    #[track_caller]
    fn typed(&self, line: &str) -> Output {
        let ran = page::run(&self.home, &self.home.state().ssh().join("config"), line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        ran
    }

    #[track_caller]
    fn on(&self, node: &str, script: &str) -> String {
        self.slurm
            .exec(node, "alice", ["bash", "-c", script])
            .ok()
            .stdout
    }

    fn queue(&self) -> String {
        self.slurm
            .exec(
                "login",
                "alice",
                ["squeue", "-h", "-u", "alice", "-o", "%N|%b|%l|%T"],
            )
            .ok()
            .stdout
    }

    fn sums(&self) -> String {
        self.on(
            &self.node,
            "cd /scratch/alice/work && find . -type f -exec sha256sum {} + | sort",
        )
    }

    /// What a command has changed, seen from the cluster where that can be.
    #[track_caller]
    fn assert_effect(&mut self, line: &str, ran: &Output) {
        let said = &ran.stdout;
        match line.split(' ').take(3).collect::<Vec<_>>()[..] {
            ["tow", "nodes", ..] => assert!(
                ["c1", "c2", "c3"]
                    .iter()
                    .all(|node| said.lines().any(|line| line.trim_start().starts_with(node))),
                "{said}"
            ),
            ["tow", "alloc", ..] => {
                line.split("--node ")
                    .nth(1)
                    .unwrap()
                    .trim()
                    .clone_into(&mut self.node);
                assert_eq!(
                    self.queue(),
                    format!("{}|gres:gpu:2|8:00:00|RUNNING\n", self.node)
                );
            }
            ["ssh", "tow-node", "hostname"] => assert_eq!(*said, format!("{}\n", self.node)),
            ["ssh", "tow-node", ..] => assert_eq!(
                self.on(&self.node, "cat /scratch/alice/work/opinfo.py"),
                "op = 1\n"
            ),
            ["tow", "scratch", "create"] => {
                assert_eq!(
                    self.on(
                        &self.node,
                        "cat /scratch/alice/work/setup.log; ls -d /scratch/alice/env"
                    ),
                    "conda create -p /scratch/alice/env\n/scratch/alice/env\n"
                );
                assert_eq!(backups(&self.home, "work").len(), 1, "the initial backup");
            }
            ["tow", "scratch", "backup"] => {
                let newest = &backups(&self.home, "work")[0];
                assert_eq!(
                    (&newest["host"], &newest["files"]),
                    (&self.node.as_str().into(), &2.into()),
                    "{newest}"
                );
            }
            ["tow", "scratch", "ls"] if line.ends_with(" work") => assert_eq!(
                backups(&self.home, "work").len(),
                2,
                "nothing is written over: {said}"
            ),
            ["tow", "scratch", "ls"] => assert!(
                said.contains("work") && status(&self.home, "work")["state"] == "good",
                "{said}"
            ),
            ["tow", "scratch", "check"] => {
                let checked = self
                    .home
                    .tow(["scratch", "check", "work", "--json"])
                    .ok()
                    .json();
                assert_eq!(
                    (&checked["ok"], &checked["backups"]),
                    (&true.into(), &2.into()),
                    "{checked}"
                );
            }
            // It goes on without a terminal, and the work of that moment is safe.
            ["tow", "scratch", "auto"] if !line.contains("--off") => {
                assert_eq!(status(&self.home, "work")["auto"], "30m");
            }
            ["tow", "scratch", "auto"] => assert!(status(&self.home, "work")["auto"].is_null()),
            ["tow", "scratch", "restore"] => {
                self.restores += 1;
                assert_eq!(self.sums(), self.kept);
                // The same node again: it is there, and one goes on working.
                let still = self.typed(line);
                assert!(still.stdout.contains("`work` is still there"), "{still:?}");
                assert_eq!(self.sums(), self.kept);
            }
            ["tow", "release"] => {
                self.releases += 1;
                until_within(60, "the nodes to be free", || {
                    self.queue().is_empty().then_some(())
                });
                if self.releases == 1 {
                    self.kept = self.sums();
                    assert!(self.kept.contains("opinfo.py"), "{}", self.kept);
                }
            }
            _ => panic!("nothing is known of the effect of: {line}"),
        }
    }
}

#[test]
fn every_command_of_the_page_runs_in_order() {
    let mut reader = Reader::new();
    let commands = page::commands(PAGE);
    assert!(commands.len() >= 12, "{commands:?}");
    for line in &commands {
        let ran = reader.typed(line);
        reader.assert_effect(line, &ran);
    }
    assert_eq!((reader.releases, reader.restores), (2, 1), "{commands:?}");
    tips(&reader);
}

/// What stands on the page between backquotes and begins so.
#[track_caller]
fn said_on_the_page(beginning: &str) -> String {
    let text = std::fs::read_to_string(PAGE).unwrap();
    text.split('`')
        .find(|part| part.starts_with(beginning))
        .unwrap_or_else(|| panic!("the page has no `{beginning}…`"))
        .to_owned()
}

/// The work of somebody who comes from the helper, as it packed it.
fn tarball(reader: &Reader) {
    if reader
        .slurm
        .exec("c1", "alice", ["sh", "-c", "command -v lz4"])
        .code
        != 0
    {
        return not_run("a tarball of the helper: lz4 is not here");
    }
    reader.on(
        "c1",
        "mkdir -p ~/alice/bin /scratch/packed/work && echo old > \
        /scratch/packed/work/opinfo.py && tar -C /scratch/packed -c work | lz4 -q - \
            ~/alice/bin/work.tar.lz4",
    );
    reader.typed(&format!(
        "tow scratch create old --on tow-node --path '/scratch/$USER/old' {}",
        said_on_the_page("--setup 'lz4 -dc")
    ));
    assert_eq!(reader.on("c1", "cat /scratch/alice/old/opinfo.py"), "old\n");
    assert_eq!(backups(&reader.home, "old")[0]["files"], 1);
}

/// A local ccache by what the page says of it, and the end of an allocation that `scancel` was for.
fn tips(reader: &Reader) {
    let setup = said_on_the_page("--setup 'echo export CCACHE_DIR");
    let id = reader
        .home
        .tow(["alloc", "--node", "c1", "--time", "1h", "--json"])
        .ok()
        .json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    reader.typed(&format!(
        "tow scratch create tip --on tow-node --path '/scratch/$USER/tip' {setup}"
    ));
    assert_eq!(
        reader
            .slurm
            .exec("c1", "alice", ["bash", "-ic", "echo $CCACHE_DIR"])
            .stdout,
        "/tmp/ccache\n"
    );
    tarball(reader);
    assert!(reader.typed("tow ps").stdout.contains(&id[id.len() - 5..]));
    assert!(
        reader
            .typed(&format!("tow why {id}"))
            .stdout
            .contains("running")
    );
    reader.typed(&format!("tow abort {id}"));
    until_within(60, "the node to be free", || {
        reader.queue().is_empty().then_some(())
    });
}
