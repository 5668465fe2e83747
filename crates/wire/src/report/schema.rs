//! The JSON Schema of everything that `--json` prints, and which verb prints what. Nothing is made
//! until somebody asks: the program itself never does.

use super::transfer::Transfers;
use super::{Failure, Run, Runs};
use super::{abort, adopt, alloc, change, clusters, config, daemon, diff, doctor, get, history};
use super::{import, init, login, logs, ls, nodes, prune, ps, query, release, resubmit, rm};
use super::{roles, scratch, show};
use super::{snapshot, submit, trust, tunnel, ui, url, why};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use towline_core::job::Job;

/// A form of a verb, such as `ps` and `ps --remote`, and what it prints.
struct Verb {
    name: &'static str,
    /// It prints one document per line, each of them one of the answers.
    is_stream: bool,
    answers: &'static [Answer],
}

type Answer = fn(&mut SchemaGenerator) -> Schema;

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A verb that prints one document.
const fn one(name: &'static str, answers: &'static [Answer]) -> Verb {
    Verb {
        name,
        is_stream: false,
        answers,
    }
}

/// A verb that prints documents, one per line.
const fn many(name: &'static str, answers: &'static [Answer]) -> Verb {
    Verb {
        name,
        is_stream: true,
        answers,
    }
}

