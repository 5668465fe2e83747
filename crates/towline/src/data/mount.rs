//! Mounts a store with blobfuse2 or rclone. Secrets are passed in its environment, never as
//! arguments.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use towline_core::config::{Datastore, StoreKind};
use towline_core::resolve::IoPlan;
use towline_core::{Error, Result};
use towline_engine::flow::data::MOUNTERS;
use towline_host::mounts;
use towline_host::program::find_program;
use towline_host::surroundings;
use towline_io::azure::sas::sign_container;
use towline_io::credential::{AzureCredential, Lookup};

/// How long mounting may take.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a signature that we make for a mount is valid: longer than runs take.
const SIGNATURE_LIFETIME: Duration = Duration::from_secs(30 * 86_400);

/// A mount and the program behind it, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Mount {
    program: Child,
    place: PathBuf,
    /// The folder of files that rclone has not uploaded yet.
    cache: Option<PathBuf>,
}

impl Mount {
    pub(crate) fn begin(io: &IoPlan, place: &Path, lookup: &Lookup<'_>) -> Result<Self> {
        let kind = &io.store.datastore.kind;
        let path = surroundings::variable("PATH").unwrap_or_default();
        let found = MOUNTERS
            .iter()
            .filter(|program| **program != "blobfuse2" || *kind == StoreKind::AzureBlob)
            .find_map(|program| Some((*program, find_program(program, &path)?)));
        let (name, file) = found.ok_or_else(|| {
            Error::unsupported(format!(
                "nothing on this machine mounts a store of kind `{kind}`"
            ))
            .hint("install rclone or blobfuse2")
        })?;
        #[expect(
            clippy::disallowed_methods,
            reason = "a mount is a program beside the attempt"
        )]
        let mut command = Command::new(file);
        match name {
            "blobfuse2" => blobfuse(&mut command, io, place, lookup)?,
            _ => rclone(&mut command, io, place, lookup)?,
        }
        command
            .args(&io.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let program = command
            .spawn()
            .map_err(|error| Error::from_io(format!("{name} cannot be started"), error))?;
        Ok(Self {
            program,
            place: place.to_owned(),
            cache: (name == "rclone").then(|| cache_of(place)),
        })
    }

    /// Waits until it is mounted.
    pub(crate) async fn ready(mut self) -> Result<Self> {
        let begun = Instant::now();
        while !mounts::is_mounted(&self.place) {
            if let Ok(Some(status)) = self.program.try_wait() {
                return Err(
                    Error::refused(format!("it could not be mounted ({status})"))
                        .hint("the set-up log has the program's own messages"),
                );
            }
            if begun.elapsed() > MOUNT_TIMEOUT {
                return Err(Error::unreachable("it was not mounted within a minute"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(self)
    }
}

impl Mount {
    /// Waits, after the last write, until everything that was written has been uploaded.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        let Some(cache) = self.cache.clone() else {
            return Ok(());
        };
        let (mut last, mut since) = (usize::MAX, Instant::now());
        loop {
            let waiting = unsent(&cache.join("vfsMeta"));
            if waiting == 0 {
                let _ = std::fs::remove_dir_all(&cache);
                return Ok(());
            }
            if waiting < last {
                (last, since) = (waiting, Instant::now());
            }
            let is_over = !matches!(self.program.try_wait(), Ok(None));
            if is_over || since.elapsed() > 5 * MOUNT_TIMEOUT {
                return Err(Error::unreachable(format!(
                    "{waiting} written files were not uploaded; they are kept in {}",
                    cache.display()
                )));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn cache_of(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}.cache"))
}

/// How many files rclone has marked as not uploaded, in its own metadata.
fn unsent(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => unsent(&entry.path()),
            _ => usize::from(
                std::fs::read_to_string(entry.path())
                    .is_ok_and(|text| text.replace(' ', "").contains("\"Dirty\":true")),
            ),
        })
        .sum()
}

impl Drop for Mount {
    fn drop(&mut self) {
        mounts::release_below(&self.place);
        let pid = rustix::process::Pid::from_child(&self.program);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let begun = Instant::now();
        while matches!(self.program.try_wait(), Ok(None)) {
            if begun.elapsed() > MOUNT_TIMEOUT {
                let _ = self.program.kill();
                let _ = self.program.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn whole_path(io: &IoPlan) -> String {
    let store = &io.store.datastore;
    let top = store
        .container
        .as_deref()
        .or(store.bucket.as_deref())
        .unwrap_or_default();
    let parts = [
        top,
        store.path.as_deref().unwrap_or_default().trim_matches('/'),
        io.path.as_str(),
    ];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("/")
}

fn endpoint(store: &Datastore) -> Option<String> {
    let account = store.account.as_deref().unwrap_or_default();
    store.endpoint.as_ref().map(|endpoint| {
        let endpoint = endpoint.trim_end_matches('/');
        let has_account = endpoint.ends_with(&format!("/{account}"))
            || endpoint.contains(&format!("://{account}."));
        if has_account {
            endpoint.to_owned()
        } else {
            format!("{endpoint}/{account}")
        }
    })
}

fn rclone(command: &mut Command, io: &IoPlan, place: &Path, lookup: &Lookup<'_>) -> Result<()> {
    let store = &io.store.datastore;
    let at = format!("datastore `{}`", io.store.name);
    let mut set = |key: &str, value: &str| {
        command.env(format!("RCLONE_CONFIG_TOW_{key}"), value);
    };
    if store.kind == StoreKind::AzureBlob {
        rclone_azure(&mut set, store, &at, lookup)?;
    } else {
        rclone_s3(&mut set, store, &at, lookup)?;
    }
    command
        .arg("mount")
        .arg(format!("tow:{}", whole_path(io)))
        .arg(place)
        .args([
            "--vfs-cache-mode",
            "writes",
            "--vfs-write-back",
            "0s",
            "--config",
            "/dev/null",
        ]);
    command.arg("--cache-dir").arg(cache_of(place));
    Ok(())
}

fn rclone_azure(
    set: &mut dyn FnMut(&str, &str),
    store: &Datastore,
    at: &str,
    lookup: &Lookup<'_>,
) -> Result<()> {
    set("TYPE", "azureblob");
    let container = store.container.as_deref().unwrap_or_default();
    let account = store.account.as_deref().unwrap_or_default();
    let endpoint = endpoint(store);
    match lookup.azure(at, store.credential.as_ref())? {
        // Older versions accept an account key only for the public service. For another endpoint
        // they need a signature.
        AzureCredential::Key(key) if endpoint.is_some() => {
            let sas = sign_container(&key, account, container, SIGNATURE_LIFETIME)?;
            set(
                "SAS_URL",
                &format!(
                    "{}/{container}?{}",
                    endpoint.unwrap_or_default(),
                    sas.expose()
                ),
            );
        }
        AzureCredential::Sas(sas, _) => {
            let base =
                endpoint.unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
            set(
                "SAS_URL",
                &format!(
                    "{base}/{container}?{}",
                    sas.expose().trim_start_matches('?')
                ),
            );
        }
        other => {
            set("ACCOUNT", account);
            if let Some(endpoint) = &endpoint {
                set("ENDPOINT", endpoint);
            }
            rclone_login(set, &other);
        }
    }
    Ok(())
}

/// The settings with which rclone signs in to a blob service by itself.
fn rclone_login(set: &mut dyn FnMut(&str, &str), credential: &AzureCredential) {
    match credential {
        AzureCredential::Key(key) => set("KEY", key.expose()),
        AzureCredential::Cli => set("ENV_AUTH", "true"),
        AzureCredential::Managed(identity) => {
            set("USE_MSI", "true");
            if let Some(id) = &identity.id {
                set("MSI_CLIENT_ID", id);
            }
        }
        AzureCredential::Principal {
            tenant_id,
            client_id,
            client_secret,
        } => {
            set("TENANT", tenant_id);
            set("CLIENT_ID", client_id);
            set("CLIENT_SECRET", client_secret.expose());
        }
        AzureCredential::Sas(..) => {}
    }
}

fn rclone_s3(
    set: &mut dyn FnMut(&str, &str),
    store: &Datastore,
    at: &str,
    lookup: &Lookup<'_>,
) -> Result<()> {
    set("TYPE", "s3");
    set("PROVIDER", "Other");
    set("REGION", store.region.as_deref().unwrap_or("us-east-1"));
    if let Some(endpoint) = &store.endpoint {
        set("ENDPOINT", endpoint);
    }
    match lookup.s3(at, store.credential.as_ref())? {
        Some(keys) => {
            set("ACCESS_KEY_ID", keys.access_key_id.expose());
            set("SECRET_ACCESS_KEY", keys.secret_access_key.expose());
            if let Some(token) = &keys.session_token {
                set("SESSION_TOKEN", token.expose());
            }
        }
        None => set("ENV_AUTH", "true"),
    }
    Ok(())
}

fn blobfuse(command: &mut Command, io: &IoPlan, place: &Path, lookup: &Lookup<'_>) -> Result<()> {
    let store = &io.store.datastore;
    let at = format!("datastore `{}`", io.store.name);
    command.env(
        "AZURE_STORAGE_ACCOUNT",
        store.account.as_deref().unwrap_or_default(),
    );
    if let Some(endpoint) = endpoint(store) {
        command.env("AZURE_STORAGE_BLOB_ENDPOINT", endpoint);
    }
    match lookup.azure(&at, store.credential.as_ref())? {
        AzureCredential::Key(key) => {
            command
                .env("AZURE_STORAGE_AUTH_TYPE", "key")
                .env("AZURE_STORAGE_ACCESS_KEY", key.expose());
        }
        AzureCredential::Sas(sas, _) => {
            command.env("AZURE_STORAGE_AUTH_TYPE", "sas").env(
                "AZURE_STORAGE_SAS_TOKEN",
                sas.expose().trim_start_matches('?'),
            );
        }
        AzureCredential::Cli => {
            command.env("AZURE_STORAGE_AUTH_TYPE", "azcli");
        }
        AzureCredential::Managed(identity) => {
            command.env("AZURE_STORAGE_AUTH_TYPE", "msi");
            if let Some(id) = identity.id {
                command.env("AZURE_STORAGE_IDENTITY_CLIENT_ID", id);
            }
        }
        AzureCredential::Principal {
            tenant_id,
            client_id,
            client_secret,
        } => {
            command
                .env("AZURE_STORAGE_AUTH_TYPE", "spn")
                .env("AZURE_STORAGE_SPN_TENANT_ID", tenant_id)
                .env("AZURE_STORAGE_SPN_CLIENT_ID", client_id);
            command.env("AZURE_STORAGE_SPN_CLIENT_SECRET", client_secret.expose());
        }
    }
    let below = [
        store.path.as_deref().unwrap_or_default().trim_matches('/'),
        io.path.as_str(),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join("/");
    command
        .arg("mount")
        .arg(place)
        .arg(format!(
            "--container-name={}",
            store.container.as_deref().unwrap_or_default()
        ))
        .arg("--foreground");
    command.arg(format!("--tmp-path={}", cache_of(place).display()));
    if !below.is_empty() {
        command.arg(format!("--subdirectory={below}"));
    }
    Ok(())
}
