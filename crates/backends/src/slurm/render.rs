//! Makes the batch script of a job, or says why this cluster can never start it.

use super::config::SlurmSettings;
use super::machines::has_gpu;
use towline_core::change::Edit;
use towline_core::cluster::Asked;
use towline_core::job::{Resources, Tier};
use towline_core::plan::Request;
use towline_core::quantity::Span;
use towline_core::resolve::{Resolved, Shape};
use towline_core::{Error, Result, suggest};
use towline_slurm::script::{Batch, output_pattern};
use towline_wire::program::OwnProgram;
use towline_wire::site::{JobChange, PartitionFacts, SiteFacts};
use towline_wire::stage::HEAD_VERB;

/// The shortest and the longest warning before a job's time limit, in seconds.
const NOTICE_SECONDS: (u64, u64) = (15, 60);

pub(super) fn render(
    asked: &Asked<'_>,
    config: &SlurmSettings,
    site: &SiteFacts,
    program: &OwnProgram,
) -> Result<Request> {
    let shape = &asked.resolved.shape;
    let resources = &asked.job.resources;
    let is_named = asked.job.resources.tier.is_some();
    let words = tier(asked.resolved.tier, is_named, config, site)?;
    let partition = words.partition.clone().or_else(|| config.partition.clone());
    // Native options come last in the script, so they win.
    let place = find_partition(
        &config.name,
        native_partition(&resources.native).or(partition.as_deref()),
        site,
    )?;
    check_fits(asked, config, site, place)?;
    let is_sweep = asked.runs.len() != 1 || asked.runs[0].id != *asked.id;
    let (gpu_type, native) = machine(resources, shape.gpus_per_node, site)?;
    let time = asked.resolved.time.map(|time| time.0);
    let known = time.or_else(|| place.and_then(|place| place.usual.or(place.longest)));
    let folder = format!("{}/submissions/{}", site.stage, asked.id);
    let batch = Batch {
        name: asked.id.to_string(),
        comment: Some(format!("towline {}", asked.id)),
        output: format!("{}/{}", folder.replace('%', "%%"), output_pattern(is_sweep)),
        workdir: folder,
        nodes: shape.nodes,
        ntasks_per_node: 1,
        gpus_per_node: shape.gpus_per_node,
        gpu_type,
        cpus_per_task: Some(
            shape
                .cpus_per_node
                .unwrap_or_else(|| shape.ranks_on(0).max(1)),
        ),
        memory_mb: shape.memory.map(|memory| memory.0.div_ceil(1 << 20)),
        time,
        partition,
        qos: words.qos,
        account: resources.account.clone().or_else(|| config.account.clone()),
        array: is_sweep.then(|| format!("1-{}", asked.runs.len())),
        requeue: true,
        signal: known.map(|seconds| ("B:USR1".to_owned(), notice(seconds))),
        native,
        command: vec![
            program.place(&site.stage),
            HEAD_VERB.to_owned(),
            site.stage.clone(),
            asked.id.to_string(),
        ],
    };
    Ok(Request {
        text: batch.render()?,
    })
}

/// The change that an edit makes to a job that waits.
pub(super) fn job_change(
    edit: &Edit,
    config: &SlurmSettings,
    site: &SiteFacts,
) -> Result<JobChange> {
    if edit.shape.is_some() {
        return Err(
            Error::unsupported("the size of a job that waits in Slurm cannot be changed")
                .hint("`tow resubmit RUN -n GPUS` submits it again with another size"),
        );
    }
    let words = match edit.tier {
        Some(wanted) => tier(wanted, true, config, site)?,
        None => super::config::TierWords::default(),
    };
    if edit.tier.is_some() && words.qos.is_none() && words.partition.is_none() {
        return Err(Error::unsupported(format!(
            "cluster `{}` has no QOS and no partition for the tier `standard`",
            config.name
        ))
        .hint("say what it is there: `tiers: {standard: {qos: …}}` or `{partition: …}`"));
    }
    Ok(JobChange::Update {
        time: edit.time.map(|time| time.0),
        qos: words.qos,
        partition: words.partition,
    })
}

