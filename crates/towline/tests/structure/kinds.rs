//! Only the registry, the folders of the kinds, the configuration and the importers know which
//! kinds of cluster there are, and one crate knows the words of Slurm.

use super::sources::{code, product};

/// Where kinds may be named.
const KNOW_KINDS: [&str; 7] = [
    "backends/src/registry.rs",
    "backends/src/local/",
    "backends/src/slurm/",
    "backends/src/azureml/",
    "core/src/config",
    "import/src/",
    // Which keys mean nothing to a kind: it asks the configuration about all of them.
    "engine/src/kind_keys.rs",
];

/// A switch on a kind: by the enum, by the type of one, or by its word.
const SWITCHES: [&str; 8] = [
    "ClusterKind::",
    "LocalCluster",
    "SlurmCluster",
    "AzureCluster",
    ".kind == ",
    ".kind() == ",
    ".kind != ",
    ".kind() != ",
];

/// Comparisons of other kinds than those of clusters: errors, entries of trees, datastores.
fn is_of_cluster(line: &str) -> bool {
    let names = ["cluster", "plan.", "named.", "definition", "target.kind"];
    !line.contains(".kind") || names.iter().any(|name| line.contains(name))
}

#[test]
fn nobody_else_switches_on_the_kind_of_a_cluster() {
    let mut found = Vec::new();
    for source in product() {
        if KNOW_KINDS
            .iter()
            .any(|known| source.path.starts_with(known))
        {
            continue;
        }
        let code = code(&source.text);
        for (number, line) in code.lines().enumerate() {
            if SWITCHES.iter().any(|switch| line.contains(switch)) && is_of_cluster(line) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Slurm's programs and the variables that it sets, as code names them.
const WORDS_OF_SLURM: [&str; 9] = [
    "\"sacct\"",
    "\"sacctmgr\"",
    "\"sbatch\"",
    "\"scancel\"",
    "\"scontrol\"",
    "\"sinfo\"",
    "\"squeue\"",
    "\"sshare\"",
    "\"SLURM_",
];

/// Importers read the job files of Slurm's own users; the others start a Slurm of their own.
const NAME_SLURM: [&str; 4] = ["slurm/src/", "import/src/", "testkit/src/", "xtask/src/"];

#[test]
fn one_crate_knows_the_words_of_slurm() {
    let mut found = Vec::new();
    for source in product() {
        if NAME_SLURM
            .iter()
            .any(|known| source.path.starts_with(known))
        {
            continue;
        }
        let text = source.text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in text.lines().enumerate() {
            if WORDS_OF_SLURM.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
