//! The published JSON Schema of bodies (version 2026-05-01). It checks the values of enumerations,
//! which the validator of traffic does not. It does not check unknown fields and durations, which
//! the validator does.

use super::Aml;
use boon::{Compiler, Draft, SchemaIndex, Schemas};
use serde_json::{Value, json};
use std::fmt;
use std::fs;
use std::path::Path;

const API_VERSION: &str = "2026-05-01";
const PROVIDER: &str = "Microsoft.MachineLearningServices";
const COMMON_DEFINITIONS: &str =
    "https://schema.management.azure.com/schemas/common/definitions.json";

pub struct JobSchema {
    schemas: Schemas,
    job: SchemaIndex,
}

impl fmt::Debug for JobSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSchema")
    }
}

impl JobSchema {
    /// `spec` is the folder of published descriptions.
    #[track_caller]
    pub fn read(spec: &Path) -> Self {
        let folder = spec.join("arm-json-schema");
        let text = |name: &str| -> Value {
            serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
        };
        let mut own = text(&format!("{PROVIDER}.{API_VERSION}.json"));
        let at = own["id"].as_str().unwrap().trim_end_matches('#').to_owned();
        own["definitions"] = reachable(
            &own["definitions"],
            &own["resourceDefinitions"]["workspaces_jobs"],
        );
        own["resourceDefinitions"] =
            json!({"workspaces_jobs": own["resourceDefinitions"]["workspaces_jobs"]});
        open_bases(&mut own);
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V4);
        compiler.add_resource(&at, own).unwrap();
        compiler
            .add_resource(COMMON_DEFINITIONS, text("common-definitions.json"))
            .unwrap();
        let mut schemas = Schemas::new();
        let job = compiler
            .compile(
                &format!("{at}#/resourceDefinitions/workspaces_jobs"),
                &mut schemas,
            )
            .unwrap();
        Self { schemas, job }
    }

    /// The errors in the body of a job; none if it is valid.
    pub fn faults(&self, body: &Value) -> Option<String> {
        let mut whole = body.clone();
        whole["name"] = json!("a-job");
        whole["type"] = json!(format!("{PROVIDER}/workspaces/jobs"));
        whole["apiVersion"] = json!(API_VERSION);
        self.schemas
            .validate(&whole, self.job)
            .err()
            .map(|error| format!("{error:#}"))
    }

    /// Checks every job that was put; their number.
    #[track_caller]
    pub fn judge(&self, aml: &Aml) -> usize {
        let is_job = |target: &str| {
            target
                .split('?')
                .next()
                .is_some_and(|path| path.rsplit('/').nth(1) == Some("jobs"))
        };
        let put: Vec<Value> = aml
            .recorded()
            .iter()
            .filter(|pair| {
                pair.method == "PUT"
                    && is_job(&pair.target)
                    && pair.status.is_some_and(|status| status < 300)
            })
            .map(|pair| pair.json["liveRequest"]["body"].clone())
            .collect();
        for body in &put {
            assert_eq!(self.faults(body), None, "{body:#}");
        }
        put.len()
    }
}

/// The definitions that are used, with the definitions that they use. Others have patterns that are
/// not regular expressions.
fn reachable(all: &Value, from: &Value) -> Value {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(entries) => entries.iter().for_each(|entry| references(entry, found)),
            Value::Object(entries) => {
                let own = entries
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|text| text.strip_prefix("#/definitions/"));
                found.extend(own.map(ToOwned::to_owned));
                entries.values().for_each(|entry| references(entry, found));
            }
            _ => {}
        }
    }
    let (mut kept, mut left) = (json!({}), Vec::new());
    references(from, &mut left);
    while let Some(name) = left.pop() {
        if kept.get(&name).is_none() {
            references(&all[&name], &mut left);
            kept[&name] = all[&name].clone();
        }
    }
    kept
}

/// Opens base types with subtypes, because as published a base refuses the fields of its subtypes:
/// every distribution, identity and job.
fn open_bases(value: &mut Value) {
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(open_bases),
        Value::Object(entries) => {
            let parts = entries.get("allOf").and_then(Value::as_array);
            let has_subtypes = entries.contains_key("oneOf")
                || parts.is_some_and(|parts| parts.iter().any(|part| part.get("oneOf").is_some()));
            if has_subtypes {
                entries.remove("additionalProperties");
                for part in entries
                    .get_mut("allOf")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    part.as_object_mut()
                        .and_then(|part| part.remove("additionalProperties"));
                }
            }
            entries.values_mut().for_each(open_bases);
        }
        _ => {}
    }
}
