//! The command line: every verb with its help. The code of a verb is in `commands/<verb>.rs`.

use crate::commands::{
    abort, adopt, alloc, api, clusters, completions, config, cp, daemon, diff, doctor, down, edit,
    get, history, hold, import, init, login, logout, logs, ls, man, mcp, nodes, port, prune, ps,
    query, release, resubmit, resume, rm, roles, scratch, show, snapshot, ssh, submit, sync, tag,
    top, trust, tunnel, ui, up, url, wait, why,
};
use clap::{Args as _, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// Takes a command to where the GPUs are; brings back logs, results and answers.
#[derive(Debug, Parser)]
#[command(
    name = "tow",
    version = towline_wire::version::version(),
    disable_help_subcommand = true,
    max_term_width = 100,
    subcommand_value_name = "VERB",
    after_help = "A first job, here, now: tow run echo hello. Then: tow ps, tow logs, tow why.
A run is named by its id, the end of its id, or @ for the latest.
`tow VERB --help` has options and examples. The names of ACT and qd work too."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Print one JSON value instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Submit(submit::Args),
    Run(submit::RunArgs),
    #[command(aliases = ["list", "status"])]
    Ps(ps::Args),
    #[command(alias = "q")]
    Query(query::Args),
    /// Only failed runs: `tow ps --state failed`.
    #[command(hide = true, aliases = ["f", "failed"])]
    Qf(ps::Args),
    /// Only queued runs: `tow ps --state queued`.
    #[command(hide = true)]
    Qq(ps::Args),
    /// Only running runs: `tow ps --state running`.
    #[command(hide = true)]
    Qr(ps::Args),
    Logs(logs::Args),
    #[command(alias = "parse")]
    Why(why::Args),
    Show(show::Args),
    Get(get::Args),
    #[command(aliases = ["a", "cancel", "kill", "stop"])]
    Abort(abort::Args),
    Resubmit(resubmit::Args),
    Hold(hold::Args),
    #[command(alias = "unhold")]
    Resume(resume::Args),
    Edit(edit::Args),
    Tag(tag::Args),
    Wait(wait::Args),
    Diff(diff::Args),
    History(history::Args),
    Import(import::Args),
    #[command(aliases = ["initc", "initi", "initic"])]
    Init(init::Args),
    Snapshot(snapshot::Args),
    Prune(prune::Args),
    Adopt(adopt::Args),
    Ssh(ssh::Args),
    Port(port::Args),
    Tunnel(tunnel::Args),
    Alloc(alloc::Args),
    Release(release::Args),
    Ls(ls::Args),
    #[command(aliases = ["u", "upload"])]
    Up(up::Args),
    #[command(aliases = ["d", "download"])]
    Down(down::Args),
    Rm(rm::Args),
    Cp(cp::Args),
    Url(url::Args),
    Sync(sync::Args),
    Scratch(scratch::Args),
    #[command(aliases = ["s", "summary"])]
    Clusters(clusters::Args),
    #[command(alias = "blame")]
    Nodes(nodes::Args),
    Login(login::Args),
    Logout(logout::Args),
    Roles(roles::Args),
    Top(top::Args),
    Ui(ui::Args),
    Api(api::Args),
    Mcp(mcp::Args),
    Config(config::Args),
    Trust(trust::Args),
    Doctor(doctor::Args),
    Daemon(daemon::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

impl Verb {
    /// Whether an agent may use the verb, by `TOW_AGENT`. What it may do with it is another
    /// question.
    pub(crate) const fn is_for_agents(&self) -> bool {
        matches!(
            self,
            Self::Submit(_)
                | Self::Run(_)
                | Self::Abort(_)
                | Self::Ps(_)
                | Self::Qf(_)
                | Self::Qq(_)
                | Self::Qr(_)
                | Self::Query(_)
                | Self::Logs(_)
                | Self::Why(_)
                | Self::Show(_)
                | Self::Wait(_)
                | Self::Clusters(_)
        )
    }

    /// Whether the verb only reads, or ends something. Such a verb is not refused because of
    /// untrusted configuration.
    pub(crate) const fn reads_only(&self) -> bool {
        matches!(
            self,
            Self::Ps(_)
                | Self::Qf(_)
                | Self::Qq(_)
                | Self::Qr(_)
                | Self::Query(_)
                | Self::Logs(_)
                | Self::Why(_)
                | Self::Show(_)
                | Self::Get(_)
                | Self::Abort(_)
                | Self::Hold(_)
                | Self::Resume(_)
                | Self::Tag(_)
                | Self::Wait(_)
                | Self::Diff(_)
                | Self::History(_)
                | Self::Prune(_)
                | Self::Release(_)
                | Self::Logout(_)
                | Self::Top(_)
                | Self::Ui(_)
                | Self::Api(_)
                | Self::Mcp(_)
                | Self::Config(_)
                | Self::Trust(_)
                | Self::Doctor(_)
                | Self::Daemon(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }
}

/// Parses verbs that scripts call in loops, without building the whole command line. `None` for any
/// other verb and for any error: then the whole parser decides, and its messages stay the same.
pub(crate) fn parse_quickly(words: &[OsString]) -> Option<Cli> {
    match words.get(1)?.to_str()? {
        "submit" => one(words, "submit", submit::Args::augment_args, Verb::Submit),
        "run" => one(words, "run", submit::RunArgs::augment_args, Verb::Run),
        "ps" => one(words, "ps", ps::Args::augment_args, Verb::Ps),
        "logs" => one(words, "logs", logs::Args::augment_args, Verb::Logs),
        "wait" => one(words, "wait", wait::Args::augment_args, Verb::Wait),
        "show" => one(words, "show", show::Args::augment_args, Verb::Show),
        "query" => one(words, "query", query::Args::augment_args, Verb::Query),
        _ => None,
    }
}

/// Parses any command line.
pub(crate) fn parse(words: Vec<OsString>) -> clap::error::Result<Cli> {
    let mut command = crate::help::command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn one<T: FromArgMatches>(
    words: &[OsString],
    verb: &'static str,
    augment: fn(clap::Command) -> clap::Command,
    make: fn(T) -> Verb,
) -> Option<Cli> {
    let command = augment(clap::Command::new(verb).disable_help_flag(true)).arg(
        clap::Arg::new("json")
            .long("json")
            .action(clap::ArgAction::SetTrue),
    );
    let matches = command.try_get_matches_from(&words[1..]).ok()?;
    let json = matches.get_flag("json");
    T::from_arg_matches(&matches).ok().map(|args| Cli {
        verb: make(args),
        json,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_parser_reads_what_the_whole_one_reads() {
        for line in [
            "tow submit -n 1 --json python train.py --json --help",
            "tow submit --name x -- echo -- a",
            "tow submit -n1 --time 2h --sweep a=1,2 true",
            "tow run --launch 2 sh -c x",
            "tow ps --state failed,queued --limit 3 --json",
            "tow ps",
            "tow logs -f --rank all abcd --grep x",
            "tow logs",
            "tow wait a b --timeout 3s",
            "tow show @ --events",
            "tow query @ --lines 3",
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let quick = parse_quickly(&words).unwrap_or_else(|| panic!("not read: {line}"));
            let whole = Cli::try_parse_from(&words).expect(line);
            assert_eq!(format!("{quick:?}"), format!("{whole:?}"), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_or_asks_for_help_is_left_to_the_whole_one() {
        for line in [
            "tow submit --nope x",
            "tow ps --help",
            "tow ps -h",
            "tow submit -n x true",
            "tow wait --timeout never",
            "tow prune",
            "tow",
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert!(parse_quickly(&words).is_none(), "{line}");
        }
    }
}
