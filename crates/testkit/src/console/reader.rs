//! A reader of a page: types its commands in a shell, in a home that looks as the page says.

use super::blocks::{Block, Part, Setting, Step, parts, steps};
use super::lines::Names;
use crate::Home;
use crate::real::Slurm;
use crate::real::slurm::SLURM_SCRIPT;
use regex::{Captures, Regex};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The folder of the repository, with the pages.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Below the root of the tree: files that lie there before a reader begins, by the fixture's name. `session`
/// among them is typed first.
pub const FIXTURES: &str = "crates/towline/tests/console/fixtures";

/// How long a command may take. The longest wait for a run on a cluster.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a reader asks again until a run has come to where the page shows it.
fn asking_timeout(setting: Setting) -> Duration {
    match setting {
        Setting::Local => Duration::from_secs(30),
        Setting::Slurm | Setting::Azure | Setting::Hosts => Duration::from_secs(90),
    }
}

/// Verbs that a reader repeats, because they change nothing and the answer may come later.
const ASKING: [&str; 14] = [
    "ps",
    "why",
    "show",
    "logs",
    "nodes",
    "clusters",
    "doctor",
    "get",
    "history",
    "diff",
    "tunnel ls",
    "scratch ls",
    "daemon status",
    "ssh",
];

/// Shown where a reader interrupts a command.
const INTERRUPT: &str = "^C";

/// A reader of one page.
#[derive(Debug)]
pub struct Reader {
    home: Home,
    names: Names,
    /// The current folder of the shell.
    folder: PathBuf,
    /// Paths here, and as pages spell them.
    paths: Vec<(String, String)>,
    /// None after a failure: nothing is worth waiting for.
    asking_timeout: Duration,
    failures: Vec<String>,
}

