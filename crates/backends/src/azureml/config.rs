//! The configuration of an Azure ML cluster.

use serde::{Deserialize, Serialize};
use towline_core::cloud::Who;
use towline_core::config::AzuremlConfig;
use towline_core::{Error, Result};

/// The API version that we use; its documents have not changed since.
pub const ML_API: &str = "2024-04-01";
/// The default path for our objects in the workspace's datastore.
const USUAL_STAGE: &str = "towline";
/// User names that many machines and containers share.
const SHARED_NAMES: [&str; 14] = [
    "",
    "root",
    "admin",
    "administrator",
    "ubuntu",
    "debian",
    "azureuser",
    "ec2-user",
    "vscode",
    "codespace",
    "jovyan",
    "runner",
    "user",
    "docker",
];
const PUBLIC_ENDPOINT: &str = "https://management.azure.com";

/// The parts of a workspace's resource id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub subscription: String,
    pub resource_group: String,
    pub workspace: String,
}

impl Scope {
    /// `/subscriptions/…/workspaces/NAME`
    pub fn id(&self) -> String {
        format!("{}/workspaces/{}", self.provider(), self.workspace)
    }
    /// `/subscriptions/…/providers/Microsoft.MachineLearningServices`
    pub fn provider(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.MachineLearningServices",
            self.subscription, self.resource_group
        )
    }
    pub fn parse(id: &str) -> Option<Self> {
        let words: Vec<&str> = id.trim_matches('/').split('/').collect();
        match words.as_slice() {
            [_, subscription, _, group, _, _, kind, name]
                if kind.eq_ignore_ascii_case("workspaces") =>
            {
                Some(Self {
                    subscription: (*subscription).to_owned(),
                    resource_group: (*group).to_owned(),
                    workspace: (*name).to_owned(),
                })
            }
            _ => None,
        }
    }
}

