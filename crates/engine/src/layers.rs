//! Configuration layers: defaults < user file < ACT's files < `towline.yaml` < `TOW_*` < flags.
//! They are merged as trees, so that every value still knows where it was written.

mod sources;
mod yaml_file;

pub(crate) use sources::GIT_ENTRY;
pub use sources::{PROJECT_FILE, Sources, user_folder};
pub use yaml_file::{read_yaml, read_yaml_from};

use crate::act_layout::{ActLayer, ActLayout};
use crate::privilege::{self, Privilege};
use crate::trust::{self, Holding, Trusted};
use crate::variables;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use towline_core::config::{Cluster, Config, Credential, MAX_LOCAL_GPUS};
use towline_core::suggest::did_you_mean;
use towline_core::yaml::{self, Content, Node, Position, Warning};
use towline_core::{Error, Result};
use yaml_file::{open, parse_yaml, read_text};

/// The key of what agents may do.
const AGENTS: &str = "agents";

/// The merged configuration, with its tree for `config show --origin`.
#[derive(Debug, Clone)]
pub struct Layers {
    pub config: Config,
    pub tree: Node,
    pub warnings: Vec<Warning>,
    /// Clusters of ACT's files that cannot be read, and why.
    broken: BTreeMap<String, String>,
    /// Configuration that is not used, because the user has not trusted it.
    pub untrusted: Vec<Untrusted>,
    /// Folders that a project names and that are not code, whether or not their mapping is used.
    pub described_folders: Vec<String>,
}

/// Configuration of a project that does more than describe jobs, and that the user has not trusted.
#[derive(Debug, Clone)]
pub struct Untrusted {
    pub folder: PathBuf,
    /// The path to show: `towline.yaml`, or ACT's folder.
    pub shown: String,
    pub holding: Holding,
    pub digest: String,
    pub privileges: Vec<Privilege>,
}

/// Reads and merges all layers. Parts that the user has not trusted are left out and listed.
pub fn load(sources: &Sources) -> Result<Layers> {
    let mut tree = Node::empty_mapping("default");
    if let Some(file) = &sources.user_file {
        if let Some(why) = towline_host::owner::distrust(file).ok().flatten() {
            let error = Error::refused(format!(
                "your configuration {} {why}, so it is not obeyed",
                file.display()
            ));
            return Err(error.hint("make it yours alone: chown, chmod go-w"));
        }
        tree.overlay(read_yaml(file)?);
    }
    let trusted = Trusted::of(sources.user_folder.as_deref());
    let agents = tree.get(AGENTS).cloned();
    let (mut unreadable, mut warnings) = (BTreeMap::new(), owner_warnings(sources));
    let mut untrusted = Vec::new();
    if let Some(act) = &sources.act {
        let (layer, asked) = act_layer(act, &trusted)?;
        untrusted.extend(asked);
        if let Some(layer) = layer {
            tree.overlay(layer.tree);
            unreadable = layer.broken;
            warnings.extend(layer.warnings);
        }
    }
    let mut described_folders = Vec::new();
    if let Some(file) = &sources.project_file {
        let (mut project, asked) = project_layer(file, &trusted)?;
        if sources.is_for_agent() {
            forget_sizes(&mut project);
        }
        described_folders = privilege::described_folders(&project);
        tree.overlay(if asked.is_some() {
            privilege::without_privileges(&project)
        } else {
            project
        });
        untrusted.extend(asked);
    }
    for (name, value) in &sources.variables {
        match variables::layer(name, value) {
            Some(layer) => tree.overlay(layer),
            None => warnings.extend(variables::check(name, value)),
        }
    }
    // A project, which an agent can write, and the environment, which it may have made, have no
    // say in what agents may do.
    if tree.remove(&[AGENTS])
        && let Some(agents) = agents
    {
        tree.put(&[AGENTS], agents);
    }
    complete_local(&mut tree);
    let (config, unknown): (Config, _) = yaml::decode_leniently(&tree)?;
    check_gpus(&tree, &config)?;
    warnings.splice(0..0, unknown);
    warnings.extend(crate::kind_keys::useless(&tree, &config));
    let broken = report_unreadable(unreadable, &config, &mut warnings)?;
    Ok(Layers {
        config,
        tree,
        warnings,
        broken,
        untrusted,
        described_folders,
    })
}

