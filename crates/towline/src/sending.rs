//! A plan on its way: the code is frozen, then the cluster is told. When this returns, the runs
//! happen.

use crate::context::Context;
use towline_client as client;
use towline_core::resolve::FrozenCode;
use towline_core::{Error, Result};
use towline_engine::flow::OpenCluster;
use towline_engine::flow::Prepared;
use towline_engine::flow::code::{self, LocalStore, Survey, check_kept};
use towline_host::crash;
use towline_wire::daemon::{Limits, PrivateSecrets, Request, Submit};

/// What cannot be reached now is refused while nothing is written, or ended, yet.
pub(crate) fn reach(prepared: &Prepared) -> Result<()> {
    if prepared.cluster.is_here() {
        return Ok(());
    }
    prepared
        .cluster
        .sign_in()
        .map_err(|error| error.while_doing(format!("cannot submit to `{}`", prepared.plan.cluster)))
}

/// Freezes the code, then sends the plan. When this returns, the runs happen.
pub(crate) fn send(context: &Context, prepared: &mut Prepared) -> Result<()> {
    reach(prepared)?;
    // Held until the history names the snapshot: nobody prunes it in between.
    let _store = match &mut prepared.plan.resolved.code {
        Some(frozen) => Some(freeze(
            context,
            frozen,
            prepared.survey.take(),
            &prepared.cluster,
        )?),
        None => None,
    };
    crash::pass("client.submit.before");
    let failed =
        |error: Error| error.while_doing(format!("cannot submit to `{}`", prepared.plan.cluster));
    let cluster = &prepared.cluster;
    if cluster.is_here() {
        cluster
            .submit(&prepared.plan, &prepared.secrets)
            .map_err(failed)?;
    } else {
        send_far(context, prepared).map_err(failed)?;
        if cluster.transport().is_some() {
            // Its alias; that it cannot be written is no reason to fail what was submitted.
            let _ = crate::aliases::write(context);
        }
    }
    crash::pass("client.submit.answered");
    Ok(())
}

/// Hands it to the daemon, which carries it over, and waits for the cluster's yes or no.
fn send_far(context: &Context, prepared: &Prepared) -> Result<()> {
    let submit = || Submit {
        plan: prepared.plan.clone(),
        secrets: PrivateSecrets(prepared.secrets.clone()),
        limits: Limits::default(),
        cluster: Some(prepared.cluster.named.clone()),
    };
    let submitted = towline_host::clock::now();
    client::ask(context.state()?, &|| Request::Submit(Box::new(submit())))?;
    let run = &prepared.plan.runs[0].id;
    crate::far::carried_over(context, &prepared.plan.cluster, run, submitted)
}

fn freeze(
    context: &Context,
    frozen: &mut FrozenCode,
    survey: Option<Survey>,
    cluster: &OpenCluster,
) -> Result<LocalStore> {
    let store = code::local_store(context.state()?)?;
    match survey {
        Some(survey) => {
            let taken = if cluster.is_here() {
                code::take_here(context, survey, &store)?
            } else {
                code::take_ahead(context, survey, &store, &cluster.named)?
            };
            frozen.snapshot = Some(taken.id.to_string());
        }
        None => check_kept(frozen, &store)?,
    }
    crash::pass("client.snapshot.taken");
    Ok(store)
}
