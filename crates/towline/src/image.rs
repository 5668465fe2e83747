//! The image of a job, and what on this machine can run it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use towline_core::backend::{Facts, GpuMake};
use towline_core::job::{Image, Job};
use towline_core::resolve::{Container, Runtime};
use towline_core::{Error, Result};

/// The container a job asks for; without a runtime it is refused.
pub(crate) fn container(job: &Job, facts: &Facts, environment: &[(String, String)], folder: &Path) -> Result<Option<Container>> {
    let Some(image) = &job.environment.image else { return Ok(None) };
    let image = match image {
        Image::Any(name) => name,
        Image::PerMake(names) => {
            let make = facts.nodes.iter().flat_map(|node| &node.gpus).map(|gpu| gpu.make).next();
            let word = if make == Some(GpuMake::Amd) { "amd" } else { "nvidia" };
            names.get(word).ok_or_else(|| Error::refused(format!("`environment.image` names none for {word} GPUs")).hint("name it, or one image for all"))?
        }
    };
    if image.trim().is_empty() || image.starts_with('-') {
        return Err(Error::config(format!("`{image}` cannot be an image")));
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let Some((runtime, program)) = Runtime::ALL.into_iter().find_map(|runtime| find_program(runtime.word(), path).map(|program| (runtime, program))) else {
        return Err(Error::refused("an `image` needs a container runtime, and none was found: podman, docker, apptainer")
            .hint("install one of them, or leave `environment.image` out"));
    };
    let program = program.into_os_string().into_string().map_err(|_| Error::refused("the container runtime has a name that is not UTF-8"))?;
    Ok(Some(Container { runtime, program, image: absolute(image, folder)?, options: job.resources.native.clone() }))
}

/// A name with `./` or `/` before it is a folder of this machine: a root file system.
fn absolute(image: &str, folder: &Path) -> Result<String> {
    if !image.starts_with('/') && !image.starts_with("./") && !image.starts_with("../") {
        return Ok(image.to_owned());
    }
    let found = folder.join(image).canonicalize().ok().filter(|path| path.exists());
    let found =
        found.ok_or_else(|| Error::refused(format!("the image {image} is not there")).hint("a name that begins with / or ./ is a folder or file here"))?;
    found.into_os_string().into_string().map_err(|_| Error::refused(format!("the image {image} has a name that is not UTF-8")))
}

pub(crate) fn find_program(program: &str, path: &str) -> Option<PathBuf> {
    let executable = |file: &PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    path.split(':').filter(|folder| folder.starts_with('/')).map(|folder| Path::new(folder).join(program)).find(executable)
}
