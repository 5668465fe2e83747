//! What `--json` prints, verb by verb, on this machine and a folder datastore. Later versions may
//! add keys; no key goes, and none changes its type.
//!
//! A verb that is new here is added to `json.json` by
//! `cargo test -p towline --test golden -- --ignored add_shapes`, which changes no other verb.

use super::questions::ask_everything;
use super::shape::{Shape, broken, shape};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use towline_testkit::Home;

pub(crate) type Shapes = BTreeMap<String, Shape>;

/// Paths whose values depend on the machine or its load, by the beginning of the verb.
const VARIES: [(&str, &[&str]); 6] = [
    ("show", &[".events[].durable"]),
    ("submit --dry-run", &[".resolved.limits"]),
    ("nodes", &[".nodes[]", ".notes"]),
    ("clusters", &[".clusters[]"]),
    ("doctor", &[".checks[]"]),
    ("daemon status", &[".status"]),
];

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/json.json")
}

fn read_kept() -> Shapes {
    let text = fs::read(kept()).unwrap_or_else(|_| b"{}".to_vec());
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn every_verb_prints_what_it_printed() {
    let (then, now) = (read_kept(), ask_everything());
    let mut wrong = Vec::new();
    for (verb, shape) in &then {
        let varies = VARIES.iter().find(|(known, _)| verb.starts_with(known));
        let varies = varies.map_or(&[][..], |(_, paths)| paths);
        let found = now.get(verb).map(|now| broken(shape, now, varies));
        let found = found.unwrap_or_else(|| vec!["it is not asked any more".to_owned()]);
        wrong.extend(found.into_iter().map(|what| format!("{verb}: {what}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let new: Vec<&String> = now
        .keys()
        .filter(|verb| !then.contains_key(*verb))
        .collect();
    assert!(new.is_empty(), "json.json has no {new:?}");
}

#[test]
#[ignore = "adds the shapes of verbs that json.json does not have"]
fn add_shapes() {
    let mut shapes = ask_everything();
    shapes.extend(read_kept());
    fs::write(
        kept(),
        serde_json::to_string_pretty(&shapes).unwrap() + "\n",
    )
    .unwrap();
}

pub(crate) struct Asked {
    pub(crate) home: Home,
    pub(crate) shapes: Shapes,
}

impl Asked {
    /// Asks `tow`, and keeps the shape of its answer under that name.
    #[track_caller]
    pub(crate) fn ask(&mut self, name: &str, words: &[&str]) -> Value {
        let output = self
            .home
            .tow([&words[..1], &["--json"], &words[1..]].concat());
        let said = if name == "error" {
            &output.stderr
        } else {
            &output.stdout
        };
        let lines = || {
            said.lines()
                .map(serde_json::from_str)
                .collect::<Result<Vec<Value>, _>>()
        };
        let value = serde_json::from_str(said).or_else(|_| lines().map(Value::Array));
        let value = value.unwrap_or_else(|error| panic!("{name}: {error}: {output:?}"));
        let is_empty = value == Value::Array(Vec::new());
        assert!(!is_empty, "{name} said nothing: {output:?}");
        let known = self.shapes.insert(name.to_owned(), shape(&value));
        assert!(known.is_none(), "{name} is asked twice");
        value
    }

    /// Submits a run and waits for its end.
    #[track_caller]
    pub(crate) fn submit(&self, words: &[&str]) -> String {
        let id = self.home.tow([&["submit"], words].concat()).ok().id();
        self.home.tow(["wait", &id]);
        id
    }
}
