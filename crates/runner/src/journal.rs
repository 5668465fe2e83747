//! Writing and reading a runner's journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use towline_core::RunId;
use towline_core::reason::Ending;
use towline_core::time::Moment;
use towline_wire::journal::{JournalRecord, line, parse};

/// The size of the records of one attempt, at most: its claim, its processes, its end.
const MAX_ATTEMPT_RECORD_BYTES: u64 = 16 << 10;
/// How long to wait before writing an end again on a full disk.
const DISK_FULL_PAUSE: Duration = Duration::from_millis(250);

/// An open journal, locked for as long as any copy of its descriptor lives.
#[derive(Debug)]
pub struct Journal(File);

impl Journal {
    /// Makes a new journal and locks it. The name must be new.
    pub fn create(path: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .append(true)
            .read(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        if !towline_host::lock::try_lock(&file)? {
            return Err(io::Error::other("a new journal is locked already"));
        }
        Ok(file)
    }

    /// The journal that was passed as an open descriptor.
    pub fn from_descriptor(descriptor: impl AsFd) -> io::Result<Self> {
        Ok(Self(File::from(rustix::io::fcntl_dupfd_cloexec(
            descriptor, 3,
        )?)))
    }

    /// Reserves space for the records of one attempt, so that its end can be written on a disk that
    /// has become full. A file system that does not support this is ignored.
    pub fn reserve(&self) -> io::Result<()> {
        let length = self.0.metadata()?.len();
        match rustix::fs::fallocate(
            &self.0,
            rustix::fs::FallocateFlags::KEEP_SIZE,
            length,
            MAX_ATTEMPT_RECORD_BYTES,
        ) {
            Err(error) if towline_host::filesystem::is_no_room(&error.into()) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Appends in one write; with `sync`, returns only when it is on disk. On error nothing of it
    /// is written.
    pub fn append(&mut self, record: &JournalRecord, sync: bool) -> io::Result<()> {
        self.append_bytes(&line(record), sync)
    }

    fn append_bytes(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        let length = self.0.metadata()?.len();
        let written = self
            .0
            .write_all(bytes)
            .and_then(|()| if sync { self.0.sync_data() } else { Ok(()) });
        if written.is_err() {
            let _ = self.0.set_len(length);
        }
        written
    }

    /// Appends and syncs how an attempt ended. On a full disk it waits for space, because an end
    /// that is known must not be forgotten. A line that a killed writer left unfinished is closed
    /// first.
    pub fn append_end(&mut self, record: &JournalRecord) -> io::Result<()> {
        let bytes = [b"\n".as_slice(), &line(record)].concat();
        loop {
            match self.append_bytes(&bytes, true) {
                Err(error) if towline_host::filesystem::is_no_room(&error) => {
                    std::thread::sleep(DISK_FULL_PAUSE);
                }
                other => return other,
            }
        }
    }
}

/// The records of one attempt in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    pub claimed: Option<Moment>,
    pub started: Option<Moment>,
    pub processes: Vec<(i32, u64)>,
    pub held: Option<(Moment, Ending)>,
    pub end: Option<(Moment, Ending)>,
}

/// Reads the journal at `path`; a missing one is empty.
pub fn read(path: &Path) -> io::Result<Vec<JournalRecord>> {
    match fs::read(path) {
        Ok(bytes) => Ok(parse(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The last records of a journal: enough for its present attempt, however long the journal has
/// grown.
pub fn read_end(path: &Path) -> io::Result<Vec<JournalRecord>> {
    use std::io::{Read, Seek, SeekFrom};
    const JOURNAL_END_BYTES: u64 = 64 << 10;
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(JOURNAL_END_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // The first line may be incomplete; then it does not parse and is left out.
    Ok(parse(&bytes))
}

/// The records of attempt `attempt` of `run`.
pub fn trace(records: &[JournalRecord], run: &RunId, attempt: u32) -> Trace {
    let mut trace = Trace::default();
    for record in records
        .iter()
        .filter(|record| record.attempt() == (run, attempt))
    {
        match record {
            JournalRecord::Claim { at, .. } => trace.claimed = Some(*at),
            JournalRecord::Started { at, processes, .. } => {
                trace.started = Some(*at);
                trace.processes.extend(processes);
            }
            JournalRecord::Held { until, ending, .. } => {
                trace.held = Some((*until, ending.clone()));
            }
            JournalRecord::End { at, ending, .. } => trace.end = Some((*at, ending.clone())),
        }
    }
    trace
}

/// The attempt that was claimed last and has no end.
pub fn open_attempt(records: &[JournalRecord]) -> Option<(RunId, u32)> {
    match records.last()? {
        JournalRecord::End { .. } => None,
        record => {
            let (run, attempt) = record.attempt();
            Some((run.clone(), attempt))
        }
    }
}
