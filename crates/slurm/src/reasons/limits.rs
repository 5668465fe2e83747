//! The reasons that name a limit: `QOSMaxGRESPerUser`, `AssocGrpCPUMinutesLimit`,
//! `MaxJobsPerAccount`. There are some 150, all built from the same parts.

use super::Explanation;

/// What a limit counts: Slurm's spelling, the plain text, the word before "minutes". Longer
/// spellings first.
const COUNTED: &[(&str, &str, &str)] = &[
    ("SubmitJobs", "so many jobs, waiting ones included", "job"),
    ("SubmitJob", "so many jobs, waiting ones included", "job"),
    ("Jobs", "so many running jobs", "job"),
    ("Job", "so many running jobs", "job"),
    ("WallDuration", "so much time", "time"),
    ("Wall", "so much time", "time"),
    ("GRES", "so many GPUs", "GPU"),
    ("CPU", "so many CPUs", "CPU"),
    ("Cpu", "so many CPUs", "CPU"),
    ("Memory", "so much memory", "memory"),
    ("Mem", "so much memory", "memory"),
    ("Node", "so many nodes", "node"),
    ("License", "so many licences", "licence"),
    ("Billing", "so many billed units", "billing"),
    ("Energy", "so much energy", "energy"),
    ("BB", "so much fast storage", "storage"),
    ("Unknown", "so many resources", "resource"),
];

const WAIT: &str = "wait for other jobs to end, ask for less, or use another tier";
const LESS: &str = "abort it and submit it with less, or use another tier";
const USED_UP: &str = "use another account or tier, or ask the site's staff for more";

pub(super) fn explain(word: &str) -> Option<Explanation> {
    in_words(&read(word)?)
}

/// The parts that the name of a limit is built from.
struct Parts<'w> {
    /// "its QOS" or "your account".
    owner: &'static str,
    /// `Grp`, `Max` or `Min`.
    bound: &'static str,
    /// What it counts, as "so many GPUs" and as the word before "minutes".
    much: &'static str,
    unit: &'static str,
    /// Empty, `Minutes`, `RunMinutes` or `RunMins`.
    minutes: &'w str,
    /// Empty, `Account`, `Job`, `Node` or `User`.
    per: &'w str,
    whom: &'static str,
}

fn read(word: &str) -> Option<Parts<'_>> {
    let (owner, rest) = if let Some(rest) = word.strip_prefix("QOS") {
        ("its QOS", rest)
    } else if let Some(rest) = word.strip_prefix("Assoc") {
        ("your account", rest)
    } else {
        // Limits of a QOS per account or user, without the prefix.
        (
            "its QOS",
            (word.starts_with("Max") && word.contains("Per")).then_some(word)?,
        )
    };
    let rest = rest
        .strip_suffix("Limit")
        .or_else(|| rest.strip_suffix("NotSatisfied"))
        .unwrap_or(rest);
    let (bound, rest) = ["Grp", "Max", "Min"]
        .into_iter()
        .find_map(|bound| Some((bound, rest.strip_prefix(bound)?)))?;
    let (much, unit, rest) = COUNTED
        .iter()
        .find_map(|(known, much, unit)| Some((*much, *unit, rest.strip_prefix(known)?)))?;
    let (minutes, per) = rest.split_once("Per").unwrap_or((rest, ""));
    let whom = match (bound, per) {
        ("Grp", _) => "all jobs together",
        (_, "Account") => "one account",
        (_, "Job") => "one job",
        (_, "Node") => "one job on a node",
        (_, "User" | "") => "one user",
        _ => return None,
    };
    Some(Parts {
        owner,
        bound,
        much,
        unit,
        minutes,
        per,
        whom,
    })
}

fn in_words(parts: &Parts<'_>) -> Option<Explanation> {
    let Parts {
        owner,
        bound,
        much,
        unit,
        minutes,
        per,
        whom,
    } = *parts;
    let explained = |text: String, next: &str, forever: bool| {
        Some(Explanation {
            text,
            next: Some(next.to_owned()),
            forever,
        })
    };
    match (bound, minutes, per) {
        ("Min", "", _) => {
            let fewer = much.replace("so many", "fewer").replace("so much", "less");
            explained(
                format!("it asks for {fewer} than {owner} wants"),
                "abort it and submit it with more",
                true,
            )
        }
        (_, "", "Job" | "Node") => explained(
            format!("{owner} allows {whom} only {much}, and it asks for more"),
            LESS,
            true,
        ),
        (_, "Minutes", "Job") => explained(
            format!("{owner} allows {whom} only so many {unit} minutes, and it asks for more"),
            "abort it and submit it with less, or a shorter `time`",
            true,
        ),
        (_, "RunMinutes" | "RunMins", _) => {
            let next = "wait for other jobs to end; a shorter `time` claims less";
            explained(
                format!(
                    "{owner} allows {whom} to claim only so many {unit} minutes, and running jobs \
                        have claimed them"
                ),
                next,
                false,
            )
        }
        ("Grp", "Minutes", "") => explained(
            format!("{owner} has used up its {unit} minutes"),
            USED_UP,
            false,
        ),
        ("Grp", "", "") if unit == "time" => {
            explained(format!("{owner} has used up its time"), USED_UP, false)
        }
        (_, "", _) => explained(
            format!("{owner} allows {whom} only {much}, and that limit is reached"),
            WAIT,
            false,
        ),
        _ => None,
    }
}

/// Since 22.05 some limits come as a sentence: "Job is at or exceeds QOS lab's group wall limit …".
pub(super) fn explain_sentence(text: &str) -> Option<Explanation> {
    let rest = text.strip_prefix("Job is at or exceeds ")?;
    Some(Explanation {
        text: format!("it is at the limit: {rest}"),
        next: Some(USED_UP.to_owned()),
        forever: false,
    })
}
