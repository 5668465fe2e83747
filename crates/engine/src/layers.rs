//! Configuration layers: defaults < user file < ACT's files < `towline.yaml` < `TOW_*` < flags. They are laid
//! over each other as trees, so that every value still knows where it was written.

use crate::act_layout::ActLayout;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use towline_core::config::{Cluster, ClusterKind, Config};
use towline_core::suggest::did_you_mean;
use towline_core::yaml::{self, Content, Node, Position, Warning};
use towline_core::{Error, Result};

/// The name of the project file, at the code root.
pub const PROJECT_FILE: &str = "towline.yaml";
const TOP_LEVEL: [&str; 8] = ["default_cluster", "in_place", "clusters", "datastores", "folders", "sync", "tunnels", "workspaces"];

/// The merged configuration, with its tree for `config show --origin`.
#[derive(Debug, Clone)]
pub struct Layers {
    pub config: Config,
    pub tree: Node,
    pub warnings: Vec<Warning>,
    /// Clusters of ACT's files that cannot be read, and why.
    broken: BTreeMap<String, String>,
}

/// Where layers come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub user_file: Option<PathBuf>,
    /// Files of ACT, used where they lie.
    pub act: Option<ActLayout>,
    pub project_file: Option<PathBuf>,
    /// Variables that begin with `TOW_`.
    pub variables: Vec<(String, String)>,
}

impl Sources {
    /// The files and variables of this user in this folder.
    pub fn find(folder: &Path, environment: &[(String, String)]) -> Self {
        Self {
            user_file: user_folder(environment)
                .map(|folder| folder.join("config.yaml"))
                .filter(|file| !matches!(towline_host::filesystem::look(file), Ok(None))),
            act: ActLayout::find(folder, environment),
            project_file: folder.ancestors().map(|folder| folder.join(PROJECT_FILE)).find(|file| file.exists()),
            variables: environment.iter().filter(|(name, _)| name.starts_with("TOW_")).cloned().collect(),
        }
    }
}

/// Where this user's configuration lies.
pub fn user_folder(environment: &[(String, String)]) -> Option<PathBuf> {
    let value = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty());
    let config_home = value("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| value("HOME").map(|home| Path::new(home).join(".config")));
    config_home.map(|home| home.join("towline"))
}

/// Reads and merges all layers.
pub fn load(sources: &Sources) -> Result<Layers> {
    let mut tree = Node::empty_mapping("default");
    if let Some(file) = &sources.user_file {
        tree.overlay(read_yaml(file)?);
    }
    let act = sources.act.as_ref().map(ActLayout::layer);
    let (mut unreadable, mut strangers) = (BTreeMap::new(), Vec::new());
    if let Some(layer) = act {
        tree.overlay(layer.tree);
        unreadable = layer.broken;
        strangers = layer.warnings;
    }
    if let Some(file) = &sources.project_file {
        tree.overlay(read_yaml(file)?);
    }
    for (name, value) in &sources.variables {
        if let Some(layer) = variable_layer(name, value) {
            tree.overlay(layer);
        }
    }
    let (config, mut warnings): (Config, _) = yaml::decode_leniently(&tree)?;
    warnings.extend(strangers);
    let broken = judge(unreadable, &config, &mut warnings)?;
    Ok(Layers { config, tree, warnings, broken })
}

/// A file of ACT that cannot be read is an error where its cluster is the default, else a warning
/// until somebody names the cluster.
fn judge(unreadable: BTreeMap<String, (PathBuf, Error)>, config: &Config, warnings: &mut Vec<Warning>) -> Result<BTreeMap<String, String>> {
    let mut broken = BTreeMap::new();
    for (name, (file, error)) in unreadable.into_iter().filter(|(name, _)| !config.clusters.contains_key(name)) {
        if config.default_cluster.as_ref() == Some(&name) {
            return Err(error.while_doing(format!("cluster `{name}`")).hint("it is the default cluster here; another one: export TOW_DEFAULT_CLUSTER=local"));
        }
        let at = Position { source: file.display().to_string().into(), line: 0, column: 0 };
        warnings.push(Warning { at, message: format!("cluster `{name}` cannot be used: {error}") });
        broken.insert(name, error.to_string());
    }
    Ok(broken)
}

/// Reads a YAML file; a mistake names it with line and column.
pub fn read_yaml(file: &Path) -> Result<Node> {
    let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::config(format!("there is no file {}", file.display())),
        io::ErrorKind::InvalidData => Error::config(format!("{} is not UTF-8 text", file.display())),
        _ => Error::config(format!("{} cannot be read", file.display())).source_error(error),
    })?;
    let node = yaml::parse(&file.display().to_string(), &text)?;
    if !matches!(node.content, Content::Mapping(_)) {
        return Err(Error::config(format!("{}: expected a mapping of keys to values", node.at)));
    }
    Ok(node)
}

