//! `squeue`: the controller's jobs, also ended ones as long as it remembers them (`MinJobAge`, 300
//! s by default).

use super::ids::{JobId, Part};
use super::tasks::TaskSet;
use super::values::{self, Limit};
use super::{FIELD, RECORD, unreadable};
use crate::owned;
use towline_core::time::Moment;
use towline_core::{Error, Result};

/// One letter per field, in the order of [`row`]. The two that users write freely come last.
const LETTERS: &str = "AFKTSlLMDNPqauQrkj";

/// The value of `squeue -o`. Every record stands between two marks, so that a line break in a name
/// ends no record and a cut answer is noticed.
fn format(mark: &str) -> String {
    let fields: Vec<String> = LETTERS.chars().map(|letter| format!("%{letter}")).collect();
    format!(
        "{RECORD}{mark}{}{mark}{RECORD}",
        fields.join(&FIELD.to_string())
    )
}

/// Which jobs to ask for. The controller itself leaves out jobs of other users. `squeue` applies
/// the other filters after it received the jobs, which is still cheaper than printing and parsing
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Which<'a> {
    pub user: Option<&'a str>,
    /// By name; empty means all.
    pub names: &'a [&'a str],
    /// `squeue`'s short state names, such as `PD`; empty means every state.
    pub states: &'a [&'a str],
    /// One job by its number, which the controller finds without a search. An unknown number makes
    /// `squeue` fail.
    pub job: Option<&'a str>,
}

/// The argv of the query. `-a` shows hidden partitions.
pub fn argv(which: &Which<'_>) -> Vec<String> {
    marked_argv("", which)
}

/// [`argv`] with a mark of the caller around each record, in letters and digits. Slurm allows any
/// character in a name, so a user could forge rows of other users' jobs by the name of a job. If
/// the answer is about several users, the mark must be one that nobody can guess.
pub fn marked_argv(mark: &str, which: &Which<'_>) -> Vec<String> {
    let states = if which.states.is_empty() {
        "all".to_owned()
    } else {
        which.states.join(",")
    };
    let mut argv = owned(["squeue", "-h", "-a", "-t", &states, "-o"]);
    argv.push(format(mark));
    let names = (!which.names.is_empty()).then(|| which.names.join(","));
    for (option, value) in [
        ("-u", which.user),
        ("-n", names.as_deref()),
        ("-j", which.job),
    ] {
        argv.extend(
            value
                .into_iter()
                .flat_map(|value| [option.to_owned(), value.to_owned()]),
        );
    }
    argv
}

/// The question for the priorities of all jobs that wait in a partition.
pub fn priorities_argv(partition: &str) -> Vec<String> {
    owned([
        "squeue", "-h", "-a", "-t", "PD,CF", "-p", partition, "-o", "%Q",
    ])
}

/// Reads the answer to [`priorities_argv`].
pub fn read_priorities(text: &str) -> Vec<u64> {
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// One job, one task, or the tasks of an array that have not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRow {
    /// Its own number. Each task gets one when it first starts, but `squeue` joins waiting tasks in
    /// one row under one of their numbers. So identify tasks by `id`.
    pub job: u32,
    /// The id that users see: `5`, `5_3`, `5_[3-7%3]`.
    pub id: JobId,
    /// Slurm's state; [`crate::state::native`] reads it.
    pub state: String,
    /// Why it waits, or why it ended; [`crate::reasons::explain`] reads it.
    pub reason: Option<String>,
    /// When it started, or is expected to.
    pub start: Option<Moment>,
    pub time_limit: Option<Limit>,
    /// In seconds.
    pub time_left: Option<u64>,
    pub time_used: Option<u64>,
    pub node_count: u32,
    /// A host list ([`super::hosts::expand`]); empty before it has nodes.
    pub nodes: String,
    pub partition: String,
    pub qos: Option<String>,
    pub account: Option<String>,
    pub user: String,
    pub priority: u64,
    pub comment: Option<String>,
    pub name: String,
}

impl QueueRow {
    /// The id of every job that the row stands for.
    pub fn ids(&self) -> Vec<JobId> {
        match &self.id.part {
            Part::Tasks(tasks) => tasks
                .numbers()
                .map(|task| JobId {
                    job: self.id.job,
                    part: Part::Task(task),
                    step: None,
                })
                .collect(),
            _ => vec![self.id.clone()],
        }
    }
}

/// Reads the answer to [`argv`]. Text outside of records is ignored: banners of login shells,
/// `CLUSTER:` lines.
pub fn read(text: &str) -> Result<Vec<QueueRow>> {
    read_marked("", text)
}

