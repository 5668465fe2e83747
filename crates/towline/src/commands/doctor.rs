//! `tow doctor`: checks everything once and says what is wrong.

use super::Report;
use crate::context::Context;
use crate::data::stores::{self, Stores};
use crate::output::{Paint, paint, stdout_has_colour};
use towline_client as client;
use towline_core::config::StoreKind;
use towline_core::quantity::Memory;
use towline_core::state::Phase;
use towline_core::transport::Transport;
use towline_core::{Error, ErrorKind, Result};
use towline_engine::flow::OpenCluster;
use towline_engine::history::{Filter, JournalMode, UnreadableRow};
use towline_wire::daemon::{Reply, Request, Status};
use towline_wire::report::doctor::{Check, Diagnosis};
use towline_wire::tunnel::{TunnelState, TunnelStatus};

/// How long a datastore may take to answer.
const STORE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Check this machine, clusters and datastores, and say what to fix.
///
/// Looks at folders, configuration, history, daemon and GPUs, and asks every cluster and datastore.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow doctor
  tow doctor --json")]
pub(crate) struct Args {}

#[expect(clippy::unnecessary_wraps, reason = "every verb has this shape")]
pub(crate) fn run(context: &Context, _: &Args) -> Result<Report> {
    let mut checks = vec![
        check("configuration", configuration(context)),
        check("state folder", state_folder(context)),
        check("history", history(context)),
        check("daemon", daemon(context)),
    ];
    let daemon_answers = checks.last().is_some_and(|daemon| daemon.ok);
    checks.push(check("this machine", machine(context, daemon_answers)));
    checks.extend(clusters(context));
    checks.extend(datastores(context));
    checks.extend(tunnels(context));
    let answer = Diagnosis {
        ok: checks.iter().all(|check| check.ok),
        checks,
    };
    let mut codes = answer.checks.iter().map(|check| check.exit_code);
    let code = codes.find(|code| *code != 0).unwrap_or(0);
    Ok(Report::of(&answer, text).code(code))
}

fn text(answer: &Diagnosis) -> String {
    let colour = stdout_has_colour();
    let mut text = String::new();
    for check in &answer.checks {
        let mark = if check.ok {
            paint(Paint::Good, "ok", colour)
        } else {
            paint(Paint::Bad, "wrong", colour)
        };
        text += &format!("{:<14} {mark}: {}\n", check.name, check.text);
        for hint in &check.hints {
            text += &format!("{:<14} hint: {hint}\n", "");
        }
    }
    text
}

fn check(name: impl Into<String>, result: Result<String>) -> Check {
    let name = name.into();
    match result {
        Ok(text) => Check {
            name,
            ok: true,
            text,
            hints: Vec::new(),
            exit_code: 0,
        },
        Err(error) => Check {
            name,
            ok: false,
            text: error.to_string(),
            hints: error.hints().to_vec(),
            exit_code: error.kind().exit_code(),
        },
    }
}

fn configuration(context: &Context) -> Result<String> {
    let layers = context.layers()?;
    let names = layers.cluster_names().join(", ");
    if let Some(untrusted) = layers.untrusted.first() {
        let error = Error::refused(format!(
            "{} is not trusted, so not all of it counts",
            untrusted.shown
        ));
        return Err(error.hint(format!(
            "see what it would do, and agree or not: tow trust {}",
            untrusted.folder.display()
        )));
    }
    layers.cluster(layers.default_cluster())?;
    match layers.warnings.as_slice() {
        [] => Ok(format!(
            "clusters {names}; default {}",
            layers.default_cluster()
        )),
        [first, ..] => Err(Error::config(format!("{}: {}", first.at, first.message))),
    }
}

/// Connects to each far cluster and reports what it has.
fn clusters(context: &Context) -> Vec<Check> {
    let Ok(layers) = context.layers() else {
        return Vec::new();
    };
    let asked = layers.cluster_names().into_iter().filter_map(|name| {
        let answer = match context.cluster(name) {
            Ok(cluster) if cluster.is_here() => return None,
            Ok(cluster) => cluster.facts_now().and_then(|facts| {
                stage_answers(&cluster)?;
                Ok(cluster.summary(&facts))
            }),
            Err(error) => Err(error),
        };
        Some(check(format!("cluster {name}"), answer))
    });
    asked.collect()
}

