//! Workspaces, as the verbs see them: which datastores, credentials and machines they need.

mod define;
mod machine;
mod node;

pub(crate) use define::{Known, check, choose, expect_new, known, save};
pub(crate) use node::hang_up;
pub(crate) use towline_workspace::status::{auto, failing, read_status, see_to_autos, stop_auto};

use crate::context::Context;
use crate::data::stores;
use crate::diagnose;
use crate::output;
use crate::wiring::machines;
use std::process::ExitCode;
use std::sync::Arc;
use towline_core::config::StoreKind;
use towline_core::quantity::Span;
use towline_core::redact::{Secret, SecretSet};
use towline_core::resolve::NamedStore;
use towline_core::secret_name::SecretName;
use towline_core::workspace::Workspace;
use towline_core::{Error, ErrorKind, Result};
use towline_host::surroundings;
use towline_io::credential::Lookup;
use towline_io::data::Data;
use towline_snapshot::progress::Progress;
use towline_wire::workspace::{Act, Auto, Destination, Outcome, ScratchOrder};
use towline_workspace::{Datastores, Task, act, far, status};

/// How this program opens datastores.
const DATASTORES: Datastores = Datastores {
    open: open_store,
    runtime: stores::runtime,
};

/// A task for the named workspace. Its credentials are looked up here.
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

/// Does a task on the machine that has the workspace, and shows its progress.
pub(crate) fn perform(context: &Context, task: &Task) -> Result<Outcome> {
    let progress = Progress::default();
    let mut say = |line: String| output::status(&line);
    let work = || match &task.workspace.on {
        None => act::perform(&task.order, &task.secrets, DATASTORES, &progress, &mut say),
        Some(host) => {
            let machine = machine::connected(context, host, task.workspace.ssh_config.as_deref())?;
            let program = machines::own_program(context.state()?)?;
            far::ask(&machine, &program, task, &progress, &mut say)
        }
    };
    let verb = match task.order.act {
        Act::Create { .. } => "create",
        Act::BackUp { .. } => "backup",
        Act::Restore { .. } => "restore",
        Act::List => "list",
        Act::Check { .. } => "check",
        Act::Prune { .. } => "prune",
    };
    crate::output::progress::Bar::new(verb).watch(|| progress.read(), work)
}

/// Does a task on backups. Those in a datastore are reached from here, because the machine of the
/// workspace may be gone.
pub(crate) fn perform_from_here(context: &Context, mut task: Task) -> Result<Outcome> {
    if let (Destination::Store { store, .. }, Some(_)) = (&task.order.to, &task.workspace.on)
        && store.datastore.kind != StoreKind::Folder
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

/// Opens a datastore with the secrets that came with a task, else with what this machine knows.
fn open_store(store: &NamedStore, secrets: &SecretSet) -> Result<Arc<dyn Data>> {
    let found = |reference: String| {
        secrets
            .0
            .get(&SecretName::Datastore(reference))
            .map(|secret| secret.expose().to_owned())
    };
    let home = surroundings::home();
    let lookup = Lookup {
        variable: &|name| found(format!("env:{name}")).or_else(|| surroundings::variable(name)),
        keyring: &|name| found(format!("keyring:{name}")).map(Secret::new),
        home: home.as_deref(),
        reach: &machines::route,
        notice: &output::warn_once,
    };
    towline_io::open::open(&store.name, &store.datastore, &lookup)
}

/// Does a backup and stores its status.
pub(crate) fn back_up(context: &Context, task: &Task) -> Result<Outcome> {
    status::back_up(context.state()?, &task.order.name, || {
        perform(context, task)
    })
}

/// Has the daemon back up a workspace again and again.
pub(crate) fn set_auto(context: &Context, known: &Known, every: Option<Span>) -> Result<Auto> {
    let workspace = &known.workspace;
    let act = Act::BackUp {
        keep: Some(workspace.keep.unwrap_or_default()),
        anyway: false,
    };
    let task = task(context, &known.name, workspace, act)?;
    status::set_auto(context.state()?, known, every, task)
}

/// `tow __scratch`: does the order that the program of another machine sends on stdin.
pub(crate) fn serve() -> std::io::Result<()> {
    far::serve(DATASTORES)
}

/// `tow __backup STATE NAME`: the daemon starts it when a backup is due.
pub(crate) fn auto_main(state: &str, name: &str) -> ExitCode {
    let context = Context::of(state);
    let run = || match status::auto_task(context.state()?, name) {
        Some(task) => back_up(&context, &task).map(drop),
        // Turned off meanwhile.
        None => Ok(()),
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::status(&format!("backup of workspace `{name}`:"));
            ExitCode::from(diagnose::report(&error, false))
        }
    }
}
