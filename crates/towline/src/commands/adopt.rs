//! `tow adopt`: takes a run from elsewhere into my history.

use super::Report;
use crate::context::Context;
use crate::runs::far;
use towline_client as client;
use towline_core::cluster::RunRef;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Limits, PrivateSecrets, Request, Submit};
use towline_wire::report::adopt::Adopted;

/// Take a run of another machine or tool into the history here.
///
/// Slurm: runs that you submitted from another machine. Azure ML: also jobs of colleagues and of
/// other tools. From then on it is a run like any other: logs, why, wait and abort work from here
/// too.
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
    let cluster = context.cluster(&name)?;
    let (id, native) = if cluster.is_here() {
        (RunId::new(&args.id, 0, 0), None)
    } else {
        wanted(&args.id, &name, cluster.caps().adopts_others)?
    };
    cluster.sign_in()?;
    let plan = cluster.plan_of(&RunRef::of(&id).submission, native.as_deref())?;
    let mut plan = plan.ok_or_else(|| {
        Error::not_found(format!(
            "cluster `{name}` knows no run {} that you may take",
            args.id
        ))
        .hint(format!("`tow ps --remote -c {name}` lists what it knows"))
    })?;
    let submission = plan.id.clone();
    // It may have another name on the machine that submitted it.
    plan.cluster.clone_from(&name);
    let runs: Vec<RunId> = plan.runs.iter().map(|run| run.id.clone()).collect();
    let submit = || Submit {
        plan: plan.clone(),
        secrets: PrivateSecrets::default(),
        limits: Limits::default(),
        cluster: Some(cluster.named.clone()),
    };
    let asked = towline_host::clock::now();
    client::ask(context.state()?, &|| Request::Submit(Box::new(submit())))?;
    if let Some(first) = runs.first() {
        towline_engine::flow::send::carried_over(context, &name, first, asked)?;
        // What is shown next is how it stands there, not how a run begins here.
        far::look_now(context, &name, first)?;
    }
    let answer = Adopted {
        id: submission,
        runs,
    };
    let report = Report::of(&answer, |answer| format!("{}\n", answer.id));
    Ok(report
        .done(format!("{} is adopted all the same", answer.id))
        .hint(format!(
            "it is yours here too: tow logs -f {}",
            answer.id.short()
        )))
}

/// The id of a run of ours. If the cluster can adopt jobs of other tools, also the cluster's name
/// of a job.
fn wanted(text: &str, name: &str, others: bool) -> Result<(RunId, Option<String>)> {
    match RunId::try_from(text.to_owned()) {
        Ok(id) => Ok((id, None)),
        Err(_) if others => Ok((RunId::new(text, 0, 0), Some(text.to_owned()))),
        Err(_) => Err(
            Error::not_found(format!("`{text}` is not the id of a run")).hint(format!(
                "`tow ps --remote -c {name}` lists them; jobs that tow did not submit stay the scheduler's"
            )),
        ),
    }
}
