//! What a supervisor tells of itself: a file, a log that does not grow without end, and whoever is
//! on the line.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use towline_core::Error;
use towline_wire::frame;
use towline_wire::tunnel::{Trouble, TunnelState, TunnelStatus};

/// A log file of more bytes is renamed, and a new one begins.
const MAX_LOG_BYTES: u64 = 256 << 10;
/// Characters of one message that are kept.
const MAX_MESSAGE_CHARS: usize = 4 << 10;
/// A listener that does not read within this time is dropped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Report {
    folder: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    status: TunnelStatus,
    was_open: bool,
    listeners: Vec<UnixStream>,
}

impl Report {
    pub(super) fn new(folder: &Path, port: u16) -> Self {
        let before = TunnelStatus::read(&folder.join("status"));
        let status = TunnelStatus {
            state: TunnelState::Connecting,
            since: towline_host::clock::now(),
            port,
            pid: std::process::id(),
            reconnects: before.as_ref().map_or(0, |status| status.reconnects),
            trouble: None,
        };
        let report = Self {
            folder: folder.to_owned(),
            inside: Mutex::new(Inside {
                status,
                was_open: before.is_some(),
                listeners: Vec::new(),
            }),
        };
        report.write(&mut report.inside());
        report
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a listener how it is, and from now on whenever that changes.
    pub(super) fn listen(&self, listener: UnixStream) {
        let mut inside = self.inside();
        let _ = listener.set_write_timeout(Some(WRITE_TIMEOUT));
        inside.listeners.push(listener);
        let bytes = frame::encode(&inside.status);
        inside
            .listeners
            .retain_mut(|listener| listener.write_all(&bytes).is_ok());
    }

    pub(super) fn open(&self) {
        let mut inside = self.inside();
        inside.status.reconnects += u32::from(inside.was_open);
        inside.was_open = true;
        self.become_state(&mut inside, TunnelState::Open, None);
    }

    pub(super) fn failing(&self, error: &Error) {
        self.become_state(
            &mut self.inside(),
            TunnelState::Failing,
            Some(Trouble::from(error)),
        );
    }

    /// It is tried once more, because somebody asked for it.
    pub(super) fn trying(&self) {
        self.become_state(&mut self.inside(), TunnelState::Connecting, None);
    }

    /// It was lost and is looked for again.
    pub(super) fn connecting(&self, error: &Error) {
        self.become_state(
            &mut self.inside(),
            TunnelState::Connecting,
            Some(Trouble::from(error)),
        );
    }

    fn become_state(&self, inside: &mut Inside, state: TunnelState, trouble: Option<Trouble>) {
        if inside.status.state == state && inside.status.trouble == trouble {
            return;
        }
        if inside.status.state != state {
            inside.status.since = towline_host::clock::now();
        }
        self.log(&match &trouble {
            Some(trouble) => format!("{}: {}", state.word(), trouble.reason),
            None => state.word().to_owned(),
        });
        inside.status.state = state;
        inside.status.trouble = trouble;
        self.write(inside);
    }

    fn write(&self, inside: &mut Inside) {
        let bytes = serde_json::to_vec(&inside.status).unwrap_or_default();
        if let Err(error) = towline_host::once::replace(&self.folder.join("status"), &bytes) {
            self.log(&format!("the status cannot be written: {error}"));
        }
        let bytes = frame::encode(&inside.status);
        inside
            .listeners
            .retain_mut(|listener| listener.write_all(&bytes).is_ok());
    }

    /// A line, or several that a program said.
    pub(super) fn log(&self, text: &str) {
        let path = self.folder.join("log");
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES) {
            let _ = std::fs::rename(&path, self.folder.join("log.old"));
        }
        let opened: std::io::Result<File> = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path);
        if let Ok(mut file) = opened {
            let text: String = text.trim().chars().take(MAX_MESSAGE_CHARS).collect();
            let _ = writeln!(
                file,
                "{} {}",
                towline_host::clock::now(),
                text.replace('\n', "\n    ")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_listeners_hear_and_the_log_stays_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let report = Report::new(folder.path(), 22222);
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        report.listen(theirs);
        report.open();
        report.failing(&Error::unreachable("away"));
        report.open();
        let mut buffer = frame::FrameBuffer::default();
        let mut next = || {
            frame::read::<TunnelStatus>(&mut ours, &mut buffer)
                .expect("a frame")
                .expect("a status")
        };
        let heard = [next(), next(), next(), next()];
        assert_eq!(
            heard.each_ref().map(|status| status.state.word()),
            ["connecting", "open", "failing", "open"]
        );
        assert_eq!(
            heard[2]
                .trouble
                .as_ref()
                .map(|trouble| trouble.reason.as_str()),
            Some("away")
        );
        assert_eq!((heard[1].reconnects, heard[3].reconnects), (0, 1));
        assert_eq!(
            TunnelStatus::read(&folder.path().join("status")),
            Some(heard[3].clone())
        );
        for _ in 0..200 {
            report.log(&"x".repeat(10_000));
        }
        let size: u64 = std::fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.metadata().expect("there").len())
            .sum();
        assert!(size < 3 * MAX_LOG_BYTES, "{size}");
    }
}