/// The parts of the project's configuration that the user has not trusted, whether or not the rest
/// can be read without them.
pub fn untrusted(sources: &Sources) -> Result<Vec<Untrusted>> {
    let trusted = Trusted::of(sources.user_folder.as_deref());
    let mut found = Vec::new();
    if let Some(act) = &sources.act {
        found.extend(act_layer(act, &trusted)?.1);
    }
    if let Some(file) = &sources.project_file {
        found.extend(project_layer(file, &trusted)?.1);
    }
    Ok(found)
}

fn owner_warnings(sources: &Sources) -> Vec<Warning> {
    let warn = |(file, why): &(PathBuf, String)| {
        let at = Position {
            source: file.display().to_string().into(),
            line: 0,
            column: 0,
        };
        Warning {
            at,
            message: format!("it {why}, so it is not obeyed"),
        }
    };
    sources.untrusted_owners.iter().map(warn).collect()
}

/// Takes out how many GPUs a node has. An agent, which can write a project's file, could make its
/// jobs smaller by it than they are.
fn forget_sizes(project: &mut Node) {
    let Some(Content::Mapping(clusters)) = project.get("clusters").map(|found| &found.content)
    else {
        return;
    };
    let sized = clusters
        .iter()
        .filter(|(_, cluster)| cluster.get("gpus_per_node").is_some());
    let names: Vec<String> = sized
        .filter_map(|(name, _)| name.text().map(str::to_owned))
        .collect();
    for name in names {
        project.remove(&["clusters", &name, "gpus_per_node"]);
    }
}

/// The project's file, and its parts that the user has not trusted.
fn project_layer(file: &Path, trusted: &Trusted) -> Result<(Node, Option<Untrusted>)> {
    // Opening a named pipe would block for ever. Reading a folder fails with a good message.
    if std::fs::metadata(file).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return Err(Error::config(format!(
            "{} is not a plain file",
            file.display()
        )));
    }
    let text = read_text(open(file)?, &file.display().to_string())?;
    let tree = parse_yaml(&text, &file.display().to_string())?;
    let privileges = privilege::privileged(&tree);
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let digest = trust::digest([(Path::new(PROJECT_FILE), text.as_bytes())]);
    if privileges.is_empty() || trusted.is(&folder, Holding::Project, &digest)? {
        return Ok((tree, None));
    }
    Ok((
        tree,
        Some(Untrusted {
            folder,
            shown: file.display().to_string(),
            holding: Holding::Project,
            digest,
            privileges,
        }),
    ))
}

/// ACT's files. Nothing of them counts until the user trusts them, because every key of them decides
/// where jobs, code and data go.
fn act_layer(act: &ActLayout, trusted: &Trusted) -> Result<(Option<ActLayer>, Option<Untrusted>)> {
    let (layer, digest) = act.layer();
    if trusted.is(act.root(), Holding::Act, &digest)? {
        return Ok((Some(layer), None));
    }
    let privileges = privilege::privileged(&layer.tree);
    if privileges.is_empty() {
        return Ok((Some(layer), None));
    }
    let shown = act.clusters().display().to_string();
    Ok((
        None,
        Some(Untrusted {
            folder: act.root().to_owned(),
            shown,
            holding: Holding::Act,
            digest,
            privileges,
        }),
    ))
}

