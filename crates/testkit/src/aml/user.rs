//! A user of the service: signed in, with one cluster of each kind.

use super::Aml;
use crate::Home;

impl Aml {
    /// A machine of this user, with the clusters of [`Aml::configuration`].
    pub fn home_of(&self, user: &str, built: &str) -> Home {
        let mut home = Home::new(built).freezing();
        for (name, value) in self.identity() {
            home.set(&name, &value);
        }
        home.set("SSL_CERT_FILE", self.authority().to_str().unwrap());
        home.set("USER", user);
        home.configure(&self.configuration());
        home
    }

    /// `aml` is the default; the compute of `lost` does not exist. More lines may follow.
    pub fn configuration(&self) -> String {
        let scope = self.scope();
        let common = format!(
            "kind: azureml, endpoint: '{}', credential: managed_identity, subscription: {}, \
                resource_group: {}, workspace: {}",
            self.endpoint(),
            scope.subscription,
            scope.group,
            scope.workspace
        );
        let instance = "job: {resources: {instance_type: ND96amrs_A100_v4}}";
        let flavours = [
            ("aml", "compute: cpu".to_owned()),
            ("itp", "compute: k8s".to_owned()),
            (
                "sing",
                format!("virtual_cluster: '{}', {instance}", self.cluster()),
            ),
            ("lost", "compute: cpy".to_owned()),
        ];
        let clusters: Vec<String> = flavours
            .iter()
            .map(|(name, rest)| format!("  {name}: {{{common}, {rest}}}\n"))
            .collect();
        format!("default_cluster: aml\nclusters:\n{}", clusters.concat())
    }
}
