//! An emulator of the Azure ML service on loopback, beside a real blob service: it answers the
//! requests of clients of the real service, and a command job really runs, as processes of this
//! machine. It is written from the published description of the service and from no code of
//! Towline, so that it can judge; Microsoft's own clients certify it (`tests/aml.rs`). It runs no
//! containers by default and knows no images: a command finds the programs of this machine.

mod answer;
mod artifacts;
mod assertion;
mod assets;
mod blobs;
mod call;
mod clusters;
mod codes;
mod computes;
mod container;
mod datastores;
mod details;
mod document;
mod faults;
mod history;
mod ids;
mod images;
mod inputs;
mod jobs;
pub mod judge;
mod life;
mod list;
mod login;
mod logs;
mod metadata;
mod node;
mod outputs;
mod outsider;
mod programs;
mod ranks;
mod recorder;
mod role_requests;
mod roles;
mod routes;
mod run;
mod schema;
mod server;
mod signed;
mod tokens;
mod update;
mod user;
mod vault;
mod workspace;
mod world;

use crate::real::Azurite;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use world::World;

pub use container::Image;
pub use faults::{Conditions, Device, Quota, Trouble, When};
pub use ids::Scope;
pub use login::Principal;
pub use programs::output_lines;
pub use recorder::{Pair, Traffic};
pub use roles::{ActiveRole, Directory, EligibleRole};
pub use schema::JobSchema;

/// The emulator and its blob service. Dropping it ends it, with every process of every job.
#[derive(Debug)]
pub struct Aml {
    world: Arc<World>,
    server: server::Server,
    azurite: Azurite,
    authority: PathBuf,
    _folder: TempDir,
}

impl Aml {
    /// One workspace, with its datastores, a cluster of nodes (`cpu`), one of Kubernetes (`k8s`)
    /// and a virtual cluster (`vc`).
    #[track_caller]
    pub fn start() -> Self {
        let azurite = Azurite::start_tls();
        let secured = azurite.secured().unwrap();
        let authority = secured.authority.clone();
        let server = server::Server::bind(secured);
        let folder = tempfile::Builder::new()
            .prefix("tow-aml-")
            .tempdir()
            .unwrap();
        let world = World::new(&azurite, &server, folder.path());
        server.serve(&world);
        world.add_workspace(&Scope::first());
        Self {
            world,
            server,
            azurite,
            authority,
            _folder: folder,
        }
    }

    /// `https://localhost:PORT`: the resource manager, and with it the rest of the cloud.
    pub fn endpoint(&self) -> &str {
        &self.world.endpoint
    }
    /// The certificate that a client must trust, as PEM; the blob service has the same.
    pub fn authority(&self) -> &Path {
        &self.authority
    }
    pub fn azurite(&self) -> &Azurite {
        &self.azurite
    }
    /// The workspace that exists from the start.
    pub fn scope(&self) -> Scope {
        Scope::first()
    }
    /// The id of the virtual cluster.
    pub fn cluster(&self) -> String {
        clusters::id()
    }
    /// `core.localhost:PORT`: the end of the blob service's host names,
    /// `https://ACCOUNT.blob.core.localhost:PORT`.
    pub fn storage_suffix(&self) -> String {
        self.world.blobs.suffix()
    }
    /// The variables that make a process a managed identity: `IDENTITY_ENDPOINT` and
    /// `IDENTITY_HEADER`.
    pub fn identity(&self) -> [(String, String); 2] {
        self.world.tokens.identity()
    }
    /// An application that may sign in.
    pub fn principal(&self) -> Principal {
        self.world.tokens.principal()
    }
    /// An assertion that proves to the login service that a workload is that application; less than
    /// 0 is expired.
    pub fn assertion(&self, seconds: i64) -> String {
        self.world
            .tokens
            .mint(login::TOKEN_EXCHANGE_AUDIENCE, seconds)
    }
    /// A token for an audience, valid for so many seconds; less than 0 is expired.
    pub fn token(&self, audience: &str, seconds: i64) -> String {
        self.world.tokens.mint(audience, seconds)
    }

    /// Changes the behaviour of the service from now on; see [`Conditions`].
    pub fn conditions(&self, change: impl FnOnce(&mut Conditions)) {
        change(&mut self.world.conditions());
    }
    /// Reads or changes the roles of the signed-in user; see [`Directory`].
    pub fn directory<T>(&self, act: impl FnOnce(&mut Directory) -> T) -> T {
        act(&mut self.world.directory())
    }
    /// The next `times` requests of `method` whose path and query contain `part` have a fault.
    pub fn trouble(&self, times: usize, method: &str, part: &str, trouble: Trouble, when: When) {
        self.world.faults.add(times, method, part, trouble, when);
    }
    /// The number of faults that have not happened yet.
    pub fn troubles_left(&self) -> usize {
        self.world.faults.left()
    }