/// `TOW_DEFAULT_CLUSTER=lab`, `TOW_CLUSTERS__LOCAL__GPUS=2`. Other `TOW_` variables are not configuration.
fn variable_layer(name: &str, value: &str) -> Option<Node> {
    let path: Vec<String> = name.strip_prefix("TOW_")?.split("__").map(str::to_ascii_lowercase).collect();
    if !TOP_LEVEL.contains(&path.first()?.as_str()) || path.iter().any(String::is_empty) {
        return None;
    }
    let at = Position { source: name.into(), line: 0, column: 0 };
    let leaf = Node::scalar(value, at.clone());
    Some(path.iter().rev().fold(leaf, |node, key| Node { content: Content::Mapping(vec![(Node::scalar(key, at.clone()), node)]), at: at.clone() }))
}

/// One configured value with its place.
#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub origin: String,
}

impl Layers {
    /// Every leaf, with where it was written. Credentials are references, so they may be shown.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        leaves(&self.tree, String::new(), &mut entries);
        entries
    }

    /// The cluster of that name; `local` exists without being named.
    pub fn cluster(&self, name: &str) -> Result<Cluster> {
        if let Some(cluster) = self.config.clusters.get(name) {
            return Ok(cluster.clone());
        }
        if let Some(why) = self.broken.get(name) {
            return Err(Error::config(format!("cluster `{name}`: {why}")));
        }
        if name == "local" {
            return Ok(Cluster::local());
        }
        let known: Vec<&str> = self.cluster_names();
        let error = Error::new(towline_core::ErrorKind::NotFound, format!("no cluster is called `{name}`"));
        Err(error.hint(did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("known: {}", known.join(", ")))))
    }

    /// Whether a cluster is called so, be its file readable or not.
    pub fn has_cluster(&self, name: &str) -> bool {
        name == "local" || self.config.clusters.contains_key(name) || self.broken.contains_key(name)
    }

    pub fn cluster_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.config.clusters.keys().map(String::as_str).collect();
        if !names.contains(&"local") {
            names.insert(0, "local");
        }
        names
    }

    pub fn default_cluster(&self) -> &str {
        self.config.default_cluster.as_deref().unwrap_or("local")
    }

    /// What the configuration says about this machine: the entry called `local`, else the first of that kind.
    pub fn this_machine(&self) -> Cluster {
        let of_kind = || self.config.clusters.values().find(|cluster| cluster.kind == ClusterKind::Local);
        self.config.clusters.get("local").or_else(of_kind).cloned().unwrap_or_else(Cluster::local)
    }
}

fn leaves(node: &Node, path: String, entries: &mut Vec<Entry>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match &node.content {
        Content::Mapping(children) => {
            for (key, value) in children {
                leaves(value, join(key.text().unwrap_or_default()), entries);
            }
        }
        Content::Sequence(items) => {
            let value = items.iter().map(|item| item.text().unwrap_or("…")).collect::<Vec<_>>().join(", ");
            entries.push(Entry { key: path, value: format!("[{value}]"), origin: node.at.to_string() });
        }
        Content::Scalar { text, .. } => entries.push(Entry { key: path, value: text.clone(), origin: node.at.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_layers_win_and_origins_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let user = folder.path().join("config.yaml");
        let project = folder.path().join(PROJECT_FILE);
        std::fs::write(&user, "default_cluster: lab\nclusters:\n  lab: {kind: slurm, host: login}\n").expect("written");
        std::fs::write(&project, "clusters:\n  lab: {partition: dev}\n  here: {kind: local, gpus: 1}\ncolour: red\n").expect("written");
        let variables = vec![("TOW_CLUSTERS__HERE__GPUS".to_owned(), "4".to_owned()), ("TOW_RUN_ID".to_owned(), "x".to_owned())];
        let layers = load(&Sources { user_file: Some(user), project_file: Some(project), variables, act: None }).expect("loads");
        assert_eq!(layers.default_cluster(), "lab");
        assert_eq!(layers.cluster("here").expect("known").gpus, Some(4));
        assert_eq!(layers.cluster("lab").expect("known").partition.as_deref(), Some("dev"));
        let origin = |key: &str| layers.entries().into_iter().find(|entry| entry.key == key).expect("there").origin;
        assert!(origin("clusters.lab.host").ends_with("config.yaml:3:28"), "{}", origin("clusters.lab.host"));
        assert_eq!(origin("clusters.here.gpus"), "TOW_CLUSTERS__HERE__GPUS");
        assert_eq!(layers.warnings.len(), 1);
        assert!(layers.cluster("lap").expect_err("unknown").hints()[0].contains("lab"));
    }

    #[test]
    fn a_key_that_act_does_not_know_is_a_warning_with_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let clusters = folder.path().join(crate::act_layout::CLUSTERS);
        std::fs::create_dir_all(&clusters).expect("a folder");
        std::fs::write(clusters.join("base.yaml"), "compute_target: x\ngpu_per_nodes: 8\n").expect("written");
        std::fs::write(clusters.join("aml.yaml"), "_base_: base.yaml\naml_config: {workspace_name: w}\n").expect("written");
        let sources = Sources { act: ActLayout::find(folder.path(), &[]), ..Sources::default() };
        let layers = load(&sources).expect("loads");
        let told: Vec<String> = layers.warnings.iter().map(|warning| format!("{}: {}", warning.at, warning.message)).collect();
        // Both clusters have it from the one file.
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].ends_with("base.yaml:2:1: unknown key `gpu_per_nodes`: did you mean `gpu_per_node`?"), "{told:?}");
    }
}
