//! The copy of a tree: both listings side by side, and many objects at once.

use super::compare::{self, Verdict};
use super::join::{Join, Pair, below};
use super::object::{Carried, Carrier};
use super::pace::Pace;
use super::progress::Progress;
use super::{Found, Options, Outcome, StorePath, find, nothing_at};
use crate::data::{Key, Object, Page};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use towline_core::{Error, ErrorKind, Result};

/// Objects in progress at once; each waits for its turn before it holds any bytes.
const MAX_OBJECTS_AT_ONCE: usize = 128;
/// After this many failures the rest is not tried.
const MAX_FAILURES: usize = 100;
/// After this many failures and no success no further object is begun. If all that are in progress
/// fail too, the cause is not a single object.
const DOUBT_AFTER_FAILURES: usize = 3;

#[derive(Debug)]
enum Done {
    Equal(Verdict),
    Carried(Carried),
    Planned,
}

struct Engine {
    carrier: Arc<Carrier>,
    options: Options,
    outcome: Outcome,
    /// Failures of attempted transfers; invalid names are not counted.
    failed_tries: usize,
    /// The place of the first of these among the failures.
    first_failure: usize,
    tasks: JoinSet<(String, u64, Result<Done>)>,
}

/// Copies an object, or everything below a path. An error means that the copy was given up;
/// failures of single objects are in the outcome.
pub async fn copy(
    source: StorePath,
    target: StorePath,
    options: Options,
    progress: Arc<Progress>,
) -> Result<Outcome> {
    let Some(found) = find(&source).await? else {
        return Err(nothing_at(&source).await);
    };
    let carrier = Carrier {
        source,
        target,
        pace: Arc::new(Pace::default()),
        progress,
        journals: options.journals.clone(),
    };
    let mut engine = Engine {
        carrier: Arc::new(carrier),
        options,
        outcome: Outcome::default(),
        failed_tries: 0,
        first_failure: 0,
        tasks: JoinSet::new(),
    };
    match found {
        Found::Object(object) => {
            let target = &engine.carrier.target;
            if target.path.is_empty() {
                return Err(Error::conflict(format!(
                    "{} is a folder, and {} a file",
                    target.store.place(),
                    object.key
                ))
                .hint("remove or rename one of them"));
            }
            let to = target.key()?;
            let existing = target.store.head(&to).await?;
            engine.begin(object, existing, to).await?;
        }
        Found::Folder(first_failure) => engine.tree(first_failure).await?,
    }
    engine
        .carrier
        .progress
        .all_found
        .store(true, Ordering::Relaxed);
    while !engine.tasks.is_empty() {
        engine.take_result().await?;
    }
    let mut outcome = engine.outcome;
    // Objects end in any order, and a list that people read or compare has one.
    outcome.planned.sort();
    outcome.failed.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(outcome)
}

impl Engine {
    async fn tree(&mut self, first_failure: Page) -> Result<()> {
        let (from, to) = (self.carrier.source.prefix(), self.carrier.target.prefix());
        let mut join = Join::new(
            self.carrier.source.clone(),
            first_failure,
            self.carrier.target.clone(),
        );
        while let Some(pair) = join.next().await? {
            let (object, existing) = match pair {
                Pair::Both(object, existing) => (object, Some(existing)),
                Pair::Source(object) => (object, None),
                Pair::Target(object) => {
                    self.extra(object, &from, &to).await?;
                    continue;
                }
                Pair::Unsupported(entry) if entry.is_failure => {
                    self.outcome
                        .failed
                        .push((entry.name, Error::refused(entry.why)));
                    continue;
                }
                Pair::Unsupported(entry) => {
                    self.outcome.left_out.push(entry);
                    continue;
                }
            };
            match Key::new(format!("{to}{}", below(&object.key, &from))) {
                Ok(key) => self.begin(object, existing, key).await?,
                Err(why) => self
                    .outcome
                    .failed
                    .push((object.key.to_string(), Error::unsupported(why))),
            }
        }
        Ok(())
    }

