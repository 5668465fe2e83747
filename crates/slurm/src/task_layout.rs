//! The variables from which `srun` inside a job takes how many tasks it starts and how.
//!
//! A step of ours gives its processes the values of the step. `srun` in a user's script has to find
//! those of the batch job, as it would without us. So they travel under other names and are put
//! back in the step.

/// The variables that a step sets anew, and the one that lets steps share the job's resources.
const VARIABLES: [&str; 11] = [
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_CPU_BIND",
    "SLURM_CPU_BIND_LIST",
    "SLURM_CPU_BIND_TYPE",
    "SLURM_CPU_BIND_VERBOSE",
    OVERLAP,
];
/// A step with it shares CPUs, memory and GPUs with all others, also with those that do not ask for
/// it. Slurm before 20.11 does not know it.
const OVERLAP: &str = "SLURM_OVERLAP";
const TRAVELS_AS: &str = "TOW_BATCH_";

/// Further variables for the command that starts a step of ours. `lookup` finds the
/// variables of the batch job.
pub fn for_step(lookup: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let carried = VARIABLES
        .iter()
        .filter_map(|name| Some((format!("{TRAVELS_AS}{name}"), lookup(name)?)));
    let overlap = (OVERLAP.to_owned(), "1".to_owned());
    carried.chain([overlap]).collect()
}

/// The changes of a step's environment that make it that of the batch job: a variable is set, or
/// removed. `lookup` finds the variables of the step.
pub fn for_ranks(lookup: impl Fn(&str) -> Option<String>) -> Vec<(String, Option<String>)> {
    let mut changes = Vec::new();
    for name in VARIABLES {
        let travels_as = format!("{TRAVELS_AS}{name}");
        changes.push((name.to_owned(), lookup(&travels_as)));
        changes.push((travels_as, None));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Variables = BTreeMap<String, String>;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn ranks_see_the_layout_of_the_batch_job() {
        let batch = variables(&[
            ("SLURM_JOB_ID", "7"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_NTASKS_PER_NODE", "2"),
        ]);
        let mut step = batch.clone();
        step.extend(for_step(|name| batch.get(name).cloned()));
        assert_eq!(step["SLURM_OVERLAP"], "1");
        // Then Slurm writes its own.
        step.extend(variables(&[
            ("SLURM_NTASKS", "2"),
            ("SLURM_NTASKS_PER_NODE", "1"),
            ("SLURM_CPU_BIND", "quiet,none"),
            ("SLURM_NODEID", "1"),
        ]));
        let mut ranks = step.clone();
        for (name, value) in for_ranks(|name| step.get(name).cloned()) {
            match value {
                Some(value) => drop(ranks.insert(name, value)),
                None => drop(ranks.remove(&name)),
            }
        }
        let mut expected = batch;
        expected.insert("SLURM_NODEID".to_owned(), "1".to_owned());
        assert_eq!(ranks, expected);
    }
}
