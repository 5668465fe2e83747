//! Sends a plan: freezes the code, then submits. The runs are submitted when this returns.

mod answer;

pub use answer::carried_over;

use super::code::{self, LocalStore, Survey, check_kept};
use super::open_cluster::OpenCluster;
use super::outside::Outside;
use super::plan::Prepared;
use towline_client as client;
use towline_core::resolve::FrozenCode;
use towline_core::{Error, Result};
use towline_host::crash;
use towline_wire::daemon::{Limits, PrivateSecrets, Request, Submit};

/// Refuses a cluster that cannot be reached now, before anything is stored or cancelled.
pub fn reach(prepared: &Prepared) -> Result<()> {
    if prepared.cluster.is_here() {
        return Ok(());
    }
    prepared
        .cluster
        .sign_in()
        .map_err(|error| error.while_doing(format!("cannot submit to `{}`", prepared.plan.cluster)))
}

/// Freezes the code, then submits the plan. The runs are submitted when this returns.
pub fn send(outside: &dyn Outside, prepared: &mut Prepared) -> Result<()> {
    reach(prepared)?;
    // Held until the history names the snapshot: nobody prunes it in between.
    let _store = match &mut prepared.plan.resolved.code {
        Some(frozen) => Some(freeze(
            outside,
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
        send_far(outside, prepared).map_err(failed)?;
        if cluster.transport().is_some() {
            outside.write_aliases();
        }
    }
    crash::pass("client.submit.answered");
    Ok(())
}

/// Gives the plan to the daemon, which sends it, and waits until the cluster accepts or refuses it.
fn send_far(outside: &dyn Outside, prepared: &Prepared) -> Result<()> {
    let submit = || Submit {
        plan: prepared.plan.clone(),
        secrets: PrivateSecrets(prepared.secrets.clone()),
        limits: Limits::default(),
        cluster: Some(prepared.cluster.named.clone()),
    };
    let submitted = towline_host::clock::now();
    client::ask(outside.state()?, &|| Request::Submit(Box::new(submit())))?;
    let run = &prepared.plan.runs[0].id;
    carried_over(outside, &prepared.plan.cluster, run, submitted)
}

fn freeze(
    outside: &dyn Outside,
    frozen: &mut FrozenCode,
    survey: Option<Survey>,
    cluster: &OpenCluster,
) -> Result<LocalStore> {
    let store = code::local_store(outside.state()?)?;
    match survey {
        Some(survey) => {
            let taken = if cluster.is_here() {
                code::take_here(outside, survey, &store)?
            } else {
                code::take_ahead(outside, survey, &store, &cluster.named)?
            };
            frozen.snapshot = Some(taken.id.to_string());
        }
        None => check_kept(frozen, &store)?,
    }
    crash::pass("client.snapshot.taken");
    Ok(store)
}
