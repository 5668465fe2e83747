//! Uploads the logs of one node to the stage, in parts of a fixed size, of which only the last
//! changes. It also handles logs that the job truncates or rewrites.

use super::complain;
use super::periodic::Periodic;
use super::status_file::{ESSENTIAL_WRITE_TIMEOUT, OPTIONAL_WRITE_TIMEOUT, write_whole};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::cluster::LogSource;
use towline_snapshot::digest::Digest;
use towline_wire::crew::{LOG_PART_BYTES, keys};
use towline_wire::log_name::LogName;

const MIN_UPLOAD_INTERVAL: Duration = Duration::from_secs(1);
const MAX_UPLOAD_INTERVAL: Duration = Duration::from_secs(5);
/// A pass that wrote no more than this is followed by the next after the shortest interval.
const SMALL_PASS_BYTES: u64 = 64 << 10;
/// A larger pass is too, if it wrote at most this many bytes for each new one.
const MAX_WRITTEN_PER_NEW_BYTE: u64 = 8;

/// Uploads the logs of `attempt` from `local`, where they grow, below `folder`.
pub(super) fn upload_logs(attempt: u32, local: PathBuf, folder: PathBuf) -> io::Result<Periodic> {
    let mut upload = LogUpload {
        attempt,
        local,
        folder,
        logs: BTreeMap::new(),
        pause: MIN_UPLOAD_INTERVAL,
        buffer: Vec::new(),
        has_complained: false,
    };
    Periodic::start("ship", move |is_last| upload.pass(is_last))
}

struct LogUpload {
    attempt: u32,
    local: PathBuf,
    folder: PathBuf,
    logs: BTreeMap<(u32, u32), Sent>,
    pause: Duration,
    buffer: Vec<u8>,
    has_complained: bool,
}

/// How much of a log has been uploaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sent {
    /// Bytes that are in parts.
    length: u64,
    /// The digest of the last part.
    last: Option<Digest>,
}

/// The result of one pass.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    fresh: u64,
    written: u64,
}

impl LogUpload {
    fn pass(&mut self, is_last: bool) -> Duration {
        let mut load = Load::default();
        match self.all(is_last, &mut load) {
            Ok(()) => self.has_complained = false,
            Err(error) if is_last || !self.has_complained => {
                complain(&format!("logs could not be sent: {error}"));
                self.has_complained = true;
            }
            Err(_) => {}
        }
        let is_worth_it = load.fresh > 0
            && (load.written <= SMALL_PASS_BYTES
                || load.fresh * MAX_WRITTEN_PER_NEW_BYTE >= load.written);
        self.pause = if is_worth_it {
            MIN_UPLOAD_INTERVAL
        } else {
            (self.pause * 2).min(MAX_UPLOAD_INTERVAL)
        };
        self.pause
    }

    /// A log that cannot be uploaded does not stop the others.
    fn all(&mut self, is_last: bool, load: &mut Load) -> io::Result<()> {
        let mut outcome = Ok(());
        for entry in fs::read_dir(&self.local)? {
            let entry = entry?;
            let Some(log) = entry
                .file_name()
                .to_str()
                .and_then(LogName::from_file)
                .filter(|log| log.attempt == self.attempt)
            else {
                continue;
            };
            let key = match log.source {
                LogSource::SetUp(node) => (0, node),
                LogSource::Rank(rank) => (1, rank),
            };
            let parts = self.folder.join(log.folder());
            let sent = self.logs.entry(key).or_default();
            let one = File::open(entry.path())
                .and_then(|file| send(&file, &parts, sent, is_last, &mut self.buffer, load));
            outcome = outcome.and(one);
        }
        outcome
    }
}

/// Updates the parts to the present log. `sent` records the progress even on failure. A log that
/// has not grown is only checked in the last pass.
fn send(
    file: &File,
    parts: &Path,
    sent: &mut Sent,
    is_last: bool,
    buffer: &mut Vec<u8>,
    load: &mut Load,
) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length == sent.length && !is_last {
        return Ok(());
    }
    if length < sent.length || !is_same(file, sent, buffer)? {
        *sent = start_over(parts, sent.length, length)?;
    }
    let mut index = sent.length / LOG_PART_BYTES;
    while sent.length < length {
        let begin = index * LOG_PART_BYTES;
        let count = fill(
            file,
            begin,
            length.min(begin + LOG_PART_BYTES) - begin,
            buffer,
        )?;
        if begin + count <= sent.length {
            // The log shrinks while we read it: the next pass handles that.
            return Ok(());
        }
        // Bytes that the last pass does not upload are lost.
        write_whole(
            &parts.join(keys::part(index)),
            buffer,
            if is_last {
                ESSENTIAL_WRITE_TIMEOUT
            } else {
                OPTIONAL_WRITE_TIMEOUT
            },
        )?;
        load.fresh += begin + count - sent.length;
        load.written += count;
        *sent = Sent {
            length: begin + count,
            last: Some(Digest::of(buffer)),
        };
        index += 1;
    }
    Ok(())
}

