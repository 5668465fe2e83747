//! The image of a job, and what on this machine can run it.

use std::path::Path;
use towline_core::cluster::{Facts, GpuMake};
use towline_core::job::{Image, Job};
use towline_core::resolve::{Container, Runtime};
use towline_core::{Error, Result};
use towline_host::program::find_program;

/// The image a job names, for the GPUs that are there.
fn image<'j>(job: &'j Job, facts: &Facts) -> Result<Option<&'j str>> {
    let Some(image) = &job.environment.image else {
        return Ok(None);
    };
    let image = match image {
        Image::Any(name) => name,
        Image::PerMake(names) => {
            let make = facts
                .nodes
                .iter()
                .flat_map(|node| &node.gpus)
                .map(|gpu| gpu.make)
                .next();
            let word = if make == Some(GpuMake::Amd) {
                "amd"
            } else {
                "nvidia"
            };
            // Without a GPU either image can run: the only one that is named counts.
            let found = names
                .get(word)
                .or_else(|| names.values().next().filter(|_| make.is_none()));
            found.ok_or_else(|| {
                Error::refused(format!("`environment.image` names none for {word} GPUs"))
                    .hint("name it, or one image for all")
            })?
        }
    };
    if image.trim().is_empty() || image.starts_with('-') {
        return Err(Error::config(format!("`{image}` cannot be an image")));
    }
    Ok(Some(image))
}

/// The container a job asks for on a far cluster, which has these runtimes. The program is looked
/// for on each node.
pub(crate) fn far_container(
    job: &Job,
    facts: &Facts,
    cluster: &str,
    runtimes: &[Runtime],
) -> Result<Option<Container>> {
    let Some(image) = image(job, facts)? else {
        return Ok(None);
    };
    let Some(runtime) = runtimes.first() else {
        return Err(Error::refused(format!(
            "an `image` needs a container runtime, and cluster `{cluster}` has none on its login \
                host: podman, docker, apptainer"
        ))
        .hint("a module that brings one must be loaded there by your shell's profile"));
    };
    if image.starts_with("./") || image.starts_with("../") {
        return Err(
            Error::refused(format!("the image {image} is a folder of this machine"))
                .hint("name it as the nodes of the cluster see it: /shared/image"),
        );
    }
    Ok(Some(Container {
        runtime: *runtime,
        program: runtime.word().to_owned(),
        image: image.to_owned(),
        options: Vec::new(),
    }))
}

/// The container a job asks for here; without a runtime it is refused.
pub(crate) fn container(
    job: &Job,
    facts: &Facts,
    environment: &[(String, String)],
    folder: &Path,
) -> Result<Option<Container>> {
    let Some(image) = image(job, facts)? else {
        return Ok(None);
    };
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or("", |(_, path)| path.as_str());
    let Some((runtime, program)) = Runtime::ALL
        .into_iter()
        .find_map(|runtime| find_program(runtime.word(), path).map(|program| (runtime, program)))
    else {
        return Err(Error::refused(
            "an `image` needs a container runtime, and none was found: podman, docker, apptainer",
        )
        .hint("install one of them, or leave `environment.image` out"));
    };
    let program = program
        .into_os_string()
        .into_string()
        .map_err(|_| Error::refused("the container runtime has a name that is not UTF-8"))?;
    Ok(Some(Container {
        runtime,
        program,
        image: absolute(image, folder)?,
        options: job.resources.native.clone(),
    }))
}

/// A name with `./` or `/` before it is a folder of this machine: a root file system.
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
    })?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Error::refused(format!("the image {image} has a name that is not UTF-8")))
}