    /// Lists an object that only the target has, unless the source has it after all.
    async fn extra(&mut self, object: Object, from: &str, to: &str) -> Result<()> {
        if !self.options.extras {
            return Ok(());
        }
        let existing = match Key::new(format!("{from}{}", below(&object.key, to))) {
            Ok(key) => self.carrier.source.store.head(&key).await?.is_some(),
            Err(_) => false,
        };
        if !existing {
            self.outcome.extra.push((object.key, object.size));
        }
        Ok(())
    }

    async fn begin(&mut self, object: Object, existing: Option<Object>, to: Key) -> Result<()> {
        // In doubt no further object is begun until those in progress show whether any succeeds.
        while self.tasks.len() >= MAX_OBJECTS_AT_ONCE
            || (self.is_doubtful() && !self.tasks.is_empty())
        {
            self.take_result().await?;
        }
        self.carrier.progress.find(object.size);
        let (carrier, checksum, dry_run) = (
            self.carrier.clone(),
            self.options.checksum,
            self.options.dry_run,
        );
        self.tasks.spawn(async move {
            let (name, size) = (to.to_string(), object.size);
            (
                name,
                size,
                transfer_one(&carrier, &object, existing.as_ref(), &to, checksum, dry_run).await,
            )
        });
        Ok(())
    }

    fn is_doubtful(&self) -> bool {
        let Outcome {
            sent,
            equal_by_time,
            equal_by_hash,
            ..
        } = self.outcome;
        self.failed_tries >= DOUBT_AFTER_FAILURES && sent + equal_by_time + equal_by_hash == 0
    }

    /// Waits for one result and adds it to the outcome.
    async fn take_result(&mut self) -> Result<()> {
        let Some(result) = self.tasks.join_next().await else {
            return Ok(());
        };
        let (name, size, done) =
            result.map_err(|error| Error::bug("a task broke").source_error(error))?;
        let outcome = &mut self.outcome;
        self.carrier.progress.finish();
        match done {
            Ok(Done::Equal(verdict)) => {
                self.carrier.progress.advance(size);
                if verdict == Verdict::EqualByTime {
                    outcome.equal_by_time += 1;
                } else {
                    outcome.equal_by_hash += 1;
                }
            }
            Ok(Done::Planned) => outcome.planned.push((name, size)),
            Ok(Done::Carried(carried)) => {
                outcome.sent += 1;
                outcome.sent_bytes += size;
                outcome.resumed_bytes += carried.resumed;
                outcome.inside += u64::from(carried.inside);
                outcome.by_length += u64::from(carried.by_length);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Unreachable | ErrorKind::Config | ErrorKind::Bug
                ) =>
            {
                return Err(error);
            }
            Err(error) => {
                if self.failed_tries == 0 {
                    self.first_failure = outcome.failed.len();
                }
                outcome.failed.push((name, error));
                self.failed_tries += 1;
                if self.failed_tries >= MAX_FAILURES
                    || (self.is_doubtful() && self.tasks.is_empty())
                {
                    let (name, error) = self.outcome.failed.swap_remove(self.first_failure);
                    return Err(
                        error.while_doing(format!("{} failed, first {name}", self.failed_tries))
                    );
                }
            }
        }
        Ok(())
    }
}

async fn transfer_one(
    carrier: &Arc<Carrier>,
    object: &Object,
    existing: Option<&Object>,
    to: &Key,
    checksum: bool,
    dry_run: bool,
) -> Result<Done> {
    if let Some(existing) = existing {
        let verdict = compare::verdict(
            &carrier.source.store,
            &carrier.target.store,
            object,
            existing,
            checksum,
        )
        .await?;
        if matches!(verdict, Verdict::EqualByTime | Verdict::EqualByHash) {
            return Ok(Done::Equal(verdict));
        }
    }
    if dry_run {
        return Ok(Done::Planned);
    }
    // Some listings lack the hashes that verify the copy.
    if !object.marks_are_whole {
        let whole = carrier
            .source
            .store
            .head(&object.key)
            .await?
            .ok_or_else(|| Error::not_found(format!("{} went away", object.key)))?;
        return carrier.carry(&whole, to).await.map(Done::Carried);
    }
    carrier.carry(object, to).await.map(Done::Carried)
}