/// Reads a page: runs its blocks of this setting, each reader in a home that `settle` makes.
/// Fails the test with everything that is not as the page shows it.
#[track_caller]
pub fn read_page(page: &str, setting: Setting, settle: impl Fn() -> Reader) {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let (parts, wrong) = parts(&text);
    assert!(wrong.is_empty(), "{page}: {wrong:#?}");
    let mut reader = settle();
    reader.asking_timeout = asking_timeout(setting);
    let mut failures = Vec::new();
    let mut count = 0;
    for part in parts {
        match part {
            Part::File { name, text } => reader.write(&name, &text),
            Part::Session(block) if block.setting == setting => {
                if block.is_fresh && count > 0 {
                    failures.append(&mut reader.failures);
                    let left = reader.asking_timeout;
                    reader = settle();
                    reader.asking_timeout = left;
                }
                reader.read(page, &block);
                count += 1;
            }
            Part::Session(_) => {}
        }
    }
    failures.append(&mut reader.failures);
    assert!(count > 0, "{page} has no block that this suite runs");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

impl Reader {
    /// In this home; `tow` is in the reader's path by its name.
    pub fn new(mut home: Home) -> Self {
        home.unset("TOW_GRACE_MILLIS");
        home.unset("TOW_IN_PLACE");
        home.set("TZ", "UTC");
        home.set("USER", "ann");
        let bin = home.path("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(home.binary(), bin.join("tow")).unwrap();
        fs::create_dir_all(home.path("home/vision")).unwrap();
        let state = home.path("state/towline").join(host());
        let paths = [
            (state.as_path(), "/home/ann/.local/state/towline/box"),
            (&home.path("config"), "/home/ann/.config"),
            (&home.path("home"), "/home/ann"),
            (&bin, "/usr/bin"),
            (&home.path(""), "/"),
        ]
        .map(|(here, page)| (here.display().to_string(), page.to_owned()))
        .into();
        Self {
            folder: home.path("home/vision"),
            home,
            names: Names::default(),
            paths,
            asking_timeout: Duration::ZERO,
            failures: Vec::new(),
        }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Gives fixtures the program `lab`, which acts on the hosts of a cluster.
    pub fn act_on(&self, slurm: &Slurm) {
        let script = format!(
            "#!/bin/sh\nverb=$1; shift\nexec bash {SLURM_SCRIPT} $verb {} \"$@\"\n",
            slurm.folder().display()
        );
        self.program("lab", &script);
    }

    /// A program in the reader's path.
    fn program(&self, name: &str, text: &str) {
        crate::program(&self.home.path("bin").join(name), text);
    }

    /// `ssh` reads the configuration of the reader's home. By itself it would look for that of the
    /// user who runs the test.
    #[must_use]
    pub fn with_own_ssh_config(self) -> Self {
        self.program(
            "ssh",
            "#!/bin/sh\ncase \" $* \" in *' -F '*) exec /usr/bin/ssh \"$@\";; esac\nexec \
                /usr/bin/ssh -F \"$HOME/.ssh/config\" -o BatchMode=yes \"$@\"\n",
        );
        self
    }

    /// Writes a file of the project.
    fn write(&self, name: &str, text: &str) {
        let path = self.home.path("home/vision").join(name);
        fs::write(path, self.typed_paths(text)).unwrap();
    }

    fn read(&mut self, page: &str, block: &Block) {
        if block.needs_memory_limits && !crate::ability::may_limit_memory() {
            crate::ability::not_run(&format!(
                "{page}:{}: this user may not limit memory",
                block.line
            ));
            return;
        }
        for name in &block.fixtures {
            self.lay_out(name);
        }
        for step in &block.steps {
            self.take(page, step);
        }
    }

    /// Puts the files of a fixture where it has them, and types its session.
    fn lay_out(&mut self, name: &str) {
        let fixture = Path::new(ROOT).join(FIXTURES).join(name);
        assert!(
            fixture.is_dir(),
            "there is no fixture {}",
            fixture.display()
        );
        self.copy(&fixture, &self.home.path(""));
        if let Ok(text) = fs::read_to_string(fixture.join("session")) {
            let body: Vec<&str> = text.lines().collect();
            for step in steps(1, &body).unwrap() {
                self.take(&format!("{FIXTURES}/{name}/session"), &step);
            }
        }
    }

    /// Copies what is in a folder of a fixture. Files name paths as pages do.
    fn copy(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                self.copy(&entry.path(), &target);
            } else if entry.file_name() != "session" {
                let text = self.typed_paths(&fs::read_to_string(entry.path()).unwrap());
                if to.ends_with("bin") {
                    crate::program(&target, text);
                } else {
                    fs::write(&target, text).unwrap();
                }
            }
        }
    }

    /// A text of a page with the paths of this machine.
    fn typed_paths(&self, text: &str) -> String {
        let own = self
            .paths
            .iter()
            .filter(|(_, page)| page.starts_with("/home/"));
        let own = own.map(|(here, page)| (page.clone(), here.clone()));
        let shared = ["/mnt/", "/scratch/", "/fsx/"];
        let shared = shared.map(|page| {
            let here = self.home.path(page.trim_start_matches('/'));
            (page.to_owned(), here.display().to_string())
        });
        replaced(text, own.chain(shared))
    }

    /// What this machine printed, as pages spell it.
    fn page_paths(&self, output: &str) -> String {
        let host = host();
        let text = replaced(output, self.paths.iter().cloned());
        let text = text.replace(&format!("made on {host} "), "made on box ");
        let lines = text
            .lines()
            .map(|line| match line.strip_prefix(&format!("{host}: ")) {
                Some(rest) => format!("box: {rest}\n"),
                None => format!("{line}\n"),
            });
        lines.collect()
    }

    /// Types a command, and compares what it shows.
    fn take(&mut self, page: &str, step: &Step) {
        let command = self.typed_paths(&self.names.typed(&step.command));
        let is_asking = ASKING
            .iter()
            .any(|verb| command.starts_with(&format!("tow {verb}")))
            && !command.contains(" -f");
        let timeout = if is_asking {
            self.asking_timeout
        } else {
            Duration::ZERO
        };
        self.gate(&command);
        let begun = Instant::now();
        loop {
            let output = self.page_paths(&self.run(&command, &step.shown));
            self.follow();
            let lines: Vec<&str> = output.lines().collect();
            match self.names.fit(&step.shown, &lines) {
                Ok(names) => {
                    self.names = names;
                    return;
                }
                Err(_) if begun.elapsed() < timeout => {
                    std::thread::park_timeout(Duration::from_millis(100));
                }
                Err(line) => {
                    self.asking_timeout = Duration::ZERO;
                    self.failures.push(format!(
                        "{page}:{}: $ {}\nthe page shows{}:\n{}\nbut this was printed:\n{}",
                        step.line,
                        step.command,
                        step.shown
                            .get(line)
                            .map_or(" less".to_owned(), |line| format!(", not found: {line}")),
                        step.shown.join("\n"),
                        self.names.as_on_page(&output)
                    ));
                    return;
                }
            }
        }
    }

    /// Programs of fixtures that want to be seen while they run go on when the file `followed` is
    /// in the home folder: while the reader waits for their end.
    fn gate(&self, command: &str) {
        let file = self.home.path("home/followed");
        let waits = ["logs -f", "wait"];
        if waits
            .iter()
            .any(|verb| command.starts_with(&format!("tow {verb}")))
        {
            fs::write(file, "").unwrap();
        } else {
            let _ = fs::remove_file(file);
        }
    }

    /// Runs a command in the shell; what it printed, on both streams in its order.
    fn run(&self, command: &str, shown: &[String]) -> String {
        let printed = tempfile::NamedTempFile::new().unwrap();
        let stream = || File::options().append(true).open(printed.path()).unwrap();
        let after = self.home.path("folder-of-the-shell");
        let script = format!(
            "{command}\nstatus=$?\npwd > '{}'\nexit $status",
            after.display()
        );
        let known = self.home.command([""; 0]);
        let variables = known
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        // A fixture may say which programs there are besides its own.
        let programs = self.home.path("programs");
        let programs = if programs.exists() {
            programs.display().to_string()
        } else {
            std::env::var("PATH").unwrap()
        };
        let path = format!("{}:{programs}", self.home.path("bin").display());
        let mut shell = Command::new("bash")
            .args(["-c", &script])
            .env_clear()
            .envs(variables)
            .env("PATH", path)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(stream())
            .stderr(stream())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_child(&shell);
        let read = || fs::read_to_string(printed.path()).unwrap_or_default();
        let mut before = shown.split(|line| line == INTERRUPT);
        let before = before.next().filter(|before| before.len() < shown.len());
        let mut is_interrupted = false;
        let begun = Instant::now();
        while shell.try_wait().unwrap().is_none() {
            if let Some(before) = before.filter(|_| !is_interrupted) {
                let output = self.page_paths(&read());
                if self
                    .names
                    .fit(before, &output.lines().collect::<Vec<_>>())
                    .is_ok()
                {
                    let mut terminal = stream();
                    std::io::Write::write_all(&mut terminal, b"^C\n").unwrap();
                    let _ = kill_process_group(group, Signal::INT);
                    is_interrupted = true;
                }
            }
            if begun.elapsed() > COMMAND_TIMEOUT {
                let _ = kill_process_group(group, Signal::KILL);
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        read()
    }

    /// The shell stays where a command has gone.
    fn follow(&mut self) {
        let told = fs::read_to_string(self.home.path("folder-of-the-shell")).unwrap_or_default();
        if Path::new(told.trim()).is_dir() {
            self.folder = PathBuf::from(told.trim());
        }
    }
}

impl Drop for Reader {
    /// A tunnel stays open until it is closed.
    fn drop(&mut self) {
        let _ = self.home.command(["tunnel", "close", "--all"]).output();
    }
}

/// The name of this machine. Pages call it `box`.
fn host() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// A text with one path in the place of another, each path of the text once. The first that fits
/// counts.
fn replaced(text: &str, paths: impl Iterator<Item = (String, String)>) -> String {
    let paths: Vec<(String, String)> = paths.collect();
    let known: Vec<String> = paths.iter().map(|(from, _)| regex::escape(from)).collect();
    let known = Regex::new(&known.join("|")).expect("escaped paths");
    let other = |found: &Captures| {
        let pair = paths.iter().find(|(from, _)| *from == found[0]);
        pair.map_or_else(String::new, |(_, to)| to.clone())
    };
    known.replace_all(text, other).into_owned()
}
