//! Stage folders as an earlier version left them on Slurm and on Azure ML. Each file is found by
//! today's names and read as today's types, and nothing of it is lost.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use towline_core::RunId;
use towline_core::cluster::{Claim, End, Held, Started};
use towline_wire::crew::{CrewOrder, StatusDocument, keys};
use towline_wire::log_name::LogName;
use towline_wire::stage::{CodeRemoved, JobRecord, Order, Record, StageFolder, StopOrder};

/// Files of a stage that were not found yet.
struct Left(BTreeSet<PathBuf>);

impl Left {
    fn of(root: &Path) -> Self {
        let mut left = Self(BTreeSet::new());
        left.walk(root);
        assert!(!left.0.is_empty());
        left
    }

    fn walk(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            if entry.path().is_dir() {
                self.walk(&entry.path());
            } else {
                self.0.insert(entry.path());
            }
        }
    }

    /// Whether the file is there. It counts as found.
    fn take(&mut self, path: &Path) -> bool {
        self.0.remove(path)
    }

    /// A JSON document, where it is there.
    #[track_caller]
    fn read<T: Serialize + DeserializeOwned>(&mut self, path: &Path) -> Option<T> {
        let text = self
            .take(path)
            .then(|| fs::read_to_string(path).expect("text"))?;
        Some(decoded(&text, path))
    }

    /// The rest has names without content that is parsed: programs of the user, and their output.
    fn finish(mut self, is_other: impl Fn(&str) -> bool) {
        let name = |path: &PathBuf| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        };
        self.0.retain(|path| !is_other(&name(path)));
        assert!(
            self.0.is_empty(),
            "no name of today is that of {:#?}",
            self.0
        );
    }
}

#[track_caller]
fn decoded<T: Serialize + DeserializeOwned>(text: &str, path: &Path) -> T {
    let value: T =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let now = serde_json::to_value(&value).expect("it encodes");
    let then: Value = serde_json::from_str(text).expect("JSON");
    if let Some(lost) = towline_samples::lost(&then, &now) {
        panic!("{} lost {lost}", path.display());
    }
    value
}

fn ids(folder: &Path) -> Vec<RunId> {
    let names = fs::read_dir(folder).expect("a folder").flatten();
    let id = |name: &str| RunId::try_from(name.trim_end_matches(".json").to_owned());
    names
        .map(|entry| id(&entry.file_name().to_string_lossy()).expect("an id"))
        .collect()
}

#[test]
fn a_stage_folder_of_slurm_is_still_read() {
    let stage = StageFolder::new(super::samples("stage-slurm"));
    let mut left = Left::of(stage.root());
    for id in ids(&stage.submissions()) {
        let order: Order = left.read(&stage.plan(&id)).expect("an order");
        assert_eq!((order.version, &order.plan.id), (1, &id));
        assert!(left.take(&stage.script(&id)) && left.take(&stage.submission_lock(&id)));
        assert!(left.take(&stage.jobs(&id)));
        let jobs = fs::read_to_string(stage.jobs(&id)).expect("text");
        let lines = jobs.lines().filter(|line| !line.is_empty());
        let jobs: Vec<JobRecord> = lines.map(|line| decoded(line, &stage.jobs(&id))).collect();
        assert!(matches!(
            jobs[..],
            [JobRecord::Intent { .. }, JobRecord::Accepted { .. }]
        ));
    }
    let mut endings = Vec::new();
    for id in ids(&stage.runs()) {
        endings.push((
            id.as_str().split('-').next().expect("a name").to_owned(),
            ending(&mut left, &stage, &id),
        ));
    }
    endings.sort();
    let shown: Vec<String> = endings
        .iter()
        .map(|(name, how)| format!("{name}: {how}"))
        .collect();
    assert_eq!(
        shown,
        [
            "cancelled: 1 by_user, cancelled, stopped",
            "held: 1 exit_code, cancelled, held",
            "retried: 2 well, stopped",
            "sweep: 1 well",
            "sweep: 1 well",
        ]
    );
    left.finish(|name| {
        let is_program = [".script", ".setup", ".ready", ".out"]
            .iter()
            .any(|end| name.ends_with(end));
        is_program || LogName::from_file(name).is_some()
    });
}

/// What today's names and types say of a run: its last attempt, how that ended, and what was asked.
fn ending(left: &mut Left, stage: &StageFolder, id: &RunId) -> String {
    let folder = stage.run(id);
    let (mut last, mut stopped, mut held) = (String::new(), false, false);
    for attempt in 1.. {
        let Some(claim) = left.read::<Claim>(&folder.record(attempt, Record::Claim)) else {
            break;
        };
        assert!(!claim.hosts.is_empty() && claim.port > 0 && !claim.by.job.is_empty());
        left.read::<Started>(&folder.record(attempt, Record::Started))
            .expect("it was started");
        let end: End = left
            .read(&folder.record(attempt, Record::End))
            .expect("it ended");
        for node in 0..u32::try_from(claim.hosts.len()).expect("few") {
            left.read::<End>(&folder.node_end(attempt, node))
                .expect("it ended there");
        }
        stopped |= left
            .read::<StopOrder>(&folder.record(attempt, Record::Stop))
            .is_some();
        held |= left
            .read::<Held>(&folder.record(attempt, Record::Held))
            .is_some();
        last = format!(
            "{attempt} {}",
            end.ending.cause.map_or("well", |cause| cause.word())
        );
    }
    if let Some(removed) = left.read::<CodeRemoved>(&folder.code_removed()) {
        assert!(removed.is_done && removed.snapshot.len() == 64);
    }
    let cancelled = left.take(&folder.cancel());
    for (is_so, word) in [
        (cancelled, "cancelled"),
        (stopped, "stopped"),
        (held, "held"),
    ] {
        if is_so {
            last = format!("{last}, {word}");
        }
    }
    last
}

#[test]
fn a_stage_of_azure_ml_is_still_read() {
    let root = super::samples("stage-azureml");
    let mut left = Left::of(&root);
    for id in ids(&root.join("submissions")) {
        let order: CrewOrder = left.read(&root.join(keys::order(&id))).expect("an order");
        assert_eq!((order.version, &order.plan.id), (1, &id));
    }
    for id in ids(&root.join("runs")) {
        let news: StatusDocument = left.read(&root.join(keys::status(&id))).expect("news");
        assert_eq!((news.version, &news.run), (1, &id));
        assert!(
            news.attempts.iter().all(|attempt| attempt.end.is_some()),
            "{news:?}"
        );
        let run = root.join(keys::run(&id));
        let draft: StatusDocument = left.read(&run.join("news.draft")).expect("a draft");
        assert_eq!(draft, news);
        let is_cancelled = left.take(&root.join(keys::cancel(&id)));
        // A leader that is killed has no time to write these.
        let last: Option<StatusDocument> = left.read(&root.join(keys::last_status(&id)));
        assert!(last.map_or(is_cancelled, |last| last == news));
        let logs = root.join(keys::logs(&id));
        let parts: Vec<PathBuf> = left
            .0
            .iter()
            .filter(|path| path.starts_with(&logs))
            .cloned()
            .collect();
        for part in &parts {
            let name = part.strip_prefix(&logs).expect("below").to_string_lossy();
            let (log, index) = LogName::from_part(&name).expect("a part of a log");
            assert!(index == 0 && u32::try_from(news.attempts.len()).expect("few") >= log.attempt);
            assert_eq!(*part, run.join(log.folder()).join(keys::part(index)));
            assert!(left.take(part));
        }
        assert!(!parts.is_empty());
    }
    left.finish(|name| name == "model");
}