/// Whether the uploaded bytes are still in the log. A log may be truncated and grow beyond its old
/// length between two passes.
fn is_same(file: &File, sent: &Sent, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let Some(last) = &sent.last else {
        return Ok(true);
    };
    let begin = (sent.length - 1) / LOG_PART_BYTES * LOG_PART_BYTES;
    fill(file, begin, sent.length - begin, buffer)?;
    Ok(Digest::of(buffer) == *last)
}

/// Starts over because the log is another one, and removes parts beyond its end.
fn start_over(parts: &Path, before: u64, now: u64) -> io::Result<Sent> {
    for index in now.div_ceil(LOG_PART_BYTES).max(1)..before.div_ceil(LOG_PART_BYTES) {
        match fs::remove_file(parts.join(keys::part(index))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if now == 0 {
        write_whole(&parts.join(keys::part(0)), b"", OPTIONAL_WRITE_TIMEOUT)?;
    }
    Ok(Sent::default())
}

/// Reads up to `count` bytes; fewer at the end of the file.
fn fill(file: &File, from: u64, count: u64, buffer: &mut Vec<u8>) -> io::Result<u64> {
    buffer.resize(usize::try_from(count).unwrap_or(usize::MAX), 0);
    let mut at = 0;
    while at < buffer.len() {
        match file.read_at(&mut buffer[at..], from + at as u64) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(at);
    Ok(at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        folder: tempfile::TempDir,
        sent: Sent,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                folder: tempfile::tempdir().expect("a folder"),
                sent: Sent::default(),
            }
        }
        /// Writes the log, uploads it, and returns the content of its parts, with their number.
        fn round(&mut self, bytes: &[u8]) -> (Vec<u8>, usize) {
            let log = self.folder.path().join("log");
            fs::write(&log, bytes).expect("written");
            let parts = self.folder.path().join("parts");
            send(
                &File::open(log).expect("there"),
                &parts,
                &mut self.sent,
                true,
                &mut Vec::new(),
                &mut Load::default(),
            )
            .expect("sent");
            let mut names: Vec<PathBuf> = fs::read_dir(parts)
                .into_iter()
                .flatten()
                .map(|entry| entry.expect("read").path())
                .collect();
            names.sort();
            let whole: Vec<Vec<u8>> = names
                .iter()
                .map(|name| fs::read(name).expect("read"))
                .collect();
            for part in whole.iter().rev().skip(1) {
                assert_eq!(
                    part.len() as u64,
                    LOG_PART_BYTES,
                    "only the last may be short"
                );
            }
            (whole.concat(), names.len())
        }
    }

    fn noise(seed: u8, length: u64) -> Vec<u8> {
        (0..length)
            .map(|at| {
                u8::try_from((at * at / 7 + at / 251 + u64::from(seed)) % 256).expect("a byte")
            })
            .collect()
    }

    #[test]
    fn parts_are_the_log_however_it_grows_and_shrinks() {
        let mut bench = Bench::new();
        let long = noise(1, 3 * LOG_PART_BYTES + 17);
        for length in [
            0,
            1,
            LOG_PART_BYTES - 1,
            LOG_PART_BYTES,
            LOG_PART_BYTES + 1,
            3 * LOG_PART_BYTES,
            3 * LOG_PART_BYTES + 17,
        ] {
            let bytes = &long[..usize::try_from(length).expect("small")];
            assert_eq!(
                bench.round(bytes),
                (
                    bytes.to_vec(),
                    usize::try_from(length.div_ceil(LOG_PART_BYTES)).expect("few")
                ),
                "{length}"
            );
        }
        for (seed, length) in [
            (2, 2 * LOG_PART_BYTES),
            (3, 5),
            (4, 0),
            (5, 9),
            (6, LOG_PART_BYTES),
            (7, 2 * LOG_PART_BYTES + 5),
        ] {
            let bytes = noise(seed, length);
            assert!(
                bench.round(&bytes).0 == bytes,
                "{length} bytes in its place"
            );
        }
    }

    #[test]
    fn a_log_that_was_emptied_and_outgrew_itself_is_sent_whole() {
        let mut bench = Bench::new();
        bench.round(&noise(1, LOG_PART_BYTES + 10));
        let other = noise(9, 2 * LOG_PART_BYTES + 3);
        assert!(bench.round(&other).0 == other);
        let another = noise(3, 2 * LOG_PART_BYTES + 3);
        assert!(bench.round(&another).0 == another, "as long as it was");
    }
}
