//! Where the lines of a log begin. A log may have ten million lines: every thousandth line's offset
//! is kept, and the index goes on where it ended when the log grows.

use super::lines::{self, Window};
use super::scan::Scanner;
use super::search;
use crate::cancel::Cancel;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::{Error, Result};
use towline_wire::api::log::{
    FirstError, From, Lines, LogRef, LogsError, LogsRead, LogsSearch, Matches,
};
use towline_wire::layout::StateFolder;

const DEFAULT_LINES: u32 = 200;
const MAX_LINES: u32 = 5000;
/// How many indexes are kept: those of the logs that were looked at last.
const MAX_KEPT: usize = 64;
/// One offset is kept for so many lines.
pub(super) const LINES_PER_MARK: u64 = 1024;

/// The indexes of logs that were looked at lately.
#[derive(Debug, Default)]
pub struct Indexes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    clock: u64,
    logs: HashMap<LogRef, (u64, Arc<Mutex<Index>>)>,
}

/// The lines of one log, as far as they have been counted.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The file: a log that was replaced is counted anew.
    file: (u64, u64),
    pub(super) scanner: Scanner,
}

impl Indexes {
    /// Lines of a log from a place on.
    pub fn read(&self, state: &StateFolder, ask: &LogsRead) -> Result<Lines> {
        let most = u64::from(ask.lines.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES));
        self.with(state, &ask.log(), |file, index| {
            let total = index.scanner.lines();
            let first = match ask.from {
                From::Line(line) => line.min(total),
                From::Byte(byte) => index.scanner.line_of(file, byte)?,
                From::End(lines) => total.saturating_sub(u64::from(lines.clamp(1, MAX_LINES))),
            };
            let count = match ask.from {
                From::End(_) => total - first,
                _ => most.min(total - first),
            };
            let begin = index.scanner.offset_of(file, first)?;
            let window = Window {
                first,
                begin,
                count,
            };
            lines::read(file, &index.scanner, window)
        })
    }

    /// Calls `act` with the log and its index, which is up to date. A log that is not there yet is
    /// an empty one.
    fn with<T: Default>(
        &self,
        state: &StateFolder,
        log: &LogRef,
        act: impl FnOnce(&File, &Index) -> io::Result<T>,
    ) -> Result<T> {
        with_file(state, log, |file| {
            let index = self.of(log);
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            index.go_on(file)?;
            act(file, &index)
        })
    }

    fn of(&self, log: &LogRef) -> Arc<Mutex<Index>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        if !kept.logs.contains_key(log) && kept.logs.len() >= MAX_KEPT {
            let oldest = kept.logs.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(log, _)| log.clone());
            oldest.map(|log| kept.logs.remove(&log));
        }
        let (used, index) = kept.logs.entry(log.clone()).or_default();
        *used = now;
        Arc::clone(index)
    }
}

/// Where a text is in a log.
pub fn search(state: &StateFolder, ask: &LogsSearch, cancel: &Cancel) -> Result<Matches> {
    let pattern = search::pattern(ask)?;
    with_file(state, &ask.log(), |file| {
        search::all(file, &pattern, ask.limit, cancel)
    })
}

/// The first line of a log that shows an error.
pub fn first_error(state: &StateFolder, ask: &LogsError, cancel: &Cancel) -> Result<FirstError> {
    with_file(state, &ask.log(), |file| {
        let line = search::first_error(file, cancel)?;
        Ok(FirstError { line })
    })
}

/// Calls `act` with a log. A log that is not there yet has nothing.
fn with_file<T: Default>(
    state: &StateFolder,
    log: &LogRef,
    act: impl FnOnce(&File) -> io::Result<T>,
) -> Result<T> {
    let path = super::file(state, log);
    let failed = |error| {
        let text = format!("the log {} cannot be read", path.display());
        Error::from_io(text, error)
    };
    match open(&path).map_err(failed)? {
        Some(file) => act(&file).map_err(failed),
        None => Ok(T::default()),
    }
}

