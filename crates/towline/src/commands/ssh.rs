//! `tow ssh`: opens a shell in a run's folder, with its environment.
#![expect(
    clippy::disallowed_methods,
    reason = "a shell is a program that this verb starts, or becomes"
)]

use super::{Report, logs};
use crate::context::Context;
use crate::reach;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use towline_core::cluster::{Purpose, Reach, SshAddress};
use towline_core::rank::{Gang, Place, rank_variables};
use towline_core::record::RunRecord;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};
use towline_host::surroundings;

/// Open a shell where a run is, in the environment of a rank.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow ssh @                    a shell in the latest run's folder
  tow ssh 60ce -- nvidia-smi   one command instead
  tow ssh 60ce --rank 3")]
pub(crate) struct Args {
    /// A run: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN")]
    run: String,
    /// The rank whose environment to use.
    #[arg(long, default_value_t = 0, value_name = "K")]
    rank: u32,
    /// Run a command instead of a shell.
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let record = logs::one_run(history.find_to_read(&args.run)?)?;
    let submission = history
        .submission_of(&record.id)?
        .ok_or_else(|| Error::not_found("its submission is not in the history"))?;
    let resolved = &submission.plan.resolved;
    if !submission.plan.is_here() {
        return enter_far(context, &record, args);
    }
    if args.rank >= record.world {
        return Err(
            Error::not_found(format!("{} has no rank {}", record.id, args.rank))
                .hint(format!("ranks 0 to {}", record.world.saturating_sub(1))),
        );
    }
    let folder = match &resolved.code {
        Some(code) => context
            .state()?
            .code(&record.id)
            .join(&code.workdir)
            .display()
            .to_string(),
        None => resolved.workdir.clone(),
    };
    let place = Place {
        node: args.rank / resolved.shape.ranks_per_node,
        local_rank: args.rank % resolved.shape.ranks_per_node,
    };
    let hosts = vec!["127.0.0.1".to_owned(); resolved.shape.nodes as usize];
    let gang = Gang {
        run: &record.id,
        attempt: record.state.attempt,
        shape: &resolved.shape,
        master_addr: "127.0.0.1",
        master_port: 0,
        hosts: &hosts,
    };
    let shell = surroundings::variable_os("SHELL")
        .filter(|shell| !shell.is_empty())
        .unwrap_or_else(|| "/bin/sh".into());
    let (program, words) = match args.command.split_first() {
        Some((program, words)) => (program.clone(), words.to_vec()),
        None => (shell, Vec::new()),
    };
    // A living rank's own environment is the whole truth.
    if let Some(own) = living_environment(&record.id, args.rank) {
        let error = Command::new(&program)
            .args(words)
            .current_dir(&folder)
            .env_clear()
            .envs(own)
            .envs(terminal())
            .exec();
        return Err(not_started(&program, &folder, error));
    }
    // While the run lives its secrets are there; afterwards they are gone, and only then missing
    // here.
    let secrets = std::fs::read(context.state()?.secret(&submission.plan.id))
        .ok()
        .and_then(|bytes| SecretSet::from_private_bytes(&bytes))
        .unwrap_or_default();
    let mut command = Command::new(&program);
    command
        .args(words)
        .current_dir(&folder)
        .env_clear()
        .envs(&resolved.inherited)
        .envs(&resolved.env);
    // What a store's credential leads to is not the job's.
    let own = secrets.0.iter();
    command.envs(own.filter_map(|(name, value)| Some((name.variable()?, value.expose()))));
    command.envs(
        rank_variables(&gang, place)
            .into_iter()
            .filter(|(name, _)| *name != "MASTER_PORT"),
    );
    command.env("TOW_RUN_DIR", context.state()?.run(&record.id));
    command.envs(terminal());
    let error = command.exec();
    Err(not_started(&program, &folder, error))
}

/// Enters a far run in its cluster's own way: through the scheduler beside the ranks, or by ssh to
/// the node.
fn enter_far(context: &Context, record: &RunRecord, args: &Args) -> Result<Report> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let argv = args
        .command
        .iter()
        .map(|word| crate::text(word.clone()))
        .collect::<Result<Vec<_>>>()?;
    let purpose = Purpose::Shell {
        argv: &argv,
        terminal,
    };
    let mut command = match reach::reach(context, &record.id, args.rank, purpose)? {
        Reach::Command(line) => {
            let mut command = Command::new(&line[0]);
            command.args(&line[1..]);
            command
        }
        Reach::Ssh(address) => ssh_to(context, record, &address, &argv)?,
        Reach::Here | Reach::Through { .. } => {
            return Err(Error::bug("a run elsewhere is reached as one here"));
        }
    };
    Err(Error::from_io("ssh cannot be started", command.exec()))
}

