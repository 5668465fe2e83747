//! Finds the role that a user names. A part of a name is not enough, because roles give power.

use super::eligible::Eligible;
use super::{NamedRole, last};
use towline_core::suggest::did_you_mean;
use towline_core::{Error, ErrorKind, Result};

pub(super) fn choose(all: Vec<Eligible>, named: NamedRole<'_>) -> Result<Eligible> {
    let (fitting, others): (Vec<Eligible>, Vec<Eligible>) =
        all.into_iter().partition(|one| is_called(one, named.name));
    if fitting.is_empty() {
        return Err(unknown(&others, named.name));
    }
    let places = places(&fitting);
    let mut chosen: Vec<Eligible> = match named.scope {
        Some(scope) => fitting
            .into_iter()
            .filter(|one| is_at(one, scope))
            .collect(),
        None => fitting,
    };
    match (chosen.len(), named.scope) {
        (1, _) => Ok(chosen.remove(0)),
        (0, Some(scope)) => {
            let message = format!(
                "you are not eligible for role `{}` at `{scope}`",
                named.name
            );
            Err(places
                .into_iter()
                .fold(Error::not_found(message), Error::hint))
        }
        (count, _) => {
            let message = format!(
                "you are eligible for {count} roles `{}`; nothing was changed",
                named.name
            );
            let error = Error::new(ErrorKind::Ambiguous, message);
            Err(places.into_iter().fold(error, Error::hint))
        }
    }
}

/// Candidates, as the user can name them.
fn places(fitting: &[Eligible]) -> Vec<String> {
    let is_one_definition = fitting
        .iter()
        .all(|one| one.role.role_id == fitting[0].role.role_id);
    let place = |one: &Eligible| {
        let role = &one.role;
        let name = role.scope_name.as_ref();
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        if is_one_definition {
            format!("--scope {}{name}", role.scope)
        } else {
            format!("{} --scope {}{name}", last(&role.role_id), role.scope)
        }
    };
    fitting.iter().map(place).collect()
}

fn is_called(one: &Eligible, name: &str) -> bool {
    let role = &one.role;
    role.name.to_lowercase() == name.to_lowercase()
        || role.role_id.eq_ignore_ascii_case(name)
        || last(&role.role_id).eq_ignore_ascii_case(name)
}

fn is_at(one: &Eligible, scope: &str) -> bool {
    let role = &one.role;
    let plain = |path: &str| path.trim_end_matches('/').to_lowercase();
    let name = role.scope_name.as_ref();
    plain(&role.scope) == plain(scope)
        || name.is_some_and(|name| name.to_lowercase() == scope.to_lowercase())
}

fn unknown(all: &[Eligible], name: &str) -> Error {
    let error = Error::not_found(format!("you are not eligible for a role `{name}`"));
    let names = all.iter().map(|one| one.role.name.as_str());
    error
        .maybe_hint(did_you_mean(name, names))
        .hint("`tow roles` lists those that you can activate")
}
