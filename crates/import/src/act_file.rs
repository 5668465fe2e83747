//! ACT's configuration files: files that build on others by `_base_`, and paths in them.

use super::section::wrong;
use super::{Reader, read_tree};
use std::io;
use std::path::{Component, Path, PathBuf};
use towline_core::yaml::{Content, Node};
use towline_core::{Error, Result};

/// More files than this in one chain of `_base_` are taken for a mistake.
const MAX_INCLUDED_FILES: usize = 32;

/// The file, merged over everything it builds on. Every value knows the file it was written in.
pub(super) fn read(file: &Path, read: Reader<'_>) -> Result<Node> {
    let mut chain = vec![tidy(file)];
    read_over(file, read, &mut chain)
}

fn read_over(file: &Path, read: Reader<'_>, chain: &mut Vec<PathBuf>) -> Result<Node> {
    let mut tree = read_tree(file, read)?;
    let Some(base) = tree.get("_base_").filter(|base| !base.is_null()).cloned() else {
        return Ok(tree);
    };
    let Some(name) = base.text() else {
        return Err(wrong(&base.at, "`_base_` must be the path of a file"));
    };
    let below = tidy(&file.parent().unwrap_or(Path::new("")).join(name));
    let shown = || {
        chain
            .iter()
            .chain([&below])
            .map(|file| file.display().to_string())
            .collect::<Vec<_>>()
            .join(" → ")
    };
    if chain.contains(&below) {
        return Err(wrong(
            &base.at,
            format!("`_base_` leads back to where it began: {}", shown()),
        ));
    }
    if chain.len() >= MAX_INCLUDED_FILES {
        return Err(wrong(
            &base.at,
            format!(
                "more than {MAX_INCLUDED_FILES} files build on each other: {}",
                shown()
            ),
        ));
    }
    if let Err(error) = read(&below)
        && error.kind() == io::ErrorKind::NotFound
    {
        return Err(wrong(
            &base.at,
            format!("`_base_`: there is no file {}", below.display()),
        ));
    }
    chain.push(below.clone());
    let mut under = read_over(&below, read, chain)?;
    if let Content::Mapping(entries) = &mut tree.content {
        entries.retain(|(key, _)| key.text() != Some("_base_"));
    }
    let at = tree.at.clone();
    under.overlay(tree);
    under.at = at;
    Ok(under)
}

/// A path without `.` and, as far as possible, without `..`.
pub(super) fn tidy(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// The file that a path names: below the folder that ACT is started in, else beside the naming
/// file.
pub(super) fn named(value: &Node, key: &str, root: &Path, read: Reader<'_>) -> Result<PathBuf> {
    let text = super::section::text(value, key)?;
    let first = tidy(&root.join(text));
    let beside = tidy(
        &Path::new(&*value.at.source)
            .parent()
            .unwrap_or(Path::new(""))
            .join(text),
    );
    for file in [&first, &beside] {
        match read(file) {
            Ok(_) => return Ok(file.clone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::config(format!(
                    "{}: {} cannot be read",
                    value.at,
                    file.display()
                ))
                .source_error(error));
            }
        }
    }
    Err(wrong(
        &value.at,
        format!("`{key}`: there is no file {}", first.display()),
    ))
}

/// The folder that holds `aux_data`, if the file lies below it; else the folder `tow` is started
/// in.
pub(super) fn root_of(file: &Path) -> &Path {
    let above = file
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "aux_data"))
        .and_then(Path::parent);
    above.unwrap_or(Path::new(""))
}
