//! The command line: every verb with its help. What a verb does is in `commands/<verb>.rs`.

use crate::commands::{
    abort, clusters, completions, config, daemon, diff, doctor, get, history, logs, nodes, prune, ps, query, resubmit, show, ssh, submit, wait, why,
};
use clap::{Parser, Subcommand};

/// Takes any command to where the GPUs are and brings back logs, results and answers.
#[derive(Debug, Parser)]
#[command(
    name = "tow",
    version = towline_wire::version::version(),
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "A first job, here, now:  tow run echo hello\nWhat ran:                tow ps\nWhy it failed:           tow why @\n\nA run is named by its id, the end of it, or @ for the latest."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Print one JSON value instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Submit(submit::Args),
    Run(submit::RunArgs),
    #[command(aliases = ["list", "status"])]
    Ps(ps::Args),
    #[command(visible_alias = "q")]
    Query(query::Args),
    /// Only failed runs: `tow ps --state failed`.
    #[command(aliases = ["f", "failed"])]
    Qf(ps::Args),
    /// Only queued runs: `tow ps --state queued`.
    Qq(ps::Args),
    /// Only running runs: `tow ps --state running`.
    Qr(ps::Args),
    Logs(logs::Args),
    Why(why::Args),
    Show(show::Args),
    Get(get::Args),
    #[command(visible_alias = "a", aliases = ["cancel", "kill", "stop"])]
    Abort(abort::Args),
    Resubmit(resubmit::Args),
    Wait(wait::Args),
    Diff(diff::Args),
    History(history::Args),
    Prune(prune::Args),
    Ssh(ssh::Args),
    Clusters(clusters::Args),
    Nodes(nodes::Args),
    Config(config::Args),
    Doctor(doctor::Args),
    Daemon(daemon::Args),
    Completions(completions::Args),
}