    /// Every job that the service has, with its state.
    pub fn jobs(&self) -> Vec<(String, String)> {
        self.world
            .workspaces()
            .values()
            .flat_map(|workspace| workspace.jobs.iter())
            .map(|(name, job)| (name.clone(), job.status.clone()))
            .collect()
    }
    /// The true state of a job; none if there is no such job.
    pub fn status(&self, job: &str) -> Option<String> {
        self.world.with_job(job, |job| job.status.clone())
    }
    /// Every state a job has been in, in order. An unknown job fails the test.
    #[track_caller]
    pub fn states(&self, job: &str) -> Vec<String> {
        self.world
            .with_job(job, |job| job.states.clone())
            .unwrap_or_else(|| panic!("the service knows no job {job}"))
    }
    /// The failure of a job: the service's error, and the output of its processes.
    pub fn last_words(&self, job: &str) -> String {
        let error = self.world.with_job(job, |job| job.error.clone()).flatten();
        let (blobs, begin) = (
            &self.world.blobs,
            format!("{}user_logs/", document::Job::artifacts(job)),
        );
        let logs = blobs
            .list(document::ARTIFACTS_CONTAINER, &begin)
            .unwrap()
            .into_iter();
        let text = |name: String| {
            let bytes = blobs
                .get(document::ARTIFACTS_CONTAINER, &name)
                .ok()
                .flatten()
                .unwrap_or_default();
            format!("{name}:\n{}", String::from_utf8_lossy(&bytes))
        };
        logs.map(|(name, _)| text(name))
            .fold(format!("{error:?}\n"), |all, one| all + &one)
    }
    /// Shows another state for a job than its true one; none shows the truth again.
    pub fn show_status(&self, job: &str, status: Option<&str>) {
        self.world
            .with_job(job, |job| job.shown = status.map(ToOwned::to_owned));
    }
    /// A tag that the platform sets, as ITP does (`amlk8s status`, `ssh`).
    pub fn tag(&self, job: &str, name: &str, value: &str) {
        self.world.with_job(job, |job| job.set_tag(name, value));
    }
    /// Preempts a running job, which goes back to the queue and starts again on other nodes.
    pub fn preempt(&self, job: &str) {
        self.world.with_job(job, |job| job.preempted = true);
    }
    /// Process groups of a job, while it runs.
    pub fn process_groups(&self, job: &str) -> Vec<i32> {
        self.world
            .with_job(job, |job| job.groups.clone())
            .unwrap_or_default()
    }

    /// Every request and its answer so far, without secrets.
    pub fn recorded(&self) -> Vec<Pair> {
        self.world.recorder.pairs()
    }
    /// Method and target of each request, where there are many.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.world.recorder.asked()
    }
    /// The same with all content: every request and its answer, with their senders.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.world.recorder.traffic()
    }
    /// Names of the secrets in the vault.
    pub fn kept_secrets(&self) -> Vec<String> {
        self.world.vault.names()
    }
    /// Blobs that contain these bytes, in all containers of the account: `CONTAINER/NAME`.
    #[track_caller]
    pub fn blobs_holding(&self, bytes: &[u8]) -> Vec<String> {
        self.blobs_holding_any(&[bytes])
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }
    /// The same for many texts, each blob read once: which of them, and where. Programs are left
    /// out, because the name of one is the digest of its content.
    #[track_caller]
    pub fn blobs_holding_any(&self, wanted: &[&[u8]]) -> Vec<(usize, String)> {
        let blobs = &self.world.blobs;
        let mut containers = blobs.containers().unwrap();
        // The account's listing may have pages; a leak would be in these two.
        containers.extend([self.container(), datastores::ARTIFACTS_CONTAINER.to_owned()]);
        containers.sort_unstable();
        containers.dedup();
        let (mut searched, mut found) = (0, Vec::new());
        for container in &containers {
            let names = blobs
                .list(container, "")
                .unwrap()
                .into_iter()
                .map(|(name, _)| name)
                .filter(|name| !name.contains("/bin/tow-"));
            for name in names {
                let bytes = blobs.get(container, &name).unwrap().unwrap_or_default();
                let held = wanted.iter().enumerate().filter(|(_, wanted)| {
                    bytes.windows(wanted.len()).any(|window| window == **wanted)
                });
                found.extend(held.map(|(number, _)| (number, format!("{container}/{name}"))));
                searched += 1;
            }
        }
        assert!(searched > 0, "no blob was searched");
        found
    }
    /// The record as lines of JSON.
    pub fn write_recorded(&self, file: &Path) -> std::io::Result<()> {
        self.world.recorder.write(file)
    }
}

impl Drop for Aml {
    fn drop(&mut self) {
        self.world.end();
        self.server.end();
    }
}