/// The resource on which jobs run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A compute of the workspace: nodes of Azure ML, or an attached Kubernetes.
    Compute(String),
    /// A virtual cluster of Singularity: its name in the workspace's resource group, or its whole
    /// id.
    VirtualCluster(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureSettings {
    pub name: String,
    pub subscription: Option<String>,
    pub resource_group: Option<String>,
    pub workspace: String,
    pub target: Target,
    pub stage: String,
    /// The machine's user has a name that many people share, so the stage is named after the
    /// signed-in user instead.
    pub is_shared_name: bool,
    pub endpoint: String,
    pub gpus_per_node: Option<u32>,
    /// The configuration file for ssh to interactive jobs.
    pub ssh_config: Option<String>,
}

/// The keys of a `config.json`, as Azure's own tools write it.
#[derive(Debug, Default, Deserialize)]
struct WorkspaceFile {
    subscription_id: Option<String>,
    resource_group: Option<String>,
    workspace_name: Option<String>,
}

impl AzureSettings {
    /// `file` is the text of the `config.json` that the cluster names, `user` the name for the
    /// stage.
    pub fn new(
        name: &str,
        cluster: &AzuremlConfig,
        gpus_per_node: Option<u32>,
        file: Option<&str>,
        user: &str,
    ) -> Result<Self> {
        let file: WorkspaceFile = match file {
            Some(text) => serde_json::from_str(text).map_err(|error| {
                let path = cluster.config.as_deref().unwrap_or_default();
                Error::config(format!("{path}:{}:{}: {error}", error.line(), error.column()))
                    .hint(r#"write {"subscription_id": "…", "resource_group": "…", "workspace_name": "…"}"#)
            })?,
            None => WorkspaceFile::default(),
        };
        let workspace = cluster
            .workspace
            .clone()
            .or(file.workspace_name)
            .filter(|workspace| !workspace.is_empty());
        let workspace = workspace.ok_or_else(|| {
            Error::config(format!("cluster `{name}` names no `workspace`")).hint(
                "write its name, or `config: PATH` of a config.json; `tow clusters \
                    --discover` lists them",
            )
        })?;
        let target = match (&cluster.compute, &cluster.virtual_cluster) {
            (Some(compute), None) => Target::Compute(compute.clone()),
            (None, Some(cluster)) => Target::VirtualCluster(cluster.clone()),
            (Some(_), Some(_)) => {
                return Err(Error::config(format!(
                    "cluster `{name}` names both `compute` and `virtual_cluster`"
                ))
                .hint("keep one of them"));
            }
            (None, None) => {
                return Err(Error::config(format!(
                    "cluster `{name}` names neither `compute` nor `virtual_cluster`"
                ))
                .hint("`tow clusters --discover` lists what the workspace has"));
            }
        };
        let is_shared_name = cluster.stage.is_none()
            && SHARED_NAMES.contains(&user.trim().to_ascii_lowercase().as_str());
        let stage = cluster
            .stage
            .clone()
            .unwrap_or_else(|| format!("{USUAL_STAGE}/{}", safe(user)));
        let stage = stage.trim_matches('/').to_owned();
        if stage.is_empty()
            || !stage
                .split('/')
                .all(|part| !matches!(part, "" | "." | "..") && part.chars().all(is_plain))
        {
            return Err(Error::config(format!(
                "cluster `{name}`: `stage: {stage}` cannot be a path of the workspace's datastore"
            ))
            .hint("use letters, digits, `-`, `_`, `.` and `/`"));
        }
        let config = Self {
            name: name.to_owned(),
            subscription: cluster.subscription.clone().or(file.subscription_id),
            resource_group: cluster.resource_group.clone().or(file.resource_group),
            workspace,
            target,
            stage,
            is_shared_name,
            endpoint: cluster
                .endpoint
                .as_deref()
                .unwrap_or(PUBLIC_ENDPOINT)
                .trim_end_matches('/')
                .to_owned(),
            gpus_per_node,
            ssh_config: cluster.ssh_config.clone(),
        };
        config.check_words()?;
        Ok(config)
    }

    /// Identifies this configuration: facts that were fetched with another one are not used.
    pub(crate) fn mark(&self) -> String {
        format!(
            "{} {:?} {:?} {} {:?} {:?}",
            self.endpoint,
            self.subscription,
            self.resource_group,
            self.workspace,
            self.target,
            self.gpus_per_node
        )
    }

    /// Checks names, because they become parts of URLs.
    fn check_words(&self) -> Result<()> {
        let words = [
            ("subscription", self.subscription.as_deref()),
            ("resource_group", self.resource_group.as_deref()),
            ("workspace", Some(self.workspace.as_str())),
        ];
        for (key, word) in words {
            let Some(word) = word else { continue };
            if word.is_empty() || !word.chars().all(|c| is_plain(c) || matches!(c, '(' | ')')) {
                return Err(Error::config(format!(
                    "cluster `{}`: `{key}: {word}` is not a valid name",
                    self.name
                )));
            }
        }
        match &self.target {
            Target::Compute(name) if name.is_empty() || !name.chars().all(is_plain) => {
                Err(Error::config(format!(
                    "cluster `{}`: `compute: {name}` is not a valid name",
                    self.name
                )))
            }
            Target::VirtualCluster(name)
                if name.is_empty() || !name.chars().all(|c| is_plain(c) || c == '/') =>
            {
                Err(Error::config(format!(
                    "cluster `{}`: `virtual_cluster: {name}` is neither a name nor an id",
                    self.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// The stage of the signed-in user.
    pub fn stage_of(&self, who: Option<&Who>) -> String {
        match who.filter(|_| self.is_shared_name) {
            Some(who) => format!("{USUAL_STAGE}/{}", safe(&who.name)),
            None => self.stage.clone(),
        }
    }

    /// The workspace, if the configuration names all its parts.
    pub fn scope(&self) -> Option<Scope> {
        Some(Scope {
            subscription: self.subscription.clone()?,
            resource_group: self.resource_group.clone()?,
            workspace: self.workspace.clone(),
        })
    }
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn safe(user: &str) -> String {
    let name: String = user
        .chars()
        .map(|c| {
            if is_plain(c) {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    if name.trim_matches(['.', '-']).is_empty() {
        "me".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::config::{Cluster, KindConfig};

    fn cluster(text: &str) -> AzuremlConfig {
        let node = towline_core::yaml::parse("x", text).expect("YAML");
        let cluster: Cluster = towline_core::yaml::decode(&node).expect("a cluster");
        match cluster.kind {
            KindConfig::Azureml(config) => config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_workspace_comes_from_a_file_or_by_name() {
        let file = r#"{"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}"#;
        let config = AzureSettings::new(
            "aml",
            &cluster("{kind: azureml, compute: NC24RSV3, config: c.json}"),
            None,
            Some(file),
            "Alice Smith",
        )
        .expect("whole");
        assert_eq!(
            config.scope().expect("all of it").id(),
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
        );
        assert_eq!(
            (config.target, config.stage.as_str()),
            (Target::Compute("NC24RSV3".into()), "towline/alice-smith")
        );
        let named = AzureSettings::new(
            "s",
            &cluster("{kind: azureml, workspace: w, virtual_cluster: vc}"),
            None,
            None,
            "a",
        )
        .expect("by name");
        assert_eq!(named.scope(), None);
    }

    #[test]
    fn people_who_are_root_have_stages_of_their_own() {
        let text = "{kind: azureml, workspace: w, compute: c}";
        let of = |text: &str, user: &str, name: &str| {
            let who = Who {
                name: name.to_owned(),
                id: "o".into(),
                tenant: "t".into(),
            };
            AzureSettings::new("x", &cluster(text), None, None, user)
                .expect("whole")
                .stage_of(Some(&who))
        };
        assert_eq!(
            of(text, "root", "alice@example.com"),
            "towline/alice-example.com"
        );
        assert_eq!(of(text, "", "bob@example.com"), "towline/bob-example.com");
        assert_eq!(of(text, "alice", "alice@example.com"), "towline/alice");
        assert_eq!(
            of(
                "{kind: azureml, workspace: w, compute: c, stage: ours}",
                "root",
                "alice@example.com"
            ),
            "ours"
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (text, part) in [
            ("{kind: azureml, compute: c}", "workspace"),
            ("{kind: azureml, workspace: w}", "compute"),
            (
                "{kind: azureml, workspace: w, compute: c, virtual_cluster: v}",
                "both",
            ),
            ("{kind: azureml, workspace: 'w/../x', compute: c}", "w/../x"),
            ("{kind: azureml, workspace: w, compute: 'c?x'}", "c?x"),
            (
                "{kind: azureml, workspace: w, compute: c, stage: '../up'}",
                "stage",
            ),
        ] {
            let error = AzureSettings::new("x", &cluster(text), None, None, "a").expect_err(text);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        let error = AzureSettings::new(
            "x",
            &cluster("{kind: azureml, compute: c, config: c.json}"),
            None,
            Some("{\n \"a\": }"),
            "a",
        )
        .expect_err("no JSON");
        assert!(error.to_string().starts_with("c.json:2:"), "{error}");
    }
}
