//! Deleting snapshots: first a plan, then the deletion. A pack is deleted only when no remaining
//! snapshot needs any part of it.
//!
//! If others use the store, packs are first put on a list of pending deletions. A later prune
//! deletes them if nobody needs them by then. A process that takes a snapshot reads these lists and
//! does not use the packs on them.

use crate::digest::Digest;
use crate::pending_deletion;
use crate::problem::Result;
use crate::root::read;
use crate::store::{Blob, BlobKind, BlobStore, Stored};
use std::collections::{HashMap, HashSet};

/// The snapshots and packs that a prune would delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// Snapshots or backups with the size of their roots.
    pub snapshots: Vec<(Blob, u64)>,
    /// Packs to delete now.
    pub packs: Vec<(Digest, u64)>,
    /// Packs to put on a list; a later prune deletes them.
    pub newly_listed: Vec<(Digest, u64)>,
    /// The number of snapshots that stay.
    pub kept: usize,
}

impl PrunePlan {
    /// Bytes that are free afterwards.
    pub fn frees(&self) -> u64 {
        let roots: u64 = self.snapshots.iter().map(|(_, size)| size).sum();
        roots + self.packs.iter().map(|(_, size)| size).sum::<u64>()
    }
    pub const fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.packs.is_empty() && self.newly_listed.is_empty()
    }
}

/// The rules for a plan.
pub struct Policy<'a> {
    /// Whether a snapshot or a backup stays, given when it was stored, in milliseconds.
    pub keep: &'a dyn Fn(&Blob, Option<i64>) -> bool,
    /// How long packs stay on a list before they are deleted, in milliseconds; `None` if we hold
    /// the lock and nobody else can use the store.
    pub grace: Option<i64>,
    /// Milliseconds since 1970.
    pub now: i64,
}

impl std::fmt::Debug for Policy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy")
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// Plans a prune. It is an error if a snapshot that should stay cannot be read, because its packs
/// are then unknown.
pub fn plan(store: &dyn BlobStore, policy: &Policy<'_>) -> Result<PrunePlan> {
    let mut plan = PrunePlan::default();
    let mut needed: HashSet<Digest> = HashSet::new();
    for stored in roots(store)? {
        if (policy.keep)(&stored.blob, stored.changed) {
            needed.extend(read(store, &stored.blob)?.packs);
            plan.kept += 1;
        } else {
            plan.snapshots.push((stored.blob, stored.size));
        }
    }
    let mut listed: HashMap<Digest, i64> = HashMap::new();
    if policy.grace.is_some() {
        for (pack, since) in pending_deletion::packs_since(store, i64::MIN)? {
            listed.entry(pack).or_insert(since);
        }
    }
    for stored in store.list(BlobKind::Pack)? {
        let Blob::Pack(digest) = stored.blob else {
            continue;
        };
        if needed.contains(&digest) {
            continue;
        }
        let Some(grace) = policy.grace else {
            plan.packs.push((digest, stored.size));
            continue;
        };
        // The pack is so young that the upload of its snapshot may still be running.
        if stored
            .changed
            .is_none_or(|changed| policy.now - changed < grace)
        {
            continue;
        }
        match listed.get(&digest) {
            Some(since) if policy.now - since >= grace => plan.packs.push((digest, stored.size)),
            Some(_) => {}
            None => plan.newly_listed.push((digest, stored.size)),
        }
    }
    Ok(plan)
}

/// The roots of all snapshots and backups.
pub(crate) fn roots(store: &dyn BlobStore) -> Result<Vec<Stored>> {
    let mut roots = store.list(BlobKind::Root)?;
    roots.extend(store.list(BlobKind::Backup)?);
    Ok(roots)
}

/// Carries out a plan. Roots are deleted first. So an interrupted prune leaves packs that nobody
/// needs, which the next prune finds, and never a snapshot without its content.
pub fn carry_out(store: &dyn BlobStore, plan: &PrunePlan, policy: &Policy<'_>) -> Result<()> {
    let gone: Vec<Digest> = plan
        .packs
        .iter()
        .chain(&plan.newly_listed)
        .map(|(pack, _)| *pack)
        .collect();
    pending_deletion::announce(store, &gone, policy.now)?;
    store.delete(
        &plan
            .snapshots
            .iter()
            .map(|(root, _)| *root)
            .collect::<Vec<_>>(),
    )?;
    store.delete(
        &plan
            .packs
            .iter()
            .map(|(pack, _)| Blob::Pack(*pack))
            .collect::<Vec<_>>(),
    )
}
