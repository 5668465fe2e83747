//! Files about transfers that are under way: whoever moves data says how far it is, and the stream of
//! the interface tells it to all who watch.

use crate::api::envelope::Progress;
use crate::report::transfer::Direction;
use serde::{Deserialize, Serialize};
use towline_core::time::Moment;

/// The end of the names of these files, in the folder of the transfers' journals. The process that
/// moves the data holds a lock (`flock`) on its file for as long as it does.
pub const STATUS_SUFFIX: &str = ".status";

/// How far a transfer is, as its process last wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStatus {
    /// The path, as it is shown.
    pub path: String,
    pub direction: Direction,
    pub began: Moment,
    pub progress: Progress,
}

/// The text of a file, longer than any before it, so that one write replaces it whole.
pub fn written(status: &TransferStatus) -> Vec<u8> {
    let mut text = serde_json::to_vec(status).unwrap_or_default();
    let length = text.len().next_multiple_of(ROOM_BYTES);
    text.resize(length, b' ');
    text
}

/// Numbers that grow make a text longer by a few bytes: within this room its length stays.
const ROOM_BYTES: usize = 1024;

/// The status in such a file; `None` for a text that is being written.
pub fn read(bytes: &[u8]) -> Option<TransferStatus> {
    serde_json::from_slice(bytes.trim_ascii_end()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_it_was_written_and_keeps_its_length() {
        let mut status = TransferStatus {
            path: "data/voc20 \"ü\"".into(),
            direction: Direction::Up,
            began: Moment(7),
            progress: Progress {
                text: "up".into(),
                files: 0,
                bytes: 0,
                of_files: 2,
                of_bytes: 10,
                is_total_known: false,
            },
        };
        let first = written(&status);
        status.progress.bytes = u64::MAX;
        status.progress.is_total_known = true;
        let second = written(&status);
        assert_eq!(first.len(), second.len());
        assert_eq!(read(&second), Some(status));
        assert_eq!(read(&second[..40]), None);
        assert_eq!(read(b""), None);
    }
}
