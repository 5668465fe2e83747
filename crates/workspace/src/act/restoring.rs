//! Restores a backup.

use super::Here;
use super::clear_parts;
use super::explained;
use super::lossy;
use super::row;
use crate::setup;
use std::fs;
use std::io;
use std::sync::atomic::AtomicBool;
use towline_core::Error;
use towline_core::Result;
use towline_host::filesystem::remove_tree;
use towline_snapshot::backup;
use towline_snapshot::continues::Mark;
use towline_snapshot::continues::Marked;
use towline_snapshot::continues::is_overtaken;
use towline_snapshot::layout::lay_out;
use towline_snapshot::root::Root;
use towline_snapshot::root::read;
use towline_wire::workspace::Outcome;
/// Keeps only the entries at or below these paths.
pub(super) fn chosen(root: Root, only: &[String]) -> Result<Root> {
    if only.is_empty() {
        return Ok(root);
    }
    let wanted: Vec<&[u8]> = only
        .iter()
        .map(|path| path.trim_matches('/').as_bytes())
        .collect();
    let is_below = |path: &[u8], wanted: &[u8]| {
        path.strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    if let Some(missing) = wanted.iter().find(|wanted| {
        !root
            .manifest
            .entries
            .iter()
            .any(|entry| is_below(&entry.path, wanted))
    }) {
        return Err(Error::not_found(format!(
            "the backup has no `{}`",
            lossy(missing)
        )));
    }
    Ok(root.only(|entry| wanted.iter().any(|wanted| is_below(&entry.path, wanted))))
}

impl Here<'_> {
    pub(super) fn restore(
        &self,
        id: Option<&str>,
        only: &[String],
        commands: &[String],
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome> {
        let Some(_lock) = self.lock()? else {
            return Ok(Outcome::Busy);
        };
        let target = &self.folder;
        let failed = |error| Error::from_io(format!("{} cannot be made", target.display()), error);
        let is_used = match fs::read_dir(target) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        let newest = backup::newest(&*self.backups.store).map_err(explained)?;
        if is_used {
            let mark = Marked::new(target, &self.backups.shown).read();
            let newer = newest.filter(|newest| is_overtaken(mark, newest, &self.place(false)));
            return Ok(Outcome::NotEmpty {
                path: target.display().to_string(),
                newer: newer.as_ref().map(row),
            });
        }
        let listed = self.find(id)?;
        let root = chosen(
            read(&*self.backups.store, &listed.blob).map_err(explained)?,
            only,
        )?;
        let parent = target.parent().unwrap_or(target);
        fs::create_dir_all(parent).map_err(failed)?;
        let name = target
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        clear_parts(parent, &name);
        let fresh = parent.join(format!(".{name}.restored-{}", std::process::id()));
        lay_out(
            &root,
            &*self.backups.store,
            &fresh,
            self.progress,
            &AtomicBool::new(false),
        )
        .map_err(explained)?;
        if let Some(mark) = Mark::of(&listed.blob, !only.is_empty()) {
            Marked::new(&fresh, &self.backups.shown).write(mark);
        }
        // The rename replaces an empty folder, but nothing else that came meanwhile.
        if let Err(error) = fs::rename(&fresh, target) {
            let _ = remove_tree(&fresh);
            return Err(failed(error));
        }
        setup::run(target, commands, say)?;
        let newest = newest.filter(|newest| newest.at > listed.at);
        Ok(Outcome::Restored {
            path: target.display().to_string(),
            backup: row(&listed),
            newest: newest.as_ref().map(row),
        })
    }
}