/// The kind of GPU in `instance_type`, and the job's native options with the rest of it.
fn machine(
    resources: &Resources,
    gpus_per_node: u32,
    site: &SiteFacts,
) -> Result<(Option<String>, Vec<String>)> {
    let gpu_type = resources
        .instance_type
        .clone()
        .filter(|wanted| has_gpu(site, wanted));
    if let Some(kind) = gpu_type.as_ref().filter(|_| gpus_per_node == 0) {
        return Err(Error::refused(format!(
            "`resources.instance_type` asks for GPUs of the kind `{kind}`, and the job for none"
        ))
        .hint("ask for some with `-n`, or leave it out")
        .about("resources.instance_type"));
    }
    let mut native = resources.native.clone();
    if let Some(other) = resources
        .instance_type
        .as_ref()
        .filter(|wanted| !has_gpu(site, wanted))
    {
        // Not a kind of GPU, so it is a feature of nodes.
        native.insert(0, format!("--constraint={other}"));
    }
    Ok((gpu_type, native))
}

/// Seconds between the warning signal and the end, for a job with this time limit.
fn notice(seconds: u64) -> u32 {
    u32::try_from((seconds / 4).clamp(NOTICE_SECONDS.0, NOTICE_SECONDS.1)).unwrap_or(60)
}

/// The meaning of the job's tier on this cluster. A tier that was named and has no meaning is
/// refused.
fn tier(
    tier: Tier,
    is_named: bool,
    config: &SlurmSettings,
    site: &SiteFacts,
) -> Result<super::config::TierWords> {
    let words = config.tier(tier);
    if words.qos.is_some() || words.partition.is_some() {
        return Ok(words);
    }
    if site.tiers.iter().any(|qos| qos == tier.word()) {
        return Ok(super::config::TierWords {
            qos: Some(tier.word().to_owned()),
            ..words
        });
    }
    if is_named && tier != Tier::Standard {
        if site.tiers_unknown {
            return Err(Error::unreachable(format!(
                "the accounting of cluster `{}` does not answer, which knows what the tier `{}` is",
                config.name,
                tier.word()
            ))
            .hint(format!(
                "try again later, or say what it is there: `tiers: {{{}: {{qos: …}}}}`",
                tier.word()
            )));
        }
        let known = if site.tiers.is_empty() {
            String::new()
        } else {
            format!("; its QOS are {}", site.tiers.join(", "))
        };
        return Err(Error::config(format!(
            "cluster `{}` has nothing for the tier `{}`{known}",
            config.name,
            tier.word()
        ))
        .hint(format!(
            "say what it is there: `tiers: {{{}: {{qos: …}}}}` or `{{partition: …}}`",
            tier.word()
        ))
        .about("resources.tier"));
    }
    Ok(words)
}

/// The partition in `native`: `--partition=X`, `--partition X`, `-p X` or `-pX`; the last one
/// counts.
fn native_partition(native: &[String]) -> Option<&str> {
    let words: Vec<&str> = native
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    let named = |at: usize| match words[at] {
        "--partition" | "-p" => words.get(at + 1).copied(),
        word => word.strip_prefix("--partition=").or_else(|| {
            word.strip_prefix("-p")
                .filter(|name| !name.is_empty() && !name.starts_with('-'))
        }),
    };
    (0..words.len()).rev().find_map(named)
}

fn find_partition<'s>(
    cluster: &str,
    wanted: Option<&str>,
    site: &'s SiteFacts,
) -> Result<Option<&'s PartitionFacts>> {
    let Some(wanted) = wanted else {
        return Ok(site
            .partitions
            .iter()
            .find(|partition| partition.is_default));
    };
    // Several, separated by commas: Slurm chooses the first that can start the job.
    if wanted.contains(',') {
        return Ok(None);
    }
    let found = site
        .partitions
        .iter()
        .find(|partition| partition.name == wanted);
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = site
            .partitions
            .iter()
            .map(|partition| partition.name.as_str())
            .collect();
        Error::config(format!("cluster `{cluster}` has no partition `{wanted}`"))
            .maybe_hint(suggest::did_you_mean(wanted, names.iter().copied()))
            .hint(format!("it has: {}", names.join(", ")))
    })
}

/// Refuses a job that can never start, because many sites let it wait for ever.
fn check_fits(
    asked: &Asked<'_>,
    config: &SlurmSettings,
    site: &SiteFacts,
    place: Option<&PartitionFacts>,
) -> Result<()> {
    let refuse = |refusal: Refusal| {
        let key = refusal.key;
        let told = Error::too_large(format!(
            "cluster `{}` can never start it: {}",
            config.name, refusal.why
        ))
        .hint(refusal.hint);
        match key {
            Some(key) => told.about(key),
            None => told,
        }
    };
    check_nodes(&asked.resolved.shape, site).map_err(refuse)?;
    check_array(asked.runs.len(), site).map_err(refuse)?;
    place.map_or(Ok(()), |place| {
        check_partition(asked.resolved, place).map_err(refuse)
    })
}

