//! One line in the user's own `~/.ssh/config` that makes our aliases known to ssh and to editors.
//! Only `tow tunnel include` adds and removes it; every other byte of that file stays as it is.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};

/// The configuration of ssh in a home.
pub(crate) fn config(home: &Path) -> PathBuf {
    home.join(".ssh/config")
}

/// The line that includes `ours`, with its line end.
pub(crate) fn line(ours: &Path) -> Result<String> {
    Ok(format!(
        "Include {}\n",
        crate::reach::tunnels::quoted(ours)?
    ))
}

/// The number of the line that includes `ours` for all hosts, in any spelling.
pub(crate) fn find(text: &[u8], home: &Path, ours: &Path) -> Option<usize> {
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let (key, rest) = keyword(&line);
        match key.as_str() {
            // The lines below apply to some hosts only.
            "host" if words(rest) != ["*"] => return None,
            "match" if words(rest) != ["all"] => return None,
            "include" if words(rest).iter().any(|word| leads_to(word, home, ours)) => {
                return Some(at + 1);
            }
            _ => {}
        }
    }
    None
}

fn keyword(line: &str) -> (String, &str) {
    let line = line.trim();
    let end = line
        .find(|sign: char| sign.is_whitespace() || sign == '=')
        .unwrap_or(line.len());
    let rest = line[end..].trim_start();
    (
        line[..end].to_ascii_lowercase(),
        rest.strip_prefix('=').unwrap_or(rest).trim_start(),
    )
}

/// The arguments of a line, which may be quoted; a comment ends them.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(inside) => inside.split_once('"').unwrap_or((inside, "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        found.push(word.to_owned());
        rest = after.trim_start();
    }
    found
}

fn leads_to(word: &str, home: &Path, ours: &Path) -> bool {
    let path = match word.strip_prefix("~/") {
        Some(below) => home.join(below),
        // A relative path is below `~/.ssh`.
        None => home.join(".ssh").join(word),
    };
    path == ours
        || path
            .to_str()
            .zip(ours.to_str())
            .is_some_and(|(pattern, path)| matches(pattern.as_bytes(), path.as_bytes()))
}

/// Matches `*` and `?` as a shell does; neither matches `/`.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            let most = path
                .iter()
                .position(|byte| *byte == b'/')
                .unwrap_or(path.len());
            (0..=most).any(|taken| matches(rest, &path[taken..]))
        }
        (Some((b'?', rest)), Some((byte, left))) => *byte != b'/' && matches(rest, left),
        (Some((wanted, rest)), Some((byte, left))) => wanted == byte && matches(rest, left),
        _ => false,
    }
}

/// The text with our line at the top.
fn with_line(text: &[u8], line: &str) -> Vec<u8> {
    [line.as_bytes(), text].concat()
}

/// The text without our line, spelled exactly as we write it; `None` if it is not there.
fn without_line(text: &[u8], line: &str) -> Option<Vec<u8>> {
    let line = line.as_bytes();
    let is_begin = |at: usize| at == 0 || text[at - 1] == b'\n';
    let at = (0..text.len())
        .filter(|at| is_begin(*at))
        .find(|at| text[*at..].starts_with(line))?;
    Some([&text[..at], &text[at + line.len()..]].concat())
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::from_io(format!("{path} cannot be changed; it is unchanged"), error)
}

/// The file itself, behind any links, and its content; `None` if there is no file.
fn read(path: &Path) -> Result<Option<(PathBuf, Vec<u8>)>> {
    let failed = unusable(path);
    let file = match path.canonicalize() {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() =>
        {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::refused(format!(
                "{} is a link to a file that does not exist",
                path.display()
            ))
            .hint("make that file, or remove the link"));
        }
        found => found.map_err(&failed)?,
    };
    if !file.is_file() {
        return Err(Error::conflict(format!("{} is not a file", file.display())));
    }
    let bytes = fs::read(&file).map_err(&failed)?;
    Ok(Some((file, bytes)))
}

