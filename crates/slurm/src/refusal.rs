//! Explains why `sbatch` did not accept a job, with the next step.

use towline_core::suggest::did_you_mean;
use towline_core::{Error, Retry};

/// The request and the cluster's offers, for hints.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    pub partition: Option<&'a str>,
    pub qos: Option<&'a str>,
    pub account: Option<&'a str>,
    /// Those that exist; empty if unknown.
    pub partitions: &'a [&'a str],
    pub all_qos: &'a [&'a str],
    pub accounts: &'a [&'a str],
}

/// [`refusal`] if only the partitions are known; the requested one is taken from the message of
/// `sbatch`.
pub fn explain(stderr: &str, partitions: &[&str]) -> Error {
    refusal(
        stderr,
        &Asked {
            partitions,
            ..Asked::default()
        },
    )
}

/// The stderr of `sbatch` as an error.
///
/// Its kind is `Unreachable` if the job may have been accepted all the same: then only a query for
/// the run tells. It is `Config` if the job or the configuration names something that does not
/// exist, and `Refused` if the job asks for more than the cluster grants.
pub fn refusal(stderr: &str, asked: &Asked<'_>) -> Error {
    let said = said(stderr);
    let named = said
        .iter()
        .find_map(|line| line.strip_prefix("invalid partition specified: "))
        .map(str::trim);
    let asked = &Asked {
        partition: asked.partition.or(named),
        ..*asked
    };
    let all = said.join("; ");
    let lower = all.to_lowercase();
    if let Some(rule) = RULES
        .iter()
        .find(|rule| rule.texts.iter().any(|text| lower.contains(text)))
    {
        return (rule.make)(asked, &said).with("slurm", &all);
    }
    if all.is_empty() {
        return Error::unreachable(
            "`sbatch` failed and said nothing: whether the job was accepted is not known",
        );
    }
    // A site's own rules come from plugins, with messages of their own.
    Error::refused("Slurm did not accept the job").with("slurm", all)
}

/// The messages without their prefixes, each once. Advice such as `Try "sbatch --help"` is dropped.
fn said(stderr: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    let is_marked = stderr.lines().any(|line| line.contains("sbatch: "));
    for line in stderr.lines() {
        // Login shells print on stderr too.
        let text = match line.split_once("sbatch: ") {
            Some((_, text)) => text,
            None if is_marked => continue,
            None => line.trim(),
        };
        let text = ["error: ", "fatal: ", "warning: "]
            .iter()
            .find_map(|level| text.strip_prefix(level))
            .unwrap_or(text);
        let text = text
            .trim_start_matches("Batch job submission failed: ")
            .trim_start_matches("Unable to allocate resources: ")
            .trim();
        if !text.is_empty()
            && !text.starts_with("Try ")
            && !messages.iter().any(|known| known == text)
        {
            messages.push(text.to_owned());
        }
    }
    messages
}

struct Rule {
    /// Any of these in the message, in lower case.
    texts: &'static [&'static str],
    make: fn(&Asked<'_>, &[String]) -> Error,
}

