//! The kinds of clusters that this program has. No other file knows them all.

use crate::azureml::cluster::AzureCluster;
use crate::azureml::config::AzureSettings;
use crate::features::Kind;
use crate::local::{self, LocalCluster};
use crate::remembered::Remembered;
use crate::slurm::cluster::SlurmCluster;
use crate::{azureml, slurm};
use std::path::Path;
use std::sync::Arc;
use towline_core::cloud::Cloud;
use towline_core::cluster::{Cluster, Page};
use towline_core::config::{self, AzuremlConfig, KindConfig};
use towline_core::transport::Transport;
use towline_core::{Error, Result};
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;
use towline_wire::program::OwnProgram;
use towline_wire::report::clusters::{Discovered, Workspace};
use towline_wire::runner::Variables;

// A verb that uses them names no kind.
pub use crate::azureml::roles::{NamedRole, RoleService, Waiting};

/// The connections that a cluster needs beside its configuration: machines, clouds, and this
/// program.
pub trait Means {
    fn state(&self) -> &StateFolder;
    /// This program, which is uploaded to the machines that run jobs.
    fn program(&self) -> Result<OwnProgram>;
    /// The machine that runs the scheduler's commands: this one, or a host behind ssh.
    fn machine(&self, host: Option<&str>, ssh_config: Option<&str>) -> Result<Arc<dyn Transport>>;
    /// The services of a cloud, signed in as the cluster's configuration says.
    fn cloud(&self, named: &NamedCluster, config: &AzuremlConfig) -> Result<Arc<dyn Cloud>>;
    /// The user of this machine.
    fn user(&self) -> String;
}

/// The folder, environment and files of the process that reads a definition.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub folder: &'a Path,
    pub code_root: &'a Path,
    pub home: Option<&'a Path>,
    pub environment: &'a [(String, String)],
}

/// The cluster that a definition describes. Makes no call to it yet.
pub fn open(named: &NamedCluster, means: &dyn Means) -> Result<Arc<dyn Cluster>> {
    let NamedCluster { name, cluster, .. } = named;
    Ok(match &cluster.kind {
        KindConfig::Local(config) => {
            Arc::new(LocalCluster::new(name, means.state().clone(), config))
        }
        KindConfig::Slurm(config) => Arc::new(SlurmCluster::open(named, config, means)?),
        KindConfig::Azureml(config) => Arc::new(AzureCluster::open(named, config, means)?),
        KindConfig::Kubernetes | KindConfig::Philly => {
            return Err(Error::unsupported(format!(
                "cluster `{name}` is of kind `{}`, which this version cannot use yet",
                cluster.kind.word()
            ))
            .hint("the local cluster is called `local`"));
        }
    })
}

/// Every kind that can be used, for people.
pub fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            title: "this machine",
            flavours: vec![("", local::features::CAPS)],
            how: local::features::HOW,
        },
        Kind {
            title: "Slurm",
            flavours: vec![("", slurm::features::CAPS)],
            how: slurm::features::HOW,
        },
        Kind {
            title: "Azure ML",
            flavours: vec![
                ("computes", azureml::features::caps(true)),
                ("virtual clusters", azureml::features::caps(false)),
            ],
            how: azureml::features::HOW,
        },
    ]
}

/// The kinds that the configuration can name and that cannot be used yet.
pub const PLANNED_KINDS: [&str; 2] = ["Kubernetes", "Philly"];

/// A definition in which references are replaced by their content, because its reader may be in
/// another folder, with another environment.
pub fn define(
    name: &str,
    mut cluster: config::Cluster,
    caller: &Caller<'_>,
) -> Result<NamedCluster> {
    let variables = match &mut cluster.kind {
        KindConfig::Azureml(config) => azureml::define(name, config, caller)?,
        _ => Variables::default(),
    };
    Ok(NamedCluster {
        name: name.to_owned(),
        cluster,
        variables,
    })
}

/// An answer of a service, for people and for programs.
#[derive(Debug)]
pub struct Answer<T> {
    pub page: Page,
    pub value: T,
    /// What to do with it.
    pub hint: String,
}

/// Whether a service of this kind can list what the user may use.
pub const fn is_discoverable(cluster: &config::Cluster) -> bool {
    matches!(cluster.kind, KindConfig::Azureml(_))
}

/// Lists what the user may use, signed in as a cluster's configuration says; without a cluster, as
/// the Azure CLI is signed in.
pub fn discover(
    cluster: Option<(&str, config::Cluster)>,
    caller: &Caller<'_>,
    means: &dyn Means,
) -> Result<Answer<Discovered>> {
    let (name, definition) = cluster.unwrap_or_else(|| {
        let azure = KindConfig::Azureml(AzuremlConfig::default());
        ("azure", config::Cluster::of(azure))
    });
    let named = define(name, definition, caller)?;
    let KindConfig::Azureml(config) = &named.cluster.kind else {
        return Err(Error::unsupported(format!(
            "cluster `{name}` is of kind `{}`: only Azure ML is asked",
            named.cluster.kind.word()
        )));
    };
    let cloud = means.cloud(&named, config)?;
    cloud.sign_in(true)?;
    azureml::discovered(cloud.as_ref())
}

/// Creates a workspace beside that of a cluster.
pub fn create_workspace(
    named: &NamedCluster,
    means: &dyn Means,
    name: &str,
    location: Option<&str>,
) -> Result<Answer<Workspace>> {
    let KindConfig::Azureml(config) = &named.cluster.kind else {
        let error = Error::unsupported(format!("cluster `{}` has no workspace", named.name));
        return Err(error.hint("name one of kind azureml with `-c`"));
    };
    AzureCluster::open(named, config, means)?.create_workspace(name, location)
}

/// The roles that the user may activate in the subscription of a cluster.
pub fn roles(named: &NamedCluster, means: &dyn Means) -> Result<RoleService> {
    let NamedCluster { name, cluster, .. } = named;
    let KindConfig::Azureml(config) = &cluster.kind else {
        return Err(Error::unsupported(format!(
            "cluster `{name}` is of kind `{}`: only Azure has roles to activate",
            cluster.kind.word()
        ))
        .hint("name one of kind azureml with `-c`"));
    };
    let settings = AzureSettings::new(name, config, None, None, &means.user())?;
    let cloud = means.cloud(named, config)?;
    cloud.sign_in(true)?;
    RoleService::new(cloud, &settings)
}

impl SlurmCluster {
    fn open(named: &NamedCluster, config: &config::SlurmConfig, means: &dyn Means) -> Result<Self> {
        let config = slurm::config::SlurmSettings::new(&named.name, config)?;
        let machine = means.machine(config.host.as_deref(), config.ssh_config.as_deref())?;
        let site = Remembered::new(means.state(), &named.name, config.mark());
        Ok(Self::new(config, machine, means.program()?, site))
    }
}

impl AzureCluster {
    fn open(named: &NamedCluster, config: &AzuremlConfig, means: &dyn Means) -> Result<Self> {
        let gpus = named.cluster.gpus_per_node;
        let settings = AzureSettings::new(&named.name, config, gpus, None, &means.user())?;
        let site = Remembered::new(means.state(), &named.name, settings.mark());
        let cloud = means.cloud(named, config)?;
        Ok(Self::new(settings, cloud, means.program()?, site))
    }
}