/// Reads the answer to [`marked_argv`].
///
/// A name may contain our own marks. So a record begins only where two numbers and enough fields
/// follow, and ends at the last mark before the next record.
pub fn read_marked(mark: &str, text: &str) -> Result<Vec<QueueRow>> {
    let (open, close) = (format!("{RECORD}{mark}"), format!("{mark}{RECORD}"));
    let seeming: Vec<usize> = text
        .match_indices(&open)
        .map(|(at, _)| at)
        .filter(|at| is_begin(&text[at + open.len()..]))
        .collect();
    let upto = |begins: &[usize]| -> Vec<(usize, usize)> {
        begins
            .iter()
            .copied()
            .zip(begins.iter().skip(1).copied().chain([text.len()]))
            .collect()
    };
    let is_whole =
        |part: &str| part.matches(FIELD).count() + 1 >= LETTERS.len() || !part.contains(&close);
    let begins: Vec<usize> = upto(&seeming)
        .into_iter()
        .filter(|(begin, end)| is_whole(&text[begin + open.len()..*end]))
        .map(|(begin, _)| begin)
        .collect();
    if begins.is_empty() && text.contains(RECORD) {
        return Err(unreadable("squeue", text.trim()));
    }
    upto(&begins)
        .into_iter()
        .map(|(begin, end)| {
            let part = &text[begin + open.len()..end];
            let end = part.rfind(&close).ok_or_else(|| {
                unreadable("squeue", &format!("the answer stops within a job: {part}"))
            })?;
            row(&part[..end])
        })
        .collect()
}

fn is_begin(text: &str) -> bool {
    let mut fields = text.splitn(3, FIELD);
    let mut is_number = || {
        fields
            .next()
            .is_some_and(|field| !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit()))
    };
    is_number() && is_number() && fields.next().is_some()
}

fn row(record: &str) -> Result<QueueRow> {
    let wrong = || -> Error { unreadable("squeue", record) };
    let fields: Vec<&str> = record.splitn(LETTERS.len(), FIELD).collect();
    let [
        job,
        array,
        task,
        state,
        start,
        limit,
        left,
        used,
        node_count,
        nodes,
        partition,
        qos,
        account,
        user,
        priority,
        reason,
        comment,
        name,
    ] = fields.as_slice()
    else {
        return Err(wrong());
    };
    let job: u32 = job.parse().map_err(|_| wrong())?;
    let array: u32 = array.parse().map_err(|_| wrong())?;
    let part = match *task {
        "N/A" => Part::Whole,
        task => match task.parse() {
            Ok(task) => Part::Task(task),
            Err(_) => Part::Tasks(TaskSet::read(task)?),
        },
    };
    if state.is_empty() {
        return Err(wrong());
    }
    Ok(QueueRow {
        job,
        id: JobId {
            job: array,
            part,
            step: None,
        },
        state: (*state).to_owned(),
        reason: values::words(reason),
        start: values::moment(start),
        time_limit: values::time_limit(limit),
        time_left: values::span(left),
        time_used: values::span(used),
        node_count: values::count(node_count).unwrap_or(0),
        nodes: values::words(nodes).unwrap_or_default(),
        partition: (*partition).to_owned(),
        qos: values::words(qos),
        account: values::words(account),
        user: (*user).to_owned(),
        priority: priority.parse().unwrap_or(0),
        comment: values::words(comment),
        name: (*name).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(mark: &str, id: u32, name: &str) -> String {
        let fields = [
            &id.to_string(),
            &id.to_string(),
            "N/A",
            "PENDING",
            "N/A",
            "5:00",
            "5:00",
            "0:00",
            "1",
            "",
            "main",
            "(null)",
            "(null)",
            "bob",
            "1",
            "Priority",
            "(null)",
            name,
        ];
        format!(
            "{RECORD}{mark}{}{mark}{RECORD}\n",
            fields.join(&FIELD.to_string())
        )
    }

    #[test]
    fn the_words_ask_for_every_field_between_marks() {
        let asked = argv(&Which {
            user: Some("alice"),
            names: &["train-1", "eval-2"],
            ..Which::default()
        });
        assert_eq!(asked[..6], ["squeue", "-h", "-a", "-t", "all", "-o"]);
        assert!(
            asked[6].starts_with("\u{1e}%A\u{1f}%F\u{1f}%K")
                && asked[6].ends_with("%k\u{1f}%j\u{1e}")
        );
        assert_eq!(asked[7..], ["-u", "alice", "-n", "train-1,eval-2"]);
        assert_eq!(
            argv(&Which {
                states: &["R", "CG"],
                ..Which::default()
            })[4],
            "R,CG"
        );
        assert_eq!(
            argv(&Which {
                job: Some("5"),
                ..Which::default()
            })[7..],
            ["-j", "5"]
        );
    }

    #[test]
    fn a_name_does_not_break_the_rows_around_it() {
        let evil = "x\u{1e}\n\u{1e}1\u{1f}1\u{1f}N/A\u{1f}COMPLETED";
        let text = record("", 1, "mine") + &record("", 4, evil) + &record("", 5, "other");
        let rows = read(&text).expect("rows");
        let names: Vec<(u32, &str)> = rows
            .iter()
            .map(|row| (row.job, row.name.as_str()))
            .collect();
        assert_eq!(names, [(1, "mine"), (4, evil), (5, "other")]);
    }

    #[test]
    fn a_mark_that_nobody_knows_cannot_be_forged() {
        let forged = record("", 1, "mine").replace("PENDING", "COMPLETED");
        let text = record("k7", 1, "mine") + &record("k7", 4, &forged);
        let rows = read_marked("k7", &text).expect("rows");
        assert_eq!(
            rows.iter()
                .map(|row| (row.job, row.state.as_str()))
                .collect::<Vec<_>>(),
            [(1, "PENDING"), (4, "PENDING")]
        );
        assert_eq!(rows[1].name, forged);
    }
}
