//! Files beside ACT's clusters that are not clusters: an error that tells which file to give
//! instead.

use super::section::{Section, wrong};
use towline_core::{Error, Result};

/// Keys that only a cluster's file has.
const CLUSTER_KEYS: [&str; 8] = [
    "compute_target",
    "aml_config",
    "config_param",
    "platform",
    "aks_compute",
    "docker",
    "experiment_name",
    "gpu_per_node",
];
/// Keys by which another kind of file is recognised, and its description.
const KEYS_OF_OTHER_FILES: [(&[&str], &str); 2] = [
    (
        &["subscription_id", "workspace_name"],
        "this is the file that names a workspace, not one of a cluster, which has its path as \
            `aml_config`",
    ),
    (
        &["account_name", "account_key", "sas_token"],
        "this is a storage account, not a cluster, which has its path as `azure_blob_config_file`",
    ),
];
const CLUSTER_FILE_HINT: &str = "give the cluster's own file: aux_data/aml/NAME.yaml";

/// Refuses the workspace's `config.json` and account files.
pub(super) fn refuse_other_files(keys: &Section<'_>) -> Result<()> {
    let has = |names: &[&str]| {
        keys.entries()
            .find(|(key, _)| names.contains(key))
            .map(|(key, _)| keys.key_place(key))
    };
    if has(&CLUSTER_KEYS).is_some() {
        return Ok(());
    }
    match KEYS_OF_OTHER_FILES
        .iter()
        .find_map(|(names, what)| Some((has(names)?, what)))
    {
        Some((at, what)) => Err(wrong(at, what).hint(CLUSTER_FILE_HINT)),
        None => Ok(()),
    }
}

/// Refuses a file without a single key of ACT. Called after all known keys were read.
pub(super) fn refuse_unknown(keys: &Section<'_>) -> Result<()> {
    let refusal = || -> Error {
        wrong(
            keys.at(),
            "no key here is one of ACT's: this is not a cluster of ACT's",
        )
        .hint(CLUSTER_FILE_HINT)
    };
    if keys.has_known() {
        Ok(())
    } else {
        Err(refusal())
    }
}
