//! The state of the emulator.

use super::blobs::Blobs;
use super::document::Job;
use super::faults::{Conditions, Faults};
use super::ids::Scope;
use super::login::Codes;
use super::recorder::Recorder;
use super::roles::Directory;
use super::server::Server;
use super::tokens::Tokens;
use super::vault::Vault;
use super::workspace::Workspace;
use crate::real::Azurite;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

#[derive(Debug)]
pub(super) struct World {
    pub endpoint: String,
    pub blobs: Blobs,
    pub tokens: Tokens,
    pub faults: Faults,
    pub recorder: Recorder,
    pub vault: Vault,
    pub codes: Codes,
    /// The certificate that nodes trust, as machines of the real cloud trust its services.
    pub authority: PathBuf,
    /// Nodes' folders.
    pub folder: PathBuf,
    conditions: Mutex<Conditions>,
    directory: Mutex<Directory>,
    workspaces: Mutex<BTreeMap<String, Workspace>>,
    lives: Mutex<Vec<JoinHandle<()>>>,
    ended: AtomicBool,
}

impl World {
    pub(super) fn new(azurite: &Azurite, server: &Server, folder: &Path) -> Arc<Self> {
        Arc::new(Self {
            endpoint: server.endpoint(),
            blobs: Blobs::new(azurite, server.handle()),
            tokens: Tokens::new(server),
            faults: Faults::default(),
            recorder: Recorder::default(),
            vault: Vault::default(),
            codes: Codes::default(),
            authority: azurite.authority().unwrap(),
            folder: folder.to_owned(),
            conditions: Mutex::default(),
            directory: Mutex::default(),
            workspaces: Mutex::default(),
            lives: Mutex::default(),
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn conditions(&self) -> MutexGuard<'_, Conditions> {
        self.conditions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
    /// The roles of the signed-in user.
    pub(super) fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
    pub(super) fn workspaces(&self) -> MutexGuard<'_, BTreeMap<String, Workspace>> {
        self.workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a workspace with its default content; a present one is unchanged.
    pub(super) fn add_workspace(&self, scope: &Scope) {
        if self.workspaces().contains_key(&scope.key()) {
            return;
        }
        let workspace = Workspace::new(scope.clone(), &self.blobs);
        workspace.make_containers(&self.blobs);
        self.workspaces().entry(scope.key()).or_insert(workspace);
    }

    /// A job of any workspace.
    pub(super) fn with_job<T>(&self, name: &str, act: impl FnOnce(&mut Job) -> T) -> Option<T> {
        self.workspaces()
            .values_mut()
            .find_map(|workspace| workspace.jobs.get_mut(name))
            .map(act)
    }
    pub(super) fn job_of<T>(
        &self,
        scope: &Scope,
        name: &str,
        act: impl FnOnce(&mut Job) -> T,
    ) -> Option<T> {
        self.workspaces()
            .get_mut(&scope.key())?
            .jobs
            .get_mut(name)
            .map(act)
    }

    pub(super) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
    pub(super) fn keep(&self, life: JoinHandle<()>) {
        self.lives
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(life);
    }
    /// Ends every job. No process of them runs when this returns.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let lives = std::mem::take(&mut *self.lives.lock().unwrap_or_else(PoisonError::into_inner));
        for life in lives {
            let _ = life.join();
        }
    }
}