/// The first rule that matches counts.
const RULES: &[Rule] = &[
    Rule {
        texts: &[
            "protocol authentication error",
            "invalid authentication credential",
            "munge",
        ],
        make: |_, _| {
            Error::unreachable(
                "Slurm could not make sure who you are: whether the job was accepted is not known",
            )
            .hint("the `munge` service of the login node may be down: tell the site's staff")
        },
    },
    Rule {
        texts: UNSURE_MESSAGES,
        make: |_, _| {
            Error::unreachable(
                "Slurm's controller did not answer: whether the job was accepted is not known",
            )
        },
    },
    Rule {
        texts: &[
            "rate limit exceeded",
            "queue full",
            "temporarily unable",
            "unable to create job record",
            "job creation temporarily disabled",
        ],
        make: |_, _| {
            Error::refused("Slurm takes no more jobs at the moment")
                .retry(Retry::Later)
                .hint("try again in a minute")
        },
    },
    Rule {
        texts: &["invalid partition", "no partition specified"],
        make: partition,
    },
    Rule {
        texts: &["invalid qos"],
        make: qos,
    },
    Rule {
        texts: &["invalid account", "invalid or unknown association"],
        make: account,
    },
    Rule {
        texts: &["not permitted to use this partition", "group not permitted"],
        make: |asked, _| {
            Error::denied(format!("you may not use {}", partition_words(asked)))
                .maybe_hint(choices("partitions", asked.partitions, asked.partition))
        },
    },
    Rule {
        texts: &[
            "required partition not available",
            "partition in down state",
            "partition configuration not available",
        ],
        make: |asked, _| {
            Error::refused(format!(
                "{} takes no jobs now, or the job does not fit its limits",
                partition_words(asked)
            ))
            .hint("`tow clusters` tells the limits; choose less or another partition")
        },
    },
    Rule {
        texts: &[
            "requested time limit is invalid",
            "time limit specification required",
        ],
        make: |asked, _| {
            Error::refused(format!(
                "the time limit is missing, or longer than {} allows",
                partition_words(asked)
            ))
            .hint("set `resources.time`, shorter if it is set")
        },
    },
    Rule {
        texts: &[
            "job violates accounting/qos policy",
            "submitjob",
            "perjoblimit",
            "peruser",
            "breached requested qos",
        ],
        make: policy,
    },
    Rule {
        texts: &[
            "memory specification",
            "memory required by task",
            "more memory",
        ],
        make: |asked, _| {
            Error::too_large(format!(
                "no node of {} has as much memory as the job asks for",
                partition_words(asked)
            ))
            .hint("ask for less `memory`; `tow nodes` tells what nodes have")
        },
    },
    Rule {
        texts: &[
            "invalid generic resource",
            "invalid gres",
            "unsupported by configured selecttype",
            "invalid trackable resource",
        ],
        make: |asked, _| {
            Error::config(format!("{} has no such GPUs", partition_words(asked))).hint(
                "check `gpus_per_node` and the type of GPU; `tow nodes` tells what nodes have",
            )
        },
    },
    Rule {
        texts: &[
            "more processors requested",
            "cpu count",
            "invalid number of cpus",
        ],
        make: |asked, _| {
            Error::too_large(format!(
                "no node of {} has as many CPUs as the job asks for",
                partition_words(asked)
            ))
            .hint("ask for fewer `cpus_per_node`; `tow nodes` tells what nodes have")
        },
    },
    Rule {
        texts: &[
            "node count specification",
            "invalid number of nodes",
            "not a valid node count",
        ],
        make: |asked, _| {
            Error::too_large(format!(
                "the job asks for more nodes than {} grants",
                partition_words(asked)
            ))
            .hint("ask for fewer `nodes`; `tow clusters` tells the limits")
        },
    },
    Rule {
        texts: &[
            "requested node configuration is not available",
            "required node not available",
        ],
        make: |asked, _| {
            Error::refused(format!(
                "no node of {} has what the job asks \
                for",
                partition_words(asked)
            ))
            .hint(
                "ask for fewer GPUs, CPUs or less memory per node, or choose another \
                    partition; `tow nodes` tells what nodes have",
            )
        },
    },
    Rule {
        texts: &["invalid feature specification"],
        make: |_, _| {
            Error::config("no node has the feature that `--constraint` names")
                .hint("`sinfo -o '%N %f'` lists the features")
        },
    },
    Rule {
        texts: &["invalid node name"],
        make: |_, _| {
            Error::config("the job names a node that does not exist").hint("`tow nodes` lists them")
        },
    },
    Rule {
        texts: &["invalid job array"],
        make: |_, _| {
            Error::too_large("the sweep has more runs than this cluster allows in one array")
                .hint("`scontrol show config` has `MaxArraySize`")
        },
    },
    Rule {
        texts: &["reservation"],
        make: |_, _| {
            Error::refused("the reservation cannot be used")
                .hint("`scontrol show reservation` lists those there are and whose they are")
        },
    },
    Rule {
        texts: &["job dependency problem", "circular job dependency"],
        make: |_, _| Error::config("the job depends on one that does not exist"),
    },
    Rule {
        texts: &["invalid license"],
        make: |_, _| {
            Error::config("the job asks for a licence that does not exist")
                .hint("`scontrol show licenses` lists them")
        },
    },
    Rule {
        texts: &[
            "unrecognized option",
            "invalid option",
            "option requires an argument",
            "ambiguous",
            "invalid directive",
            "unmatched",
            "invalid --",
        ],
        make: |_, said| {
            Error::config(format!(
                "`sbatch` does not understand an option: {}",
                said.first().map_or("", String::as_str)
            ))
            .hint("check `resources.native`")
        },
    },
    Rule {
        texts: &[
            "access/permission denied",
            "submissions disabled",
            "user's group",
            "invalid user id",
        ],
        make: |_, _| {
            Error::denied("Slurm does not let you submit jobs")
                .hint("ask the site's staff for an account")
        },
    },
    Rule {
        texts: &[
            "pathname of a file",
            "unable to open file",
            "working directory",
        ],
        make: |_, _| Error::refused("Slurm cannot use a path of the job"),
    },
    Rule {
        texts: &["writing script/environment"],
        make: |_, _| {
            Error::refused("Slurm could not store the job: its disk may be full")
                .retry(Retry::Later)
        },
    },
    Rule {
        texts: &["incompatible versions"],
        make: |_, _| {
            Error::unsupported("the login node's Slurm commands do not fit its controller")
                .hint("tell the site's staff")
        },
    },
];