/// Whether the storage that submissions need beside the scheduler answers within a few seconds.
fn stage_answers(cluster: &OpenCluster) -> Result<()> {
    let (tell, answers) = std::sync::mpsc::channel();
    let asked = cluster.cluster.clone();
    std::thread::Builder::new()
        .spawn(move || drop(tell.send(asked.check_stage())))
        .map_err(|error| Error::from_io("no thread can be started", error))?;
    let silent = || {
        let late = format!(
            "its storage did not answer in {} s",
            STORE_TIMEOUT.as_secs()
        );
        cluster
            .trouble()
            .unwrap_or_else(|| Error::unreachable(late))
    };
    answers
        .recv_timeout(STORE_TIMEOUT)
        .unwrap_or_else(|_| Err(cluster.stage_trouble(silent())))
}

/// Sends one query to each datastore, which must answer within a few seconds.
fn datastores(context: &Context) -> Vec<Check> {
    let Ok(layers) = context.layers() else {
        return Vec::new();
    };
    let names: Vec<&String> = layers.config.datastores.keys().collect();
    let stores = Stores::new(context);
    let asked = names.into_iter().map(|name| {
        let answer = stores.open(name).and_then(|store| {
            let place = store.place();
            let listing = async move {
                let answer = tokio::time::timeout(STORE_TIMEOUT, store.list("", false, None)).await;
                answer.unwrap_or_else(|_| {
                    Err(Error::unreachable(format!(
                        "{} did not answer in {} s",
                        store.place(),
                        STORE_TIMEOUT.as_secs()
                    )))
                })
            };
            stores::drive(listing)?
                .map(|_| place)
                .ok_or_else(|| Error::unreachable("interrupted"))
        });
        let answer = answer.or_else(|error| elsewhere(context, name).ok_or(error));
        check(format!("store {name}"), answer)
    });
    asked.collect()
}

/// A folder that does not exist here may be on the hosts of a cluster, for its jobs.
fn elsewhere(context: &Context, name: &str) -> Option<String> {
    let layers = context.layers().ok()?;
    let path = layers
        .config
        .datastores
        .get(name)
        .filter(|store| store.kind == StoreKind::Folder)?
        .path
        .clone()?;
    let place = path.strip_prefix("~/").unwrap_or(&path);
    let mut having = layers.cluster_names().into_iter().filter(|cluster| {
        let has_folder = |machine: &dyn Transport| {
            machine
                .connect(false)
                .and_then(|()| machine.run(&["test", "-d", place], b"", STORE_TIMEOUT))
                .is_ok_and(|ran| ran.is_good())
        };
        let cluster = context.cluster(cluster);
        cluster.is_ok_and(|cluster| cluster.transport().is_some_and(has_folder))
    });
    having.next().map(|cluster| {
        format!("{path} on the login host of `{cluster}`, for its jobs; not on this machine")
    })
}

/// Checks each tunnel that is to be open.
fn tunnels(context: &Context) -> Vec<Check> {
    let Ok(state) = context.state() else {
        return Vec::new();
    };
    let wanted = match crate::reach::tunnels::wanted(state) {
        Ok(wanted) => wanted,
        Err(error) => return vec![check("tunnels", Err(error))],
    };
    let told = wanted.into_iter().map(|(name, wanted)| {
        let place = format!(
            "127.0.0.1:{} to {}",
            wanted.definition.port, wanted.definition.to
        );
        let answer = match crate::reach::tunnels::status(state, &name) {
            Some(status) if status.state == TunnelState::Open => Ok(format!(
                "{place}, open since {}",
                crate::output::local_time::shown(status.since)
            )),
            Some(TunnelStatus {
                trouble: Some(trouble),
                ..
            }) => Err(Error::from(trouble)),
            Some(status) => Err(Error::unreachable(format!(
                "{place}: {}",
                status.state.word()
            ))),
            None => Err(Error::unreachable(format!("{place}: nobody supervises it"))
                .hint(format!("tow tunnel open {name}"))),
        };
        check(format!("tunnel {name}"), answer)
    });
    told.collect()
}

