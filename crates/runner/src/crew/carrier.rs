//! The facts and folders that this node needs to run its part of an attempt.

use super::local_part::LocalPart;
use super::{CrewTask, FindSecrets, given};
use crate::assemble::{self, AttemptFolders, Given, Wanted};
use std::path::PathBuf;
use towline_core::cluster::GpuMake;
use towline_core::obstacle::Obstacle;
use towline_core::reason::Ending;
use towline_core::redact::SecretSet;
use towline_core::resolve::Shape;
use towline_core::{Error, Result};
use towline_wire::crew::CrewOrder;
use towline_wire::runner::{Assignment, GangPlace};

pub(super) struct Carrier<'a> {
    task: &'a CrewTask,
    pub(super) order: CrewOrder,
    node: u32,
    find_secrets: FindSecrets<'a>,
    /// Fetched once, for all attempts of this start.
    secrets: Option<SecretSet>,
    /// This node's own folder: logs, code, io.
    folder: PathBuf,
}

/// A name that no other node has, because several may run on one machine.
fn own_name(task: &CrewTask, node: u32) -> String {
    format!("{}-node{node}", task.run)
}

/// The run's folder on this node's own disk.
pub(super) fn own_folder(task: &CrewTask, node: u32) -> PathBuf {
    task.local.join("crew").join(own_name(task, node))
}

/// The folder of this node's mounts.
pub(super) fn mounts(task: &CrewTask, node: u32) -> PathBuf {
    task.local.join("mounts").join(own_name(task, node))
}

impl<'a> Carrier<'a> {
    pub(super) fn new(
        task: &'a CrewTask,
        node: u32,
        order: CrewOrder,
        find_secrets: FindSecrets<'a>,
    ) -> std::io::Result<Self> {
        towline_host::filesystem::private_folder(&task.local)?;
        let folder = own_folder(task, node);
        // An earlier start on this machine may have left files, even of the same attempt number if
        // its claim was lost.
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        towline_host::filesystem::private_folder(&folder)?;
        Ok(Self {
            task,
            order,
            node,
            find_secrets,
            secrets: None,
            folder,
        })
    }

    /// Begins this node's part; one that cannot begin has ended.
    pub(super) fn begin(&mut self, attempt: u32, hosts: &[String], port: u16) -> LocalPart {
        let gang = GangPlace {
            node: self.node,
            hosts: hosts.to_vec(),
            port,
        };
        let failed =
            |why: String, obstacle| LocalPart::failed(attempt, Ending::not_started(why, obstacle));
        match self.assigned(attempt, gang) {
            Ok(assignment) => LocalPart::begin(assignment, &self.folder, self.task.folder.clone())
                .unwrap_or_else(|error| failed(error.to_string(), Obstacle::of_io(&error))),
            Err(error) => failed(error.to_string(), Obstacle::of(&error)),
        }
    }

    fn secrets(&mut self) -> Result<SecretSet> {
        let Some(place) = &self.order.secrets else {
            return Ok(SecretSet::default());
        };
        if let Some(known) = &self.secrets {
            return Ok(known.clone());
        }
        // A failure now may be gone at the next attempt.
        let found = (self.find_secrets)(place).map_err(|error| {
            let message = format!("its secrets could not be had: {error}");
            Error::new(error.kind().as_refusal(), message)
        })?;
        Ok(self.secrets.insert(found).clone())
    }

    fn assigned(&mut self, attempt: u32, gang: GangPlace) -> Result<Assignment> {
        let secrets = self.secrets()?;
        let run = self
            .order
            .plan
            .runs
            .iter()
            .find(|run| run.id == self.task.run)
            .ok_or_else(|| Error::bug("the run is not in its plan"))?;
        let resolved = &self.order.plan.resolved;
        if resolved.code.is_some() && self.task.store.is_none() {
            return Err(Error::bug("the run has code, and its place is unknown"));
        }
        let folders = AttemptFolders {
            run: self.folder.clone(),
            snapshots: self.task.store.clone().unwrap_or_default(),
            mounts: mounts(self.task, self.node),
            copies: self.task.local.join("copies"),
            transfers: self.task.local.join("transfers"),
        };
        let io = given::io(self.task);
        let copy = given::copy(
            self.task,
            resolved.copy.as_ref().map_or(&[], |copy| &copy.subdirs),
            &self.folder,
        )
        .map_err(|error| Error::from_io("its dataset cannot be put together", error))?;
        let mut assignment = assemble::assignment(Wanted {
            run: &run.id,
            attempt,
            parameters: &run.parameters,
            resolved,
            secrets: &secrets,
            folders: &folders,
            gpus: gpus(&resolved.shape),
            gpu_make: GpuMake::default(),
            grace_millis: self.order.grace_millis,
            collect_every: self.order.collect_every,
            intent_is_durable: true,
            given: Given {
                io: &io,
                copy: copy.as_deref(),
            },
        })?;
        self.fit(&mut assignment);
        assignment.gang = Some(gang);
        Ok(assignment)
    }

    /// Adapts the assignment to a node that is not the submitter's machine.
    fn fit(&self, assignment: &mut Assignment) {
        if let Some(code) = &mut assignment.code {
            // Links lead to the submitter's machine.
            code.links.clear();
        } else {
            // An empty folder.
            let own = self.folder.join("work");
            let _ = std::fs::create_dir_all(&own);
            assignment.workdir = own.to_string_lossy().into_owned();
        }
        // The leader holds the nodes after a failure.
        assignment.hold_on_failure = None;
        for (name, value) in std::env::vars_os() {
            if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string())
                && !name.starts_with("TOW_")
            {
                assignment.variables.0.entry(name).or_insert(value);
            }
        }
        assignment
            .variables
            .0
            .insert("PWD".to_owned(), assignment.workdir.clone());
    }
}

/// A job has whole nodes. It uses the first GPUs of each, unless the platform assigns them.
fn gpus(shape: &Shape) -> Vec<Vec<u32>> {
    if shape.gpus_per_node == 0 || std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return Vec::new();
    }
    vec![(0..shape.gpus_per_node).collect(); shape.nodes as usize]
}
