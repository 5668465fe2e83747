//! Explains why a job waits, as far as the service says.

use super::report::JobView;
use super::site::{AzureSite, Flavour, short};
use towline_core::time::human_millis;
use towline_wire::crew::CrewOrder;

pub(super) fn waiting(job: &JobView, order: Option<&CrewOrder>, site: &AzureSite) -> String {
    let since = job
        .created
        .map(|created| towline_host::clock::now().since(created));
    let mut text = match since {
        Some(millis) => format!(
            "the service calls it {} since {}",
            job.word,
            human_millis(millis)
        ),
        None => format!("the service calls it {}", job.word),
    };
    let Some(order) = order else { return text };
    let (wanted, tier) = (
        &order.plan.job.resources,
        super::payload::tier_word(order.plan.resolved.tier),
    );
    if site.flavour != Flavour::Singularity {
        let busy = site
            .facts
            .nodes
            .iter()
            .filter(|node| node.state == "running")
            .count();
        if busy > 0 {
            text += &format!("; {busy} of {} nodes are busy", site.facts.nodes.len());
        }
        return text;
    }
    let Some(instance) = wanted
        .instance_type
        .as_deref()
        .and_then(|name| site.instance(name))
    else {
        return text;
    };
    let need = u64::from(order.plan.resolved.shape.nodes) * u64::from(instance.gpus);
    for quota in site.quotas.iter().filter(|quota| {
        quota.tier.eq_ignore_ascii_case(tier) && quota.series.eq_ignore_ascii_case(&instance.series)
    }) {
        let free = quota.limit.saturating_sub(quota.used);
        text += &format!(
            "; {tier} has {free} of {} GPUs of {} free in {}",
            quota.limit, quota.series, quota.region
        );
        if free < need {
            text += &format!(
                ", and it needs {need} ({} × {})",
                order.plan.resolved.shape.nodes,
                short(&instance.name)
            );
        }
    }
    text
}
