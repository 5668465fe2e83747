//! Completes a job for a Slurm cluster: adds a container if the job names an image.

use towline_core::cluster::{Draft, Fit};
use towline_core::resolve::{Container, Runtime};
use towline_core::{Error, Result, image};
use towline_wire::site::SiteFacts;

pub(super) fn fit(draft: Draft<'_>, cluster: &str, site: &SiteFacts) -> Result<Fit> {
    let image = image::chosen(&draft.job, draft.facts.gpu_make())?;
    let container = image
        .map(|image| container(image, cluster, &site.runtimes))
        .transpose()?;
    Ok(Fit {
        container,
        ..Fit::unchanged(draft)
    })
}

/// The container of a job. Its runtime is looked up on each node.
fn container(image: &str, cluster: &str, runtimes: &[Runtime]) -> Result<Container> {
    let Some(runtime) = runtimes.first() else {
        return Err(Error::unsupported(format!(
            "an `image` needs a container runtime, and cluster `{cluster}` has none on its login \
                host: podman, docker, apptainer"
        ))
        .hint("a module that brings one must be loaded there by your shell's profile")
        .about("environment.image"));
    };
    if image.starts_with("./") || image.starts_with("../") {
        return Err(
            Error::refused(format!("the image {image} is a folder of this machine"))
                .hint("name it as the nodes of the cluster see it: /shared/image")
                .about("environment.image"),
        );
    }
    Ok(Container {
        runtime: *runtime,
        program: runtime.word().to_owned(),
        image: image.to_owned(),
        options: Vec::new(),
    })
}
