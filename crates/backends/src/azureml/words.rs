//! `resources.native` on Azure ML: `key=value` options that the job file has no key for.

use super::site::Flavour;
use serde_json::{Map, Value, json};
use towline_core::{Error, Result, suggest};

/// The parsed options, by their place in the job's document.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct NativeWords {
    pub shm_size: Option<String>,
    pub docker_args: Option<String>,
    /// A curated image of the platform.
    pub image_version: Option<String>,
    pub ssh_public_key: Option<String>,
    pub interactive: Option<bool>,
    /// Options for the flavour's own part of the document, unchanged.
    pub bag: Map<String, Value>,
}

/// Names of Singularity's options: our spelling, which is easier to type, and the service's.
const SINGULARITY: [(&str, &str); 9] = [
    ("priority", "priority"),
    ("enable_azml_int", "enableAzmlInt"),
    ("group_policy", "groupPolicyName"),
    ("scale_policy", "scalePolicy"),
    ("suspend_on_idle_hours", "suspendOnIdleTimeHours"),
    ("tensorboard_log_directory", "tensorboardLogDirectory"),
    ("user_alias", "userAlias"),
    ("instance_types", "instanceTypes"),
    ("image_version", "imageVersion"),
];

/// Keys for Kubernetes, and the part of its document that each belongs to.
const ITP: [(&str, &str); 12] = [
    ("gpu_count", "resource_configuration"),
    ("cpu_count", "resource_configuration"),
    ("memory_request_in_gb", "resource_configuration"),
    ("job_priority", "priority_configuration"),
    ("is_preemptible", "priority_configuration"),
    ("node_count_set", "priority_configuration"),
    ("scale_interval", "priority_configuration"),
    ("is_ssh_enabled", "interactive_configuration"),
    ("is_i_python_enabled", "interactive_configuration"),
    ("is_tensor_board_enabled", "interactive_configuration"),
    ("interactive_port", "interactive_configuration"),
    ("max_retry_count", "retry"),
];

const COMMON: [&str; 4] = ["shm_size", "docker_args", "ssh_public_key", "interactive"];

pub(super) fn read(native: &[String], flavour: Flavour) -> Result<NativeWords> {
    let mut words = NativeWords::default();
    for word in native {
        let (key, text) = word.split_once('=').ok_or_else(|| {
            Error::config(format!("`resources.native`: `{word}` is not KEY=VALUE"))
                .hint("for example shm_size=64g, priority=High, image_version=NAME")
        })?;
        match key {
            "shm_size" => words.shm_size = Some(shm(text)?),
            "docker_args" => words.docker_args = Some(text.to_owned()),
            "ssh_public_key" => words.ssh_public_key = Some(text.to_owned()),
            "interactive" => words.interactive = Some(truth(key, text)?),
            "image_version" if flavour == Flavour::Singularity => {
                words.image_version = Some(text.to_owned());
            }
            _ => into_bag(&mut words.bag, key, text, flavour)?,
        }
    }
    Ok(words)
}

/// A size such as `64g`; a bare number would be bytes.
fn shm(text: &str) -> Result<String> {
    let digits = text
        .strip_suffix(['b', 'B', 'k', 'K', 'm', 'M', 'g', 'G'])
        .unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(Error::config(format!(
        "`resources.native`: `shm_size={text}` is not a size"
    ))
    .hint("write a number with b, k, m or g: shm_size=64g"))
}

fn truth(key: &str, text: &str) -> Result<bool> {
    text.parse().map_err(|_| {
        Error::config(format!(
            "`resources.native`: `{key}={text}` is neither true nor false"
        ))
    })
}

/// A number, boolean, list or object if the text parses as one; else the text.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn into_bag(bag: &mut Map<String, Value>, key: &str, text: &str, flavour: Flavour) -> Result<()> {
    match flavour {
        Flavour::Singularity => {
            // The service accepts further keys, so an unknown key is passed on unchanged.
            let name = SINGULARITY
                .iter()
                .find(|(ours, theirs)| *ours == key || theirs.eq_ignore_ascii_case(key))
                .map_or(key, |(_, theirs)| theirs);
            bag.insert(name.to_owned(), value(text));
            Ok(())
        }
        Flavour::Itp => {
            let Some((_, part)) = ITP.iter().find(|(name, _)| *name == key) else {
                return Err(unknown(key, ITP.map(|(name, _)| name).into()));
            };
            let part = bag.entry(*part).or_insert_with(|| json!({}));
            part[key] = value(text);
            Ok(())
        }
        Flavour::Aml => Err(unknown(key, Vec::new())),
    }
}

fn unknown(key: &str, own: Vec<&'static str>) -> Error {
    let known: Vec<&str> = COMMON.into_iter().chain(own).collect();
    let hint = suggest::did_you_mean(key, known.iter().copied())
        .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
    Error::config(format!("`resources.native` has an unknown key `{key}`")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_where_the_flavour_wants_them() {
        let list = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let words = read(
            &list(&[
                "priority=High",
                "shm_size=64g",
                "scale_policy={\"minInstanceTypeCount\": 2}",
                "image_version=acpt",
                "other=1",
            ]),
            Flavour::Singularity,
        )
        .expect("known");
        assert_eq!(
            (words.shm_size.as_deref(), words.image_version.as_deref()),
            (Some("64g"), Some("acpt"))
        );
        assert_eq!(
            Value::Object(words.bag),
            json!({"priority": "High", "scalePolicy": {"minInstanceTypeCount": 2}, "other": 1})
        );
        let words = read(
            &list(&[
                "job_priority=150",
                "max_retry_count=2",
                "is_preemptible=true",
            ]),
            Flavour::Itp,
        )
        .expect("known");
        assert_eq!(
            Value::Object(words.bag),
            json!({"priority_configuration": {"job_priority": 150, "is_preemptible": true}, "retry": {"max_retry_count": 2}})
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (word, flavour, part) in [
            ("--exclusive", Flavour::Aml, "KEY=VALUE"),
            ("shm_size=64", Flavour::Aml, "shm_size=64"),
            ("shm_siz=1g", Flavour::Aml, "shm_siz"),
            ("interactive=maybe", Flavour::Singularity, "neither"),
            ("priority=High", Flavour::Itp, "priority"),
        ] {
            let error = read(&[word.to_owned()], flavour).expect_err(word);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
