//! The choice of a job's image.

use crate::cluster::GpuMake;
use crate::job::{Image, Job};
use crate::{Error, Result};

/// The image that a job names for the GPUs of its nodes; `None` if it names none.
pub fn chosen(job: &Job, make: Option<GpuMake>) -> Result<Option<&str>> {
    let Some(image) = &job.environment.image else {
        return Ok(None);
    };
    let image = match image {
        Image::Any(name) => name,
        Image::PerMake(names) => {
            let word = if make == Some(GpuMake::Amd) {
                "amd"
            } else {
                "nvidia"
            };
            // Without a GPU either image can run, so the only one that is named counts.
            let found = names
                .get(word)
                .or_else(|| names.values().next().filter(|_| make.is_none()));
            found.ok_or_else(|| {
                Error::refused(format!("`environment.image` names none for {word} GPUs"))
                    .hint("name it, or one image for all")
                    .about("environment.image")
            })?
        }
    };
    if image.trim().is_empty() {
        return Err(Error::config("`environment.image` is empty").about("environment.image"));
    }
    if image.starts_with('-') {
        return Err(
            Error::config(format!("`{image}` cannot be an image")).about("environment.image")
        );
    }
    Ok(Some(image))
}
