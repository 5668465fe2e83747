//! The runner's connection to the daemon. The daemon may exit at any time; a later one connects
//! again.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::StateFolder;
use towline_wire::runner::{FromRunner, ToRunner};

#[derive(Debug)]
pub(crate) struct Control {
    stream: UnixStream,
    buffer: FrameBuffer,
}

impl Control {
    pub(crate) fn from_stdin() -> io::Result<Self> {
        let stream = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
        Self::new(stream)
    }

    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        Ok(Self {
            stream,
            buffer: FrameBuffer::default(),
        })
    }

    pub(crate) fn send(&mut self, message: &FromRunner) -> io::Result<()> {
        self.stream.write_all(&frame::encode(message))
    }

    /// A message that has arrived completely.
    pub(crate) fn waiting(&mut self) -> io::Result<Option<ToRunner>> {
        self.buffer.next_frame()
    }

    /// Reads once, after a poll. `false` at the end of the stream.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 << 10];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.buffer.push(&chunk[..count]);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A runner that exits starts the daemon if it is gone, so that the queue goes on. If a daemon
/// lives, the new one exits at once.
pub(crate) fn start_daemon_if_gone() {
    // The working folder is `<state>/runners`.
    let state = StateFolder::new(
        std::env::current_dir()
            .ok()
            .and_then(|folder| folder.parent().map(Path::to_owned))
            .unwrap_or_default(),
    );
    if !matches!(towline_host::lock::is_held(&state.daemon_lock()), Ok(false)) {
        return;
    }
    let _ = towline_host::daemon::command(state.root()).spawn();
}
