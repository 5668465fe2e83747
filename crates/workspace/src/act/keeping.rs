//! Checks and drops backups.

use super::DELETION_GRACE_MILLIS;
use super::Here;
use super::STALE_PART;
use super::explained;
use super::row;
use towline_core::Error;
use towline_core::Result;
use towline_core::time::Moment;
use towline_core::workspace::Keep;
use towline_snapshot::check;
use towline_snapshot::prune;
use towline_snapshot::prune::Policy;
use towline_snapshot::store::Blob;
use towline_wire::workspace::Checked;
use towline_wire::workspace::Damage;
use towline_wire::workspace::Outcome;
use towline_wire::workspace::Pruned;
/// The error if older backups cannot be dropped. The new backup itself has not failed.
pub(super) fn not_dropped(error: &Error) -> Error {
    let told = Error::new(
        error.kind().as_refusal(),
        format!("the backup was made, but older ones cannot be dropped: {error}"),
    );
    error
        .hints()
        .iter()
        .fold(told, |told, hint| told.hint(hint.clone()))
}

impl Here<'_> {
    pub(super) fn check(&self, id: Option<&str>, repair: bool) -> Result<Outcome> {
        let only = id
            .map(|id| self.find(Some(id)).map(|listed| [listed.blob]))
            .transpose()?;
        let checked = check::check(
            &*self.backups.store,
            only.as_ref().map(|only| &only[..]),
            self.progress,
        )
        .map_err(explained)?;
        let mut dropped = 0;
        if repair && !checked.damage.is_empty() {
            dropped =
                check::set_aside(&*self.backups.store, &checked, towline_host::clock::now().0)
                    .map_err(explained)?;
        }
        let damage = |damage: check::Damage| Damage {
            what: damage.what,
            how: damage.how,
            is_set_aside: damage.is_set_aside,
            touches: damage
                .touches
                .into_iter()
                .map(|(blob, files)| (blob.digest().short(), files))
                .collect(),
        };
        let check::Checked {
            snapshots,
            packs,
            bytes,
            damage: found,
            ..
        } = checked;
        Ok(Outcome::Checked(Checked {
            backups: snapshots,
            packs,
            bytes,
            damage: found.into_iter().map(damage).collect(),
            dropped,
        }))
    }

    pub(super) fn prune(&self, keep: &Keep, dry_run: bool) -> Result<Pruned> {
        let listed = self.list()?;
        let moments: Vec<Moment> = listed.iter().map(|listed| Moment(listed.at)).collect();
        let kept: std::collections::HashMap<Blob, bool> = listed
            .iter()
            .map(|listed| listed.blob)
            .zip(keep.kept(&moments))
            .collect();
        // Backups that were made since the look stay.
        let keep = |blob: &Blob, _: Option<i64>| kept.get(blob).copied().unwrap_or(true);
        let policy = Policy {
            keep: &keep,
            grace: Some(DELETION_GRACE_MILLIS),
            now: towline_host::clock::now().0,
        };
        let plan = prune::plan(&*self.backups.store, &policy).map_err(explained)?;
        if !dry_run {
            self.backups
                .clear_parts(towline_host::clock::now().0 - STALE_PART);
        }
        if !dry_run && !plan.is_empty() {
            prune::carry_out(&*self.backups.store, &plan, &policy).map_err(explained)?;
        }
        let dropped = listed
            .iter()
            .filter(|listed| plan.snapshots.iter().any(|(blob, _)| *blob == listed.blob))
            .map(row)
            .collect();
        Ok(Pruned {
            kept: plan.kept,
            dropped,
            packs: plan.packs.len(),
            bytes: plan.frees(),
            marked: plan.newly_listed.len(),
            done: !dry_run,
        })
    }
}
