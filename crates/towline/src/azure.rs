//! Clusters of Azure ML: made from the configuration, and what was learnt of them before.

use crate::context::Context;
use crate::job_data::{JobData, check_name, clean};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use towline_backends::azureml::WORKSPACE_STORE;
use towline_backends::azureml::backend::AzureBackend;
use towline_backends::azureml::config::AzureConfig;
use towline_backends::azureml::site::AzureSite;
use towline_core::config::{Cluster, ClusterKind, Config, Credential, Datastore};
use towline_core::job::{Io, IoMode, Job};
use towline_core::record::RunRecord;
use towline_core::resolve::{CopyPlan, FrozenCode, IoPlan, MOUNTED, NamedStore};
use towline_core::{Error, Result, network};
use towline_engine::surroundings;
use towline_io::azure::seam::AzureCloud;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;
use towline_wire::runner::Variables;

/// What a workspace was found to have counts for this long.
const FACTS_LAST: Duration = Duration::from_secs(600);

/// Variables by which a machine or a session says who it is, where the Azure CLI does not.
const OF_SIGN_IN: [&str; 9] = [
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "MSI_ENDPOINT",
    "MSI_SECRET",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
];

/// Nothing is asked yet.
pub(crate) fn backend(named: &NamedCluster, state: &StateFolder) -> Result<AzureBackend> {
    let config = AzureConfig::new(&named.name, &named.cluster, None, &user())?;
    let known = known(state, &config);
    Ok(AzureBackend::new(config, Arc::new(cloud(named, state)?), crate::machines::own_program(state)?, known))
}

/// The cloud of a cluster, as whoever it signs in.
pub(crate) fn cloud(named: &NamedCluster, state: &StateFolder) -> Result<AzureCloud> {
    let variables: Vec<(String, String)> = named.variables.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    crate::cloud::open(&named.name, &named.cluster, state, variables)
}

/// A cluster with all that stands elsewhere in its place: whoever reads the definition may be in
/// another folder, with another environment.
pub(crate) fn settled(name: &str, cluster: Cluster, folder: &Path, environment: &[(String, String)]) -> Result<NamedCluster> {
    let mut cluster = with_workspace(name, cluster, folder)?;
    let value = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let by_cli = is_by_cli(cluster.credential.as_ref());
    if cluster.profile.is_none() && by_cli {
        cluster.profile = value("AZURE_CONFIG_DIR");
    }
    let referred = match &cluster.credential {
        Some(Credential::Map(map)) => map.values().filter_map(|value| value.strip_prefix("env:")).collect(),
        _ => Vec::new(),
    };
    // Where `az` is, for whoever has another shell.
    let wanted = OF_SIGN_IN.into_iter().chain(referred).chain(by_cli.then_some("PATH"));
    let mut variables: BTreeMap<String, String> = wanted.filter_map(|name| Some((name.to_owned(), value(name)?))).collect();
    // The way to the services is this shell's, also where it says that there is no proxy.
    variables.extend(network::VARIABLES.map(|name| (name.to_owned(), value(name).map(|value| absolute(folder, name, value)).unwrap_or_default())));
    Ok(NamedCluster { name: name.to_owned(), variables: Variables(variables), cluster })
}

/// A file that is named from a folder, for whoever is in another.
fn absolute(folder: &Path, name: &str, value: String) -> String {
    let is_file = matches!(name, "SSL_CERT_FILE" | "REQUESTS_CA_BUNDLE" | "CURL_CA_BUNDLE") && !value.is_empty();
    if is_file { folder.join(&value).display().to_string() } else { value }
}

/// Nothing is said, or nothing but whose login of the Azure CLI it is.
fn is_by_cli(credential: Option<&Credential>) -> bool {
    match credential {
        None => true,
        Some(Credential::Word(word)) => word == "azure_cli",
        Some(Credential::Map(map)) => map.keys().all(|key| key == "azure_cli" || key == "tenant_id"),
    }
}

