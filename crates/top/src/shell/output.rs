//! What is written to the terminal. Each frame goes out in one piece; what a panic left unwritten is
//! dropped, because it would be drawn over the user's own screen.

use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

#[derive(Debug)]
pub(super) struct Output {
    terminal: File,
    frame: Vec<u8>,
}

impl Output {
    pub(super) fn new() -> io::Result<Self> {
        let terminal = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            terminal: terminal.into(),
            frame: Vec::new(),
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        let written = write_all(&self.terminal, &frame);
        self.frame = frame;
        self.frame.clear();
        written
    }
}

/// Writes to the terminal itself, also if another program made it non-blocking.
pub(super) fn write_all(mut terminal: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match terminal.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut ready = [PollFd::from_borrowed_fd(terminal.as_fd(), PollFlags::OUT)];
                let _ = poll(&mut ready, None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
