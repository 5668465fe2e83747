//! Whether a manifest can be of a real tree.

use super::{Entry, Flavor, Kind, MAX_NAME_BYTES, MAX_PATH_BYTES, Manifest};
use crate::problem::{Problem, Result};
use std::collections::HashSet;

impl Manifest {
    /// Refuses what no walk of ours makes: paths that leave the root or go through something that
    /// is no folder, names twice, strange modes, impossible sizes.
    pub fn validate(&self) -> Result<()> {
        if self.top.mode & !self.flavor.mode_bits(true) != 0 {
            return Err(Problem::hostile(format!(
                "its folder has the mode {:o}",
                self.top.mode
            )));
        }
        let mut checker = Checker {
            flavor: self.flavor,
            folders: HashSet::from([&[][..]]),
            files: HashSet::new(),
            last: None,
            total: 0,
        };
        for entry in &self.entries {
            checker.check(entry)?;
        }
        if checker.total > i64::MAX.unsigned_abs() {
            Err(Problem::hostile("its size is impossible"))
        } else {
            Ok(())
        }
    }
}

/// The state of the check after the entries so far.
struct Checker<'m> {
    flavor: Flavor,
    folders: HashSet<&'m [u8]>,
    /// Files of a workspace, which hard links may name.
    files: HashSet<&'m [u8]>,
    last: Option<&'m [u8]>,
    total: u64,
}

impl<'m> Checker<'m> {
    fn check(&mut self, entry: &'m Entry) -> Result<()> {
        let shown = || String::from_utf8_lossy(&entry.path).into_owned();
        check_path(&entry.path)
            .map_err(|why| Problem::hostile(format!("`{}` {why}", shown().escape_debug())))?;
        if self.last.is_some_and(|last| last >= &*entry.path) {
            return Err(Problem::hostile(format!(
                "`{}` is there twice or out of order",
                shown()
            )));
        }
        let parent = entry
            .path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(&[][..], |at| &entry.path[..at]);
        if !self.folders.contains(parent) {
            return Err(Problem::hostile(format!(
                "`{}` lies in something that is no folder",
                shown()
            )));
        }
        if entry.mode & !self.flavor.mode_bits(entry.kind == Kind::Folder) != 0 {
            return Err(Problem::hostile(format!(
                "`{}` has the mode {:o}",
                shown(),
                entry.mode
            )));
        }
        self.check_kind(entry, &shown)?;
        self.last = Some(&entry.path);
        Ok(())
    }

    fn check_kind(&mut self, entry: &'m Entry, shown: &dyn Fn() -> String) -> Result<()> {
        let is_workspace = self.flavor == Flavor::Workspace;
        match &entry.kind {
            Kind::Folder => {
                self.folders.insert(&entry.path);
            }
            Kind::Link(target)
                if target.is_empty() || target.len() > MAX_PATH_BYTES || target.contains(&0) =>
            {
                return Err(Problem::hostile(format!(
                    "the link `{}` has no possible target",
                    shown()
                )));
            }
            Kind::Link(_) => {}
            Kind::Same(first) if is_workspace && self.files.contains(&**first) => {}
            Kind::Same(_) => {
                return Err(Problem::hostile(format!(
                    "`{}` is another name of nothing",
                    shown()
                )));
            }
            Kind::File(pieces) => {
                if is_workspace {
                    self.files.insert(&entry.path);
                }
                for piece in pieces {
                    self.total = self
                        .total
                        .checked_add(piece.length())
                        .ok_or_else(|| Problem::hostile("its size is impossible"))?;
                }
            }
        }
        Ok(())
    }
}

fn check_path(path: &[u8]) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return Err("is no path");
    }
    if path.contains(&0) {
        return Err("holds a zero byte");
    }
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" => return Err("is absolute or has an empty part"),
            b"." | b".." => return Err("has a `.` or `..` part"),
            part if part.len() > MAX_NAME_BYTES => return Err("has a part that is too long"),
            _ => {}
        }
    }
    Ok(())
}
