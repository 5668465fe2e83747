//! Notes added to a plan before it is sent: options without effect here, and quotas that it would
//! wait for.

use super::cluster::AzureCluster;
use super::config::Target;
use super::data::is_native;
use super::limits;
use super::site::{AzureSite, Flavour, InstanceFacts};
use towline_core::plan::Plan;
use towline_core::resolve::IoPlan;
use towline_core::suggest::did_you_mean;

impl AzureCluster {
    pub(super) fn plan_notes(&self, plan: &Plan, site: Option<&AzureSite>) -> Vec<String> {
        let mut notes: Vec<String> = plan.resolved.io.iter().filter_map(mounted).collect();
        notes.extend(self.held(plan));
        notes.extend(limits::experiment_note(plan.job.experiment.as_deref()));
        if let Some(site) = site {
            notes.extend(quota(plan, site));
            notes.extend(unlisted(plan, site));
        }
        notes
    }

    fn held(&self, plan: &Plan) -> Option<String> {
        plan.resolved.hold_on_failure?;
        let has_key = plan
            .job
            .resources
            .native
            .iter()
            .any(|word| word.starts_with("ssh_public_key="));
        match &self.config.target {
            Target::VirtualCluster(_) => Some(
                "nodes of a virtual cluster that are held after a failure cannot be entered: they \
                    only use up quota"
                    .to_owned(),
            ),
            Target::Compute(_) if has_key => None,
            Target::Compute(_) => Some(
                "nodes that are held after a failure can be entered only with a key: \
                    `resources.native: [ssh_public_key=…]`"
                    .to_owned(),
            ),
        }
    }
}

fn mounted(io: &IoPlan) -> Option<String> {
    let unused: Vec<&str> = io
        .options
        .iter()
        .map(String::as_str)
        .filter(|option| is_native(&io.store) && *option != "download")
        .collect();
    (!unused.is_empty()).then(|| {
        format!(
            "the service mounts `io.{}` in its own way: `{}` has no effect there",
            io.name,
            unused.join(" ")
        )
    })
}

/// The note about a kind of machine that the service does not list. It may exist all the same.
fn unlisted(plan: &Plan, site: &AzureSite) -> Option<String> {
    let wanted = plan
        .job
        .resources
        .instance_type
        .as_deref()
        .filter(|wanted| site.instance(wanted).is_none())?;
    let is_offered = |instance: &&InstanceFacts| {
        site.flavour == Flavour::Singularity || instance.series == "kubernetes"
    };
    let known: Vec<&str> = site
        .instances
        .iter()
        .filter(is_offered)
        .map(|instance| instance.name.as_str())
        .collect();
    let near = did_you_mean(wanted, known.iter().copied())
        .map(|near| format!("; {near}"))
        .unwrap_or_default();
    let some = known.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    (!known.is_empty()).then(|| {
        format!("the service lists no machines of the kind {wanted}; it has: {some}{near}")
    })
}

/// The note about a tier whose quota is too small. The job may still be submitted, because quotas
/// change.
fn quota(plan: &Plan, site: &AzureSite) -> Option<String> {
    if site.flavour != Flavour::Singularity {
        return None;
    }
    let instance = plan
        .job
        .resources
        .instance_type
        .as_deref()
        .and_then(|name| site.instance(name))?;
    let tier = super::payload::tier_word(plan.resolved.tier);
    let places = plan.job.resources.location.as_slice();
    let is_named = |region: &String| {
        places.is_empty()
            || places
                .iter()
                .any(|place| place.eq_ignore_ascii_case(region))
    };
    let of_series = site.quotas.iter().filter(|quota| {
        quota.series.eq_ignore_ascii_case(&instance.series) && is_named(&quota.region)
    });
    let largest = of_series
        .filter(|quota| quota.tier.eq_ignore_ascii_case(tier))
        .map(|quota| quota.limit)
        .max();
    let need = u64::from(plan.resolved.shape.nodes) * u64::from(instance.gpus);
    let words = tier.to_ascii_lowercase();
    match largest {
        _ if site.quotas.is_empty() => None,
        None | Some(0) => Some(format!(
            "the virtual cluster has no quota of {} in the tier {words}: it waits for one; `tow \
                nodes` lists what there is",
            instance.series
        )),
        Some(limit) if limit < need => Some(format!(
            "it needs {need} GPUs of {}, and the tier {words} has {limit} in all: it waits until \
                there are more",
            instance.series
        )),
        Some(_) => None,
    }
}
