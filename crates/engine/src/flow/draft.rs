//! The job as the user wrote it.

use std::path::Path;
use towline_core::job::Job;
use towline_core::{Error, Result, yaml};

/// Reads a job file; `-` is standard input.
pub fn read_job(file: &Path) -> Result<Job> {
    let node = if file == Path::new("-") {
        crate::layers::read_yaml_from(std::io::stdin().lock(), "standard input")?
    } else {
        crate::layers::read_yaml(file)?
    };
    yaml::decode(&node).map_err(|problem| {
        let is_of_amlt = node.get("target").is_some() && node.get("jobs").is_some();
        let hint = is_of_amlt.then(|| {
            format!(
                "this looks like a file of amlt: `tow import amlt {}` makes job files of it",
                file.display()
            )
        });
        Error::from(problem).maybe_hint(hint)
    })
}