/// Each job is another host, often with the address of an earlier one, so its host key is stored
/// apart.
fn ssh_to(
    context: &Context,
    record: &RunRecord,
    address: &SshAddress,
    argv: &[String],
) -> Result<Command> {
    let folder = context.state()?.ssh();
    towline_host::filesystem::private_folder(&folder)
        .map_err(|error| Error::from_io(format!("{} cannot be used", folder.display()), error))?;
    let known_hosts = folder.join(format!("known_hosts-{}", record.id));
    let mut command = Command::new("ssh");
    if let Some(config) = &address.ssh_config {
        command
            .arg("-F")
            .arg(crate::wiring::machines::ssh_config_file(config)?);
    }
    if towline_io::machine::Client::installed().takes_new_hosts() {
        command.args(["-o", "StrictHostKeyChecking=accept-new"]);
    }
    let known_hosts = format!("UserKnownHostsFile={}", known_hosts.display());
    command.args(["-p", &address.port.to_string(), "-o", &known_hosts]);
    command.arg(&address.login);
    if !argv.is_empty() {
        // A shell over there reads the line.
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        command.arg("--").arg(towline_core::quote::line(&argv));
    }
    Ok(command)
}

pub(crate) fn enter(words: &[OsString]) -> Result<std::convert::Infallible> {
    let text = |place: usize| {
        words
            .get(place)
            .and_then(|word| word.to_str())
            .unwrap_or_default()
    };
    let run =
        RunId::try_from(text(1).to_owned()).map_err(|error| Error::usage(error.to_string()))?;
    let rank: u32 = text(2).parse().unwrap_or(0);
    let folder = std::path::Path::new(text(0))
        .join("runs")
        .join(run.as_str());
    let own = living_environment(&run, rank);
    let place = own
        .as_ref()
        .and_then(|own| own.iter().find(|(name, _)| name == "PWD"))
        .map_or_else(|| folder.clone(), |(_, value)| value.into());
    let shell = surroundings::variable_os("SHELL")
        .filter(|shell| !shell.is_empty())
        .unwrap_or_else(|| "/bin/sh".into());
    let (program, rest) = words
        .get(3..)
        .unwrap_or_default()
        .split_first()
        .map_or((shell, &[][..]), |(program, rest)| (program.clone(), rest));
    let mut command = Command::new(&program);
    command
        .args(rest)
        .current_dir(if place.is_dir() { &place } else { &folder });
    if let Some(own) = own {
        command.env_clear().envs(own).envs(terminal());
    }
    let error = command.exec();
    Err(not_started(&program, &place.display().to_string(), error))
}

fn not_started(program: &OsStr, folder: &str, error: std::io::Error) -> Error {
    Error::from_io(
        format!(
            "{} cannot be started in {folder}",
            program.to_string_lossy()
        ),
        error,
    )
}

/// `TERM` of this shell, whatever the run's was.
fn terminal() -> Option<(&'static str, OsString)> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    surroundings::variable_os("TERM").map(|term| ("TERM", term))
}

/// The environment of a living process of this rank: the oldest one, which is the rank itself.
fn living_environment(run: &RunId, rank: u32) -> Option<Vec<(OsString, OsString)>> {
    let wanted = [format!("TOW_RUN_ID={run}"), format!("RANK={rank}")];
    let of_rank = |pid: i32| {
        let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let entries: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        wanted
            .iter()
            .all(|wanted| entries.contains(&wanted.as_bytes()))
            .then_some(())?;
        let pair = |entry: &[u8]| {
            let at = entry.iter().position(|byte| *byte == b'=')?;
            Some((
                OsStr::from_bytes(&entry[..at]).to_owned(),
                OsStr::from_bytes(&entry[at + 1..]).to_owned(),
            ))
        };
        Some(entries.into_iter().filter_map(pair).collect())
    };
    let mut processes: Vec<_> = towline_host::process::all()
        .into_iter()
        .filter(|(_, facts)| !facts.zombie)
        .collect();
    processes.sort_by_key(|(pid, facts)| (facts.started, *pid));
    processes.into_iter().find_map(|(pid, _)| of_rank(pid))
}