/// A file of ACT that cannot be read is an error if its cluster is the default. Else it is a warning
/// until the user names the cluster.
fn report_unreadable(
    unreadable: BTreeMap<String, (PathBuf, Error)>,
    config: &Config,
    warnings: &mut Vec<Warning>,
) -> Result<BTreeMap<String, String>> {
    let mut broken = BTreeMap::new();
    for (name, (file, error)) in unreadable
        .into_iter()
        .filter(|(name, _)| !config.clusters.contains_key(name))
    {
        if config.default_cluster.as_ref() == Some(&name) {
            return Err(error.while_doing(format!("cluster `{name}`")).hint(
                "it is the default cluster here; another one: export TOW_DEFAULT_CLUSTER=local",
            ));
        }
        let at = Position {
            source: file.display().to_string().into(),
            line: 0,
            column: 0,
        };
        warnings.push(Warning {
            at,
            message: format!("cluster `{name}` cannot be used: {error}"),
        });
        broken.insert(name, error.to_string());
    }
    Ok(broken)
}

/// `local` exists without being named, so its kind may be left out.
fn complete_local(tree: &mut Node) {
    let local = tree
        .get("clusters")
        .and_then(|clusters| clusters.get("local"));
    if local.is_some_and(|local| {
        matches!(local.content, Content::Mapping(_)) && local.get("kind").is_none()
    }) {
        let at = Position {
            source: "default".into(),
            line: 0,
            column: 0,
        };
        tree.put(
            &["clusters", "local", "kind"],
            Node::scalar(Cluster::local().kind.word(), at),
        );
    }
}

/// Refuses a number of GPUs that no machine has, because each would take a place in memory.
fn check_gpus(tree: &Node, config: &Config) -> Result<()> {
    let Some((name, cluster)) = config.clusters.iter().find(|(_, cluster)| {
        cluster
            .declared_gpus()
            .is_some_and(|gpus| gpus > MAX_LOCAL_GPUS)
    }) else {
        return Ok(());
    };
    let mut entries = Vec::new();
    leaves(tree, String::new(), &mut entries);
    let key = format!("clusters.{name}.gpus");
    let origin = entries
        .into_iter()
        .find(|entry| entry.key == key)
        .map_or_else(|| key.clone(), |entry| entry.origin);
    let gpus = cluster.declared_gpus().unwrap_or_default();
    Err(Error::config(format!(
        "{origin}: `{key}` is {gpus}; a machine has at most {MAX_LOCAL_GPUS} GPUs"
    )))
}

/// One configured value, and where it was written.
#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub origin: String,
}

impl Layers {
    /// Variables of the environment that the configuration names as credentials.
    pub fn credential_variables(&self) -> BTreeSet<String> {
        let of_stores = self
            .config
            .datastores
            .values()
            .filter_map(|store| store.credential.as_ref());
        let of_clusters = self
            .config
            .clusters
            .values()
            .filter_map(Cluster::credential);
        let references = of_stores
            .chain(of_clusters)
            .flat_map(|credential| match credential {
                Credential::Word(word) => vec![word.as_str()],
                Credential::Map(map) => map.values().map(String::as_str).collect(),
            });
        references
            .filter_map(|reference| reference.strip_prefix("env:").map(str::to_owned))
            .collect()
    }

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
        let text = format!("no cluster is called `{name}`");
        let error = Error::not_found(text).about("cluster");
        Err(error.hint(
            did_you_mean(name, known.iter().copied())
                .unwrap_or_else(|| format!("known: {}", known.join(", "))),
        ))
    }

    /// Whether there is a cluster of that name, even if its file cannot be read.
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

    /// The cluster that describes this machine: the entry called `local`, else the first of that
    /// kind.
    pub fn this_machine(&self) -> Cluster {
        let of_kind = || {
            self.config
                .clusters
                .values()
                .find(|cluster| cluster.is_here())
        };
        self.config
            .clusters
            .get("local")
            .or_else(of_kind)
            .cloned()
            .unwrap_or_else(Cluster::local)
    }
}

