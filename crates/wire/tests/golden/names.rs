//! Names of files, objects, verbs and variables that other versions look for.

use std::path::PathBuf;
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_wire::crew::{self, keys};
use towline_wire::layout::{self, StateFolder};
use towline_wire::log_name::LogName;
use towline_wire::program::OwnProgram;
use towline_wire::stage::{self, Holder, Record, StageFolder};
use towline_wire::{daemon, site, tunnel, workspace};

const RUN: &str = "train-1763189280-60ce2fc7";

fn run() -> RunId {
    RunId::try_from(RUN.to_owned()).expect("an id")
}

#[track_caller]
fn same(root: &str, named: &[(PathBuf, &str)]) {
    for (path, name) in named {
        assert_eq!(
            path,
            &PathBuf::from(format!("{root}/{}", name.replace("RUN", RUN)))
        );
    }
}

#[test]
fn files_of_the_state_folder() {
    let (state, run) = (StateFolder::new("/state"), run());
    same(
        "/state",
        &[
            (state.history(), "history.db"),
            (state.daemon_lock(), "daemon.lock"),
            (state.daemon_log(), "daemon.log"),
            (state.reserve(), "reserve"),
            (state.limits(), "limits.json"),
            (state.runners(), "runners"),
            (state.runner_journal("r-1"), "runners/r-1.journal"),
            (state.runner_group("r-1"), "runners/r-1.cgroup"),
            (state.runs(), "runs"),
            (state.run(&run), "runs/RUN"),
            (
                state.log(&run, 2, LogSource::Rank(7)),
                "runs/RUN/attempt-2.rank-7.log",
            ),
            (
                state.log(&run, 2, LogSource::SetUp(1)),
                "runs/RUN/attempt-2.setup-1.log",
            ),
            (state.code(&run), "runs/RUN/code"),
            (state.copies(), "copies"),
            (state.clusters(), "clusters"),
            (
                state.cluster("gpu-a_1", "status"),
                "clusters/gpu-a_1.status.json",
            ),
            (
                state.cluster("ü/. x", "facts"),
                "clusters/%c3%bc%2f%2e%20x.facts.json",
            ),
            (state.ssh(), "ssh"),
            (state.packed_program(), "packed"),
            (state.azure(), "azure"),
            (state.tunnels(), "tunnels"),
            (state.tunnel("box"), "tunnels/box"),
            (state.workspaces(), "workspaces"),
            (state.workspace("work", "auto"), "workspaces/work/auto"),
            (state.transfers(), "transfers"),
            (state.snapshots(), "snapshots"),
            (state.snapshots_lock(), "snapshots.lock"),
            (state.stat_cache("73351f1efb48"), "trees/73351f1efb48"),
            (state.store_index("6e3bb6f52f00"), "indexes/6e3bb6f52f00"),
            (state.secrets(), "secrets"),
            (state.secret(&run), "secrets/RUN"),
        ],
    );
    assert_eq!(state.root(), PathBuf::from("/state"));
    assert_eq!(layout::DAEMON_SOCKET, "daemon.sock");
    assert_eq!(layout::TUNNEL_SOCKET, "control.sock");
    assert_eq!(
        LogName::from_file("attempt-2.setup-1.log"),
        Some(LogName::new(2, LogSource::SetUp(1)))
    );
}

