//! The document of a job: exactly what is sent. Pure: the same plan gives the same bytes.

use super::config::AzureSettings;
use super::data::{self, Data};
use super::fits::{check_fits, check_secrets, known_stores, machine};
use super::identity::{self, JobIdentity};
use super::image::{self, Environment};
use super::limits;
use super::site::{AzureSite, Flavour, short};
use super::words::{self, NativeWords};
use serde_json::{Map, Value, json};
use towline_core::cluster::{Asked, GpuMake};
use towline_core::config::StoreKind;
use towline_core::job::{Job, Tier};
use towline_core::plan::PlannedRun;
use towline_core::quantity::Memory;
use towline_core::resolve::{NamedStore, Resolved};
use towline_core::{Result, RunId};
use towline_wire::crew::{CREW_VERB, keys};

/// The service's time limit is this much longer than the job's own, because our program ends the
/// job first.
const TIME_LIMIT_SLACK_SECONDS: u64 = 3_600;

/// More than any machine has, so that only the machine's memory limits data loaders with workers.
/// With the service's own default of 2g they die of SIGBUS.
const USUAL_SHARED_MEMORY: &str = "1024g";

const SHARED_MEMORY: &str = "SHARED_MEMORY_PERCENT";

/// A job resolved for one workspace; it gives a body for each run.
#[derive(Debug)]
pub(super) struct Payload<'a> {
    site: &'a AzureSite,
    submission: &'a RunId,
    job: &'a Job,
    resolved: &'a Resolved,
    /// The digest of our program.
    digest: &'a str,
    /// Our path in the workspace's datastore.
    stage: String,
    words: NativeWords,
    pub environment: Environment,
    pub identity: JobIdentity,
    pub data: Data,
}

impl<'a> Payload<'a> {
    pub(super) fn new(
        asked: &Asked<'a>,
        config: &'a AzureSettings,
        site: &'a AzureSite,
        digest: &'a str,
        stage: String,
    ) -> Result<Self> {
        limits::check_tags(&asked.job.tags)?;
        let words = words::read(&asked.job.resources.native, site.flavour)?;
        let machine = machine(asked.job, config, site)?;
        check_fits(asked.resolved, config, site, machine.as_deref())?;
        let identity = identity::identity(asked.job.identity.as_deref(), site)?;
        check_secrets(asked.resolved, &identity, site)?;
        let kind = machine.as_deref().or(site.usual_pod.as_deref());
        let has_no_gpu = kind
            .and_then(|kind| site.instance(kind))
            .is_some_and(|instance| instance.gpus == 0);
        let is_amd = kind.is_some_and(|kind| site.has_amd(kind));
        let make = if is_amd {
            GpuMake::Amd
        } else {
            GpuMake::Nvidia
        };
        let image = towline_core::image::chosen(asked.job, (!has_no_gpu).then_some(make))?;
        let has_gpus = asked.resolved.shape.gpus_per_node > 0;
        let environment = image::environment(
            image,
            has_gpus,
            site.flavour,
            &site.scope,
            words.image_version.clone(),
            &site.images,
        );
        known_stores(asked.resolved, site)?;
        let data = data::data(asked.resolved, &|store| data::name_in(site, store, &stage))?;
        Ok(Self {
            site,
            submission: asked.id,
            job: asked.job,
            resolved: asked.resolved,
            digest,
            stage,
            words,
            environment,
            identity,
            data,
        })
    }

