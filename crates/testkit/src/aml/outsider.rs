//! Actions of others in the workspace during a test: another tool, a colleague, the portal.

use super::Aml;
use reqwest::Method;
use serde_json::{Value, json};

impl Aml {
    /// A request to the resource manager below the workspace, with a valid token; status and
    /// answer.
    #[track_caller]
    pub fn ask(&self, method: &str, rest: &str, body: Option<&Value>) -> (u16, Value) {
        let mark = if rest.contains('?') { '&' } else { '?' };
        let url = format!(
            "{}{}/{rest}{mark}api-version=2024-04-01",
            self.endpoint(),
            self.scope().id()
        );
        self.world
            .blobs
            .ask(
                method.parse::<Method>().unwrap(),
                &url,
                &self.token(self.endpoint(), 600),
                body,
            )
            .unwrap()
    }

    /// Puts a job of one command, as another tool does, with more properties.
    #[track_caller]
    pub fn put_job(&self, name: &str, command: &str, more: &Value) {
        let mut properties =
            json!({"jobType": "Command", "command": command, "environmentId": "azureml:e:1"});
        for (name, value) in more.as_object().into_iter().flatten() {
            properties[name] = value.clone();
        }
        let (status, answer) = self.ask(
            "PUT",
            &format!("jobs/{name}"),
            Some(&json!({"properties": properties})),
        );
        assert_eq!(status, 201, "{answer}");
    }

    /// Adds a compute of nodes, of a machine type.
    #[track_caller]
    pub fn put_compute(&self, name: &str, size: &str, nodes: u32) {
        let properties = json!({"vmSize": size, "vmPriority": "Dedicated", "scaleSettings": {"minNodeCount": 0, "maxNodeCount": nodes}});
        let (status, answer) = self.ask(
            "PUT",
            &format!("computes/{name}"),
            Some(&json!({"properties": {"computeType": "AmlCompute", "properties": properties}})),
        );
        assert!(matches!(status, 200 | 201), "{answer}");
    }

    /// Attaches a compute of Kubernetes.
    #[track_caller]
    pub fn put_kubernetes(&self, name: &str) {
        let (status, answer) = self.ask(
            "PUT",
            &format!("computes/{name}"),
            Some(&json!({"properties": {"computeType": "Kubernetes", "properties": {}}})),
        );
        assert!(matches!(status, 200 | 201), "{answer}");
    }

    /// A blob of any container of the account; none if it does not exist.
    #[track_caller]
    pub fn blob(&self, container: &str, name: &str) -> Option<String> {
        self.world
            .blobs
            .get(container, name)
            .unwrap()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
    #[track_caller]
    pub fn put_blob(&self, container: &str, name: &str, text: &str) {
        self.world.blobs.make_container(container).unwrap();
        self.world.blobs.put(container, name, text.into()).unwrap();
    }
    /// Names that begin so.
    #[track_caller]
    pub fn blobs(&self, container: &str, prefix: &str) -> Vec<String> {
        self.world
            .blobs
            .list(container, prefix)
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }
    /// The container behind the workspace's own datastore.
    pub fn container(&self) -> String {
        format!(
            "azureml-blobstore-{}",
            super::ids::uuid_of(&self.scope().key())
        )
    }
}
