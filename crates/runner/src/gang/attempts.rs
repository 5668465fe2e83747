//! What is recorded of a run's attempts, and what follows from it.

use std::collections::BTreeMap;
use towline_core::cluster::{Claim, End, Held, Started};
use towline_core::job::RetryPolicy;
use towline_core::reason::{Cause, Ending};
use towline_core::retry::{Next, after};
use towline_wire::stage::StopOrder;

/// The records of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttemptRecords {
    pub claim: Option<Claim>,
    pub started: Option<Started>,
    pub held: Option<Held>,
    pub end: Option<End>,
    pub stop: Option<StopOrder>,
}

/// All records of a run, by attempt. Attempt 0 is a run that ended before its first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    pub attempts: BTreeMap<u32, AttemptRecords>,
    pub cancelled: bool,
}

/// The next step for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// It has ended.
    Nothing(Ending),
    /// This attempt has begun and has no end.
    Open(u32),
    /// This attempt comes next.
    Begin(u32),
}

impl Records {
    /// The next step, by the rule that all clusters share.
    pub fn due(&self, policy: Option<&RetryPolicy>) -> Due {
        let mut counted = 0;
        let mut last = 0;
        for (attempt, of) in &self.attempts {
            let Some(end) = &of.end else {
                if of.claim.is_some() {
                    return Due::Open(*attempt);
                }
                continue;
            };
            if *attempt == 0 {
                return Due::Nothing(end.ending.clone());
            }
            last = *attempt;
            counted += 1;
            match after(policy, &end.ending, counted, self.cancelled) {
                Next::End => return Due::Nothing(self.final_ending(&end.ending)),
                Next::Requeue { counted: true } => {}
                Next::Requeue { counted: false } => counted -= 1,
            }
        }
        if self.cancelled {
            Due::Nothing(Ending::cause(Cause::ByUser))
        } else {
            Due::Begin(last + 1)
        }
    }

    /// The ending of a cancelled run is the cancel, even if something else ended it first.
    fn final_ending(&self, ending: &Ending) -> Ending {
        if self.cancelled && ending.cause == Some(Cause::Preempted) {
            Ending::cause(Cause::ByUser)
        } else {
            ending.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::time::Moment;

    fn ended(cause: Option<Cause>) -> AttemptRecords {
        let ending = cause.map_or_else(Ending::success, Ending::cause);
        AttemptRecords {
            end: Some(End {
                at: Moment(1),
                ending,
            }),
            ..AttemptRecords::default()
        }
    }

    fn records(attempts: &[Option<Cause>]) -> Records {
        Records {
            attempts: (1..)
                .zip(attempts.iter().map(|cause| ended(*cause)))
                .collect(),
            cancelled: false,
        }
    }

    #[test]
    fn what_is_due_follows_from_the_records_alone() {
        let policy = RetryPolicy {
            when: vec![Cause::TimeLimit],
            max: Some(2),
        };
        assert_eq!(records(&[]).due(None), Due::Begin(1));
        assert_eq!(records(&[None]).due(None), Due::Nothing(Ending::success()));
        assert_eq!(
            records(&[Some(Cause::Preempted), Some(Cause::Preempted)]).due(None),
            Due::Begin(3)
        );
        assert_eq!(
            records(&[Some(Cause::TimeLimit)]).due(Some(&policy)),
            Due::Begin(2)
        );
        let limit = Some(Cause::TimeLimit);
        assert_eq!(
            records(&[limit, Some(Cause::Preempted), limit]).due(Some(&policy)),
            Due::Nothing(Ending::cause(Cause::TimeLimit)),
            "two starts count"
        );
        let mut cancelled = records(&[Some(Cause::Preempted)]);
        cancelled.cancelled = true;
        assert_eq!(
            cancelled.due(None),
            Due::Nothing(Ending::cause(Cause::ByUser))
        );
        assert_eq!(
            Records {
                cancelled: true,
                ..Records::default()
            }
            .due(None),
            Due::Nothing(Ending::cause(Cause::ByUser))
        );
    }
}