    /// The body of one run.
    pub(super) fn body(&self, run: &PlannedRun) -> Value {
        let mut properties = json!({
            "jobType": "Command",
            "displayName": limits::display_name(&run.name),
            "experimentName": limits::experiment(self.job.experiment.as_deref()),
            "description": limits::description(&self.resolved.program.display()),
            "computeId": self.site.compute_id,
            "environmentId": self.environment.id,
            "command": self.command(&run.id),
            "tags": self.tags(&run.id),
            "properties": {"tow.run": run.id, "tow.submission": self.submission, "tow.stage": self.stage},
            "inputs": self.inputs(),
            "outputs": self.outputs(&run.id),
            "resources": self.resources(),
        });
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                properties[key] = value;
            }
        };
        add("distribution", self.distribution());
        add("environmentVariables", self.variables());
        add("identity", self.identity.document(self.site.flavour));
        add("limits", self.limits());
        add("queueSettings", self.queue());
        add("services", self.services());
        json!({"properties": properties})
    }

    /// The shell line of the job: it copies our program to a folder where it may be executed, and
    /// starts it. The line holds nothing of the user's job.
    fn command(&self, run: &RunId) -> String {
        let mut words = vec![
            r#"d="$PWD"; [ -w "$d" ] || d="$(mktemp -d)"; cp "${{inputs.tow_program}}" "$d/.tow" && chmod 700 "$d/.tow" && exec "$d/.tow""#.to_owned(),
            CREW_VERB.to_owned(),
            r#"--order "${{inputs.tow_order}}""#.to_owned(),
            format!("--run {run}"),
            r#"--folder "${{outputs.tow_run}}" --news "${{outputs.tow_news}}""#.to_owned(),
        ];
        if self.resolved.code.is_some() {
            words.push(r#"--store "${{inputs.tow_code}}""#.to_owned());
        }
        words.extend(
            self.data
                .places
                .iter()
                .map(|(name, place)| format!(r#"--at "{name}={place}""#)),
        );
        words.join(" ")
    }

    fn staged(&self, key: &str) -> String {
        data::address(&self.site.store.name, &format!("{}/{key}", self.stage))
    }

    fn inputs(&self) -> Map<String, Value> {
        let mut inputs = self.data.inputs.clone();
        let file = |key: &str| json!({"jobInputType": "uri_file", "uri": self.staged(key), "mode": "Download"});
        inputs.insert("tow_program".to_owned(), file(&keys::program(self.digest)));
        inputs.insert("tow_order".to_owned(), file(&keys::order(self.submission)));
        if self.resolved.code.is_some() {
            inputs.insert("tow_code".to_owned(), json!({"jobInputType": "uri_folder", "uri": self.staged("snapshots/"), "mode": "ReadOnlyMount"}));
        }
        inputs
    }

    fn outputs(&self, run: &RunId) -> Map<String, Value> {
        let mut outputs = self.data.outputs.clone();
        let folder = |key: &str| json!({"jobOutputType": "uri_folder", "uri": self.staged(key), "mode": "ReadWriteMount"});
        outputs.insert(
            "tow_run".to_owned(),
            folder(&format!("{}/", keys::run(run))),
        );
        outputs.insert("tow_news".to_owned(), folder("news/"));
        outputs
    }

    fn tags(&self, run: &RunId) -> Map<String, Value> {
        let own = [("tow".to_owned(), run.to_string())];
        self.job
            .tags
            .iter()
            .map(|tag| limits::split_tag(tag))
            .chain(own)
            .map(|(name, value)| (name, json!(value)))
            .collect()
    }

    /// One process per node: our own program, which starts the ranks as on every cluster.
    fn distribution(&self) -> Option<Value> {
        let wanted = self.resolved.shape.nodes > 1 || self.site.flavour == Flavour::Singularity;
        wanted.then(|| json!({"distributionType": "PyTorch", "processCountPerInstance": 1}))
    }

    fn variables(&self) -> Option<Value> {
        let mut variables = Map::new();
        for (name, value) in self
            .resolved
            .env
            .iter()
            .filter(|(name, value)| is_for_the_platform(name) && !value.contains("${{"))
        {
            variables.insert(name.clone(), json!(value));
        }
        if let Some(share) = self.shared_memory() {
            variables
                .entry(SHARED_MEMORY)
                .or_insert_with(|| json!(share));
        }
        self.identity.variables(self.site.flavour, &mut variables);
        (!variables.is_empty()).then_some(Value::Object(variables))
    }

    /// The size of shared memory. A virtual cluster takes a share of the machine's memory, not a
    /// size.
    fn shared_memory(&self) -> Option<String> {
        let size: Memory = self
            .words
            .shm_size
            .as_ref()
            .filter(|_| self.site.flavour == Flavour::Singularity)?
            .parse()
            .ok()?;
        let whole = self
            .job
            .resources
            .instance_type
            .as_deref()
            .and_then(|name| self.site.instance(name))
            .map(|instance| instance.memory)?;
        let hundredths = (size.0.saturating_mul(100))
            .div_ceil(whole.max(1))
            .clamp(1, 100);
        Some(format!("{}.{:02}", hundredths / 100, hundredths % 100))
    }

    fn limits(&self) -> Option<Value> {
        let time = self.resolved.time?.0;
        // A job that is retried after each time limit has no known total time.
        let retry = self
            .resolved
            .retry
            .as_ref()
            .filter(|retry| !retry.is_unlimited_after(towline_core::reason::Cause::TimeLimit));
        if retry.is_none() && self.resolved.retry.is_some() {
            return None;
        }
        let starts = retry.map_or(1, |retry| u64::from(retry.max_starts().max(1)));
        let held = self.resolved.hold_on_failure.map_or(0, |hold| hold.0);
        let whole = time
            .saturating_add(held)
            .saturating_add(TIME_LIMIT_SLACK_SECONDS)
            .saturating_mul(starts);
        Some(json!({"jobLimitsType": "Command", "timeout": format!("PT{whole}S")}))
    }

    /// The tier, only if the job asks for one, because most computes have no tiers.
    fn queue(&self) -> Option<Value> {
        let tier = self
            .job
            .resources
            .tier
            .filter(|_| self.site.flavour == Flavour::Aml)?;
        Some(json!({"jobTier": tier_word(tier)}))
    }

    fn services(&self) -> Option<Value> {
        let key = self
            .words
            .ssh_public_key
            .as_ref()
            .filter(|_| self.site.flavour != Flavour::Singularity)?;
        Some(
            json!({"ssh": {"jobServiceType": "SSH", "nodes": {"nodesValueType": "All"}, "properties": {"sshPublicKeys": key}}}),
        )
    }

    fn resources(&self) -> Value {
        let mut resources = json!({"instanceCount": self.resolved.shape.nodes});
        resources["shmSize"] = json!(
            self.words
                .shm_size
                .as_deref()
                .unwrap_or(USUAL_SHARED_MEMORY)
        );
        if let Some(words) = &self.words.docker_args {
            resources["dockerArgs"] = json!(words);
        }
        match self.site.flavour {
            Flavour::Aml => {}
            Flavour::Itp => {
                if let Some(kind) = &self.job.resources.instance_type {
                    resources["instanceType"] = json!(kind);
                }
                resources["properties"] = json!({"itp": self.itp()});
            }
            Flavour::Singularity => {
                resources["properties"] = json!({"AISuperComputer": self.singularity()});
            }
        }
        resources
    }

    fn itp(&self) -> Value {
        let shape = &self.resolved.shape;
        let evicted = self.resolved.tier == Tier::Basic;
        let gigabytes = shape.memory.map_or(0, |memory| memory.0.div_ceil(1 << 30));
        let mut bag = json!({
            "resource_configuration": {"gpu_count": shape.gpus_per_node, "cpu_count": shape.cpus_per_node.unwrap_or(1), "memory_request_in_gb": gigabytes},
            "priority_configuration": {"job_priority": if evicted { 100 } else { 200 }, "is_preemptible": evicted},
        });
        if let Some(key) = &self.words.ssh_public_key {
            bag["interactive_configuration"] =
                json!({"is_ssh_enabled": true, "ssh_public_key": key});
        }
        for (part, values) in &self.words.bag {
            for (key, value) in values.as_object().into_iter().flatten() {
                bag[part][key] = value.clone();
            }
        }
        bag
    }

    fn singularity(&self) -> Value {
        let nodes = self.resolved.shape.nodes;
        let mut bag = json!({
            "instanceType": self.job.resources.instance_type.as_deref().map(|kind| format!("Singularity.{}", short(kind))),
            "instanceCount": nodes,
            "slaTier": tier_word(self.resolved.tier),
            "priority": "High",
            "virtualClusterArmId": self.site.compute_id,
            "interactive": self.words.interactive.unwrap_or(false),
            "enableAzmlInt": true,
            "scalePolicy": {"autoScaleIntervalInSec": 120, "maxInstanceTypeCount": nodes, "minInstanceTypeCount": nodes},
        });
        // The service refuses an empty list.
        let locations = self.job.resources.location.as_slice();
        if !locations.is_empty() {
            bag["locations"] = json!(locations);
        }
        if let Some(version) = &self.environment.image_version {
            bag["imageVersion"] = json!(version);
        }
        if let Some(key) = &self.words.ssh_public_key {
            bag["sshPublicKey"] = json!(key);
        }
        for (key, value) in &self.words.bag {
            bag[key] = value.clone();
        }
        bag
    }

    /// Datastores that must be registered in the workspace.
    pub(super) fn stores(&self) -> Vec<&NamedStore> {
        let stores = self
            .resolved
            .io
            .iter()
            .map(|io| &io.store)
            .chain(self.resolved.copy.iter().map(|copy| &copy.store));
        let mut found: Vec<&NamedStore> = stores
            .filter(|store| store.datastore.kind == StoreKind::AzureBlob)
            .collect();
        found.dedup_by_key(|store| data::store_name(store, &self.stage));
        found
    }
}

pub(super) const fn tier_word(tier: Tier) -> &'static str {
    match tier {
        Tier::Basic => "Basic",
        Tier::Standard => "Standard",
        Tier::Premium => "Premium",
    }
}

/// Whether the service itself reads this variable. Setting it for the ranks would be too late.
fn is_for_the_platform(name: &str) -> bool {
    matches!(name, SHARED_MEMORY | "JOB_EXECUTION_MODE")
        || ["AZUREML_", "AML_", "SINGULARITY_", "DATASET_"]
            .iter()
            .any(|beginning| name.starts_with(beginning))
}
