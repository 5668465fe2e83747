//! How a tunnel is doing: its status file, a log of bounded size, and the connected listeners.

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
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
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
            shared: Mutex::new(Shared {
                status,
                was_open: before.is_some(),
                listeners: Vec::new(),
            }),
        };
        report.write(&mut report.shared());
        report
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the status to a listener, now and whenever it changes.
    pub(super) fn listen(&self, listener: UnixStream) {
        let mut shared = self.shared();
        let _ = listener.set_write_timeout(Some(WRITE_TIMEOUT));
        shared.listeners.push(listener);
        let bytes = frame::encode(&shared.status);
        shared
            .listeners
            .retain_mut(|listener| listener.write_all(&bytes).is_ok());
    }

    pub(super) fn open(&self) {
        let mut shared = self.shared();
        shared.status.reconnects += u32::from(shared.was_open);
        shared.was_open = true;
        self.set_state(&mut shared, TunnelState::Open, None);
    }

    pub(super) fn failing(&self, error: &Error) {
        self.set_state(
            &mut self.shared(),
            TunnelState::Failing,
            Some(Trouble::from(error)),
        );
    }

    /// The next try begins at once, because a user asked for it.
    pub(super) fn trying(&self) {
        self.set_state(&mut self.shared(), TunnelState::Connecting, None);
    }

    /// The tunnel was lost, and a new connection is being made.
    pub(super) fn connecting(&self, error: &Error) {
        self.set_state(
            &mut self.shared(),
            TunnelState::Connecting,
            Some(Trouble::from(error)),
        );
    }

    fn set_state(&self, shared: &mut Shared, state: TunnelState, trouble: Option<Trouble>) {
        if shared.status.state == state && shared.status.trouble == trouble {
            return;
        }
        if shared.status.state != state {
            shared.status.since = towline_host::clock::now();
        }
        self.log(&match &trouble {
            Some(trouble) => format!("{}: {}", state.word(), trouble.reason),
            None => state.word().to_owned(),
        });
        shared.status.state = state;
        shared.status.trouble = trouble;
        self.write(shared);
    }

    fn write(&self, shared: &mut Shared) {
        let bytes = serde_json::to_vec(&shared.status).unwrap_or_default();
        if let Err(error) = towline_host::once::replace(&self.folder.join("status"), &bytes) {
            self.log(&format!("the status cannot be written: {error}"));
        }
        let bytes = frame::encode(&shared.status);
        shared
            .listeners
            .retain_mut(|listener| listener.write_all(&bytes).is_ok());
    }

    /// Writes a message of one or more lines to the log.
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
    fn the_file_says_what_listeners_receive_and_the_log_stays_small() {
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
        let received = [next(), next(), next(), next()];
        assert_eq!(
            received.each_ref().map(|status| status.state.word()),
            ["connecting", "open", "failing", "open"]
        );
        assert_eq!(
            received[2]
                .trouble
                .as_ref()
                .map(|trouble| trouble.reason.as_str()),
            Some("away")
        );
        assert_eq!((received[1].reconnects, received[3].reconnects), (0, 1));
        assert_eq!(
            TunnelStatus::read(&folder.path().join("status")),
            Some(received[3].clone())
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
