//! The journal of a runner: one JSON record per line, appended and synced. The journal, not the
//! history, is the authority on whether an attempt was begun and how it ended.

use serde::{Deserialize, Serialize};
use towline_core::RunId;
use towline_core::reason::Ending;
use towline_core::time::Moment;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum JournalRecord {
    /// Synced before any process of the attempt runs: from now on it was begun.
    Claim {
        run: RunId,
        attempt: u32,
        at: Moment,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gpus: Vec<u32>,
    },
    /// The processes, with their start times in clock ticks, because a pid alone may be reused.
    Started {
        run: RunId,
        attempt: u32,
        at: Moment,
        processes: Vec<(i32, u64)>,
    },
    Held {
        run: RunId,
        attempt: u32,
        until: Moment,
        ending: Ending,
    },
    /// Synced before the daemon is told.
    End {
        run: RunId,
        attempt: u32,
        at: Moment,
        ending: Ending,
    },
}

impl JournalRecord {
    pub const fn attempt(&self) -> (&RunId, u32) {
        match self {
            Self::Claim { run, attempt, .. }
            | Self::Started { run, attempt, .. }
            | Self::Held { run, attempt, .. }
            | Self::End { run, attempt, .. } => (run, *attempt),
        }
    }
}

/// Reads all complete lines. A torn last line was never acted upon and is left out.
pub fn parse(bytes: &[u8]) -> Vec<JournalRecord> {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(&[][..], |end| &bytes[..=end]);
    whole
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

pub fn line(record: &JournalRecord) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("a record serialises");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_tail_is_left_out_at_every_byte() {
        let run = RunId::new("x", 1, 2);
        let claim = JournalRecord::Claim {
            run: run.clone(),
            attempt: 1,
            at: Moment(5),
            gpus: vec![3],
        };
        let end = JournalRecord::End {
            run,
            attempt: 1,
            at: Moment(6),
            ending: Ending::success(),
        };
        let first = line(&claim);
        let bytes = [first.clone(), line(&end)].concat();
        for cut in 0..bytes.len() {
            let expected: &[JournalRecord] = if cut < first.len() {
                &[]
            } else {
                std::slice::from_ref(&claim)
            };
            assert_eq!(parse(&bytes[..cut]), expected, "cut at {cut}");
        }
        assert_eq!(parse(&bytes), [claim, end]);
    }
}
