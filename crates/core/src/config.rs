//! The configuration, as a type. Layers and their origins are merged before it is decoded.

use crate::quantity::Memory;
use serde::{Deserialize, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::fmt;

/// More GPUs than this in one machine are a mistake.
pub const MOST_LOCAL_GPUS: u32 = 100_000;

/// What stands after all layers: defaults < user file < `towline.yaml` < `TOW_*` < flags.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    pub default_cluster: Option<String>,
    /// Local runs start in the folder itself unless told otherwise.
    pub in_place: bool,
    pub clusters: BTreeMap<String, Cluster>,
    pub datastores: BTreeMap<String, Datastore>,
    pub folders: BTreeMap<String, Folder>,
    /// Where `tow sync` mirrors the code to.
    pub sync: Option<Sync>,
    pub tunnels: BTreeMap<String, Tunnel>,
    /// Which bastion leads to which machine, by the machine's number: `tow tunnel add --sandbox
    /// 1234`.
    pub bastions: Vec<Bastion>,
    pub workspaces: BTreeMap<String, crate::workspace::Workspace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterKind {
    Local,
    Slurm,
    Kubernetes,
    Azureml,
    Philly,
}

/// Whether a kind, by its word, is this machine.
pub fn is_this_machine(kind: &str) -> bool {
    kind == ClusterKind::Local.word()
}

impl ClusterKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Slurm => "slurm",
            Self::Kubernetes => "kubernetes",
            Self::Azureml => "azureml",
            Self::Philly => "philly",
        }
    }
}

/// One cluster. Keys that its kind does not use are refused when it is opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    pub kind: ClusterKind,
    /// Local: GPUs to use, instead of those found.
    #[serde(default)]
    pub gpus: Option<u32>,
    /// Local: CPUs to hand out, instead of all.
    #[serde(default)]
    pub cpus: Option<u32>,
    /// Local: memory to hand out, instead of all.
    #[serde(default)]
    pub memory: Option<Memory>,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub ssh_config: Option<String>,
    #[serde(default)]
    pub partition: Option<String>,
    /// Slurm: whom runs are charged to, unless a job says otherwise.
    #[serde(default)]
    pub account: Option<String>,
    #[serde(default)]
    pub stage: Option<String>,
    /// Slurm: the folder of its commands, where a login does not find them.
    #[serde(default)]
    pub slurm_bin: Option<String>,
    #[serde(default)]
    pub tiers: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    pub subscription: Option<String>,
    #[serde(default)]
    pub resource_group: Option<String>,
    #[serde(default)]
    pub workspace: Option<String>,
    #[serde(default)]
    pub compute: Option<String>,
    #[serde(default)]
    pub virtual_cluster: Option<String>,
    /// Azure ML: a `config.json` that names subscription, resource group and workspace.
    #[serde(default)]
    pub config: Option<String>,
    /// Azure ML: how to sign in; `azure_cli` where nothing is said.
    #[serde(default)]
    pub credential: Option<Credential>,
    /// Azure ML: the folder of another Azure CLI login (`AZURE_CONFIG_DIR`).
    #[serde(default)]
    pub profile: Option<String>,
    /// Azure ML: where the resource manager answers, in another cloud than the public one.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// GPUs of one node, where the cluster does not tell.
    #[serde(default)]
    pub gpus_per_node: Option<u32>,
    /// What jobs there have unless they say otherwise: keys of a job file.
    #[serde(default)]
    pub job: Option<Box<crate::job::Job>>,
    /// The store that folders have on this cluster, under their usual path.
    #[serde(default)]
    pub datastore: Option<String>,
    /// Folders that lie elsewhere on this cluster.
    #[serde(default)]
    pub folders: BTreeMap<String, Folder>,
    /// Folders of the top that this cluster does not have.
    #[serde(default)]
    pub without_folders: Vec<String>,
}

impl Cluster {
    /// Whether it is this machine.
    pub fn is_here(&self) -> bool {
        self.kind == ClusterKind::Local
    }

