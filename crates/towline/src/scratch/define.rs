//! The workspaces in the configuration and the files of this user.

use crate::context::Context;
use crate::output;
use std::collections::BTreeMap;
use std::path::PathBuf;
use towline_core::Result;
use towline_core::workspace::Workspace;
use towline_engine::added::{Added, AddedFiles};
use towline_workspace::define::{self, check_name};

pub(crate) use towline_workspace::Known;
pub(crate) use towline_workspace::define::check;

fn files(context: &Context) -> Result<AddedFiles> {
    AddedFiles::new(context.environment(), "workspaces")
}

/// All of them, by name.
pub(crate) fn known(context: &Context) -> Result<BTreeMap<String, Known>> {
    let (added, wrong) = files(context)?.load::<Workspace>();
    for error in wrong {
        output::status(&format!("warning: {error}"));
    }
    let made = |Added { name, value, file }| Known {
        name,
        workspace: value,
        file: Some(file),
    };
    let made = added.into_iter().map(made).collect();
    define::known(made, &context.layers()?.config.workspaces)
}

/// The named one, or the only one.
pub(crate) fn choose(context: &Context, name: Option<&str>) -> Result<Known> {
    define::choose(known(context)?, name)
}

/// Refuses a name that is taken.
pub(crate) fn expect_new(context: &Context, name: &str) -> Result<()> {
    check_name(name)?;
    define::expect_new(&known(context)?, name)
}

/// Writes it down, whole or not at all.
pub(crate) fn save(context: &Context, name: &str, workspace: &Workspace) -> Result<PathBuf> {
    check_name(name)?;
    check(&format!("workspace `{name}`"), workspace)?;
    files(context)?.replace(name, workspace)
}
