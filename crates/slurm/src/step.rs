//! `srun`: steps of a job.

use crate::owned;
use crate::parse::config::{self, Version};

/// The command that starts another once on each of `nodes` nodes of this job; that other one follows
/// behind it. The one process of each node gets all of the job's GPUs, CPUs and memory there.
pub fn on_each_node(nodes: u32, cpus_per_task: Option<&str>) -> Vec<String> {
    let mut argv = owned(["srun"]);
    argv.extend([format!("--nodes={nodes}"), format!("--ntasks={nodes}")]);
    argv.extend(owned([
        "--ntasks-per-node=1",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--unbuffered",
        "--cpu-bind=none",
        "--mpi=none",
    ]));
    argv.extend(cpus_per_task.map(|cpus| format!("--cpus-per-task={cpus}")));
    argv
}

/// The command that starts another in a job that runs, beside what runs in it; that other one follows
/// behind it. `environment` is what Slurm's commands need there, as `NAME=value`.
///
/// Steps share CPUs and memory by default before 20.11, and since then if they say so. Before 21.08
/// they do not share GPUs: a second step that does not do without them waits until the first has
/// ended.
pub fn beside(version: &str, environment: &[String], job: &str, host: &str) -> Vec<String> {
    // A cluster that does not tell its version is taken for a new one.
    let version = config::version(version).unwrap_or(Version(u32::MAX, 0, 0));
    let mut argv = Vec::new();
    if !environment.is_empty() {
        argv.push("env".to_owned());
        argv.extend_from_slice(environment);
    }
    argv.extend(["srun".to_owned(), format!("--jobid={job}")]);
    argv.extend((version >= Version(20, 11, 0)).then(|| "--overlap".to_owned()));
    argv.extend((version < Version(21, 8, 0)).then(|| "--gres=none".to_owned()));
    argv.extend(owned([
        "--nodes=1",
        "--ntasks=1",
        &format!("--nodelist={host}"),
        "--mpi=none",
        "--quiet",
    ]));
    argv
}

/// The error in a line of `srun`'s stderr, if it is one.
pub fn error(line: &str) -> Option<&str> {
    line.trim().strip_prefix("srun: error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_srun_is_told_from_what_a_program_prints() {
        let line = "srun: error: c2: task 1: Killed\n";
        assert_eq!(error(line), Some("c2: task 1: Killed"));
        assert_eq!(error("error: no such file\n"), None);
        assert_eq!(error("srun: job 7 queued\n"), None);
    }

    #[test]
    fn a_step_beside_others_asks_for_what_its_version_shares() {
        let argv = |version: &str| beside(version, &[], "7", "c2").join(" ");
        assert_eq!(
            argv("22.05.8"),
            "srun --jobid=7 --overlap --nodes=1 --ntasks=1 --nodelist=c2 --mpi=none --quiet"
        );
        assert_eq!(argv("24.11.5"), argv("22.05.8"));
        assert_eq!(argv(""), argv("22.05.8"));
        assert!(
            argv("20.11.4").starts_with("srun --jobid=7 --overlap --gres=none --nodes=1"),
            "{}",
            argv("20.11.4")
        );
        assert!(
            argv("20.02.7").starts_with("srun --jobid=7 --gres=none --nodes=1"),
            "{}",
            argv("20.02.7")
        );
        let elsewhere = ["PATH=/bin:/opt/slurm/bin".to_owned()];
        assert_eq!(
            beside("23.02.1", &elsewhere, "7", "c2")[..3],
            ["env", "PATH=/bin:/opt/slurm/bin", "srun"]
        );
    }

    #[test]
    fn a_runner_on_each_node_gets_all_of_the_node() {
        assert_eq!(
            on_each_node(3, Some("8")).join(" "),
            "srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 \
                --unbuffered --cpu-bind=none --mpi=none --cpus-per-task=8"
        );
        assert_eq!(
            on_each_node(2, None).last().map(String::as_str),
            Some("--mpi=none")
        );
    }
}
