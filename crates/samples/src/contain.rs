//! Whether an encoding has everything that a sample has.

use serde_json::Value;

/// The first part of the sample that `now` does not have, as a path.
pub fn lost(sample: &Value, now: &Value) -> Option<String> {
    match (sample, now) {
        (Value::Object(sample), Value::Object(now)) => {
            sample.iter().find_map(|(key, value)| match now.get(key) {
                Some(now) => lost(value, now).map(|path| format!(".{key}{path}")),
                None => Some(format!(".{key}")),
            })
        }
        (Value::Array(sample), Value::Array(now)) if sample.len() == now.len() => {
            let mut pairs = sample.iter().zip(now).enumerate();
            pairs.find_map(|(at, (sample, now))| {
                lost(sample, now).map(|path| format!("[{at}]{path}"))
            })
        }
        _ if sample == now => None,
        _ => Some(format!(" = {sample}")),
    }
}