/// The request was sent, and no answer came, or none that is clear.
const UNSURE_MESSAGES: &[&str] = &[
    "socket timed out",
    "unable to contact slurm controller",
    "zero bytes were transmitted",
    "message receive failure",
    "message send failure",
    "communication connection failure",
    "communication shutdown failure",
    "unexpected message received",
    "connection refused",
    "connection timed out",
    "connection reset",
    "no route to host",
    "standby mode",
    "header lengths are longer",
    "missing socket error",
    "insane message length",
    "broken pipe",
    "endpoint is not connected",
    "network is unreachable",
    "slurm_msg_sendto",
    "slurm_receive_msg",
];

fn partition(asked: &Asked<'_>, _: &[String]) -> Error {
    let error = match asked.partition {
        Some(partition) => Error::config(format!("partition `{partition}` unknown")),
        None => Error::config("the job names no partition and the cluster has no default one")
            .hint("set `partition` of the cluster in the configuration"),
    };
    error.maybe_hint(choices("partitions", asked.partitions, asked.partition))
}

fn qos(asked: &Asked<'_>, _: &[String]) -> Error {
    let error = match asked.qos {
        Some(qos) => Error::config(format!("QOS `{qos}` unknown, or not open to you")),
        None => Error::config("your account has no QOS that can be used here"),
    };
    error.maybe_hint(choices("QOS", asked.all_qos, asked.qos))
}

fn account(asked: &Asked<'_>, _: &[String]) -> Error {
    let error = match asked.account {
        Some(account) => Error::config(format!(
            "account `{account}` unknown, not yours, or not allowed in {}",
            partition_words(asked)
        )),
        None => Error::config(format!(
            "you have no account that may use {}",
            partition_words(asked)
        ))
        .hint("set `resources.account`"),
    };
    error.maybe_hint(choices("accounts", asked.accounts, asked.account))
}

/// Slurm sometimes names the limit on a line of its own.
fn policy(_: &Asked<'_>, said: &[String]) -> Error {
    let limit = said.iter().find(|line| {
        ["QOS", "Assoc", "Max"]
            .iter()
            .any(|begin| line.starts_with(begin))
            && !line.contains(' ')
    });
    let waits = limit.is_some_and(|limit| limit.contains("SubmitJob"));
    let text = match limit {
        Some(limit) => super::reasons::explain(limit).text,
        None => "the job is over a limit of your account or QOS: jobs, size or time".to_owned(),
    };
    if waits {
        return Error::refused(text)
            .retry(Retry::Later)
            .hint("wait for some of your jobs to end");
    }
    Error::refused(text).hint(
        "ask for less or a shorter `time`, use another tier, or wait for some of your jobs to end",
    )
}

fn partition_words(asked: &Asked<'_>) -> String {
    asked.partition.map_or_else(
        || "the default partition".to_owned(),
        |partition| format!("partition `{partition}`"),
    )
}

/// The most similar existing name, else all of them.
fn choices(what: &str, known: &[&str], asked: Option<&str>) -> Option<String> {
    // A name that exists but is not allowed for this user is not a typo.
    let near = asked
        .filter(|asked| !known.contains(asked))
        .and_then(|asked| did_you_mean(asked, known.iter().copied()));
    near.or_else(|| (!known.is_empty()).then(|| format!("{what} there are: {}", known.join(", "))))
}