#[test]
fn files_of_a_stage_folder() {
    let (stage, id) = (StageFolder::new("/stage"), run());
    same(
        "/stage",
        &[
            (stage.program("abc"), "bin/tow-abc"),
            (stage.scheduler_environment(), "slurm-environment"),
            (stage.snapshots(), "snapshots"),
            (stage.transfers(), "transfers"),
            (stage.submissions(), "submissions"),
            (stage.submission(&id), "submissions/RUN"),
            (stage.plan(&id), "submissions/RUN/plan.json"),
            (stage.secrets(&id), "submissions/RUN/secrets"),
            (stage.script(&id), "submissions/RUN/batch.sh"),
            (stage.jobs(&id), "submissions/RUN/jobs"),
            (stage.submission_lock(&id), "submissions/RUN/lock"),
            (stage.runs(), "runs"),
        ],
    );
    let own = OwnProgram {
        path: PathBuf::from("/usr/bin/tow"),
        digest: "abc".to_owned(),
        packer: None,
    };
    assert_eq!(own.place("/stage"), "/stage/bin/tow-abc");
    let folder = stage.run(&id);
    // A record that is added gets a name here.
    let name_of = |record: Record| match record {
        Record::Claim => "attempt-2.claim",
        Record::Started => "attempt-2.started",
        Record::Held => "attempt-2.held",
        Record::End => "attempt-2.end",
        Record::Stop => "attempt-2.stop",
    };
    for record in [
        Record::Claim,
        Record::Started,
        Record::Held,
        Record::End,
        Record::Stop,
    ] {
        same(
            "/stage/runs/RUN".replace("RUN", RUN).as_str(),
            &[(folder.record(2, record), name_of(record))],
        );
    }
    let lease_of = |holder: Holder| match holder {
        Holder::Head => "attempt-2.head.lease",
        Holder::Node(_) => "attempt-2.node-7.lease",
    };
    same(
        &format!("/stage/runs/{RUN}"),
        &[
            (folder.cancel(), "cancel"),
            (folder.code(), "code"),
            (folder.code_removed(), "code-removed"),
            (folder.lease(2, Holder::Head), lease_of(Holder::Head)),
            (folder.lease(2, Holder::Node(7)), lease_of(Holder::Node(7))),
            (folder.node_end(2, 7), "attempt-2.node-7.end"),
        ],
    );
}

#[test]
fn objects_of_a_crew() {
    let id = run();
    for (key, name) in [
        (keys::program("abc"), "bin/tow-abc"),
        (keys::snapshot("packs/ab/abc"), "snapshots/packs/ab/abc"),
        (keys::order(&id), "submissions/RUN.json"),
        (keys::status(&id), "news/RUN.json"),
        (keys::run(&id), "runs/RUN"),
        (keys::last_status(&id), "runs/RUN/news.json"),
        (keys::cancel(&id), "runs/RUN/cancel"),
        (keys::logs(&id), "runs/RUN/logs/"),
        (
            LogName::new(2, LogSource::Rank(7)).folder(),
            "logs/attempt-2.rank-7",
        ),
        (
            LogName::new(2, LogSource::SetUp(1)).folder(),
            "logs/attempt-2.setup-1",
        ),
        (keys::part(12), "000012"),
        (keys::OUTPUTS.to_owned(), "outputs"),
    ] {
        assert_eq!(key, name.replace("RUN", RUN));
    }
    assert_eq!(
        LogName::from_part("attempt-2.setup-1/000012"),
        Some((LogName::new(2, LogSource::SetUp(1)), 12))
    );
    assert_eq!(crew::LOG_PART_BYTES, 1_048_576);
}

/// Another version starts these verbs, and reads these numbers first.
#[test]
fn verbs_and_versions() {
    let verbs = [
        (site::SITE_VERB, "__site"),
        (stage::HEAD_VERB, "__head"),
        (crew::CREW_VERB, "__crew"),
        (tunnel::TUNNEL_VERB, "__tunnel"),
        (tunnel::COMMAND_VERB, "__tunnel_command"),
        (workspace::SCRATCH_VERB, "__scratch"),
        (workspace::BACKUP_VERB, "__backup"),
    ];
    for (verb, word) in verbs {
        assert_eq!(verb, word);
    }
    assert_eq!(
        (daemon::PROTOCOL, site::SITE_PROTOCOL, workspace::PROTOCOL),
        (1, 1, 1)
    );
    assert_eq!((crew::CREW_VERSION, stage::ORDER_VERSION), (1, 1));
    assert_eq!(towline_core::plan::PLAN_VERSION, 1);
    let kept = tunnel::Wanted::VARIABLES;
    assert_eq!(
        kept,
        [
            "PATH",
            "SSH_AUTH_SOCK",
            "XDG_RUNTIME_DIR",
            "AZURE_CONFIG_DIR"
        ]
    );
}

/// Hosts that run different versions share a stage folder, so they have to agree on these times.
#[test]
fn leases_last_as_long_as_before() {
    let seconds = |span: std::time::Duration| span.as_secs();
    assert_eq!(seconds(stage::LEASE_EVERY), 3);
    assert_eq!(seconds(stage::LEASE_GIVEN_UP), 12);
    assert_eq!(seconds(stage::LEASE_LAPSED), 20);
}