fn leaves(node: &Node, path: String, entries: &mut Vec<Entry>) {
    let join = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match &node.content {
        Content::Mapping(children) => {
            for (key, value) in children {
                leaves(value, join(key.text().unwrap_or_default()), entries);
            }
        }
        Content::Sequence(items) => {
            let value = items
                .iter()
                .map(|item| item.text().unwrap_or("…"))
                .collect::<Vec<_>>()
                .join(", ");
            entries.push(Entry {
                key: path,
                value: format!("[{value}]"),
                origin: node.at.to_string(),
            });
        }
        Content::Scalar { text, .. } => entries.push(Entry {
            key: path,
            value: text.clone(),
            origin: node.at.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::config::KindConfig;

    #[test]
    fn later_layers_win_and_origins_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let user = folder.path().join("config.yaml");
        let project = folder.path().join(PROJECT_FILE);
        std::fs::write(
            &user,
            "default_cluster: lab\nclusters:\n  lab: {kind: slurm, host: login}\n",
        )
        .expect("written");
        std::fs::write(
            &project,
            "clusters:\n  lab: {partition: dev}\n  here: {kind: local, gpus: 1}\ncolour: red\n",
        )
        .expect("written");
        let variables = vec![
            ("TOW_CLUSTERS__HERE__GPUS".to_owned(), "4".to_owned()),
            ("TOW_RUN_ID".to_owned(), "x".to_owned()),
        ];
        let layers = load(&Sources {
            user_file: Some(user),
            project_file: Some(project),
            variables,
            ..Sources::default()
        })
        .expect("loads");
        assert_eq!(layers.default_cluster(), "lab");
        assert_eq!(
            layers.cluster("here").expect("known").declared_gpus(),
            Some(4)
        );
        let KindConfig::Slurm(lab) = layers.cluster("lab").expect("known").kind else {
            panic!("it is of kind slurm");
        };
        assert_eq!(lab.partition.as_deref(), Some("dev"));
        let origin = |key: &str| {
            layers
                .entries()
                .into_iter()
                .find(|entry| entry.key == key)
                .expect("there")
                .origin
        };
        assert!(
            origin("clusters.lab.host").ends_with("config.yaml:3:28"),
            "{}",
            origin("clusters.lab.host")
        );
        assert_eq!(origin("clusters.here.gpus"), "TOW_CLUSTERS__HERE__GPUS");
        assert_eq!(layers.warnings.len(), 1);
        assert!(layers.untrusted.is_empty(), "it only describes jobs");
        assert!(layers.cluster("lap").expect_err("unknown").hints()[0].contains("lab"));
    }

    #[test]
    fn a_key_that_act_does_not_know_is_a_warning_with_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let clusters = folder.path().join(crate::act_layout::ACT_CLUSTERS_FOLDER);
        std::fs::create_dir_all(&clusters).expect("a folder");
        std::fs::write(
            clusters.join("base.yaml"),
            "compute_target: x\ngpu_per_nodes: 8\n",
        )
        .expect("written");
        std::fs::write(
            clusters.join("aml.yaml"),
            "_base_: base.yaml\naml_config: {workspace_name: w}\n",
        )
        .expect("written");
        let mut sources = Sources {
            act: ActLayout::find(folder.path(), &[]),
            user_folder: Some(folder.path().to_owned()),
            ..Sources::default()
        };
        let asked = load(&sources).expect("loads").untrusted;
        assert!(
            asked.len() == 1
                && asked[0]
                    .privileges
                    .iter()
                    .any(|found| found.key.starts_with("clusters.aml")),
            "{asked:?}"
        );
        Trusted::of(sources.user_folder.as_deref())
            .add(&asked[0].folder, Holding::Act, &asked[0].digest)
            .expect("agreed to");
        sources.variables.clear();
        let layers = load(&sources).expect("loads");
        assert!(layers.untrusted.is_empty());
        let warnings: Vec<String> = layers
            .warnings
            .iter()
            .map(|warning| format!("{}: {}", warning.at, warning.message))
            .collect();
        // Both clusters get it from one file.
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].ends_with(
                "base.yaml:2:1: unknown key `gpu_per_nodes`: did you mean `gpu_per_node`?"
            ),
            "{warnings:?}"
        );
    }
}
