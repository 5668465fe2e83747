//! Copies the log of one rank to our own stdout, which the service shows. It is separate from the
//! upload of logs, because stdout may block.

use super::periodic::Periodic;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

const MIN_TEE_INTERVAL: Duration = Duration::from_millis(100);
const MAX_TEE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn tee(log: PathBuf) -> io::Result<Periodic> {
    let mut tee = Tee {
        log,
        file: None,
        at: 0,
        pause: MIN_TEE_INTERVAL,
        has_reader: true,
    };
    Periodic::start("echo", move |_| tee.pass())
}

struct Tee {
    log: PathBuf,
    file: Option<File>,
    at: u64,
    pause: Duration,
    /// Whether stdout still has a reader.
    has_reader: bool,
}

impl Tee {
    fn pass(&mut self) -> Duration {
        let copied = if self.has_reader {
            self.copy()
        } else {
            Ok(false)
        };
        self.pause = match copied {
            Ok(true) => MIN_TEE_INTERVAL,
            Ok(false) => (self.pause * 2).min(MAX_TEE_INTERVAL),
            Err(_) => {
                self.has_reader = false;
                MAX_TEE_INTERVAL
            }
        };
        self.pause
    }

    /// Copies new bytes. Returns whether there were any.
    fn copy(&mut self) -> io::Result<bool> {
        if self.file.is_none() {
            self.file = File::open(&self.log).ok();
        }
        let Some(file) = &self.file else {
            return Ok(false);
        };
        if file.metadata()?.len() < self.at {
            // The job has truncated the log: all of it is new.
            self.at = 0;
        }
        let mut buffer = vec![0; 64 << 10];
        let mut is_new = false;
        let mut stdout = io::stdout().lock();
        loop {
            let count = file.read_at(&mut buffer, self.at)?;
            if count == 0 {
                return Ok(is_new);
            }
            stdout.write_all(&buffer[..count])?;
            stdout.flush()?;
            self.at += count as u64;
            is_new = true;
        }
    }
}
