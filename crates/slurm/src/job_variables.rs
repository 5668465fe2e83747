//! The variables that Slurm sets in a job.

use towline_core::cluster::JobStart;

const JOB: &str = "SLURM_JOB_ID";
const RESTARTS: &str = "SLURM_RESTART_COUNT";
const TASK: &str = "SLURM_ARRAY_TASK_ID";
const HOSTS: &str = "SLURM_JOB_NODELIST";
const CPUS_PER_TASK: &str = "SLURM_CPUS_PER_TASK";
/// Those of the job on the node of its batch process.
const CPUS_ON_NODE: &str = "SLURM_CPUS_ON_NODE";
const TASKS_PER_NODE: &str = "SLURM_NTASKS_PER_NODE";
/// The number of a node in its step, from 0.
pub const NODE: &str = "SLURM_NODEID";
/// All of them begin with this.
pub const PREFIX: &str = "SLURM_";
/// Numbers of GPUs, the narrowest first. The last one is CUDA's own, which Slurm sets too; its
/// numbers begin at 0 where the site confines devices.
const GPUS: [&str; 3] = ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"];

/// What the variables tell a process of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    /// The job's own number; a task of an array has one of its own. `None` outside of a job.
    pub id: Option<String>,
    /// How often it was started again.
    pub restarts: u32,
    /// The number of this task in its array.
    pub task: Option<u32>,
    /// A host list; [`crate::parse::hosts::expand`] reads it.
    pub hosts: Option<String>,
    /// The number of this node in its step.
    pub node: Option<u32>,
    /// The CPUs that the one process of a step gets on each node, if they have to be named.
    pub cpus_per_node: Option<String>,
    /// The numbers of the job's GPUs on this node.
    pub gpus: Vec<u32>,
}

impl Job {
    /// Reads the variables that `lookup` finds.
    pub fn from(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name| lookup(name).and_then(|text| text.parse().ok());
        let gpus = GPUS
            .into_iter()
            .find_map(|name| lookup(name).filter(|list| !list.is_empty()));
        Self {
            id: lookup(JOB),
            restarts: number(RESTARTS).unwrap_or(0),
            task: number(TASK),
            hosts: lookup(HOSTS),
            node: number(NODE),
            cpus_per_node: match number(TASKS_PER_NODE) {
                Some(2..) => lookup(CPUS_ON_NODE),
                _ => lookup(CPUS_PER_TASK),
            },
            gpus: gpus.iter().flat_map(|list| numbers(list)).collect(),
        }
    }

    /// This start of this job; an error says which variable is missing.
    pub fn start(&self) -> Result<JobStart, String> {
        let job = self.id.clone();
        Ok(JobStart {
            job: job.ok_or_else(|| format!("this is not a job of Slurm: {JOB} is not set"))?,
            restarts: self.restarts,
        })
    }
}

fn numbers(list: &str) -> impl Iterator<Item = u32> {
    list.split(',')
        .filter_map(|number| number.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Job {
        Job::from(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_task_knows_itself() {
        let job = job(&[
            ("SLURM_JOB_ID", "36"),
            ("SLURM_ARRAY_JOB_ID", "35"),
            ("SLURM_ARRAY_TASK_ID", "2"),
            ("SLURM_RESTART_COUNT", "3"),
            ("SLURM_JOB_NODELIST", "c[1-2]"),
            ("SLURM_NODEID", "1"),
            ("SLURM_CPUS_PER_TASK", "8"),
        ]);
        let start = job.start().expect("a job");
        assert_eq!((start.job.as_str(), start.restarts), ("36", 3));
        assert_eq!((job.task, job.node), (Some(2), Some(1)));
        assert_eq!(job.hosts.as_deref(), Some("c[1-2]"));
        assert_eq!(job.cpus_per_node.as_deref(), Some("8"));
    }

    #[test]
    fn a_job_of_several_tasks_per_node_gives_all_its_cpus_to_one_process() {
        let job = job(&[
            ("SLURM_CPUS_PER_TASK", "2"),
            ("SLURM_NTASKS_PER_NODE", "4"),
            ("SLURM_CPUS_ON_NODE", "8"),
        ]);
        assert_eq!(job.cpus_per_node.as_deref(), Some("8"));
    }

    #[test]
    fn a_process_outside_of_a_job_is_told_so() {
        let none = job(&[]);
        assert_eq!(none, Job::default());
        assert_eq!(
            none.start().expect_err("no job"),
            "this is not a job of Slurm: SLURM_JOB_ID is not set"
        );
        let first = job(&[("SLURM_JOB_ID", "7"), ("SLURM_NODEID", "x")]);
        assert_eq!(first.start().map(|start| start.restarts), Ok(0));
        assert_eq!((first.task, first.node), (None, None));
    }

    #[test]
    fn the_scheduler_s_own_numbers_of_gpus_come_first() {
        let both = [("SLURM_JOB_GPUS", "4,6"), ("CUDA_VISIBLE_DEVICES", "0,1")];
        assert_eq!(job(&both).gpus, [4, 6]);
        let step = [("SLURM_STEP_GPUS", "6"), ("SLURM_JOB_GPUS", "4,6")];
        assert_eq!(job(&step).gpus, [6]);
        let empty = [("SLURM_JOB_GPUS", ""), ("CUDA_VISIBLE_DEVICES", "1")];
        assert_eq!(job(&empty).gpus, [1]);
        assert!(job(&[]).gpus.is_empty());
        assert!(Job::from(|_| Some("GPU-1234".to_owned())).gpus.is_empty());
    }
}
