//! Records every request with its answer, for checks: without tokens, keys and signatures.

use super::answer::{Answer, Body};
use super::call::Call;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone)]
pub struct Pair {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Both in the format of `oav`: `liveRequest` and `liveResponse`.
    pub json: Value,
    /// None if the connection was cut.
    pub status: Option<u16>,
}

/// A complete request and its answer, for tests that search for leaks.
#[derive(Debug, Clone)]
pub struct Traffic {
    pub method: String,
    pub target: String,
    /// Headers and body.
    pub sent: String,
    pub got: String,
}

#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<(Vec<Pair>, Vec<Traffic>)>);

/// Names whose values are secrets, in a header or a body.
const SECRET_NAMES: [&str; 13] = [
    "authorization",
    "x-azureml-token",
    "x-identity-header",
    "key",
    "sastoken",
    "access_token",
    "refresh_token",
    "device_code",
    "secret",
    "userstoragekey",
    "clientsecret",
    "adminuserpassword",
    "primarykey",
];

impl Recorder {
    /// Records a pair; without bodies if there are too many to keep.
    pub(super) fn add(&self, call: &Call, answer: Option<&Answer>, bodies: bool) {
        let request = json!({
            "method": call.method,
            "url": without_signature(&call.target),
            "headers": headers(&call.headers),
            "body": if bodies { of_vault(call, without_secrets(call.json_or_empty())) } else { Value::Null },
        });
        let response = answer.map(|answer| {
            let body = if let (true, Body::Json(value)) = (bodies, &answer.body) { of_vault(call, without_secrets(value.clone())) } else { Value::Null };
            json!({"statusCode": answer.status.to_string(), "headers": headers(&answer.headers), "body": body})
        });
        let pair = Pair {
            method: call.method.clone(),
            target: without_signature(&call.target),
            json: json!({"liveRequest": request, "liveResponse": response}),
            status: answer.map(|answer| answer.status),
        };
        let got = match answer.map(|answer| (&answer.headers, &answer.body)) {
            Some((headers, Body::Json(value))) => format!("{headers:?} {value}"),
            Some((headers, Body::Bytes(bytes))) => {
                format!("{headers:?} {}", String::from_utf8_lossy(bytes))
            }
            Some((headers, Body::Empty)) => format!("{headers:?}"),
            None => String::new(),
        };
        let sent = format!("{:?} {}", call.headers, String::from_utf8_lossy(&call.body));
        let traffic = Traffic {
            method: call.method.clone(),
            target: call.target.clone(),
            sent,
            got,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.push(pair);
        if bodies {
            all.1.push(traffic);
        }
    }

    pub(super) fn pairs(&self) -> Vec<Pair> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .clone()
    }
    pub(super) fn traffic(&self) -> Vec<Traffic> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .clone()
    }
    /// Methods and targets.
    pub(super) fn asked(&self) -> Vec<(String, String)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .iter()
            .map(|pair| (pair.method.clone(), pair.target.clone()))
            .collect()
    }
    pub(super) fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut writer = BufWriter::new(File::create(file)?);
        self.pairs()
            .iter()
            .try_for_each(|pair| writeln!(writer, "{}", pair.json))?;
        writer.flush()
    }
}

fn headers(headers: &[(String, String)]) -> Value {
    let shown = |(name, value): &(String, String)| {
        (
            name.to_lowercase(),
            if is_secret(name) {
                json!("removed")
            } else {
                json!(without_signature(value))
            },
        )
    };
    Value::Object(headers.iter().map(shown).collect())
}

fn is_secret(name: &str) -> bool {
    SECRET_NAMES.contains(&name.to_lowercase().as_str())
}

/// Hides the values of a vault, which are secrets by their place.
fn of_vault(call: &Call, mut body: Value) -> Value {
    if call.path.first().is_some_and(|word| word == "secrets") && body.get("value").is_some() {
        body["value"] = json!("removed");
    }
    body
}

fn without_secrets(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let shown = |(name, value): (String, Value)| {
                let hidden = is_secret(&name) && value.is_string();
                (
                    name,
                    if hidden {
                        json!("removed")
                    } else {
                        without_secrets(value)
                    },
                )
            };
            Value::Object(entries.into_iter().map(shown).collect())
        }
        Value::Array(entries) => Value::Array(entries.into_iter().map(without_secrets).collect()),
        Value::String(text) => Value::String(without_signature(&text)),
        other => other,
    }
}

/// Replaces the bytes of a signature; its presence stays visible.
fn without_signature(text: &str) -> String {
    let Some((before, rest)) = text.split_once("sig=") else {
        return text.to_owned();
    };
    let end = rest.find('&').map_or("", |at| &rest[at..]);
    format!("{before}sig=removed{end}")
}
