//! A job: its request, its state, and how the resource manager shows it.

use super::datastores;
use super::faults::Conditions;
use super::ids::{PROVIDER, Scope};
use super::workspace::{is_seen, system_data};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use towline_core::time::Moment;
use towline_host::clock;

#[derive(Debug)]
pub(super) struct Job {
    pub name: String,
    /// The `properties` that were put; mutable ones as they were put last.
    pub asked: Value,
    /// The order of creation; the newest is listed first.
    pub number: u64,
    pub made: Moment,
    pub changed: Moment,
    pub status: String,
    pub states: Vec<String>,
    /// Shown in place of its status.
    pub shown: Option<String>,
    pub started: Option<Moment>,
    pub ended: Option<Moment>,
    /// The error in run history.
    pub error: Option<Value>,
    pub cancelled: bool,
    pub cancel_polls: usize,
    pub preempted: bool,
    /// No thread runs it: it waits until it is cancelled.
    pub asleep: bool,
    pub groups: Vec<i32>,
}

impl Job {
    pub(super) fn new(name: &str, asked: Value, conditions: &Conditions) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let now = clock::now();
        Self {
            name: name.to_owned(),
            asked,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            made: now,
            changed: now,
            status: "NotStarted".to_owned(),
            states: vec!["NotStarted".to_owned()],
            shown: None,
            started: None,
            ended: None,
            error: None,
            cancelled: false,
            cancel_polls: conditions.cancel_polls,
            preempted: false,
            asleep: conditions.asleep,
            groups: Vec::new(),
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.asked[name].as_str().unwrap_or_default()
    }
    pub(super) fn experiment(&self) -> &str {
        Some(self.text("experimentName"))
            .filter(|name| !name.is_empty())
            .unwrap_or("Default")
    }
    pub(super) fn display_name(&self) -> &str {
        Some(self.text("displayName"))
            .filter(|name| !name.is_empty())
            .unwrap_or(&self.name)
    }
    pub(super) fn node_count(&self) -> usize {
        let many = self.asked["resources"]["instanceCount"]
            .as_u64()
            .and_then(|many| usize::try_from(many).ok());
        many.unwrap_or(1).max(1)
    }
    /// On a virtual cluster.
    pub(super) fn is_singularity(&self) -> bool {
        is_singularity(&self.asked)
    }
    pub(super) fn is_final(&self) -> bool {
        matches!(self.status.as_str(), "Completed" | "Failed" | "Canceled")
    }
    pub(super) fn is_seen(&self, unseen: Duration) -> bool {
        is_seen(self.made, unseen)
    }
    pub(super) fn shown_status(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.status)
    }
    /// Changes the state. A final state is never left.
    pub(super) fn turn(&mut self, status: &str) {
        if self.is_final() || self.status == status {
            return;
        }
        status.clone_into(&mut self.status);
        self.states.push(status.to_owned());
        self.changed = clock::now();
        match status {
            "Running" => self.started = self.started.or(Some(self.changed)),
            "Completed" | "Failed" | "Canceled" => self.ended = Some(self.changed),
            _ => {}
        }
    }
    pub(super) fn set_tag(&mut self, name: &str, value: &str) {
        if !self.asked["tags"].is_object() {
            self.asked["tags"] = json!({});
        }
        self.asked["tags"][name] = json!(value);
    }
    /// The path of its artifacts in their container, with a slash at the end.
    pub(super) fn artifacts(name: &str) -> String {
        format!("ExperimentRun/dcid.{name}/")
    }
    /// The timeout of its limits, such as `PT1H`.
    pub(super) fn timeout(&self) -> Option<Duration> {
        duration(self.asked["limits"]["timeout"].as_str()?)
    }

    /// The answer to GET.
    pub(super) fn resource(&self, scope: &Scope, endpoint: &str, default_output: bool) -> Value {
        let mut properties = self.asked.clone();
        properties["status"] = json!(self.shown_status());
        properties["experimentName"] = json!(self.experiment());
        properties["displayName"] = json!(self.display_name());
        properties["services"] = self.services(scope, endpoint);
        properties["properties"] = Value::Object(self.shown_properties());
        for (name, empty) in [
            ("tags", json!({})),
            ("isArchived", json!(false)),
            ("outputs", json!({})),
        ] {
            if properties[name].is_null() {
                properties[name] = empty;
            }
        }
        for (name, output) in properties["outputs"].as_object_mut().into_iter().flatten() {
            if output["uri"].is_null() {
                output["uri"] = json!(self.output_address(name));
            }
        }
        if default_output && self.text("jobType") == "Command" {
            let address = format!(
                "azureml://datastores/workspaceartifactstore/{}",
                Self::artifacts(&self.name).trim_end_matches('/')
            );
            properties["outputs"]["default"] = json!({"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "uri": address, "description": null});
        }
        let id = format!("{}/jobs/{}", scope.id(), self.name);
        json!({
            "id": id, "name": self.name, "type": format!("{PROVIDER}/workspaces/jobs"), "properties": properties,
            "systemData": system_data(self.made, self.changed),
        })
    }

    /// The default place of an output.
    pub(super) fn output_address(&self, name: &str) -> String {
        format!(
            "azureml://datastores/workspaceblobstore/paths/azureml/{}/{name}/",
            self.name
        )
    }

    fn services(&self, scope: &Scope, endpoint: &str) -> Value {
        let service = |kind: &str, address: String| json!({"jobServiceType": kind, "port": null, "endpoint": address, "status": null, "errorMessage": null, "properties": null});
        let mut services = self.asked["services"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let studio = format!("{endpoint}/runs/{}?wsid={}", self.name, scope.id());
        services.insert("Studio".to_owned(), service("Studio", studio));
        services.insert(
            "Tracking".to_owned(),
            service(
                "Tracking",
                format!("azureml://localhost/mlflow/v1.0{}?", scope.id()),
            ),
        );
        Value::Object(services)
    }

    pub(super) fn shown_properties(&self) -> Map<String, Value> {
        let mut properties = self.asked["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let kind = if self.is_singularity() {
            "AISC"
        } else {
            "amlctrain"
        };
        properties
            .entry("_azureml.ComputeTargetType")
            .or_insert_with(|| json!(kind));
        for (name, moment) in [("StartTimeUtc", self.started), ("EndTimeUtc", self.ended)] {
            if let Some(moment) = moment {
                properties.insert(name.to_owned(), json!(moment.to_string()));
            }
        }
        properties
    }
}

pub(super) fn is_singularity(asked: &Value) -> bool {
    platform(asked).is_some()
        || asked["computeId"]
            .as_str()
            .is_some_and(|id| id.to_lowercase().contains("/virtualclusters/"))
}

/// Whether the nodes are for interactive work: they exist, and the command is not run.
pub(super) fn is_interactive(asked: &Value) -> bool {
    let is_interactive_service =
        |entry: (&String, &Value)| entry.0.eq_ignore_ascii_case("interactive") && *entry.1 == true;
    platform(asked).is_some_and(|bag| {
        bag.as_object()
            .is_some_and(|entries| entries.iter().any(is_interactive_service))
    })
}

/// The request for a virtual cluster; tools spell its key in several ways.
fn platform(asked: &Value) -> Option<&Value> {
    let is =
        |name: &str| ["aisupercomputer", "singularity"].contains(&name.to_lowercase().as_str());
    asked["resources"]["properties"]
        .as_object()?
        .iter()
        .find(|(name, _)| is(name))
        .map(|(_, bag)| bag)
}

/// `P1DT2H3M4.5S`
pub(super) fn duration(text: &str) -> Option<Duration> {
    let rest = text.strip_prefix('P')?;
    let (days, times) = rest.split_once('T').unwrap_or((rest, ""));
    let (mut total, mut digits) = (0.0, String::new());
    for (part, units) in [
        (days, [('W', 604_800.0), ('D', 86_400.0), (' ', 0.0)]),
        (times, [('H', 3_600.0), ('M', 60.0), ('S', 1.0)]),
    ] {
        for letter in part.chars() {
            if letter.is_ascii_digit() || letter == '.' {
                digits.push(letter);
                continue;
            }
            let unit = units.iter().find(|(known, _)| *known == letter)?.1;
            total += digits.parse::<f64>().ok()? * unit;
            digits.clear();
        }
    }
    (digits.is_empty() && rest.len() > 1).then(|| Duration::from_secs_f64(total))
}

/// The container that holds every run's artifacts.
pub(super) const ARTIFACTS_CONTAINER: &str = datastores::ARTIFACTS_CONTAINER;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let seconds = |text| duration(text).map(|found| found.as_secs_f64());
        assert_eq!(seconds("PT1H"), Some(3600.0));
        assert_eq!(seconds("P1DT2H3M4.5S"), Some(93_784.5));
        assert_eq!(seconds("PT0.5S"), Some(0.5));
        for bad in ["", "P", "1H", "PT1X", "PT5", "P1H"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
