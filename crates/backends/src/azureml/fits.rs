//! Refuses jobs before they are sent: those that can never start, that would show a secret, or that
//! name something unknown.

use super::config::AzureSettings;
use super::data;
use super::identity::JobIdentity;
use super::site::{AzureSite, Flavour, short};
use towline_core::config::StoreKind;
use towline_core::job::Job;
use towline_core::quantity::Memory;
use towline_core::resolve::Resolved;
use towline_core::secret_name::SecretName;
use towline_core::suggest::{did_you_mean, nearest};
use towline_core::{Error, Result};

/// The kind of machine, as far as it is known.
pub(super) fn machine(
    job: &Job,
    config: &AzureSettings,
    site: &AzureSite,
) -> Result<Option<String>> {
    let wanted = job.resources.instance_type.clone();
    match (site.flavour, &wanted, &site.vm_size) {
        (Flavour::Singularity, None, _) => {
            let known: Vec<&str> = site
                .instances
                .iter()
                .map(|instance| instance.name.as_str())
                .collect();
            let hint = if known.is_empty() {
                "`tow nodes` lists them".to_owned()
            } else {
                format!("it has: {}", known.join(", "))
            };
            Err(Error::config(format!(
                "cluster `{}` is a virtual cluster: \
                `resources.instance_type` says which machines",
                config.name
            ))
            .hint(hint)
            .hint(format!(
                "write it in the job file, or for all jobs there: `clusters.{}.job: \
                    {{resources: {{instance_type: NAME}}}}`",
                config.name
            ))
            .about("resources.instance_type"))
        }
        // The service may offer machines that it does not list. A name close to a listed one is a
        // typo.
        (Flavour::Singularity, Some(wanted), _) if site.instance(wanted).is_none() => {
            match slip(short(wanted), job, site) {
                Some(near) => Err(Error::config(format!(
                    "cluster `{}` has no machines of the kind {wanted}",
                    config.name
                ))
                .hint(format!("did you mean `{near}`?"))
                .about("resources.instance_type")),
                None => Ok(Some(wanted.clone())),
            }
        }
        (Flavour::Aml, Some(wanted), Some(size))
            if !short(wanted).eq_ignore_ascii_case(short(size)) =>
        {
            Err(Error::unsupported(format!(
                "cluster `{}` has machines of the kind {size}, not {wanted}",
                config.name
            ))
            .hint("leave `resources.instance_type` out")
            .about("resources.instance_type"))
        }
        _ => Ok(wanted.or_else(|| site.vm_size.clone())),
    }
}

/// The listed kind of machine that a typo stands for. A name with other digits is another machine,
/// and the list does not cover other regions.
fn slip<'s>(wanted: &str, job: &Job, site: &'s AzureSite) -> Option<&'s str> {
    let is_elsewhere = |region: &String| {
        region != &site.location && !site.quotas.iter().any(|quota| quota.region == *region)
    };
    if job.resources.location.as_slice().iter().any(is_elsewhere) {
        return None;
    }
    let digits = |text: &str| {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    nearest(
        wanted,
        site.instances
            .iter()
            .map(|instance| short(&instance.name))
            .filter(|known| digits(known) == digits(wanted)),
    )
    .filter(|known| !has_other_features(wanted, known))
}

/// Whether two names differ in the feature letters. Azure's names have such letters after the
/// number of CPUs: `ND96amr_A100_v4` and `ND96amrs_A100_v4` are both machines, and a platform may
/// use either name for the other. Different letters mean another machine; the same letters in
/// another order are a typo.
fn has_other_features(wanted: &str, known: &str) -> bool {
    let parts = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let begin = lower
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(lower.len());
        let (family, rest) = lower.split_at(begin);
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, rest) = rest.split_at(end);
        let (features, others) = rest.split_at(rest.find(['_', '-']).unwrap_or(rest.len()));
        let mut letters: Vec<char> = features.chars().collect();
        letters.sort_unstable();
        (format!("{family}{number} {others}"), letters)
    };
    let ((wanted, wanted_letters), (known, known_letters)) = (parts(wanted), parts(known));
    let are_letters = |letters: &[char]| {
        letters
            .iter()
            .all(|letter| "abcdeilmnoprst".contains(*letter))
    };
    wanted == known
        && wanted_letters != known_letters
        && are_letters(&wanted_letters)
        && are_letters(&known_letters)
}

