//! Slurm's names for jobs: `123`, `123_4`, `123_[5-7%3]`, `123+1`, and steps such as `123_4.batch`.

use super::tasks::TaskSet;
use std::fmt;

/// A parsed id. `Display` writes it in the form that `scancel` and `sacct -j` accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobId {
    /// The job's own number, or its array's.
    pub job: u32,
    pub part: Part,
    pub step: Option<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Whole,
    Task(u32),
    /// Tasks that have not started and share one line.
    Tasks(TaskSet),
    /// A component of a heterogeneous job.
    Component(u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The batch script.
    Batch,
    /// The step for processes that the site starts around the job.
    Extern,
    Interactive,
    Number(u32),
    Other(String),
}

impl JobId {
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (job, step) = match text.split_once('.') {
            Some((job, step)) => (job, Some(Step::read(step)?)),
            None => (text, None),
        };
        let (job, part) = if let Some((job, task)) = job.split_once('_') {
            let part = if task.starts_with('[') {
                Part::Tasks(TaskSet::read(task).ok()?)
            } else {
                Part::Task(number(task)?)
            };
            (job, part)
        } else if let Some((job, component)) = job.split_once('+') {
            (job, Part::Component(number(component)?))
        } else {
            (job, Part::Whole)
        };
        Some(Self {
            job: number(job)?,
            part,
            step,
        })
    }

    /// Whether this id includes `other`: a pending array includes each of its tasks.
    pub fn covers(&self, other: &Self) -> bool {
        self.job == other.job
            && self.step == other.step
            && match (&self.part, &other.part) {
                (Part::Tasks(tasks), Part::Task(task)) => tasks.contains(*task),
                (mine, theirs) => mine == theirs,
            }
    }
}

impl Step {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "" => return None,
            "batch" => Self::Batch,
            "extern" => Self::Extern,
            "interactive" => Self::Interactive,
            other => number(other).map_or_else(|| Self::Other(other.to_owned()), Self::Number),
        })
    }
}

fn number(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.job)?;
        match &self.part {
            Part::Whole => {}
            Part::Task(task) => write!(f, "_{task}")?,
            Part::Component(component) => write!(f, "+{component}")?,
            Part::Tasks(tasks) => {
                let numbers: Vec<String> = tasks.numbers().map(|task| task.to_string()).collect();
                write!(f, "_[{}]", numbers.join(","))?;
            }
        }
        match &self.step {
            None => Ok(()),
            Some(Step::Batch) => f.write_str(".batch"),
            Some(Step::Extern) => f.write_str(".extern"),
            Some(Step::Interactive) => f.write_str(".interactive"),
            Some(Step::Number(number)) => write!(f, ".{number}"),
            Some(Step::Other(name)) => write!(f, ".{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_said_again() {
        for text in [
            "123",
            "123_4",
            "123+1",
            "123.batch",
            "123_4.0",
            "7.extern",
            "7.interactive",
            "123_[5,6,7]",
            "7.TBD",
        ] {
            assert_eq!(JobId::read(text).expect(text).to_string(), text);
        }
        for text in [
            "",
            "x",
            "12a",
            "_3",
            "12_",
            "12_x",
            "12_[",
            "1.",
            "99999999999",
            "-4",
            "1+",
        ] {
            assert_eq!(JobId::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_pending_array_covers_its_tasks() {
        let array = JobId::read("5_[3-7%3]").expect("an array");
        let covers = |other: &str| array.covers(&JobId::read(other).expect(other));
        assert!(covers("5_3") && covers("5_7"));
        assert!(!covers("5_8") && !covers("6_3") && !covers("5") && !covers("5_3.batch"));
    }
}
