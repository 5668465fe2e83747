//! Limits of the service for names, descriptions and tags, from its published list of quotas.

use towline_core::{Error, Result};

const DISPLAY_NAME_CHARACTERS: usize = 256;
const EXPERIMENT_CHARACTERS: usize = 255;
const DESCRIPTION_CHARACTERS: usize = 5_000;
const MAX_TAGS: usize = 50;
const TAG_NAME_CHARACTERS: usize = 100;
const TAG_VALUE_CHARACTERS: usize = 1_000;

/// The experiment of a job that names none.
const USUAL_EXPERIMENT: &str = "towline";

/// The experiment as the service accepts it: letters, digits, `-` and `_`, a letter or digit first.
pub(super) fn experiment(wanted: Option<&str>) -> String {
    let Some(wanted) = wanted else {
        return USUAL_EXPERIMENT.to_owned();
    };
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            c
        } else {
            '-'
        }
    };
    let safe: String = wanted
        .trim()
        .chars()
        .map(letter)
        .take(EXPERIMENT_CHARACTERS)
        .collect();
    let safe = safe.trim_start_matches(['-', '_']);
    if safe.is_empty() {
        USUAL_EXPERIMENT.to_owned()
    } else {
        safe.to_owned()
    }
}

/// The note if the experiment has another name there.
pub(super) fn experiment_note(wanted: Option<&str>) -> Option<String> {
    let there = experiment(wanted);
    let wanted = wanted.filter(|wanted| *wanted != there)?;
    Some(format!(
        "experiment `{wanted}` is called `{there}` in the workspace: the service takes letters, \
            digits, `-` and `_`"
    ))
}

pub(super) fn display_name(name: &str) -> String {
    cut(name, DISPLAY_NAME_CHARACTERS)
}

pub(super) fn description(text: &str) -> String {
    cut(text, DESCRIPTION_CHARACTERS)
}

/// Cuts a text, and marks the cut.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Name and value of a tag: `NAME:VALUE`, `NAME=VALUE`, or a name alone.
pub(super) fn split_tag(tag: &str) -> (String, String) {
    tag.split_once([':', '=']).map_or_else(
        || (tag.to_owned(), String::new()),
        |(name, value)| (name.to_owned(), value.to_owned()),
    )
}

/// Checks tags against the limits, one of which our own tag uses up.
pub(super) fn check_tags(tags: &[String]) -> Result<()> {
    if tags.len() >= MAX_TAGS {
        let error = Error::too_large(format!(
            "the job has {} tags, and Azure ML takes {} of a job",
            tags.len(),
            MAX_TAGS - 1
        ));
        return Err(error.hint("leave some out"));
    }
    for tag in tags {
        let (name, value) = split_tag(tag);
        let shown = || name.chars().take(40).collect::<String>();
        if name.is_empty() {
            return Err(Error::config(format!("`tags`: `{tag}` has no name"))
                .hint("write NAME, NAME=VALUE or NAME:VALUE"));
        }
        if name.chars().count() > TAG_NAME_CHARACTERS {
            return Err(Error::too_large(format!(
                "`tags`: the name of `{}…` is longer than {TAG_NAME_CHARACTERS} characters",
                shown()
            ))
            .hint("shorten it"));
        }
        if value.chars().count() > TAG_VALUE_CHARACTERS {
            return Err(Error::too_large(format!(
                "`tags`: the value of `{}` is longer than {TAG_VALUE_CHARACTERS} characters",
                shown()
            ))
            .hint("shorten it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_has_letters_that_the_service_takes() {
        for (wanted, there) in [
            ("hoi_experiment-v1", "hoi_experiment-v1"),
            ("my exp/1 ü", "my-exp-1--"),
            ("_hidden", "hidden"),
            ("---", USUAL_EXPERIMENT),
            ("日本", USUAL_EXPERIMENT),
            ("", USUAL_EXPERIMENT),
        ] {
            assert_eq!(experiment(Some(wanted)), there, "{wanted}");
            assert_eq!(
                experiment_note(Some(wanted)).is_some(),
                wanted != there,
                "{wanted}"
            );
        }
        assert_eq!(
            experiment(Some(&"x".repeat(400))).len(),
            EXPERIMENT_CHARACTERS
        );
        assert_eq!(
            (experiment(None).as_str(), experiment_note(None)),
            (USUAL_EXPERIMENT, None)
        );
    }

    #[test]
    fn texts_are_cut_and_tags_are_refused() {
        assert_eq!(description("short"), "short");
        assert_eq!(
            description(&"ü".repeat(6_000)).chars().count(),
            DESCRIPTION_CHARACTERS
        );
        let tag = |text: String| check_tags(&[text]);
        assert!(
            tag("of=ablation".into()).is_ok() && tag(format!("k={}", "v".repeat(1_000))).is_ok()
        );
        for wrong in [
            format!("k={}", "v".repeat(1_001)),
            "k".repeat(101),
            "=x".to_owned(),
        ] {
            assert!(tag(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(
            check_tags(&vec!["t".to_owned(); 49]).is_ok()
                && check_tags(&vec!["t".to_owned(); 50]).is_err()
        );
    }
}
