//! The variables that begin with `TOW_`: configuration, settings of the daemon and the runner, and
//! the variables of a run.

use towline_core::suggest::did_you_mean;
use towline_core::yaml::{Content, Node, Position, Warning};

pub(crate) const TOP_LEVEL_KEYS: [&str; 9] = [
    "default_cluster",
    "in_place",
    "clusters",
    "datastores",
    "folders",
    "sync",
    "tunnels",
    "bastions",
    "workspaces",
];
/// Whole numbers, 0 or more.
const NUMBER_VARIABLES: [&str; 3] = [
    "TOW_DAEMON_IDLE_SECONDS",
    "TOW_GRACE_MILLIS",
    "TOW_COLLECT_SECONDS",
];
const HISTORY_JOURNAL_VARIABLE: &str = "TOW_HISTORY_JOURNAL";
/// Other variables that are read by this program, its tests, or a run.
const OTHER_VARIABLES: [&str; 15] = [
    "TOW_AGENT",
    "TOW_AZURE_BLOB_ENDPOINT",
    "TOW_AZUREML_SPEC",
    "TOW_ATTEMPT",
    "TOW_COPY_DIR",
    "TOW_CRASH_AT",
    "TOW_CRASH_ONCE",
    "TOW_CREW_GUARD",
    "TOW_HEAD_PID",
    "TOW_NODES",
    "TOW_PROGRESS",
    "TOW_RUN_DIR",
    "TOW_RUN_ID",
    "TOW_SEED",
    "TOW_SOAK",
];
const OTHER_VARIABLE_PREFIXES: [&str; 4] = ["TOW_IO_", "TOW_FAR_", "TOW_TEST_", "TOW_WRITE_"];

/// `TOW_DEFAULT_CLUSTER=lab`, `TOW_CLUSTERS__LOCAL__GPUS=2`: a layer of the configuration. Other
/// variables are none.
pub(crate) fn layer(name: &str, value: &str) -> Option<Node> {
    let path: Vec<String> = name
        .strip_prefix("TOW_")?
        .split("__")
        .map(str::to_ascii_lowercase)
        .collect();
    if !TOP_LEVEL_KEYS.contains(&path.first()?.as_str()) || path.iter().any(String::is_empty) {
        return None;
    }
    let at = at(name);
    let leaf = Node::scalar(value, at.clone());
    Some(path.iter().rev().fold(leaf, |node, key| Node {
        content: Content::Mapping(vec![(Node::scalar(key, at.clone()), node)]),
        at: at.clone(),
    }))
}

fn at(name: &str) -> Position {
    Position {
        source: name.into(),
        line: 0,
        column: 0,
    }
}

/// The warning about a variable that is not part of the configuration.
pub(crate) fn check(name: &str, value: &str) -> Option<Warning> {
    let message = if NUMBER_VARIABLES.contains(&name) {
        value
            .parse::<u64>()
            .err()
            .map(|_| format!("`{value}` is not a whole number, 0 or more: the default counts"))
    } else if name == HISTORY_JOURNAL_VARIABLE {
        (value != "rollback").then(|| {
            format!("`{value}` is not `rollback`, the one word it takes: the file system decides")
        })
    } else if OTHER_VARIABLES.contains(&name)
        || OTHER_VARIABLE_PREFIXES
            .iter()
            .any(|beginning| name.starts_with(beginning))
    {
        None
    } else {
        let known = NUMBER_VARIABLES.into_iter().chain([
            HISTORY_JOURNAL_VARIABLE,
            "TOW_DEFAULT_CLUSTER",
            "TOW_IN_PLACE",
            "TOW_AZURE_BLOB_ENDPOINT",
        ]);
        let hint = did_you_mean(name, known).unwrap_or_else(|| {
            "keys of the configuration are written like TOW_CLUSTERS__LOCAL__GPUS".to_owned()
        });
        Some(format!(
            "no variable of tow is called so, and it is not used: {hint}"
        ))
    };
    message.map(|message| Warning {
        at: at(name),
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, value: &str) -> String {
        check(name, value)
            .map(|warning| format!("{}: {}", warning.at, warning.message))
            .unwrap_or_default()
    }

    #[test]
    fn a_name_or_a_value_that_means_nothing_is_told() {
        assert_eq!(
            message("TOW_GRACE_MILLIS", "-1"),
            "TOW_GRACE_MILLIS: `-1` is not a whole number, 0 or more: the default counts"
        );
        assert!(message("TOW_DAEMON_IDLE_SECONDS", "abc").contains("`abc`"));
        assert!(message("TOW_HISTORY_JOURNAL", "xyz").contains("`rollback`"));
        assert!(message("TOW_FOO", "1").contains("not used"));
        assert!(message("TOW_GRACE_MILIS", "1").ends_with("did you mean `TOW_GRACE_MILLIS`?"));
        for (name, value) in [
            ("TOW_GRACE_MILLIS", "0"),
            ("TOW_HISTORY_JOURNAL", "rollback"),
            ("TOW_RUN_ID", "x"),
            ("TOW_IO_OUT", "/x"),
        ] {
            assert_eq!(message(name, value), "");
        }
    }

    /// Collects the keys of a struct that is decoded.
    struct Keys<'a>(&'a mut Vec<&'static str>);

    impl<'de> serde::Deserializer<'de> for Keys<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            keys: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.extend(keys);
            self.deserialize_any(visitor)
        }
        fn deserialize_any<V: serde::de::Visitor<'de>>(
            self,
            _: V,
        ) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("nothing is read"))
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
            seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    /// A key that is missing from the list would be used without trust, because unknown keys are
    /// ignored.
    #[test]
    fn every_key_of_the_configuration_is_on_the_list() {
        let mut keys = Vec::new();
        let read =
            <towline_core::config::Config as serde::Deserialize>::deserialize(Keys(&mut keys));
        assert!(read.is_err());
        // What agents may do is said by the user's own file alone.
        keys.retain(|key| *key != "agents");
        assert_eq!(
            keys.iter().collect::<std::collections::BTreeSet<_>>(),
            TOP_LEVEL_KEYS.iter().collect()
        );
    }
}
