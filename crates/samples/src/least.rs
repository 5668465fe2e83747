//! The forms of a draft that are kept: whole, and with as few keys as its type accepts.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The draft as it is encoded today, without its optional plain values, and without all that is
/// optional.
pub(crate) fn forms<T: Serialize + DeserializeOwned>(draft: &Value) -> Vec<Value> {
    // An object that is empty by now may be left out when it is encoded: then its last key stays.
    let reads = |form: &Value| {
        let value = serde_json::from_value::<T>(form.clone()).ok();
        let now = value.and_then(|value| serde_json::to_value(&value).ok());
        now.is_some_and(|now| crate::contain::lost(form, &now).is_none())
    };
    let whole = match serde_json::from_value::<T>(draft.clone()) {
        Ok(value) => serde_json::to_value(&value).expect("it encodes"),
        Err(error) => panic!("a draft is not read: {error}\n{draft}"),
    };
    if let Some(lost) = crate::contain::lost(draft, &whole) {
        panic!("a draft lost {lost}\n{draft}");
    }
    let mut forms = vec![whole.clone()];
    for containers_too in [false, true] {
        let mut form = whole.clone();
        for path in paths(&whole) {
            let removable = containers_too || !holds_objects(whole.pointer(&path));
            let Some(less) = without(&form, &path).filter(|less| removable && reads(less)) else {
                continue;
            };
            form = less;
        }
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

fn holds_objects(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(_)) => true,
        Some(Value::Array(items)) => items.iter().any(|item| holds_objects(Some(item))),
        _ => false,
    }
}

/// Every key, as a JSON pointer, outer ones first.
fn paths(value: &Value) -> Vec<String> {
    let below = |key: String, value: &Value| {
        let inner = paths(value)
            .into_iter()
            .map(|path| format!("/{key}{path}"))
            .collect::<Vec<_>>();
        (format!("/{key}"), inner)
    };
    match value {
        Value::Object(map) => {
            let escaped = |key: &String| key.replace('~', "~0").replace('/', "~1");
            let parts = map.iter().map(|(key, value)| below(escaped(key), value));
            parts
                .flat_map(|(path, inner)| std::iter::once(path).chain(inner))
                .collect()
        }
        Value::Array(items) => {
            let parts = items.iter().enumerate();
            parts
                .flat_map(|(at, value)| below(at.to_string(), value).1)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn without(value: &Value, path: &str) -> Option<Value> {
    let mut value = value.clone();
    let (parent, key) = path.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    value
        .pointer_mut(parent)?
        .as_object_mut()?
        .shift_remove(&key)?;
    Some(value)
}
