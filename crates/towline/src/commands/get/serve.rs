//! The hidden process behind `files.list`, `files.read` and `download`: it looks at files of a run
//! where they are, and sends their bytes.

use super::list::Folder;
use super::{far_start_folder, find, linked_of, resolved_of, roots};
use crate::context::Context;
use crate::diagnose;
use crate::output;
use base64::Engine;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use towline_core::record::RunRecord;
use towline_core::resolve::Resolved;
use towline_core::{Error, Result, RunId};
use towline_wire::api::files::{Download, FileBegin, FilesAsk, FilesList, FilesRead, SendHead};
use towline_wire::report::get::{Entry, Listed};

/// The word of the process.
pub(crate) const FILES_VERB: &str = "__files";
/// How much of a file is read at most, and unless told.
const MAX_BYTES: u32 = 8_000_000;
const USUAL_BYTES: u32 = 1_000_000;
const CHUNK_BYTES: usize = 256 << 10;

pub(crate) fn main() -> ExitCode {
    match read_ask().and_then(|ask| serve(&Context::new(true, true), ask)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(diagnose::report(&error, true)),
    }
}

fn read_ask() -> Result<FilesAsk> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| Error::from_io("the question cannot be read", error))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::usage(format!("the question cannot be read: {error}")))
}

fn serve(context: &Context, ask: FilesAsk) -> Result<()> {
    let printed = |value: serde_json::Result<serde_json::Value>| {
        value.map_err(|error| Error::bug("the answer cannot be written").source_error(error))
    };
    match ask {
        FilesAsk::List(ask) => output::json(&printed(serde_json::to_value(list(context, &ask)?))?),
        FilesAsk::Read(ask) => output::json(&printed(serde_json::to_value(begin(context, &ask)?))?),
        FilesAsk::Send(ask) => send(context, &ask),
    }
}

/// A run and where its files are.
struct Place {
    record: RunRecord,
    resolved: Resolved,
    is_far: bool,
}

fn place(context: &Context, run: &RunId) -> Result<Place> {
    let history = context.history()?;
    let record = history
        .run(run)?
        .ok_or_else(|| Error::not_found(format!("there is no run {run}")))?;
    Ok(Place {
        resolved: resolved_of(&history, &record)?,
        is_far: crate::runs::far::is_far(&history, run)?,
        record,
    })
}

/// A path below the run's folder, without `.` and nothing else.
fn below(path: &str) -> Result<PathBuf> {
    let path = Path::new(path);
    let is_below = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(|part| is_below(&part)) {
        let text = format!("{} is not a path below the run's folder", path.display());
        return Err(Error::refused(text));
    }
    let parts = path.components();
    Ok(parts
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect())
}

fn list(context: &Context, ask: &FilesList) -> Result<Listed> {
    let place = place(context, &ask.run)?;
    let path = below(&ask.path)?;
    let mut folder = Folder::default();
    if place.is_far {
        let start = far_start_folder(&place.resolved);
        let files = crate::runs::far_files::at(context, &place.record, &start, &path)?;
        for entry in files.entries {
            folder.add(&entry.path, entry.is_folder, entry.size);
        }
    } else {
        let real = here(context, &place, &path)?;
        let failed = |error| Error::from_io(format!("{} cannot be read", path.display()), error);
        for entry in fs::read_dir(&real).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Of a link it is told what it is, and nothing of what it leads to.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            folder.add(&name, found.is_dir(), found.len());
        }
    }
    let full = |entry: Entry| Entry {
        path: path.join(&entry.path).to_string_lossy().into_owned(),
        ..entry
    };
    Ok(Listed {
        entries: folder.into_entries().map(full).collect(),
    })
}

/// The real path of a file or folder of a run on this machine.
fn here(context: &Context, place: &Place, path: &Path) -> Result<PathBuf> {
    let roots = roots(context, &place.record, &place.resolved)?;
    let gone = || Error::not_found(format!("the folder of {} is gone", place.record.id));
    let found = if path.as_os_str().is_empty() {
        let mut roots = roots.iter();
        roots.find(|root| root.is_dir()).cloned().ok_or_else(gone)?
    } else {
        find(&roots, &linked_of(&place.resolved), path)?
    };
    let failed = |error| Error::from_io(format!("{} cannot be followed", path.display()), error);
    found.canonicalize().map_err(failed)
}

