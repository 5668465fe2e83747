//! Which code a run gets: that of the folder now, that of another run, or none.

use super::{CodePlace, LocalStore, Survey, Wish, local_store, stays, survey};
use crate::flow::draft::CodeChoice;
use crate::flow::outside::Outside;
use crate::project;
use towline_core::job::Job;
use towline_core::resolve::{FrozenCode, GitState};
use towline_core::{Error, Result};
use towline_snapshot::digest::Digest;
use towline_snapshot::store::{Blob, BlobStore};

/// The survey to take, the code as the plan names it, and the state of git.
pub(in crate::flow) type Chosen = (Option<Survey>, Option<FrozenCode>, Option<GitState>);

pub(in crate::flow) fn choose_code(
    outside: &dyn Outside,
    place: &CodePlace,
    job: &Job,
    (code, is_here): (CodeChoice, bool),
    notes: &mut Vec<String>,
) -> Result<Chosen> {
    let any_size = match code {
        CodeChoice::Today { any_size } => any_size,
        CodeChoice::InPlace => return Ok((None, None, project::git_around(&place.root))),
        CodeChoice::SameAs(frozen, git) => {
            check_kept(&frozen, &local_store(outside.state()?)?)?;
            return Ok((None, Some(frozen), git));
        }
    };
    if let Some(why) = stays(place) {
        notes.push(if is_here {
            format!("{why}, the run starts in place")
        } else {
            why
        });
        return Ok((None, None, project::git_around(&place.root)));
    }
    let (survey, git) = look_around(
        outside,
        place,
        &Wish {
            ignore: &job.code.ignore,
            large: any_size,
        },
    )?;
    let frozen = survey.frozen()?;
    notes.extend(survey.unlinked());
    notes.extend(survey.withheld());
    Ok((Some(survey), Some(frozen), git))
}

/// Surveys the tree and asks git at the same time.
fn look_around(
    outside: &dyn Outside,
    place: &CodePlace,
    wish: &Wish<'_>,
) -> Result<(Survey, Option<GitState>)> {
    let Some(mut git) = project::git_around(&place.root) else {
        return Ok((
            survey(outside.layers()?, outside.state()?, place, wish)?,
            None,
        ));
    };
    let survey = std::thread::scope(|scope| {
        let asked =
            std::thread::Builder::new().spawn_scoped(scope, || project::is_dirty(&place.root));
        let survey = survey(outside.layers()?, outside.state()?, place, wish);
        git.dirty = match asked {
            Ok(asked) => asked.join().ok().flatten(),
            Err(_) => project::is_dirty(&place.root),
        };
        survey
    })?;
    Ok((survey, Some(git)))
}

/// Refuses code that is not in the local store any more.
pub fn check_kept(frozen: &FrozenCode, store: &LocalStore) -> Result<()> {
    let id = frozen.snapshot.as_deref().and_then(Digest::parse);
    if id.is_some_and(|id| store.store.has(&Blob::Root(id)).unwrap_or(false)) {
        return Ok(());
    }
    Err(Error::refused(
        "the code of that run is not on this machine: it was pruned, or another \
        machine submitted the run",
    )
    .hint("`--latest-code` takes what lies in its folder now"))
}