/// Replaces a file atomically, and keeps its mode and owner.
fn replace(file: &Path, before: &[u8], bytes: &[u8]) -> Result<()> {
    let failed = unusable(file);
    let meta = fs::metadata(file).map_err(&failed)?;
    let part = file.with_file_name(format!(
        ".{}.tow-{}",
        file.file_name().unwrap_or_default().to_string_lossy(),
        std::process::id()
    ));
    let written = (|| {
        let mut new = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        new.write_all(bytes)?;
        let _ = std::os::unix::fs::fchown(&new, Some(meta.uid()), Some(meta.gid()));
        new.set_permissions(fs::Permissions::from_mode(
            meta.permissions().mode() & 0o7777,
        ))?;
        new.sync_all()?;
        if fs::read(file)? != before {
            return Err(io::Error::other("somebody else is changing it"));
        }
        fs::rename(&part, file)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        failed(error)
    })
}

/// The outcome of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The line was added at the top.
    Added,
    /// The line was there already, at this number.
    WasThere(usize),
    Removed,
    /// The file has no line of ours.
    WasNotThere,
}

/// Adds the line, unless it is there. `note` records that we created the file.
pub(crate) fn add(home: &Path, ours: &Path, note: &Path) -> Result<Done> {
    let path = config(home);
    let line = line(ours)?;
    if let Some((file, bytes)) = read(&path)? {
        return match find(&bytes, home, ours) {
            Some(at) => Ok(Done::WasThere(at)),
            None => replace(&file, &bytes, &with_line(&bytes, &line)).map(|()| Done::Added),
        };
    }
    let failed = unusable(&path);
    let folder = home.join(".ssh");
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    towline_host::once::replace(note, path.as_os_str().as_encoded_bytes()).map_err(&failed)?;
    if towline_host::once::create(&path, line.as_bytes()).map_err(&failed)? {
        Ok(Done::Added)
    } else {
        add(home, ours, note)
    }
}

/// Removes the line, and the file too if we created it and nothing else is in it.
pub(crate) fn remove(home: &Path, ours: &Path, note: &Path) -> Result<Done> {
    let path = config(home);
    let Some((file, bytes)) = read(&path)? else {
        return Ok(Done::WasNotThere);
    };
    let Some(left) = without_line(&bytes, &line(ours)?) else {
        return match find(&bytes, home, ours) {
            Some(at) => Err(Error::refused(format!(
                "{}, line {at}, includes {} in a spelling that is not ours",
                path.display(),
                ours.display()
            ))
            .hint("remove that line by hand")),
            None => Ok(Done::WasNotThere),
        };
    };
    let is_ours = fs::read(note).is_ok_and(|known| known == path.as_os_str().as_encoded_bytes())
        && file.parent()
            == path
                .parent()
                .and_then(|parent| parent.canonicalize().ok())
                .as_deref();
    if left.is_empty() && is_ours {
        fs::remove_file(&file).map_err(unusable(&file))?;
        let _ = fs::remove_file(note);
        return Ok(Done::Removed);
    }
    replace(&file, &bytes, &left).map(|()| Done::Removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "/home/ann";
    const OURS: &str = "/home/ann/.local/state/towline/box/ssh/config";

    fn found(text: &str) -> Option<usize> {
        find(text.as_bytes(), HOME.as_ref(), OURS.as_ref())
    }

    #[test]
    fn it_is_found_in_every_spelling() {
        for text in [
            format!("Include {OURS}\n"),
            format!("# mine\n\n  include = \"{OURS}\"\r\nHost x\n").replace("\r\n", "\n"),
            "INCLUDE ~/.local/state/towline/box/ssh/config # ours".to_owned(),
            format!("Include other \"{OURS}\" more\n"),
            "Include ~/.local/state/towline/*/ssh/config\n".to_owned(),
            "Host *\n  Include ../.local/state/towline/box/ssh/config\n".replace("../", "~/"),
            format!("Match all\nInclude\t{OURS}\n"),
        ] {
            assert!(found(&text).is_some(), "{text}");
        }
        assert_eq!(found(&format!("a b\nInclude {OURS}\n")), Some(2));
    }

    #[test]
    fn what_holds_for_some_hosts_only_does_not_count() {
        for text in [
            format!("Host x\n  Include {OURS}\n"),
            format!("#Include {OURS}\n"),
            "Include ~/.local/state/towline/config\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(found(&text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn put_in_and_taken_out_leaves_every_byte(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let line = line(OURS.as_ref()).expect("a line");
            proptest::prop_assert_eq!(without_line(&with_line(&text, &line), &line), Some(text));
        }

        #[test]
        fn any_bytes_are_looked_through(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = find(&text, HOME.as_ref(), OURS.as_ref());
        }
    }
}