fn with_workspace(name: &str, mut cluster: Cluster, folder: &Path) -> Result<Cluster> {
    let Some(path) = cluster.config.clone() else { return Ok(cluster) };
    let written = crate::machines::expand(&path)?;
    let root = surroundings::code_root(folder);
    let candidates = [written.clone(), root.join(&written), folder.join(&written)];
    let text = candidates.iter().find_map(|path| std::fs::read_to_string(path).ok());
    let text = text
        .ok_or_else(|| Error::config(format!("cluster `{name}`: there is no file {path}")).hint("the portal of the workspace has it: Download config.json"))?;
    let found = AzureConfig::new(name, &cluster, Some(&text), "me")?;
    cluster.subscription = found.subscription;
    cluster.resource_group = found.resource_group;
    cluster.workspace = Some(found.workspace);
    cluster.config = None;
    Ok(cluster)
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct KnownSite {
    /// Of the workspace and the target they were asked of.
    of: String,
    site: AzureSite,
}

fn mark(config: &AzureConfig) -> String {
    format!("{} {:?} {:?} {} {:?} {:?}", config.endpoint, config.subscription, config.resource_group, config.workspace, config.target, config.gpus_per_node)
}

fn known(state: &StateFolder, config: &AzureConfig) -> Option<AzureSite> {
    let path = state.cluster(&config.name, "facts");
    let age = std::fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok()?;
    let known: KnownSite = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    (age < FACTS_LAST && known.of == mark(config)).then_some(known.site)
}

/// Where a run's logs and what it left lie, as an address that Azure's tools know.
pub(crate) fn folder(state: &StateFolder, record: &RunRecord) -> String {
    let known = std::fs::read(state.cluster(&record.cluster, "facts")).ok().and_then(|bytes| serde_json::from_slice::<KnownSite>(&bytes).ok());
    let named = NamedCluster::read(&state.cluster(&record.cluster, "definition")).ok().flatten();
    let who = known.as_ref().and_then(|known| known.site.who.clone());
    let store = known.map_or_else(|| "workspaceblobstore".to_owned(), |known| known.site.store.name);
    let config = named.and_then(|named| AzureConfig::new(&named.name, &named.cluster, None, &user()).ok());
    let stage = config.map(|config| config.stage_of(who.as_ref())).unwrap_or_default();
    format!("azureml://datastores/{store}/paths/{stage}/runs/{}", record.id)
}

fn user() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default()
}

/// What the workspace has: known, or asked now and kept for the next call.
pub(crate) fn site(context: &Context, backend: &AzureBackend, anew: bool) -> Result<AzureSite> {
    let state = context.state()?;
    if !anew && known(state, backend.config()).is_some() {
        return backend.site();
    }
    crate::machines::connect(backend)?;
    let site = crate::machines::waited_for(backend, || backend.look())?;
    let known = KnownSite { of: mark(backend.config()), site: site.clone() };
    let _ = towline_host::filesystem::private_folder(&state.clusters())
        .and_then(|()| serde_json::to_vec(&known).map_err(std::io::Error::other))
        .and_then(|bytes| towline_host::once::replace(&state.cluster(&backend.config().name, "facts"), &bytes));
    Ok(site)
}

/// Names of the public keys that a user may have, the better one first.
const PUBLIC_KEYS: [&str; 3] = ["id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"];

/// A job that only keeps its nodes is to be entered: it is told whom to let in.
pub(crate) fn with_way_in(context: &Context, mut job: Job, cluster: &str) -> Result<Job> {
    let is_azure = context.layers()?.cluster(cluster).is_ok_and(|cluster| cluster.kind == ClusterKind::Azureml);
    let has_key = job.resources.native.iter().any(|word| word.starts_with("ssh_public_key="));
    if !is_azure || has_key || job.command.as_slice() != ["sleep", "infinity"] {
        return Ok(job);
    }
    let folder = surroundings::home().map(|home| home.join(".ssh")).unwrap_or_default();
    let key = PUBLIC_KEYS.iter().find_map(|name| std::fs::read_to_string(folder.join(name)).ok()).ok_or_else(|| {
        Error::refused(format!("nobody could enter: there is no public key in {}", folder.display()))
            .hint("make one with ssh-keygen, or give it: `resources.native: [ssh_public_key=…]`")
    })?;
    job.resources.native.push(format!("ssh_public_key={}", key.trim()));
    job.resources.native.push("interactive=true".to_owned());
    Ok(job)
}

