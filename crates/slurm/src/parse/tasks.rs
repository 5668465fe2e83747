//! The task numbers of an array: `0-7%3`, `1,3,5-9:2`.

use super::unreadable;
use towline_core::Result;

/// One more than Slurm's own ceiling for `MaxArraySize`; larger numbers are not task numbers.
const MAX_TASK_NUMBER: u32 = 4_000_001;

/// The array tasks that one line stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskSet {
    /// First, last (inclusive) and step of each part.
    ranges: Vec<(u32, u32, u32)>,
    /// `%3`: how many may run at the same time.
    pub at_once: Option<u32>,
    /// The list ends in `...`, because more tasks exist than it names. Happens only if
    /// `SLURM_BITSTR_LEN` was not set.
    pub is_cut: bool,
}

impl TaskSet {
    /// A single task.
    pub fn one(task: u32) -> Self {
        Self {
            ranges: vec![(task, task, 1)],
            ..Self::default()
        }
    }

    /// Reads `0-7%3`, with or without brackets.
    pub fn read(text: &str) -> Result<Self> {
        let wrong = || unreadable("squeue", &format!("`{text}` is not a list of array tasks"));
        let inner = text.trim();
        let inner = inner
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(inner);
        let (list, at_once) = match inner.split_once('%') {
            Some((list, limit)) => (list, Some(limit.parse().map_err(|_| wrong())?)),
            None => (inner, None),
        };
        let mut set = Self {
            at_once,
            ..Self::default()
        };
        for part in list.split(',') {
            if part == "..." {
                set.is_cut = true;
                continue;
            }
            // Cut in the middle of a part: `1-5,8-1...`. The rest of that part is not used.
            if part.ends_with("...") {
                set.is_cut = true;
                continue;
            }
            set.ranges.push(range(part).ok_or_else(wrong)?);
        }
        Ok(set)
    }

    pub fn contains(&self, task: u32) -> bool {
        self.ranges.iter().any(|(first, last, step)| {
            (*first..=*last).contains(&task) && (task - first).is_multiple_of(*step)
        })
    }

    /// All task numbers, in the order of the list.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges
            .iter()
            .flat_map(|(first, last, step)| (*first..=*last).step_by(*step as usize))
    }

    pub fn len(&self) -> usize {
        self.ranges
            .iter()
            .map(|(first, last, step)| ((last - first) / step) as usize + 1)
            .sum()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

/// Task numbers as a list that Slurm reads, without brackets: `1,3,5-9`.
pub fn list(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let parts = sorted.chunk_by(|one, next| one + 1 == *next);
    let words: Vec<String> = parts
        .map(|part| match part {
            [one] => one.to_string(),
            many => format!("{}-{}", many[0], many[many.len() - 1]),
        })
        .collect();
    words.join(",")
}

fn range(part: &str) -> Option<(u32, u32, u32)> {
    let (ends, step) = match part.split_once(':') {
        Some((ends, step)) => (ends, number(step)?),
        None => (part, 1),
    };
    let (first, last) = match ends.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(ends)?, number(ends)?),
    };
    (first <= last && last < MAX_TASK_NUMBER && step > 0).then_some((first, last, step))
}

fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_written_is_read_as_the_same_numbers() {
        assert_eq!(list(&[9, 1, 3, 5, 6, 7, 8, 3]), "1,3,5-9");
        assert_eq!(list(&[]), "");
        let mut numbers = vec![0, 2, 3, 4, 10, 4_000_000];
        let read = TaskSet::read(&list(&numbers)).expect("a list");
        assert_eq!(read.numbers().collect::<Vec<_>>(), numbers);
        numbers.reverse();
        assert_eq!(list(&numbers), "0,2-4,10,4000000");
    }

    fn numbers(text: &str) -> Vec<u32> {
        TaskSet::read(text).expect(text).numbers().collect()
    }

    #[test]
    fn a_compressed_array_is_all_its_tasks() {
        assert_eq!(numbers("0-7%3"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(numbers("1,3,5-9:2"), [1, 3, 5, 7, 9]);
        assert_eq!(numbers("[4]"), [4]);
        let set = TaskSet::read("[2-10:4,20%2]").expect("an array");
        assert_eq!((set.at_once, set.len()), (Some(2), 4));
        assert!(set.contains(6) && set.contains(20) && !set.contains(7) && !set.contains(21));
    }

    #[test]
    fn a_listing_that_was_cut_says_so() {
        for text in ["1-5,...", "1-5,...%2"] {
            let set = TaskSet::read(text).expect(text);
            assert!(set.is_cut && set.contains(5) && set.len() == 5, "{text}");
        }
        assert_eq!(numbers("1-5,8-1..."), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for text in [
            "",
            "N/A",
            "5-3",
            "1:0",
            "1-5:0",
            "-1",
            "1--3",
            "4000001",
            "0-4294967295",
            "1%x",
            "0x1F",
            "+3",
        ] {
            assert!(TaskSet::read(text).is_err(), "{text}");
        }
    }
}