/// A log for reading; `None` if it is not there yet. A link is not followed: the job that writes the
/// log may put one there.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed());
    match options.open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Index {
    fn go_on(&mut self, file: &File) -> io::Result<()> {
        let metadata = file.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        if identity != self.file || metadata.len() < self.scanner.bytes() {
            self.scanner = Scanner::default();
            self.file = identity;
        }
        self.scanner.go_on(file, metadata.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use towline_core::RunId;
    use towline_core::cluster::LogSource;

    struct Home {
        state: StateFolder,
        run: RunId,
        indexes: Indexes,
        _folder: tempfile::TempDir,
    }

    impl Home {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let run = RunId::try_from("job-1-00000000".to_owned()).expect("an id");
            let state = StateFolder::new(folder.path());
            std::fs::create_dir_all(state.run(&run)).expect("a folder");
            Self {
                state,
                run,
                indexes: Indexes::default(),
                _folder: folder,
            }
        }

        fn log(&self) -> std::path::PathBuf {
            self.state.log(&self.run, 1, LogSource::Rank(0))
        }

        fn append(&self, text: &[u8]) {
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).open(self.log());
            file.expect("a log").write_all(text).expect("it is written");
        }

        fn read(&self, from: From, lines: u32) -> Lines {
            let ask = LogsRead {
                run: self.run.clone(),
                attempt: 1,
                source: LogSource::Rank(0),
                from,
                lines: Some(lines),
            };
            self.indexes.read(&self.state, &ask).expect("lines")
        }
    }

    #[test]
    fn a_log_that_is_not_there_has_no_lines() {
        let home = Home::new();
        assert_eq!(home.read(From::Line(0), 10), Lines::default());
    }

    #[test]
    fn every_line_is_found_by_number_by_byte_and_from_the_end() {
        let home = Home::new();
        let texts: Vec<String> = (0..5000).map(|n| format!("line {n}")).collect();
        home.append((texts.join("\n") + "\n").as_bytes());
        let mut offset = 0;
        for (number, text) in texts.iter().enumerate() {
            if number % 97 == 0 {
                let by_line = home.read(From::Line(number as u64), 2);
                assert_eq!(by_line.lines[0], *text);
                assert_eq!((by_line.begin, by_line.total), (offset, 5000));
                let inside = home.read(From::Byte(offset + text.len() as u64), 1);
                assert_eq!((inside.first, inside.begin), (number as u64, offset));
            }
            offset += text.len() as u64 + 1;
        }
        let end = home.read(From::End(3), 1);
        assert_eq!(end.lines, ["line 4997", "line 4998", "line 4999"]);
        assert_eq!((end.first, end.end, end.bytes), (4997, offset, offset));
        assert!(!end.is_open);
        assert!(home.read(From::Line(9999), 5).lines.is_empty());
    }

    #[test]
    fn an_unfinished_line_counts_and_grows() {
        let home = Home::new();
        home.append(b"a\nb");
        let lines = home.read(From::Line(0), 10);
        assert_eq!((lines.total, lines.is_open, lines.end), (2, true, 3));
        home.append(b"c\nd\n");
        let lines = home.read(From::Line(0), 10);
        assert_eq!(lines.lines, ["a", "bc", "d"]);
        assert_eq!((lines.total, lines.is_open), (3, false));
    }

    #[test]
    fn a_log_that_was_cut_is_counted_anew() {
        let home = Home::new();
        home.append(b"a\nb\nc\n");
        assert_eq!(home.read(From::Line(0), 10).total, 3);
        std::fs::write(home.log(), b"x\n").expect("it is written");
        assert_eq!(home.read(From::Line(0), 10).lines, ["x"]);
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut_and_marked() {
        let home = Home::new();
        home.append(&vec![b'x'; 1 << 20]);
        home.append(b"\nshort\n");
        let lines = home.read(From::Line(0), 10);
        assert_eq!(lines.lines.len(), 2);
        assert_eq!(lines.cut, [0]);
        assert_eq!(
            (lines.lines[0].len(), &*lines.lines[1]),
            (64 << 10, "short")
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let home = Home::new();
        home.append(b"\xff\xfe\n");
        assert_eq!(home.read(From::Line(0), 1).lines, ["\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn a_link_is_not_followed() {
        let home = Home::new();
        std::os::unix::fs::symlink("/etc/hostname", home.log()).expect("a link");
        let ask = LogsRead {
            run: home.run.clone(),
            attempt: 1,
            source: LogSource::Rank(0),
            from: From::Line(0),
            lines: None,
        };
        assert!(home.indexes.read(&home.state, &ask).is_err());
    }
}
