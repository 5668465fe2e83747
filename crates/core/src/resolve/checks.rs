//! Mistakes in a job that can be found without a cluster.

use crate::command::Program;
use crate::job::Job;
use crate::secret_name::SecretName;
use crate::template;
use crate::{Error, Result};

/// No argument, variable or file name can hold the character NUL.
pub(super) fn check_nul(job: &Job) -> Result<()> {
    let has_nul = |text: &String| text.contains('\0');
    let environment = &job.environment;
    let places = [
        ("the command", job.command.as_slice().iter().any(has_nul)),
        ("`script`", job.script.iter().any(has_nul)),
        ("`environment.setup`", environment.setup.iter().any(has_nul)),
        (
            "a value of `sweep`",
            job.sweep
                .0
                .iter()
                .flat_map(|axis| &axis.choices)
                .flatten()
                .any(has_nul),
        ),
        (
            "`resources.native`",
            job.resources.native.iter().any(has_nul),
        ),
        ("`name`", job.name.iter().any(has_nul)),
    ];
    let variable = environment
        .env
        .iter()
        .find(|(_, value)| has_nul(value))
        .map(|(name, _)| format!("the variable `{name}`"));
    let place = places
        .into_iter()
        .find(|(_, found)| *found)
        .map(|(place, _)| place.to_owned());
    match place.or(variable) {
        Some(place) => Err(Error::config(format!(
            "{place} holds the character NUL, which no program can be given"
        ))
        .hint("take the `\\0` out of it")),
        None => Ok(()),
    }
}

pub(super) fn check_variables(job: &Job) -> Result<()> {
    for name in job.environment.env.keys() {
        let about = |error: Error| error.about(format!("environment.env.{name}"));
        check_variable(name).map_err(about)?;
    }
    for name in &job.environment.secrets {
        check_variable(name).map_err(|error| error.about("environment.secrets"))?;
    }
    Ok(())
}

fn check_variable(name: &str) -> Result<()> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(
            Error::config(format!("`{name}` cannot be the name of a variable"))
                .hint("letters, digits and `_`, and no digit first"),
        );
    }
    if name.starts_with("TOW_") {
        return Err(Error::config(format!(
            "`{name}`: names that begin with TOW_ are Towline's own"
        ))
        .hint("choose another name"));
    }
    Ok(())
}

pub(super) fn check_templates(job: &Job, program: &Program) -> Result<()> {
    let known: Vec<&str> = job
        .sweep
        .names()
        .chain(job.io.keys().map(String::as_str))
        .collect();
    let is_known = |name: &str| known.contains(&name) || SecretName::from(name).is_token();
    let check = |text: &str| template::fill(text, |name| is_known(name).then_some(""), &known);
    program.try_map(check)?;
    for text in job
        .name
        .iter()
        .chain(&job.environment.setup)
        .chain(job.environment.env.values())
    {
        check(text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_begins_with_a_letter_or_an_underscore() {
        for name in ["A", "_", "_A1", "a_b"] {
            assert!(check_variable(name).is_ok(), "{name}");
        }
        for name in ["", "1A", "a-b", "TOW_A"] {
            assert!(check_variable(name).is_err(), "{name}");
        }
    }
}