/// Refuses a job that can never start.
pub(super) fn check_fits(
    resolved: &Resolved,
    config: &AzureSettings,
    site: &AzureSite,
    machine: Option<&str>,
) -> Result<()> {
    let shape = &resolved.shape;
    let refuse = |why: String, hint: &str| {
        Err(Error::too_large(format!(
            "cluster `{}` can never start it: {why}",
            config.name
        ))
        .hint(hint))
    };
    if let Some(facts) = machine.and_then(|name| site.instance(name)) {
        if shape.gpus_per_node > facts.gpus {
            let why = format!(
                "it asks for {} GPUs per node and {} has {}",
                shape.gpus_per_node, facts.name, facts.gpus
            );
            return refuse(
                why,
                "ask for fewer with `-n` or `resources.gpus_per_node`, more nodes, or another \
                    `resources.instance_type`",
            );
        }
        if let Some(cpus) = shape
            .cpus_per_node
            .filter(|cpus| facts.cpus > 0 && *cpus > facts.cpus)
        {
            return refuse(
                format!(
                    "it asks for {cpus} CPUs per node and {} has {}",
                    facts.name, facts.cpus
                ),
                "ask for fewer with `--cpus`",
            );
        }
        if let Some(memory) = shape
            .memory
            .filter(|memory| facts.memory > 0 && memory.0 > facts.memory)
        {
            return refuse(
                format!(
                    "it asks for {memory} per node and {} has {}",
                    facts.name,
                    Memory(facts.memory)
                ),
                "ask for less with `--memory`",
            );
        }
    }
    if let Some(most) = site.most_nodes.filter(|most| shape.nodes > *most) {
        return refuse(
            format!(
                "it asks for {} nodes and there are at most {most}",
                shape.nodes
            ),
            "ask for fewer nodes",
        );
    }
    Ok(())
}

/// Checks that secrets can reach the job: through the workspace's vault, which the job's identity
/// reads, and never in the job's document.
pub(super) fn check_secrets(
    resolved: &Resolved,
    identity: &JobIdentity,
    site: &AzureSite,
) -> Result<()> {
    let stores = resolved
        .io
        .iter()
        .map(|io| &io.store)
        .chain(resolved.copy.iter().map(|copy| &copy.store));
    let carried = stores
        .filter(|store| !data::is_native(store))
        .find(|store| {
            matches!(
                store.datastore.credential,
                Some(towline_core::config::Credential::Map(_))
            )
        });
    let what = match (resolved.secrets.first(), carried) {
        (Some(SecretName::Token(_)), _) => {
            match towline_core::token::variable_with_token(&resolved.env) {
                Some(variable) => format!("what looks like a token in the variable `{variable}`"),
                None => "what looks like a token in its command".to_owned(),
            }
        }
        (Some(name), _) => format!("the secret `{name}`"),
        (None, Some(store)) => format!("the credential of datastore `{}`", store.name),
        (None, None) => return Ok(()),
    };
    if matches!(identity, JobIdentity::Managed(_)) {
        return match site.vault {
            Some(_) => Ok(()),
            None => Err(Error::unsupported(format!(
                "workspace `{}` has no Key Vault, and {what} reaches a run through it",
                site.scope.workspace
            ))),
        };
    }
    let known: Vec<&str> = site.identities.keys().map(String::as_str).collect();
    let hint = if known.is_empty() {
        "give the workspace a user-assigned identity that may read secrets of its Key Vault, and \
            name it: `identity: managed:NAME`"
            .to_owned()
    } else {
        format!(
            "add `identity: managed:{}`; it must be allowed to read secrets of the workspace's Key \
                Vault",
            known.join(" or managed:")
        )
    };
    Err(Error::refused(format!(
        "{what} reaches a run on Azure ML through the workspace's Key \
        Vault, and the job has no managed identity that could read it"
    ))
    .hint(hint))
}

/// Checks that the workspace has the datastores that only it defines.
pub(super) fn known_stores(resolved: &Resolved, site: &AzureSite) -> Result<()> {
    let stores = resolved
        .io
        .iter()
        .map(|io| &io.store)
        .chain(resolved.copy.iter().map(|copy| &copy.store));
    let unknown = stores
        .filter(|store| store.datastore.kind == StoreKind::Azureml)
        .find(|store| !site.store_names.contains(&store.name));
    let Some(store) = unknown.filter(|_| !site.store_names.is_empty()) else {
        return Ok(());
    };
    let names: Vec<&str> = site.store_names.iter().map(String::as_str).collect();
    Err(Error::config(format!(
        "datastore `{}` is neither in the configuration nor in workspace `{}`",
        store.name, site.scope.workspace
    ))
    .maybe_hint(did_you_mean(&store.name, names.iter().copied()))
    .hint(format!("the workspace has: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_letters_are_another_machine_and_their_order_a_slip() {
        assert!(
            has_other_features("ND96amr_A100_v4", "ND96amrs_A100_v4")
                && has_other_features("ND96_A100_v4", "ND96amrs_A100_v4")
        );
        for slip in [
            "ND96arms_A100_v4",
            "ND96amrz_A100_v4",
            "NC96amr_A100_v4",
            "ND96amr_A10_v4",
            "ND96amrs_A100_v4",
        ] {
            assert!(!has_other_features(slip, "ND96amrs_A100_v4"), "{slip}");
        }
    }
}