/// Opens a file of a run on this machine. The job may put a link in its place at any moment, so it
/// is looked at once more after it was opened.
fn open_here(context: &Context, place: &Place, path: &Path) -> Result<File> {
    let real = here(context, place, path)?;
    let failed = |error| Error::from_io(format!("{} cannot be read", path.display()), error);
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(&real).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        let text = format!("{} is not a plain file", path.display());
        return Err(Error::unsupported(text));
    }
    let opened = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(failed)?;
    if opened != real {
        let text = format!("{} was replaced meanwhile", path.display());
        return Err(Error::refused(text));
    }
    Ok(file)
}

fn begin(context: &Context, ask: &FilesRead) -> Result<FileBegin> {
    let place = place(context, &ask.run)?;
    let path = below(&ask.path)?;
    let most = ask.limit.unwrap_or(USUAL_BYTES).min(MAX_BYTES);
    let (bytes, size) = if place.is_far {
        let file = far_file(context, &place, &path)?;
        let bytes = file.bytes(0, most.into())?;
        (bytes, file.size)
    } else {
        let file = open_here(context, &place, &path)?;
        let failed = |error| Error::from_io(format!("{} cannot be read", path.display()), error);
        let size = file.metadata().map_err(failed)?.size();
        let mut bytes = Vec::new();
        let mut some = file.take(most.into());
        some.read_to_end(&mut bytes).map_err(failed)?;
        (bytes, size)
    };
    let is_cut = size > bytes.len() as u64;
    Ok(with_bytes(bytes, size, is_cut))
}

fn with_bytes(bytes: Vec<u8>, size: u64, is_cut: bool) -> FileBegin {
    let mut begin = FileBegin {
        bytes: size,
        is_cut,
        ..FileBegin::default()
    };
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => begin.text = Some(text),
        Ok(text) => begin.base64 = Some(base64_of(text.as_bytes())),
        Err(error) => {
            // The cut may have split a character.
            let valid = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            let is_split = is_cut && bytes.len() - valid < 4 && !bytes[..valid].contains(&0);
            if is_split {
                bytes.truncate(valid);
                begin.text = String::from_utf8(bytes).ok();
            } else {
                begin.base64 = Some(base64_of(&bytes));
            }
        }
    }
    begin
}

