//! Completes a job for this machine: adds a container if the job names an image.

use std::path::Path;
use towline_core::cluster::{Draft, Fit};
use towline_core::resolve::{Container, Runtime};
use towline_core::{Error, Result, image};
use towline_host::program::find_program;

pub(super) fn fit(draft: Draft<'_>) -> Result<Fit> {
    let container = container(&draft)?;
    Ok(Fit {
        container,
        ..Fit::unchanged(draft)
    })
}

/// The container that a job needs. Without a container runtime the job is refused.
fn container(draft: &Draft<'_>) -> Result<Option<Container>> {
    let Some(image) = image::chosen(&draft.job, draft.facts.gpu_make())? else {
        return Ok(None);
    };
    let path = draft
        .environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or("", |(_, path)| path.as_str());
    let Some((runtime, program)) = Runtime::ALL
        .into_iter()
        .find_map(|runtime| find_program(runtime.word(), path).map(|program| (runtime, program)))
    else {
        return Err(Error::unsupported(
            "an `image` needs a container runtime, and none was found: podman, docker, apptainer",
        )
        .hint("install one of them, or leave `environment.image` out")
        .about("environment.image"));
    };
    let program = program
        .into_os_string()
        .into_string()
        .map_err(|_| Error::unsupported("the container runtime has a name that is not UTF-8"))?;
    Ok(Some(Container {
        runtime,
        program,
        image: absolute(image, draft.workdir)?,
        options: draft.job.resources.native.clone(),
    }))
}

/// The absolute path of an image. A name that begins with `./` or `/` is a root file system on this
/// machine.
fn absolute(image: &str, folder: &Path) -> Result<String> {
    if !image.starts_with('/') && !image.starts_with("./") && !image.starts_with("../") {
        return Ok(image.to_owned());
    }
    let found = folder
        .join(image)
        .canonicalize()
        .ok()
        .filter(|path| path.exists());
    let found = found.ok_or_else(|| {
        Error::refused(format!("the image {image} is not there"))
            .hint("a name that begins with / or ./ is a folder or file here")
            .about("environment.image")
    })?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Error::unsupported(format!("the image {image} has a name that is not UTF-8")))
}