/// GPUs of the kind of machine that a job names.
pub(crate) fn gpus(context: &Context, backend: &AzureBackend, job: &Job) -> Result<Option<u32>> {
    let Some(wanted) = &job.resources.instance_type else { return Ok(None) };
    Ok(site(context, backend, false)?.instance(wanted).map(|instance| instance.gpus))
}

/// The data of a job there: what the configuration knows, stores that only the workspace does, and
/// mapped folders, which are mounted and linked into the code: `./data` is there in every run.
pub(crate) fn job_data(context: &Context, cluster: &str, job: &Job, code: &mut Option<FrozenCode>) -> Result<JobData> {
    let config = &context.layers()?.config;
    let is_unknown = |name: &str| !config.datastores.contains_key(name);
    let mut known = job.clone();
    known.io.retain(|_, io| !is_unknown(&io.datastore));
    if let Some(code) = code {
        code.mapped = mapped(config, cluster, &mut known)?;
    }
    let copy = known.copy.take_if(|copy| is_unknown(&copy.datastore));
    let mut data = crate::job_data::job_data(context, &known, false)?;
    for (name, io) in job.io.iter().filter(|(_, io)| is_unknown(&io.datastore)) {
        check_name(name)?;
        let path = clean(&format!("io.{name}.path"), &io.path)?;
        data.io.push(IoPlan { name: name.clone(), store: workspace_store(&io.datastore), path, mode: io.mode, options: io.options.clone() });
    }
    if let Some(copy) = copy {
        let subdirs = copy.subdirs.iter().map(|subdir| clean("copy.subdirs", subdir)).collect::<Result<_>>()?;
        data.copy = Some(CopyPlan { store: workspace_store(&copy.datastore), path: clean("copy.path", &copy.path)?, subdirs });
    }
    Ok(data)
}

/// The data that a run had elsewhere. Mapped folders, which were links there, are mounted; those of another workspace stay what they are.
pub(crate) fn with_folders(context: &Context, cluster: &str, mut data: JobData, code: &mut Option<FrozenCode>) -> Result<JobData> {
    if code.as_ref().is_none_or(|code| code.mapped.values().any(|place| place.starts_with(MOUNTED))) {
        return Ok(data);
    }
    let more = job_data(context, cluster, &Job::default(), code)?;
    let own: BTreeSet<String> = data.io.iter().map(|io| io.name.clone()).collect();
    data.io.extend(more.io.into_iter().filter(|io| !own.contains(&io.name)));
    data.secrets.0.extend(more.secrets.0);
    Ok(data)
}

/// A store by the name that the workspace has for it.
fn workspace_store(name: &str) -> NamedStore {
    NamedStore { name: name.to_owned(), datastore: Datastore { kind: WORKSPACE_STORE.to_owned(), ..Datastore::default() } }
}

/// Adds a mount for each mapped folder; which of them each is.
fn mapped(config: &Config, cluster: &str, job: &mut Job) -> Result<BTreeMap<String, String>> {
    let there = config.clusters.get(cluster);
    let usual = config.folders.keys().filter(|name| there.is_none_or(|there| !there.lacks_folder(name)));
    let names: BTreeSet<&String> = usual.chain(there.into_iter().flat_map(|there| there.folders.keys())).collect();
    let mut places = BTreeMap::new();
    for folder in names {
        let letters: String = folder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let name = if letters.starts_with(|c: char| c.is_ascii_alphabetic()) { letters } else { format!("folder_{letters}") };
        if !job.io.contains_key(&name) {
            let (datastore, path) = crate::stores::placing(config, Some(cluster), folder)?;
            job.io.insert(name.clone(), Io { datastore, path, mode: IoMode::Mount, options: Vec::new() });
        }
        places.insert(folder.clone(), format!("{MOUNTED}{name}"));
    }
    Ok(places)
}
