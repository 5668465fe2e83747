//! The image of a job as Azure ML describes it: an environment of the workspace, or an image of the
//! platform.

use super::config::Scope;
use super::site::Flavour;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The image of a job that names none: most commands work in it.
const DEFAULT_IMAGE: &str = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04";
const USUAL_GPU: &str = "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Environment {
    /// The value of `environmentId`.
    pub id: String,
    /// The image to register under that id, if the environment is ours.
    pub register: Option<String>,
    /// The platform's name of a curated image of a virtual cluster.
    pub image_version: Option<String>,
}

/// Prefixes of the platform's own images, used if their list cannot be read.
const CURATED_PREFIXES: [&str; 3] = ["amlt-sing/", "base/job/", "base/inference/"];

/// Whether a virtual cluster has an image of that name. The platform lists its images with or
/// without tags. A name without `/` never belongs to a registry.
pub(super) fn is_curated(image: &str, listed: &BTreeSet<String>) -> bool {
    let untagged = |name: &str| {
        name.split_once(':')
            .map_or_else(|| name.to_owned(), |(name, _)| name.to_owned())
    };
    let is_listed = listed.contains(image)
        || (!image.contains(':') && listed.iter().any(|name| untagged(name) == image));
    is_listed
        || !image.contains('/')
        || CURATED_PREFIXES
            .iter()
            .any(|beginning| image.starts_with(beginning))
}

/// `image` is a curated environment of Azure ML (`AzureML-…`, `azureml:NAME:VERSION`, an id), a
/// curated image of a virtual cluster (the known ones are in `listed`), or an image of a registry.
pub(super) fn environment(
    image: Option<&str>,
    has_gpus: bool,
    flavour: Flavour,
    scope: &Scope,
    image_version: Option<String>,
    listed: &BTreeSet<String>,
) -> Environment {
    let usual = if has_gpus { USUAL_GPU } else { DEFAULT_IMAGE };
    if let Some(version) = image_version {
        return Environment {
            image_version: Some(version),
            ..ours(image.unwrap_or(DEFAULT_IMAGE), scope)
        };
    }
    match image {
        None => ours(usual, scope),
        Some(id)
            if id.starts_with("azureml:")
                || id.starts_with("azureml://")
                || id.starts_with("/subscriptions/") =>
        {
            Environment {
                id: id.to_owned(),
                register: None,
                image_version: None,
            }
        }
        Some(name) if name.starts_with("AzureML-") => {
            let (name, version) = name.split_once(':').unwrap_or((name, "labels/latest"));
            let version = if version.contains('/') {
                version.to_owned()
            } else {
                format!("versions/{version}")
            };
            Environment {
                id: format!("azureml://registries/azureml/environments/{name}/{version}"),
                register: None,
                image_version: None,
            }
        }
        // The service requires an environment all the same.
        Some(curated) if flavour == Flavour::Singularity && is_curated(curated, listed) => {
            Environment {
                image_version: Some(curated.to_owned()),
                ..ours(DEFAULT_IMAGE, scope)
            }
        }
        Some(image) => ours(image, scope),
    }
}

/// An environment of ours. Its name comes from the image, so that registering it twice gives the
/// same one.
fn ours(image: &str, scope: &Scope) -> Environment {
    Environment {
        id: format!(
            "{}/environments/tow-{:016x}/versions/1",
            scope.id(),
            hash(image)
        ),
        register: Some(image.to_owned()),
        image_version: None,
    }
}

/// The document to register under its id.
pub(super) fn document(image: &str) -> Value {
    json!({"properties": {"image": image, "osType": "Linux", "description": "an image of a run of \
        tow"}})
}

/// FNV-1a: the same number for a text on every machine.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_image_has_its_place() {
        let scope = Scope {
            subscription: "s".into(),
            resource_group: "g".into(),
            workspace: "w".into(),
        };
        let listed = BTreeSet::from([
            "other/acpt-3.0".to_owned(),
            "base/job/pytorch/acpt-2.1:20240101".to_owned(),
        ]);
        let of =
            |image: &str, flavour| environment(Some(image), true, flavour, &scope, None, &listed);
        let own = of("amsword/setup:py36pt16", Flavour::Aml);
        assert!(
            own.id.contains("/workspaces/w/environments/tow-")
                && own.register.as_deref() == Some("amsword/setup:py36pt16")
        );
        assert_eq!(own, of("amsword/setup:py36pt16", Flavour::Aml));
        assert_eq!(
            of("AzureML-pytorch-1.7:3", Flavour::Itp).id,
            "azureml://registries/azureml/environments/AzureML-pytorch-1.7/versions/3"
        );
        assert_eq!(of("azureml:mine:2", Flavour::Aml).register, None);
        assert_eq!(
            of("acpt-torch2.7-cuda12.6", Flavour::Singularity)
                .image_version
                .as_deref(),
            Some("acpt-torch2.7-cuda12.6")
        );
        assert_eq!(
            of("lab.azurecr.io/x:1", Flavour::Singularity).image_version,
            None
        );
        for name in [
            "amlt-sing/acpt-2.2.1",
            "base/job/pytorch/acpt-2.1:20240101",
            "base/job/pytorch/acpt-2.1",
            "other/acpt-3.0",
        ] {
            let curated = of(name, Flavour::Singularity);
            assert_eq!(
                (
                    curated.image_version.as_deref(),
                    curated.register.as_deref()
                ),
                (Some(name), Some(DEFAULT_IMAGE)),
                "as the list has it"
            );
        }
        assert_eq!(
            of("amsword/setup:py36pt16", Flavour::Singularity).image_version,
            None,
            "Docker Hub's"
        );
        assert_eq!(
            of("other/acpt-3.0", Flavour::Aml).image_version,
            None,
            "only virtual clusters have such"
        );
        assert_eq!(
            environment(None, true, Flavour::Aml, &scope, None, &listed)
                .register
                .as_deref(),
            Some(USUAL_GPU)
        );
    }
}
