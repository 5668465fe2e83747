//! The assignment of one node, from the order in the stage folder and the claim of the head.

use super::{NodeTask, local_disk};
use crate::assemble::{self, AttemptFolders, Given, Wanted};
use crate::far::{image, records};
use std::fs;
use std::io;
use towline_core::cluster::Claim;
use towline_core::cluster::GpuMake;
use towline_core::job::IoMode;
use towline_core::plan::PlannedRun;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result};
use towline_wire::runner::{Assignment, GangPlace};
use towline_wire::stage::{Order, Record, StageFolder};

/// The assignment of this node, and whether it waits for data that the first node downloads.
pub(super) fn assigned(
    stage: &StageFolder,
    task: &NodeTask,
    node: u32,
) -> Result<(Assignment, bool)> {
    let unreadable = |error: io::Error| {
        Error::from_io(
            format!(
                "{} cannot be read",
                stage.submission(&task.submission).display()
            ),
            error,
        )
    };
    let order = records::order(stage, &task.submission).map_err(unreadable)?;
    let run = order
        .plan
        .runs
        .iter()
        .find(|run| run.id == task.run)
        .ok_or_else(|| Error::bug("the run is not in its plan"))?;
    let folder = stage.run(&task.run);
    let claim: Claim = fs::read(folder.record(task.attempt, Record::Claim))
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::other))
        .map_err(unreadable)?;
    let mut assignment = assembled(stage, task, &order, run)?;
    // The head has laid out the code for all nodes, watches the time limit, and holds the nodes
    // after a failure.
    assignment.code = None;
    if order.plan.resolved.code.is_none() {
        // The folder that it was submitted from does not exist here.
        assignment.workdir = folder.root().to_string_lossy().into_owned();
    }
    assignment.time = None;
    assignment.hold_on_failure = None;
    if node > 0 {
        leave_data_to_first_node(&mut assignment)?;
    }
    assignment.gang = Some(GangPlace {
        node,
        hosts: claim.hosts,
        port: claim.port,
    });
    let resolved = &order.plan.resolved;
    image::fit(
        &mut assignment,
        node,
        resolved.code.as_ref().map(|code| code.root.as_str()),
    )?;
    add_variables_of_node(&mut assignment);
    assignment.signals_reach_all = order.signals_reach_all;
    let needs_data = node > 0 && resolved.io.iter().any(|io| io.mode == IoMode::Read);
    Ok((assignment, needs_data))
}

/// The assignment as for a machine of its own, with the folders of this node.
fn assembled(
    stage: &StageFolder,
    task: &NodeTask,
    order: &Order,
    run: &PlannedRun,
) -> Result<Assignment> {
    let secrets = match fs::read(stage.secrets(&task.submission)) {
        Ok(bytes) => SecretSet::from_private_bytes(&bytes).unwrap_or_default(),
        Err(_) => SecretSet::default(),
    };
    let local = local_disk();
    let folders = AttemptFolders {
        run: stage.run(&task.run).root().to_owned(),
        snapshots: stage.snapshots(),
        mounts: local.join("mounts").join(task.run.as_str()),
        copies: local.join("copies"),
        transfers: local.join("transfers"),
    };
    assemble::assignment(Wanted {
        run: &task.run,
        attempt: task.attempt,
        parameters: &run.parameters,
        resolved: &order.plan.resolved,
        secrets: &secrets,
        folders: &folders,
        gpus: Vec::new(),
        gpu_make: GpuMake::default(),
        grace_millis: order.grace_millis,
        collect_every: order.collect_every,
        intent_is_durable: true,
        given: Given::default(),
    })
}

/// Data that is read or written lies in the run's folder, which all nodes share. The first node
/// downloads and collects it; the others only mount.
fn leave_data_to_first_node(assignment: &mut Assignment) -> Result<()> {
    let Some(data) = assignment.data.as_mut() else {
        return Ok(());
    };
    // The first node may not have made these folders yet.
    for order in data
        .io
        .iter()
        .filter(|order| order.io.mode == IoMode::Write)
    {
        fs::create_dir_all(&order.place)
            .map_err(|error| Error::from_io(format!("{} cannot be made", order.place), error))?;
    }
    data.io.retain(|order| order.io.mode == IoMode::Mount);
    if data.io.is_empty() && data.copy.is_none() {
        assignment.data = None;
    }
    Ok(())
}

/// Adds the variables that the scheduler set on this node.
fn add_variables_of_node(assignment: &mut Assignment) {
    let is_image = assignment.container.is_some();
    for (name, value) in std::env::vars() {
        if !name.starts_with("TOW_") && (!is_image || image::is_kept(&name)) {
            assignment.variables.0.entry(name).or_insert(value);
        }
    }
    assignment
        .variables
        .0
        .insert("PWD".to_owned(), assignment.workdir.clone());
}
