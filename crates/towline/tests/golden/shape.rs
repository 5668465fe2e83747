//! The shape of a JSON value: its key paths, and the type at each. All elements of a list share one
//! path, `[]`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Shape = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn shape(value: &Value) -> Shape {
    let mut shape = Shape::new();
    add(&mut shape, String::new(), value);
    shape
}

fn add(shape: &mut Shape, path: String, value: &Value) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            for item in items {
                add(shape, format!("{path}[]"), item);
            }
            "list"
        }
        Value::Object(map) => {
            for (key, value) in map {
                add(shape, format!("{path}.{key}"), value);
            }
            "object"
        }
    };
    shape.entry(path).or_default().insert(kind.to_owned());
}

/// How `now` breaks what `then` promised. New paths are fine, and so is a type at a place that was
/// only ever `null`. `varies` names paths that depend on the machine: these may be `null`, and the
/// lists below them may be empty.
pub(crate) fn broken(then: &Shape, now: &Shape, varies: &[&str]) -> Vec<String> {
    let null = "null".to_owned();
    let mut broken = Vec::new();
    for (path, kinds) in then {
        let varies = varies.iter().any(|part| path.starts_with(part));
        let Some(found) = now.get(path) else {
            if !(varies && path.contains("[]")) {
                broken.push(format!("{path} is gone"));
            }
            continue;
        };
        let is_fine = |kind: &String| {
            kinds.contains(kind)
                || kinds.iter().all(|kind| *kind == null)
                || (varies && *kind == null)
        };
        if !found.iter().all(is_fine) {
            broken.push(format!("{path} was {kinds:?} and is {found:?}"));
        }
    }
    broken
}
