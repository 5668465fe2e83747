//! `tow adopt`: a run from elsewhere into my history.

use super::Report;
use crate::context::{AnyCluster, Context};
use crate::far;
use towline_backends::local::client;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Limits, PrivateSecrets, Request, Submit};
use towline_wire::site::{FarRun, SiteReply, SiteRequest};

/// Take a run that another machine of mine submitted into the history here.
///
/// From then on it is a run like any other: logs, why, wait and abort work from here too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow ps --remote -c lab           what the cluster knows
  tow adopt train-1794750715-a086c07e -c lab")]
pub(crate) struct Args {
    /// The whole id of a run, or of a sweep.
    #[arg(value_name = "ID")]
    id: String,
    /// On this cluster [default: the configured one].
    #[arg(short, long)]
    cluster: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = match &args.cluster {
        Some(name) => name.clone(),
        None => context.layers()?.default_cluster().to_owned(),
    };
    let AnyCluster::Slurm(cluster) = context.cluster(&name)? else {
        return Err(Error::refused(format!("runs of `{name}` are all in the history here")));
    };
    let whole = |_| {
        Error::not_found(format!("`{}` is no id of a run", args.id))
            .hint(format!("`tow ps --remote -c {name}` lists them; jobs that tow did not submit stay Slurm's"))
    };
    let id = RunId::try_from(args.id.clone()).map_err(whole)?;
    crate::machines::connect(&cluster.backend)?;
    let submission = FarRun::of(&id).submission;
    let SiteReply::Plan(plan) = cluster.backend.ask(&SiteRequest::Plan { submission: submission.clone() })? else {
        return Err(Error::bug("an answer to another question"));
    };
    let mut plan = *plan.ok_or_else(|| {
        Error::not_found(format!("cluster `{name}` knows no run {id} of yours")).hint(format!("`tow ps --remote -c {name}` lists what it knows"))
    })?;
    // It may have another name on the machine that submitted it.
    plan.cluster.clone_from(&name);
    let runs: Vec<RunId> = plan.runs.iter().map(|run| run.id.clone()).collect();
    let submit = || Submit { plan: plan.clone(), secrets: PrivateSecrets::default(), limits: Limits::default(), cluster: Some(cluster.named.clone()) };
    client::ask(context.state()?, &|| Request::Submit(Box::new(submit())))?;
    if let Some(first) = runs.first() {
        far::carried_over(context, first)?;
    }
    let report = Report::new(format!("{submission}\n"), &serde_json::json!({ "id": submission, "runs": runs }));
    Ok(report.hint(format!("it is yours here too: tow logs -f {}", submission.short())))
}
