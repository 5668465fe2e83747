//! Workspaces: which there are, where they are, and what is asked of them.

mod act;
mod define;
mod far;
mod node;
mod place;
mod setup;
mod status;

pub(crate) use define::{Known, check, choose, expect_new, known, save};
pub(crate) use far::serve;
pub(crate) use node::hang_up;
pub(crate) use status::{
    auto, auto_main, back_up, failing, read_status, see_to_autos, set_auto, stop_auto,
};

use crate::context::Context;
use crate::output;
use towline_core::redact::SecretSet;
use towline_core::workspace::Workspace;
use towline_core::{Error, ErrorKind, Result};
use towline_snapshot::progress::Progress;
use towline_wire::workspace::{Act, Destination, Outcome, ScratchOrder};

/// Everything another process needs to act on a workspace.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) workspace: Workspace,
    pub(crate) order: ScratchOrder,
    pub(crate) secrets: SecretSet,
}

/// From what the user named to where it lies. Credentials are looked up here.
pub(crate) fn task(context: &Context, name: &str, workspace: &Workspace, act: Act) -> Result<Task> {
    let mut secrets = SecretSet::default();
    let to = destination(context, name, workspace, &mut secrets)?;
    let order = ScratchOrder {
        name: name.to_owned(),
        path: workspace.path.clone(),
        to,
        ignore: workspace.ignore.clone(),
        act,
        secrets: 0,
    };
    Ok(Task {
        workspace: workspace.clone(),
        order,
        secrets,
    })
}

/// The usual place is the home folder: on a cluster all its nodes share it.
fn destination(
    context: &Context,
    name: &str,
    workspace: &Workspace,
    secrets: &mut SecretSet,
) -> Result<Destination> {
    let Some(text) = &workspace.to else {
        return Ok(Destination::Folder(format!("~/.towline/backups/{name}")));
    };
    if text.starts_with('/') || text.starts_with('~') || text.starts_with('$') {
        return Ok(Destination::Folder(text.clone()));
    }
    let Some((store, path)) = text.split_once(':') else {
        return Err(Error::config(format!(
            "`to: {text}` of workspace `{name}` is neither a whole path nor DATASTORE:PATH"
        ))
        .hint("/fsx/alice/backups, or research:alice/backups"));
    };
    let store = towline_engine::flow::data::store(
        context,
        &format!("workspace `{name}`"),
        store,
        workspace.on.is_none(),
        secrets,
    )?;
    Ok(Destination::Store {
        store: Box::new(store),
        path: towline_engine::flow::data::clean("to", path)?,
    })
}

/// Does it, here or over there, and draws meanwhile.
pub(crate) fn perform(context: &Context, task: &Task) -> Result<Outcome> {
    let progress = Progress::default();
    let mut say = |line: String| output::status(&line);
    let work = || match &task.workspace.on {
        None => act::perform(&task.order, &task.secrets, &progress, &mut say),
        Some(host) => far::ask(context, host, task, &progress, &mut say),
    };
    let verb = match task.order.act {
        Act::Create { .. } => "create",
        Act::BackUp { .. } => "backup",
        Act::Restore { .. } => "restore",
        Act::List => "list",
        Act::Check { .. } => "check",
        Act::Prune { .. } => "prune",
    };
    crate::progress::Bar::new(verb).watch(|| progress.read(), work)
}

/// Backups in a datastore can be looked at from here, whatever became of the machine.
pub(crate) fn perform_from_here(context: &Context, mut task: Task) -> Result<Outcome> {
    if let (Destination::Store { store, .. }, Some(_)) = (&task.order.to, &task.workspace.on)
        && store.datastore.kind != "folder"
    {
        task.workspace.on = None;
        // The path is the other machine's; nothing is looked for there.
        "/workspace".clone_into(&mut task.order.path);
    }
    let on = task.workspace.on.clone();
    perform(context, &task).map_err(|error| match (error.kind(), on) {
        (ErrorKind::Unreachable | ErrorKind::NotFound, Some(on))
            if matches!(task.order.to, Destination::Folder(_)) =>
        {
            error.hint(format!(
                "if `{on}` is gone, name another machine that sees the backups: `--on login`"
            ))
        }
        _ => error,
    })
}
