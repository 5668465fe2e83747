//! Files on the far host, with tools that every machine has.

use super::slots::SessionLength;
use super::{Host, START_TIMEOUT};
use crate::random::token;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_core::transport::Session;
use towline_core::{Error, Result};

// A missing home is an error, so that no file lands elsewhere. Neither script has a character that
// some login shell would change within single quotes.

/// A random token follows the bytes. A connection that is cut leaves a file without the token,
/// which is removed; so the size need not be known before. `dd` cuts the token off and syncs the
/// file before it gets its name. SIGPIPE is ignored because nobody may be left to read the error.
const PUT_SCRIPT: &str = r#"case $1 in ./*) cd || exit 1;; esac;
umask 077; trap "" PIPE; d=${1%/*}/; t=$d.tow-$2;
if [ -d "$1" ]; then echo "a folder is in the way" >&2; exit 1; fi;
mkdir -p "$d" || exit 1;
if cat > "$t"; then
if [ "$(tail -c 32 "$t")" = "$3" ]; then
if e=$(dd if=/dev/null of="$t" bs=1 count=0 seek=$(($(wc -c < "$t") - 32)) conv=fsync 2>&1); then
chmod "$4" "$t" && mv -f "$t" "$1" && exit 0;
else echo "$e" >&2; fi;
else echo "not all bytes arrived" >&2; fi; fi;
rm -f "$t"; exit 1"#;

/// A file is missing only if `ls` says so. A folder that cannot be searched is an error.
const GET_SCRIPT: &str = r#"case $1 in ./*) cd || exit 65;; esac;
if [ -e "$1" ]; then :; else
e=$(LC_ALL=C ls -dL "$1" 2>&1 >/dev/null) && e="it comes and goes";
case $e in *": No such file or directory" | *": Not a directory") exit 66;; esac;
echo "$e" >&2; exit 65; fi;
if [ -d "$1" ]; then echo "it is a folder" >&2; exit 65; fi;
exec < "$1" || exit 65; tail -c "+$2" | head -c "$3""#;

/// [`GET_SCRIPT`] exits with this code when there is no such file.
const MISSING_EXIT_CODE: i32 = 66;

/// How long reading one part of a file may take.
const READ_TIMEOUT: Duration = Duration::from_secs(600);

/// A path below the home that no tool takes for an option.
fn plain(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("./{path}")
    }
}

impl Host {
    pub(super) fn put(self: &Arc<Self>, path: &str, bytes: &mut dyn Read, mode: u32) -> Result<()> {
        let (script, path, suffix, end, mode) = (
            PUT_SCRIPT.replace('\n', " "),
            plain(path),
            token()?,
            token()?,
            format!("{:o}", mode & 0o7777),
        );
        let argv = ["/bin/sh", "-c", &script, "tow", &path, &suffix, &end, &mode];
        let started = self.start(&argv, SessionLength::Short, Instant::now() + START_TIMEOUT)?;
        let mut call = started.ok_or_else(|| self.timed_out(&["put", &path], START_TIMEOUT))?;
        if let Some(mut input) = call.input() {
            match send(bytes, &mut *input) {
                // The script stopped reading; its stderr says why.
                Ok(false) => {}
                Ok(true) => drop(input.write_all(end.as_bytes())),
                Err(error) => {
                    call.hang_up();
                    return Err(Error::from_io(
                        format!("what goes to {path} on `{}` cannot be read", self.name),
                        error,
                    ));
                }
            }
        }
        let (code, stderr) = call.end()?;
        if code == 0 {
            Ok(())
        } else {
            Err(self.failed("written", &path, &stderr))
        }
    }

    pub(super) fn get(self: &Arc<Self>, path: &str, range: &Range<u64>) -> Result<Option<Vec<u8>>> {
        let most = i64::MAX.unsigned_abs();
        let (from, length) = (
            range.start.saturating_add(1).min(most).to_string(),
            range.end.saturating_sub(range.start).min(most).to_string(),
        );
        let (script, path) = (GET_SCRIPT.replace('\n', " "), plain(path));
        let argv = ["/bin/sh", "-c", &script, "tow", &path, &from, &length];
        let timed_out = || self.timed_out(&["get", &path], READ_TIMEOUT);
        let ran = self
            .start(&argv, SessionLength::Short, Instant::now() + READ_TIMEOUT)?
            .ok_or_else(timed_out)?
            .finish(&[])?
            .ok_or_else(timed_out)?;
        match ran.code {
            0 => Ok(Some(ran.out)),
            MISSING_EXIT_CODE => Ok(None),
            _ => Err(self.failed("read", &path, &ran.err)),
        }
    }

    fn failed(&self, what: &str, path: &str, stderr: &[u8]) -> Error {
        let stderr = String::from_utf8_lossy(stderr);
        Error::refused(format!(
            "{} cannot be {what} on `{}`: {}",
            path.trim_start_matches("./"),
            self.name,
            super::failure::main_line(&stderr)
        ))
    }
}

/// Copies all bytes; `false` if the reader stopped. Errors are those of `from`.
fn send(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<bool> {
    let mut piece = vec![0; 128 * 1024];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                if to.write_all(&piece[..count]).is_err() {
                    return Ok(false);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