fn state_folder(context: &Context) -> Result<String> {
    let state = context.state()?;
    towline_host::filesystem::private_folder(state.root()).map_err(|error| {
        Error::from_io(format!("{} cannot be used", state.root().display()), error)
            .hint("set XDG_STATE_HOME to a folder of yours")
    })?;
    let shown = state.root().display();
    let room = towline_host::filesystem::room(state.root()).map_err(|error| {
        Error::from_io(
            format!("the disk of {shown} does not say how full it is"),
            error,
        )
    })?;
    let free = format!("{} of {} free", Memory(room.free_bytes), Memory(room.bytes));
    if room.is_full() {
        let files = room
            .free_files
            .map_or(String::new(), |files| format!(", {files} more files fit"));
        return Err(
            Error::no_room(format!("the disk of {shown} is full: {free}{files}"))
                .hint("runs cannot start and their ends cannot be recorded until there is room")
                .hint(
                    "make room; `tow prune --older-than 7d --yes` removes old runs, `tow snapshot \
                prune` old code",
                ),
        );
    }
    Ok(match towline_host::filesystem::network_kind(state.root()) {
        Some(kind) => {
            format!("{shown}, {free}, on {kind}: the history uses a rollback journal there")
        }
        None => format!("{shown}, {free}"),
    })
}

fn history(context: &Context) -> Result<String> {
    let mode = match JournalMode::for_folder(context.state()?.root()) {
        JournalMode::WriteAhead => "write-ahead log",
        JournalMode::Rollback => "rollback journal",
    };
    match context.maybe_history()? {
        Some(history) => match history.unreadable_rows()?.as_slice() {
            [] => Ok(format!(
                "{} run(s), {mode}",
                history.count(&Filter::default())?
            )),
            [first, more @ ..] => Err(unreadable(context, first, more.len())?),
        },
        None => Ok("empty".to_owned()),
    }
}

/// The error for a run that cannot be read. It cannot be pruned either: the user must remove its
/// row by hand.
fn unreadable(context: &Context, row: &UnreadableRow, more: usize) -> Result<Error> {
    let file = context.state()?.history();
    let more = if more > 0 {
        format!(" (and {more} more)")
    } else {
        String::new()
    };
    let error = Error::new(
        ErrorKind::Bug,
        format!(
            "row {} of {} ({}) cannot be read{more}: {}",
            row.sequence,
            file.display(),
            row.id,
            row.why
        ),
    );
    let command = format!(
        "tow daemon stop; sqlite3 {} 'DELETE FROM runs WHERE sequence={}'",
        file.display(),
        row.sequence
    );
    Ok(error
        .hint("all other runs are unaffected; this one is left out")
        .hint(format!("to remove it: {command}")))
}

fn daemon(context: &Context) -> Result<String> {
    // One that is there and does not answer is not waited for as long as one that has work to do.
    let there = client::status(context.state()?)?.map(Reply::Status);
    let reply = there.map_or_else(
        || client::ask(context.state()?, &|| Request::Status).map(|(reply, _)| reply),
        Ok,
    )?;
    match reply {
        Reply::Status(Status {
            trouble: Some(trouble),
            ..
        }) => Err(
            Error::refused(format!("it cannot write the history: {trouble}"))
                .hint("runs go on; their starts and ends are recorded once that is fixed"),
        ),
        Reply::Status(status) => {
            // Of every cluster, as `tow ps` lists them; the daemon itself counts those of its own
            // queue.
            let history = context.maybe_history()?;
            let count = |phases: &[Phase]| {
                history.as_ref().map_or(Ok(0), |history| {
                    history.count(&Filter {
                        phases: phases.to_vec(),
                        ..Filter::default()
                    })
                })
            };
            let (queued, running) = (
                count(&[
                    Phase::Drafted,
                    Phase::Staging,
                    Phase::Submitting,
                    Phase::Queued,
                ])?,
                count(&[Phase::Running])?,
            );
            Ok(format!(
                "version {}, {queued} queued, {running} running",
                status.version
            ))
        }
        _ => Err(Error::bug("the daemon's answer does not match the request")),
    }
}

fn machine(context: &Context, daemon_answers: bool) -> Result<String> {
    let cluster = context.cluster("local")?;
    let facts = if daemon_answers {
        cluster.facts_now()?
    } else {
        cluster.known_facts()?
    };
    let Some(node) = facts.nodes.first() else {
        return Err(Error::bug("this machine has no node"));
    };
    let gpus: Vec<String> = node.gpus.iter().map(|gpu| gpu.name.clone()).collect();
    let gpus = if gpus.is_empty() {
        "no GPU found (nvidia-smi, /proc/driver/nvidia, sysfs)".to_owned()
    } else {
        gpus.join(", ")
    };
    let memory = if towline_runner::memory_is_enforced() {
        "limited for runs that ask for some"
    } else {
        "counted and not limited: this user has no cgroups"
    };
    Ok(format!(
        "{} CPUs, {} ({memory}); {gpus}",
        node.cpus,
        towline_core::quantity::Memory(node.memory)
    ))
}