const VERBS: &[Verb] = &[
    one("abort", &[of::<abort::Aborted>]),
    one("adopt", &[of::<adopt::Adopted>]),
    one("alloc", &[of::<alloc::Allocated>]),
    one("clusters", &[of::<clusters::Clusters>]),
    one("clusters --create-workspace", &[of::<clusters::Workspace>]),
    one("clusters --discover", &[of::<clusters::Discovered>]),
    one("config schema", &[of::<config::JobFileSchema>]),
    one("config show", &[of::<config::ConfigValues>]),
    one("cp", &[of::<Transfers>]),
    one("daemon status", &[of::<daemon::DaemonStatus>]),
    one("daemon stop", &[of::<daemon::DaemonStopped>]),
    one("diff", &[of::<diff::Diff>]),
    one("doctor", &[of::<doctor::Diagnosis>]),
    one("down", &[of::<Transfers>]),
    one("edit", &[of::<change::Changed>]),
    one("get", &[of::<get::Got>, of::<get::Listed>]),
    one("hold", &[of::<change::Changed>]),
    one("history", &[of::<history::Submissions>]),
    one("history RUN", &[of::<Job>]),
    one("import", &[of::<import::Imported>]),
    one("init", &[of::<init::Initialised>]),
    one("init --explain", &[of::<init::Explained>]),
    many(
        "login",
        &[of::<login::LoginCode>, of::<login::ClusterSignIn>],
    ),
    one("login --status", &[of::<login::SignIns>]),
    one("logout", &[of::<login::LoggedOut>]),
    many("logs", &[of::<logs::LogLine<'_>>]),
    many("logs --follow", &[of::<logs::LogLine<'_>>, of::<Run>]),
    one("ls", &[of::<ls::ConfiguredStores>]),
    one("ls PATH", &[of::<ls::Listing>]),
    one("nodes", &[of::<nodes::Nodes>]),
    one("prune", &[of::<prune::Pruned>]),
    one("ps", &[of::<Runs>]),
    one("ps --remote", &[of::<ps::RemoteJobs>]),
    one("qf", &[of::<Runs>]),
    one("qq", &[of::<Runs>]),
    one("qr", &[of::<Runs>]),
    one("query", &[of::<Runs>]),
    one("query RUN", &[of::<query::Queried>]),
    one("query SWEEP", &[of::<query::QueriedSweep>]),
    one("release", &[of::<release::Released>]),
    one("resubmit", &[of::<resubmit::Resubmitted>]),
    one("resume", &[of::<change::Changed>]),
    one("rm", &[of::<rm::Removed>]),
    one("roles", &[of::<roles::Roles>]),
    one("roles activate", &[of::<roles::RoleChange>]),
    one("roles deactivate", &[of::<roles::RoleChange>]),
    many("run", &[of::<logs::LogLine<'_>>, of::<Run>]),
    one("run --dry-run", &[of::<submit::DryRun>]),
    one("scratch auto", &[of::<scratch::AutoBackup>]),
    one("scratch backup", &[of::<scratch::BackupMade>]),
    one("scratch check", &[of::<scratch::BackupsChecked>]),
    one("scratch create", &[of::<scratch::WorkspaceCreated>]),
    one("scratch ls", &[of::<scratch::Workspaces>]),
    one("scratch ls NAME", &[of::<scratch::Backups>]),
    one("scratch prune", &[of::<scratch::BackupsPruned>]),
    one("scratch restore", &[of::<scratch::WorkspaceRestored>]),
    one("show", &[of::<show::Shown>]),
    one("show SWEEP", &[of::<show::ShownSweep>]),
    one("snapshot check", &[of::<snapshot::SnapshotsChecked>]),
    one("snapshot get", &[of::<snapshot::SnapshotFolder>]),
    one("snapshot ls", &[of::<snapshot::Snapshots>]),
    one("snapshot prune", &[of::<snapshot::SnapshotsPruned>]),
    one("submit", &[of::<submit::Submitted>]),
    one("submit --dry-run", &[of::<submit::DryRun>]),
    many("submit --follow", &[of::<logs::LogLine<'_>>, of::<Run>]),
    one("sync", &[of::<Transfers>]),
    one("tag", &[of::<change::Tagged>]),
    one("trust", &[of::<trust::Trust>]),
    one("trust --remove", &[of::<trust::TrustRemoved>]),
    one("tunnel add", &[of::<tunnel::TunnelAdded>]),
    one("tunnel add --open", &[of::<tunnel::TunnelsOpened>]),
    one("tunnel close", &[of::<tunnel::TunnelsClosed>]),
    one("tunnel include", &[of::<tunnel::SshInclude>]),
    one("tunnel ls", &[of::<tunnel::Tunnels>]),
    one("tunnel open", &[of::<tunnel::TunnelsOpened>]),
    one("tunnel rm", &[of::<tunnel::TunnelsRemoved>]),
    one("ui", &[of::<ui::PageAddress>]),
    one("up", &[of::<Transfers>]),
    one("url", &[of::<url::FileUrl>]),
    one("wait", &[of::<Runs>]),
    one("why RUN", &[of::<why::Why>]),
    one("why SWEEP", &[of::<why::WhySweep>]),
];

/// What each form of a verb prints, with references that begin with `path`, and what they refer to.
pub fn answers(path: &str) -> (Map<String, Value>, Map<String, Value>) {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = path.to_owned().into();
    let mut generator = settings.into_generator();
    let verbs = VERBS
        .iter()
        .map(|verb| (verb.name.to_owned(), prints(verb, &mut generator)))
        .collect();
    of::<Failure>(&mut generator);
    (verbs, generator.take_definitions(true))
}

fn prints(verb: &Verb, generator: &mut SchemaGenerator) -> Value {
    let answers: Vec<Schema> = verb
        .answers
        .iter()
        .map(|answer| answer(generator))
        .collect();
    match answers.as_slice() {
        [answer] => json!(answer),
        several => json!({ "anyOf": several }),
    }
}

/// The schema: `$defs` has every answer, `verbs` says which verb prints which.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let mut verbs = Map::new();
    for verb in VERBS {
        let prints = prints(verb, &mut generator);
        let entry = json!({ "stream": verb.is_stream, "prints": prints });
        verbs.insert(verb.name.to_owned(), entry);
    }
    let error = of::<Failure>(&mut generator);
    let mut definitions = generator.take_definitions(true);
    definitions.sort_keys();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What `tow --json` prints",
        "description": "`verbs` says what each verb prints on stdout. A verb whose `stream` is true \
            prints one document per line. Every error is printed on stderr as `error`. Fields are \
            only ever added.",
        "verbs": verbs,
        "error": error,
        "$defs": definitions,
    })
}
