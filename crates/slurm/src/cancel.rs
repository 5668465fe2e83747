//! `scancel`: the end of jobs.

use crate::owned;
use crate::parse::job;

/// More jobs than this would make the command line too long.
const MAX_JOBS: usize = 200;

/// The commands that end these jobs. A job is a number, or `NUMBER_TASK`.
pub fn argvs(jobs: &[String]) -> impl Iterator<Item = Vec<String>> {
    jobs.chunks(MAX_JOBS).map(|some| {
        let mut argv = owned(["scancel", "--quiet"]);
        argv.extend_from_slice(some);
        argv
    })
}

/// The first error on stderr. A job that is gone already is none.
pub fn first_error(stderr: &str) -> Option<&str> {
    stderr
        .lines()
        .find(|line| {
            !line.trim().is_empty() && !job::is_unknown(line) && !line.contains("already completed")
        })
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_jobs_take_several_commands() {
        let jobs: Vec<String> = (0..401).map(|job| job.to_string()).collect();
        let argvs: Vec<Vec<String>> = argvs(&jobs).collect();
        assert_eq!(argvs.len(), 3);
        assert_eq!(argvs[2], ["scancel", "--quiet", "400"]);
        assert_eq!(super::argvs(&[]).count(), 0);
    }

    #[test]
    fn a_job_that_is_gone_is_no_error() {
        let gone = "scancel: error: Kill job error on job id 7: Invalid job id specified\n\
            scancel: job 9 already completed\n\n";
        assert_eq!(first_error(gone), None);
        assert_eq!(first_error("Job 7 not found\n"), None);
        assert_eq!(
            first_error("\n scancel: error: Access/permission denied\n"),
            Some("scancel: error: Access/permission denied")
        );
    }
}
