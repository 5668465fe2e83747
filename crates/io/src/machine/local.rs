//! This machine as a transport: for tests, and for a cluster whose login host it is.

use super::relay::{Relay, RemoteEnd};
use super::running::Running;
use super::{check, deadline, is_missing, shown};
use crate::random::token;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use towline_core::transport::{Forward, Login, Ran, Session, Transport};
use towline_core::{Error, Result};

#[derive(Debug, Clone)]
pub struct LocalTransport {
    home: PathBuf,
}

impl LocalTransport {
    /// Commands start in `home`, and paths that do not begin with `/` are below it.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    fn start(&self, argv: &[&str]) -> Result<Result<Running, Ran>> {
        check(argv)?;
        match Running::start(
            Command::new(argv[0])
                .args(&argv[1..])
                .current_dir(&self.home),
        ) {
            Ok(running) => Ok(Ok(running)),
            // The codes of a shell, as on every other machine.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) && self.home.is_dir() =>
            {
                let code = if is_missing(argv[0].as_ref(), &error) {
                    127
                } else {
                    126
                };
                Ok(Err(Ran {
                    code,
                    out: Vec::new(),
                    err: format!("{}: {error}\n", argv[0]).into_bytes(),
                }))
            }
            Err(error) => Err(Error::from_io(
                format!("`{}` cannot be started in {}", argv[0], self.home.display()),
                error,
            )),
        }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }
}

fn without_ssh() -> Error {
    Error::unsupported("this machine is reached without ssh")
}

impl Transport for LocalTransport {
    fn place(&self) -> &'static str {
        "this machine"
    }

    fn is_this_machine(&self) -> bool {
        true
    }

    fn connect(&self, _: bool) -> Result<()> {
        Ok(())
    }

    fn run(&self, argv: &[&str], input: &[u8], limit: Duration) -> Result<Ran> {
        let mut running = match self.start(argv)? {
            Ok(running) => running,
            Err(ran) => return Ok(ran),
        };
        match running.finish(input, deadline(limit)) {
            Ok(Some(ran)) => Ok(ran),
            Ok(None) => Err(Error::unreachable(format!(
                "`{}` did not end within {limit:?}; it was killed",
                shown(argv)
            ))),
            Err(error) => Err(Error::unreachable(format!(
                "the end of `{}` was not seen",
                shown(argv)
            ))
            .source_error(error)),
        }
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Session>> {
        match self.start(argv)? {
            Ok(running) => Ok(Box::new(LocalSession(running))),
            Err(ran) => Ok(Box::new(NoSession(ran))),
        }
    }

    fn put(&self, path: &str, bytes: &mut dyn Read, mode: u32) -> Result<()> {
        let path = self.file(path);
        let failed = |error: io::Error| {
            Error::from_io(format!("{} cannot be written", path.display()), error)
        };
        if path.is_dir() {
            return Err(Error::conflict(format!(
                "{} cannot be written: a folder is in the way",
                path.display()
            )));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
        let part = folder.join(format!(".tow-{}", token()?));
        write(&part, bytes, mode)
            .and_then(|()| fs::rename(&part, &path))
            .and_then(|()| File::open(folder)?.sync_all())
            .map_err(|error| {
                let _ = fs::remove_file(&part);
                failed(error)
            })
    }

    fn get(&self, path: &str, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        let path = self.file(path);
        match read(&path, &range) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(Error::from_io(
                format!("{} cannot be read", path.display()),
                error,
            )),
        }
    }

    fn forward(&self, host: &str, port: u16) -> Result<Box<dyn Forward>> {
        let host = host.to_owned();
        let dial = move || {
            let failed = |error: io::Error| {
                Error::unreachable(format!("{host} port {port}")).source_error(error)
            };
            let far = TcpStream::connect((host.as_str(), port)).map_err(failed)?;
            let _ = far.set_nodelay(true);
            let (from, end) = (
                far.try_clone().map_err(failed)?,
                far.try_clone().map_err(failed)?,
            );
            let end = move || drop(end.shutdown(Shutdown::Both));
            Ok(RemoteEnd {
                from: Box::new(from),
                to: Box::new(ToPeer(far)),
                is_cut: Box::new(|| false),
                end: Box::new(end),
            })
        };
        Ok(Box::new(Relay::start(Box::new(dial))?))
    }

    fn interactive(&self, argv: &[&str], _: bool) -> Result<Vec<OsString>> {
        Ok(argv.iter().map(Into::into).collect())
    }

    fn proxy(&self, _: &str, _: u16) -> Result<Vec<OsString>> {
        Err(without_ssh())
    }

    fn login(&self) -> Result<Login> {
        Err(without_ssh())
    }

    fn close(&self) {}
}

/// A new file with all its bytes safe on the disk.
fn write(path: &Path, bytes: &mut dyn Read, mode: u32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?);
    io::copy(bytes, &mut file)?;
    // The umask does not apply here.
    file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
    file.sync_all()
}

fn read(path: &Path, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(range.start.min(i64::MAX.unsigned_abs())))?;
    file.take(range.end.saturating_sub(range.start))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes to a peer. When it is dropped, the peer learns that nothing more comes.
struct ToPeer(TcpStream);

impl Write for ToPeer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for ToPeer {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

struct LocalSession(Running);

impl Session for LocalSession {
    fn input(&mut self) -> Option<Box<dyn Write + Send>> {
        self.0.input()
    }
    fn output(&mut self) -> Option<Box<dyn Read + Send>> {
        self.0.output()
    }
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr().so_far()).into_owned()
    }
    fn wait(&mut self) -> Result<i32> {
        let ended = self.0.wait(None).map_err(|error| {
            Error::unreachable("the end of a program was not seen").source_error(error)
        })?;
        Ok(ended.unwrap_or_default())
    }
    fn hang_up(&mut self) {
        self.0.kill();
    }
}

/// The session of a missing program, which ends as a shell would end it.
struct NoSession(Ran);

impl Session for NoSession {
    fn input(&mut self) -> Option<Box<dyn Write + Send>> {
        Some(Box::new(io::sink()))
    }
    fn output(&mut self) -> Option<Box<dyn Read + Send>> {
        Some(Box::new(io::empty()))
    }
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.0.err).into_owned()
    }
    fn wait(&mut self) -> Result<i32> {
        Ok(self.0.code)
    }
    fn hang_up(&mut self) {}
}
