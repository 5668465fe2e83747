//! The configuration, as a type. Layers and their origins are merged before it is decoded.

mod cluster;
mod cluster_keys;
mod store_kind;

pub use cluster::{
    AzuremlConfig, Cluster, ClusterKind, KindConfig, LocalConfig, MAX_LOCAL_GPUS, SlurmConfig,
    is_this_machine,
};
pub use cluster_keys::keys_of;
pub use store_kind::StoreKind;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::fmt;

/// The name of the project file, at the code root.
pub const PROJECT_FILE: &str = "towline.yaml";

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
    /// What agents may do. Only the user's own file can say that.
    pub agents: crate::agents::Agents,
}

/// One datastore. Keys that its kind does not use are refused when it is opened.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Datastore {
    /// `azure_blob`, `s3`, `folder` or `ssh_folder`.
    #[schemars(with = "String")]
    pub kind: StoreKind,
    /// A folder behind ssh: the host that has it, as ssh knows it.
    #[serde(default)]
    pub host: Option<String>,
    /// A configuration for ssh, instead of the user's.
    #[serde(default)]
    pub ssh_config: Option<String>,
    /// Azure: the storage account.
    #[serde(default)]
    pub account: Option<String>,
    /// Azure: the container.
    #[serde(default)]
    pub container: Option<String>,
    /// S3: the bucket.
    #[serde(default)]
    pub bucket: Option<String>,
    /// S3: the region.
    #[serde(default)]
    pub region: Option<String>,
    /// A folder's own path; below a container or bucket, what everything lies under.
    #[serde(default)]
    pub path: Option<String>,
    /// The address of the service, if it is not the usual one.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// How to be let in.
    #[serde(default)]
    pub credential: Option<Credential>,
}

/// A way to be let in: a word such as `azure_cli`, or keys with references as values.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
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
