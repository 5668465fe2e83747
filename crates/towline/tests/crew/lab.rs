//! A service with one job: its order, its folders, and its nodes, which are processes here.

use rustix::process::Signal;
use serde_json::json;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use towline_core::RunId;
use towline_core::cluster::AttemptReport;
use towline_core::plan::{Plan, PlannedRun, Request};
use towline_core::reason::{Cause, Ending};
use towline_core::resolve::{FrozenCode, Resolved, Surroundings, resolve};
use towline_host::process;
use towline_snapshot::pack::Compression;
use towline_snapshot::progress::Progress;
use towline_snapshot::rules::Rules;
use towline_snapshot::store::FolderStore;
use towline_snapshot::take::{Options, take};
use towline_snapshot::walk::Limits;
use towline_testkit::until;
use towline_wire::crew::{CREW_VERSION, CrewOrder, LOG_PART_BYTES, SharedToken, StatusDocument};

pub(crate) struct Lab {
    folder: TempDir,
    pub(crate) run: RunId,
    pub(crate) order: CrewOrder,
    port: u16,
    /// Words after those that every node gets.
    pub(crate) words: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Lab {
    /// A job of one rank that runs these lines.
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tow-crew-")
            .tempdir()
            .unwrap();
        let run = RunId::new(
            "crew",
            1_700_000_000,
            rustix::process::getpid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs(),
        );
        let job = serde_json::from_value(json!({"script": script})).unwrap();
        let around = Surroundings {
            workdir: "/not/here".into(),
            umask: 0o022,
            ..Surroundings::default()
        };
        let (resolved, _) = resolve(&job, None, 0, around).unwrap();
        let runs = vec![PlannedRun {
            id: run.clone(),
            name: "crew".into(),
            parameters: Vec::new(),
        }];
        let request = Request {
            text: String::new(),
        };
        let (cluster, kind) = ("cloud".to_owned(), "azureml".to_owned());
        let plan = Plan {
            version: 1,
            id: run.clone(),
            cluster,
            kind,
            runs,
            job,
            resolved,
            request,
            notes: Vec::new(),
            after: Vec::new(),
            resubmits: None,
            adopted: None,
            made: None,
            whole_node_gpus: None,
            agent: None,
        };
        let order = CrewOrder {
            version: CREW_VERSION,
            plan,
            grace_millis: 2_000,
            collect_every: 60,
            shared_token: SharedToken::new("the token"),
            secrets: None,
        };
        for name in ["tmp", "stage", "news"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        Self {
            folder,
            run,
            order,
            port,
            words: Vec::new(),
            variables: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Resolved)) -> Self {
        change(&mut self.order.plan.resolved);
        self
    }

    /// The same, on so many nodes.
    #[must_use]
    pub(crate) fn on(self, nodes: u32, ranks: u32) -> Self {
        self.with(|resolved| (resolved.shape.nodes, resolved.shape.ranks_per_node) = (nodes, ranks))
    }

    /// The job starts in these files.
    #[must_use]
    pub(crate) fn code(mut self, files: &[(&str, &str)]) -> Self {
        let tree = self.path("tree");
        for (name, text) in files {
            let file = tree.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let options = Options {
            limits: Limits::none(),
            compression: Compression::QUICK,
            name: "tree".into(),
            now: 1,
            stat_cache: self.path("stat"),
            index: self.path("index"),
        };
        let rules = Rules::new(&tree, &[], []).unwrap();
        let taken = take(
            &tree,
            &rules,
            &FolderStore::new(self.path("snapshots")),
            &options,
            &Progress::default(),
        )
        .unwrap();
        self.order.plan.resolved.code = Some(FrozenCode {
            snapshot: Some(taken.id.to_string()),
            root: "/not/here".into(),
            ..FrozenCode::default()
        });
        self.words.extend([
            "--store".to_owned(),
            self.path("snapshots").display().to_string(),
        ]);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Starts the command of one node, as the service does.
    pub(crate) fn start(&self, node: u32) -> Node {
        let order = self.path("order.json");
        let bytes = serde_json::to_vec(&self.order).unwrap();
        // Another node may be reading it.
        if fs::read(&order).ok().as_ref() != Some(&bytes) {
            fs::write(&order, bytes).unwrap();
        }
        let (stdout, stderr) = (
            self.path(&format!("stdout-{node}")),
            self.path(&format!("stderr-{node}")),
        );
        let binary =
            std::env::var_os("TOW_TEST_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_tow").into());
        let mut command = Command::new(binary);
        command
            .arg("__crew")
            .arg("--order")
            .arg(order)
            .args(["--run", self.run.as_str()])
            .arg("--folder")
            .arg(self.path("stage"))
            .arg("--news")
            .arg(self.path("news"))
            .args(&self.words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", self.path("tmp"))
            .env("LAB", self.folder.path())
            .env("NODE_RANK", node.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", self.port.to_string())
            .env("AZUREML_RUN_ID", "the-job")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::from(File::create(&stdout).unwrap()))
            .stderr(Stdio::from(
                File::options()
                    .append(true)
                    .create(true)
                    .open(&stderr)
                    .unwrap(),
            ));
        Node {
            child: command.spawn().unwrap(),
            stdout,
            stderr,
        }
    }

    /// All nodes, to their end: their codes.
    pub(crate) fn all(&self) -> Vec<i32> {
        let nodes: Vec<Node> = (0..self.order.plan.resolved.shape.nodes)
            .map(|node| self.start(node))
            .collect();
        nodes.into_iter().map(Node::code).collect()
    }

    pub(crate) fn news(&self) -> Option<StatusDocument> {
        serde_json::from_slice(
            &fs::read(self.path("news").join(format!("{}.json", self.run))).ok()?,
        )
        .ok()
    }

    pub(crate) fn attempts(&self) -> Vec<AttemptReport> {
        self.news().map(|news| news.attempts).unwrap_or_default()
    }

    /// How each attempt ended; its last news say the same.
    #[track_caller]
    pub(crate) fn endings(&self) -> Vec<Ending> {
        self.attempts()
            .into_iter()
            .map(|report| {
                report
                    .end
                    .unwrap_or_else(|| panic!("attempt {} has no end", report.attempt))
                    .ending
            })
            .collect()
    }

    #[track_caller]
    pub(crate) fn causes(&self) -> Vec<Option<Cause>> {
        self.endings()
            .into_iter()
            .map(|ending| ending.cause)
            .collect()
    }

    pub(crate) fn is_concluded(&self) -> bool {
        let last = fs::read(self.path("stage/news.json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<StatusDocument>(&bytes).ok());
        last.is_some() && last == self.news()
    }

    /// A log, put together from its parts.
    #[track_caller]
    pub(crate) fn log(&self, name: &str) -> Vec<u8> {
        let folder = self.path("stage/logs").join(name);
        let mut parts: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        parts.sort();
        let bytes: Vec<Vec<u8>> = parts.iter().map(|part| fs::read(part).unwrap()).collect();
        for part in bytes.iter().rev().skip(1) {
            assert_eq!(part.len() as u64, LOG_PART_BYTES);
        }
        bytes.concat()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.log(name)).unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn until_there(&self, name: &str) {
        until(
            &format!(
                "{name} to be there; {}{}",
                self.read("stderr-0"),
                self.read("stderr-1")
            ),
            || self.path(name).exists().then_some(()),
        );
    }

    /// Ranks and whatever else belongs to the runs of this lab.
    pub(crate) fn alive(&self) -> Vec<i32> {
        marked(&format!("TOW_RUN_DIR={}", self.folder.path().display()))
    }

    #[track_caller]
    pub(crate) fn nothing_is_alive(&self) {
        until("nothing to be alive", || {
            self.alive().is_empty().then_some(())
        });
    }
}

/// Processes with a variable that begins so.
fn marked(marker: &str) -> Vec<i32> {
    let is_marked = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
            bytes
                .split(|byte| *byte == 0)
                .any(|one| one.starts_with(marker.as_bytes()))
        })
    };
    process::all()
        .into_iter()
        .filter(|(_, facts)| !facts.zombie)
        .map(|(pid, _)| pid)
        .filter(is_marked)
        .collect()
}

impl Drop for Lab {
    fn drop(&mut self) {
        let marker = format!("LAB={}", self.folder.path().display());
        until("everything of this lab to be gone", || {
            let alive = marked(&marker);
            for pid in &alive {
                process::signal(*pid, Signal::KILL);
            }
            alive.is_empty().then_some(())
        });
    }
}

/// What the service started on a node.
pub(crate) struct Node {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Node {
    /// Waits for its end.
    pub(crate) fn code(mut self) -> i32 {
        let status = until("a node to leave", || self.child.try_wait().unwrap());
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// The runner below what the service started.
    pub(crate) fn runner(&self) -> i32 {
        let own = self.pid();
        until("a runner", || {
            process::all()
                .into_iter()
                .find(|(_, facts)| facts.parent == own)
                .map(|(pid, _)| pid)
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal);
    }

    pub(crate) fn stdout(&self) -> &Path {
        &self.stdout
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }
}