/// Why a job can never start, and what to do about it.
struct Refusal {
    why: String,
    hint: String,
    /// The key of the job file that asks for too much.
    key: Option<&'static str>,
}

impl Refusal {
    fn new(why: String, hint: impl Into<String>) -> Self {
        Self {
            why,
            hint: hint.into(),
            key: None,
        }
    }

    const fn about(mut self, key: &'static str) -> Self {
        self.key = Some(key);
        self
    }
}

/// Checks that some node has as many GPUs and CPUs and as much memory as the job asks for.
fn check_nodes(shape: &Shape, site: &SiteFacts) -> std::result::Result<(), Refusal> {
    let most = site.facts.gpus_per_node();
    if shape.gpus_per_node > most {
        let has = if most == 0 {
            "no node has any".to_owned()
        } else {
            format!("no node has more than {most}")
        };
        return Err(Refusal::new(
            format!(
                "it asks for {} GPUs per node and {has}",
                shape.gpus_per_node
            ),
            "ask for fewer with `-n` or `resources.gpus_per_node`, or more nodes",
        )
        .about("resources.gpus_per_node"));
    }
    let cpus = site
        .facts
        .nodes
        .iter()
        .map(|node| node.cpus)
        .max()
        .unwrap_or(u32::MAX);
    if shape.cpus_per_node.is_some_and(|wanted| wanted > cpus) {
        return Err(Refusal::new(
            format!(
                "it asks for {} CPUs per node and no node has more than {cpus}",
                shape.cpus_per_node.unwrap_or(0)
            ),
            "ask for fewer with `--cpus`",
        )
        .about("resources.cpus_per_node"));
    }
    let memory = site
        .facts
        .nodes
        .iter()
        .map(|node| node.memory)
        .max()
        .unwrap_or(u64::MAX);
    if let Some(wanted) = shape.memory.filter(|wanted| wanted.0 > memory) {
        return Err(Refusal::new(
            format!(
                "it asks for {wanted} of memory per node and no node has more than {}",
                towline_core::quantity::Memory(memory)
            ),
            "ask for less with `--memory`",
        )
        .about("resources.memory"));
    }
    Ok(())
}

fn check_array(runs: usize, site: &SiteFacts) -> std::result::Result<(), Refusal> {
    let largest = usize::try_from(site.largest_array).unwrap_or(usize::MAX);
    if runs >= largest {
        return Err(Refusal::new(
            format!(
                "a sweep of {runs} runs is more than its largest array ({} tasks)",
                largest - 1
            ),
            "split the sweep",
        ));
    }
    Ok(())
}

fn check_partition(
    resolved: &Resolved,
    place: &PartitionFacts,
) -> std::result::Result<(), Refusal> {
    let nodes = resolved.shape.nodes;
    if nodes > place.nodes {
        return Err(Refusal::new(
            format!(
                "it asks for {nodes} nodes and partition `{}` has {}",
                place.name, place.nodes
            ),
            "ask for fewer nodes",
        ));
    }
    if let (Some(time), Some(longest)) = (resolved.time, place.longest)
        && time.0 > longest
    {
        let hint = format!(
            "ask for at most `--time {}`; a longer job goes on in several attempts with `retry: \
                {{when: [time_limit]}}`",
            Span(longest)
        );
        return Err(Refusal::new(
            format!(
                "it asks for {time} and partition `{}` allows {}",
                place.name,
                Span(longest)
            ),
            hint,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::native_partition;

    #[test]
    fn the_partition_of_native_options_is_known() {
        for (native, partition) in [
            (vec!["--partition=basic"], Some("basic")),
            (vec!["--exclusive", "-p dev"], Some("dev")),
            (vec!["-pdev", "--partition", "long"], Some("long")),
            (vec!["--parsable", "--nodelist=c1"], None),
            (vec![], None),
        ] {
            let native: Vec<String> = native.into_iter().map(str::to_owned).collect();
            assert_eq!(native_partition(&native), partition, "{native:?}");
        }
    }
}
