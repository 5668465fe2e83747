//! Variables that Slurm's commands read: some must be set, some must not.

/// Set for every query. `SLURM_TIME_FORMAT` makes times epoch seconds in `squeue`, `sacct` and
/// `scontrol` (all versions since 20.11); otherwise they are local times of the login node, without
/// a zone. `SLURM_BITSTR_LEN` makes long arrays appear whole instead of ending in `...`.
///
/// Not set for `sbatch`, which would pass both on to the job.
pub const ASKING: &[(&str, &str)] = &[("SLURM_TIME_FORMAT", "%s"), ("SLURM_BITSTR_LEN", "0")];

/// What the commands of Slurm need beside `PATH`, where only a login shell sets it.
pub const LOGIN_VARIABLES: [&str; 2] = ["SLURM_CONF", "LD_LIBRARY_PATH"];

/// Variables of the user's shell that filter, sort or reshape an answer: with
/// `SQUEUE_STATES=RUNNING` every pending job looks gone. Removed for every query.
pub const SHELL_DEFAULTS: &[&str] = &[
    "SQUEUE_ACCOUNT",
    "SQUEUE_ARRAY",
    "SQUEUE_ARRAY_UNIQUE",
    "SQUEUE_FEDERATION",
    "SQUEUE_FORMAT",
    "SQUEUE_FORMAT2",
    "SQUEUE_LICENSES",
    "SQUEUE_LOCAL",
    "SQUEUE_NAMES",
    "SQUEUE_PARTITION",
    "SQUEUE_PRIORITY",
    "SQUEUE_QOS",
    "SQUEUE_SIB",
    "SQUEUE_SIBLING",
    "SQUEUE_SORT",
    "SQUEUE_STATES",
    "SQUEUE_USERS",
    "SACCT_FEDERATION",
    "SACCT_FORMAT",
    "SACCT_LOCAL",
    "SCONTROL_FEDERATION",
    "SCONTROL_FUTURE",
    "SCONTROL_LOCAL",
    "SCONTROL_SIB",
    "SCONTROL_SIBLING",
];

/// The argv of a query with its environment in front: `env -u … NAME=value … argv`.
pub fn asking(argv: &[String]) -> Vec<String> {
    let mut all = vec!["env".to_owned()];
    for name in SHELL_DEFAULTS {
        all.extend(["-u".to_owned(), (*name).to_owned()]);
    }
    all.extend(ASKING.iter().map(|(name, value)| format!("{name}={value}")));
    all.extend_from_slice(argv);
    all
}

/// The argv of `sbatch` without the variables that would win over lines of the script
/// ([`crate::script::Batch::overridden_by`]).
pub fn submitting(argv: &[String], without: &[&str]) -> Vec<String> {
    let mut all = vec!["env".to_owned()];
    for name in without {
        all.extend(["-u".to_owned(), (*name).to_owned()]);
    }
    all.extend_from_slice(argv);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_asked_without_the_settings_of_a_shell() {
        let words = asking(&["squeue".into(), "-h".into()]);
        assert_eq!(words[..3], ["env", "-u", "SQUEUE_ACCOUNT"]);
        assert_eq!(
            words[words.len() - 4..],
            ["SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "squeue", "-h"]
        );
        assert_eq!(
            submitting(&["sbatch".into()], &["SBATCH_QOS"]),
            ["env", "-u", "SBATCH_QOS", "sbatch"]
        );
    }
}