    pub fn local() -> Self {
        Self {
            kind: ClusterKind::Local,
            gpus: None,
            cpus: None,
            memory: None,
            host: None,
            ssh_config: None,
            partition: None,
            account: None,
            stage: None,
            slurm_bin: None,
            tiers: BTreeMap::new(),
            subscription: None,
            resource_group: None,
            workspace: None,
            compute: None,
            virtual_cluster: None,
            config: None,
            credential: None,
            profile: None,
            endpoint: None,
            gpus_per_node: None,
            job: None,
            datastore: None,
            folders: BTreeMap::new(),
            without_folders: Vec::new(),
        }
    }

    /// Whether it goes without a folder that is named for all clusters.
    pub fn lacks_folder(&self, name: &str) -> bool {
        !self.folders.contains_key(name)
            && self.without_folders.iter().any(|lacking| lacking == name)
    }
}

/// One datastore. Keys that its kind does not use are refused when it is opened.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Datastore {
    /// `azure_blob`, `s3`, `folder` or `ssh_folder`.
    pub kind: String,
    /// A folder behind ssh: the host that has it, as ssh knows it.
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub ssh_config: Option<String>,
    #[serde(default)]
    pub account: Option<String>,
    #[serde(default)]
    pub container: Option<String>,
    #[serde(default)]
    pub bucket: Option<String>,
    #[serde(default)]
    pub region: Option<String>,
    /// A folder's own path; below a container or bucket, what everything lies under.
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub endpoint: Option<String>,
    #[serde(default)]
    pub credential: Option<Credential>,
}

/// A way to be let in: a word such as `azure_cli`, or keys with references as values.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    Word(String),
    Map(BTreeMap<String, String>),
}

impl fmt::Debug for Credential {
    /// Somebody may have written a secret in the place of a reference.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(_) => f.write_str("Word(…)"),
            Self::Map(map) => f.debug_set().entries(map.keys()).finish(),
        }
    }
}

impl Serialize for Credential {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Word(word) => serializer.serialize_str(word),
            Self::Map(map) => map.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Credential {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> de::Visitor<'de> for Form {
            type Value = Credential;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word such as azure_cli, or keys such as {sas: env:NAME}")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Credential, E> {
                Ok(Credential::Word(word.to_owned()))
            }
            fn visit_map<A: de::MapAccess<'de>>(
                self,
                mut entries: A,
            ) -> Result<Credential, A::Error> {
                let mut map = BTreeMap::new();
                while let Some((key, value)) = entries.next_entry()? {
                    map.insert(key, value);
                }
                Ok(Credential::Map(map))
            }
        }
        deserializer.deserialize_any(Form)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Folder {
    pub datastore: String,
    #[serde(default)]
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Sync {
    pub datastore: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub ignore: Vec<String>,
}

/// The way to machines of some numbers; what it means is told by [`crate::bastion`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bastion {
    /// The numbers: `1000-1115`.
    pub sandboxes: String,
    /// Hops for ssh, as in a tunnel; or an Azure Bastion by `name` and `resource_group`.
    #[serde(default)]
    pub via: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub resource_group: Option<String>,
    #[serde(default)]
    pub subscription: Option<String>,
    /// The resource group of the machines, where it is not the bastion's.
    #[serde(default)]
    pub machine_group: Option<String>,
    /// How machines are called, `{number}` for the number: `GCRAZGDL{number}` where nothing is
    /// said.
    #[serde(default)]
    pub machine: Option<String>,
    /// Who logs in there.
    #[serde(default)]
    pub user: Option<String>,
}

/// One tunnel; what it means is told by [`crate::tunnel`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tunnel {
    /// `HOST` or `HOST:PORT`, as the last hop sees it.
    pub to: String,
    /// Hops for ssh, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<crate::tunnel::Probe>,
    /// Words of a program that listens on `{port}`, instead of hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_config: Option<String>,
}
