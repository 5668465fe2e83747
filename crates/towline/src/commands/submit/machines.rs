//! `--instance-type`: whether a cluster has kinds of machines that a job can choose from.

use crate::context::Context;
use towline_core::{Error, Result};

/// Refuses the option on a cluster to which it means nothing. A job file that goes to many clusters
/// may have the key all the same; then the plan has a note.
pub(crate) fn check_choice(context: &Context, cluster: &str, wanted: Option<&str>) -> Result<()> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    if wanted.trim().is_empty() {
        return Err(Error::usage("`--instance-type` names no kind of machine"));
    }
    if context.cluster(cluster)?.caps().native_options {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "`--instance-type {wanted}`: cluster `{cluster}` has no kinds of machines to choose from"
    ))
    .hint(format!(
        "leave it out; `tow nodes -c {cluster}` shows what the cluster has"
    )))
}