fn base64_of(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn far_file(
    context: &Context,
    place: &Place,
    path: &Path,
) -> Result<crate::runs::far_files::FarFile> {
    let start = far_start_folder(&place.resolved);
    crate::runs::far_files::at(context, &place.record, &start, path)?.file(path)
}

fn send(context: &Context, ask: &Download) -> Result<()> {
    match ask {
        Download {
            log: Some(log),
            run: None,
            file: None,
            path: None,
        } => {
            let path = context.state()?.log(&log.run, log.attempt, log.source);
            let failed = |error| Error::from_io("the log cannot be read", error);
            let file = towline_api::logs::open(context.state()?, log).map_err(failed)?;
            let file = file.ok_or_else(|| Error::not_found("there is no such log"))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            send_file(&format!("{}.{name}", log.run), file)
        }
        Download {
            log: None,
            run: Some(run),
            file: Some(path),
            path: None,
        } => send_of_run(context, run, path),
        Download {
            log: None,
            run: None,
            file: None,
            path: Some(path),
        } => send_of_store(context, path),
        _ => Err(Error::usage(
            "give `log`, or `run` and `file`, or `path`, and no other",
        )),
    }
}

fn send_of_run(context: &Context, run: &RunId, path: &str) -> Result<()> {
    let place = place(context, run)?;
    let path = below(path)?;
    if !place.is_far {
        return send_file(&name_of(&path), open_here(context, &place, &path)?);
    }
    let file = far_file(context, &place, &path)?;
    head(&name_of(&path), None)?;
    let mut offset = 0;
    loop {
        let bytes = file.bytes(offset, 4 << 20)?;
        if bytes.is_empty() {
            return Ok(());
        }
        offset += bytes.len() as u64;
        output::data(&bytes)?;
    }
}

/// A file of a datastore is copied to a folder of ours first, as `tow cp` does it.
fn send_of_store(context: &Context, path: &str) -> Result<()> {
    let parent = context.state()?.downloads();
    let failed = |error| Error::from_io("the download cannot be kept here", error);
    towline_host::filesystem::private_folder(&parent).map_err(failed)?;
    remove_abandoned(&parent);
    let folder = parent.join(std::process::id().to_string());
    towline_host::filesystem::private_folder(&folder).map_err(failed)?;
    let gone = RemovedAtEnd(folder.clone());
    let stores = crate::data::stores::Stores::new(context);
    let named = match stores.explicit(path)? {
        Some(_) => path.to_owned(),
        None => stores.location(None, path)?.shown,
    };
    let target = folder.join("file");
    let words = ["cp", "--json", "--yes", "--"].map(std::ffi::OsString::from);
    let words = words
        .into_iter()
        .chain([named.into(), target.clone().into()]);
    let words: Vec<std::ffi::OsString> = words.collect();
    let child = towline_host::own::start(&words, None).map_err(failed)?;
    let ended = child.wait_with_output().map_err(failed)?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let value: Option<serde_json::Value> = said
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .find(|value: &serde_json::Value| value.get("message").is_some());
        let message = value.and_then(|value| value["message"].as_str().map(str::to_owned));
        let message = message.unwrap_or_else(|| format!("{path} cannot be copied"));
        return Err(Error::refused(message));
    }
    let file = File::open(&target).map_err(failed)?;
    // It needs no name any more, so nothing of it stays, however this ends.
    drop(gone);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Error::unsupported(format!("{path} is a folder")).hint("copy it: tow down"));
    }
    send_file(&name_of(Path::new(path)), file)
}

/// Removes what killed processes have left.
fn remove_abandoned(parent: &Path) {
    for entry in towline_host::filesystem::entries(parent).unwrap_or_default() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if pid.is_none_or(|pid| towline_host::process::facts(pid).is_none()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit(':').next().unwrap_or_default().to_owned()
}

fn head(name: &str, bytes: Option<u64>) -> Result<()> {
    let head = SendHead {
        name: name.to_owned(),
        bytes,
    };
    let line = serde_json::to_string(&head)
        .map_err(|error| Error::bug("the head cannot be written").source_error(error))?;
    output::data(format!("{line}\n").as_bytes())
}

fn send_file(name: &str, mut file: File) -> Result<()> {
    let failed = |error| Error::from_io(format!("{name} cannot be read"), error);
    let size = file.metadata().map_err(failed)?.len();
    head(name, Some(size))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = size;
    while left > 0 {
        let most = usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let count = file.read(&mut chunk[..most]).map_err(failed)?;
        if count == 0 {
            break;
        }
        left -= count as u64;
        output::data(&chunk[..count])?;
    }
    std::io::stdout()
        .flush()
        .map_err(|error| Error::from_io("the bytes cannot be written", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_also_where_it_was_cut_in_a_character() {
        let whole = "grün".as_bytes().to_vec();
        assert_eq!(
            with_bytes(whole.clone(), 5, false).text.as_deref(),
            Some("grün")
        );
        let cut = with_bytes(whole[..3].to_vec(), 5, true);
        assert_eq!(cut.text.as_deref(), Some("gr"));
        assert_eq!(with_bytes(whole[..3].to_vec(), 3, false).text, None);
        let binary = with_bytes(vec![b'a', 0, b'b'], 3, false);
        assert_eq!(
            (binary.text, binary.base64.as_deref()),
            (None, Some("YQBi"))
        );
    }

    #[test]
    fn no_path_leads_out() {
        assert_eq!(below("./a//b/").expect("below"), Path::new("a/b"));
        assert_eq!(below("").expect("below"), Path::new(""));
        for path in ["..", "a/../b", "/etc/passwd", "a/.."] {
            assert!(below(path).is_err(), "{path}");
        }
    }
}
