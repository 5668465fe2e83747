//! Whether an attempt that ended is followed by another.

use crate::job::RetryPolicy;
use crate::reason::{Cause, Ending};
use std::time::Duration;

/// The decision after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The run ends with this attempt.
    End,
    /// The run goes back to the queue; `counted` says whether the start counts towards `max`.
    Requeue { counted: bool },
}

/// Preemption always requeues and does not count. Other causes requeue only if `when` names them,
/// up to `max` starts. A time limit counts only if `max` is set: a job that is chained over several
/// time limits without a number runs until it is done. `counted_starts` are the starts so far that
/// count, with the ended one. A run that the user has cancelled is never started again.
pub fn after(
    policy: Option<&RetryPolicy>,
    ending: &Ending,
    counted_starts: u32,
    cancel_requested: bool,
) -> Next {
    match ending.cause {
        _ if cancel_requested => Next::End,
        None | Some(Cause::ByUser | Cause::Rejected | Cause::Dependency) => Next::End,
        Some(Cause::Preempted) => Next::Requeue { counted: false },
        Some(cause) => match policy {
            Some(policy) if policy.is_unlimited_after(cause) => Next::Requeue { counted: false },
            Some(policy)
                if policy.when.contains(&cause) && counted_starts < policy.max_starts() =>
            {
                Next::Requeue { counted: true }
            }
            _ => Next::End,
        },
    }
}

/// How long the nodes of an ended attempt are held for inspection: after a failure of the job's
/// own, if the user asked for that.
pub fn hold_after(ending: &Ending, wish: Option<Duration>) -> Option<Duration> {
    wish.filter(|_| ending.cause.is_some_and(Cause::is_own_failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_tried_again_and_only_so_often() {
        let policy = RetryPolicy {
            when: vec![Cause::NodeFailed],
            max: Some(3),
        };
        let failed = Ending::cause(Cause::NodeFailed);
        assert_eq!(
            after(Some(&policy), &failed, 2, false),
            Next::Requeue { counted: true }
        );
        assert_eq!(after(Some(&policy), &failed, 3, false), Next::End);
        assert_eq!(after(None, &failed, 1, false), Next::End);
        assert_eq!(
            after(Some(&policy), &Ending::cause(Cause::ExitCode), 1, false),
            Next::End
        );
        assert_eq!(
            after(Some(&policy), &Ending::success(), 1, false),
            Next::End
        );
    }

    #[test]
    fn a_job_chained_over_time_limits_goes_on_until_it_is_done_or_its_number_is_reached() {
        let limit = Ending::cause(Cause::TimeLimit);
        let chained = RetryPolicy {
            when: vec![Cause::TimeLimit, Cause::NodeFailed],
            max: None,
        };
        assert_eq!(
            after(Some(&chained), &limit, 99, false),
            Next::Requeue { counted: false }
        );
        assert_eq!(
            after(Some(&chained), &limit, 1, true),
            Next::End,
            "a cancel ends it"
        );
        assert_eq!(
            after(Some(&chained), &Ending::cause(Cause::NodeFailed), 3, false),
            Next::End,
            "other causes count to three"
        );
        let numbered = RetryPolicy {
            max: Some(2),
            ..chained
        };
        assert_eq!(
            after(Some(&numbered), &limit, 1, false),
            Next::Requeue { counted: true }
        );
        assert_eq!(after(Some(&numbered), &limit, 2, false), Next::End);
    }

    #[test]
    fn preemption_never_counts_and_a_cancel_always_wins() {
        let preempted = Ending::cause(Cause::Preempted);
        assert_eq!(
            after(None, &preempted, 99, false),
            Next::Requeue { counted: false }
        );
        assert_eq!(after(None, &preempted, 1, true), Next::End);
    }
}
