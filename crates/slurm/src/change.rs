//! `scontrol hold`, `release` and `update`: changes of jobs that wait.

use crate::owned;
use crate::parse::job;
use towline_core::Error;

/// Holds a job: a number, or `NUMBER_TASK`.
pub fn hold(job: &str) -> Vec<String> {
    owned(["scontrol", "hold", job])
}

pub fn release(job: &str) -> Vec<String> {
    owned(["scontrol", "release", job])
}

/// Gives a job another time limit, in seconds, another QOS or another partition.
pub fn update(
    job: &str,
    time: Option<u64>,
    qos: Option<&str>,
    partition: Option<&str>,
) -> Vec<String> {
    let mut argv = owned(["scontrol", "update", &format!("JobId={job}")]);
    // Slurm counts in minutes.
    argv.extend(time.map(|seconds| format!("TimeLimit={}", seconds.div_ceil(60))));
    argv.extend(qos.map(|qos| format!("QOS={qos}")));
    argv.extend(partition.map(|name| format!("Partition={name}")));
    argv
}

/// The error of a change that Slurm refuses.
pub fn refused(stderr: &str) -> Error {
    let said = stderr
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("scontrol failed and said nothing");
    let said = said.trim_start_matches("slurm_update error: ");
    if job::is_unknown(stderr) {
        return Error::not_found("the controller does not know its job");
    }
    if stderr.contains("denied") {
        return Error::denied(format!("Slurm refuses it: {said}"))
            .hint("many sites let only their staff raise a limit: submit it again instead");
    }
    Error::refused(format!("Slurm refuses it: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    #[test]
    fn each_change_is_one_command() {
        assert_eq!(hold("7").join(" "), "scontrol hold 7");
        assert_eq!(release("7_3").join(" "), "scontrol release 7_3");
        assert_eq!(
            update("7", Some(3601), Some("low"), None).join(" "),
            "scontrol update JobId=7 TimeLimit=61 QOS=low"
        );
    }

    #[test]
    fn a_refusal_is_told_in_slurms_words() {
        let denied = refused("slurm_update error: Access/permission denied\n");
        assert_eq!(denied.kind(), ErrorKind::Denied);
        assert!(denied.to_string().contains("Access/permission denied"));
        let gone = refused("slurm_update error: Invalid job id specified\n");
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        assert_eq!(refused("").kind(), ErrorKind::Refused);
    }
}
