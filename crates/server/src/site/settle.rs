//! Decides about a run whose records and whose scheduler disagree. Pure: facts go in, one act comes
//! out.

use towline_core::reason::{Cause, Ending};
use towline_runner::far::records::{Due, Records};

/// The detail of an attempt whose end nobody recorded.
pub(super) const SILENT: &str = "it died without a word";

/// The scheduler's answer about a run's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Truth {
    Waiting,
    Running,
    Ended(Ending),
    /// It has no such job and never had: an authoritative answer.
    NeverHeard,
    /// It could not be asked.
    Unknown,
}

/// Combines the answers of the controller and the database. The controller knows which jobs are
/// alive; the database knows better how a job ended. A job that is open only in the database was
/// forgotten by its controller: nobody will ever close that row.
pub(super) fn believed(controller: Option<Truth>, database: Option<Truth>) -> Truth {
    match (controller, database) {
        (Some(open @ (Truth::Waiting | Truth::Running | Truth::Unknown)), _) => open,
        (_, Some(ended @ Truth::Ended(_))) => ended,
        (Some(ended), _) => ended,
        (None, _) => Truth::NeverHeard,
    }
}

/// Further facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signs {
    /// No process of the open attempt can be alive.
    pub(super) lapsed: bool,
    /// The facts were the same at an earlier look, long enough ago.
    pub(super) lasting: bool,
    /// The controller itself says that its job has ended and never had a node.
    pub(super) unstarted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    End {
        attempt: u32,
        ending: Ending,
    },
    /// The run must go on, and no job of it is left.
    SubmitAgain,
}

pub(super) fn settle(records: &Records, due: &Due, truth: &Truth, signs: Signs) -> Act {
    match due {
        Due::Nothing(_) if !records.attempts.is_empty() => Act::Nothing,
        // Cancelled before anything began: it is over once no job can begin it.
        Due::Nothing(ending) => match truth {
            Truth::Ended(_) => Act::End {
                attempt: 0,
                ending: ending.clone(),
            },
            Truth::NeverHeard if signs.lasting => Act::End {
                attempt: 0,
                ending: ending.clone(),
            },
            _ => Act::Nothing,
        },
        Due::Open(attempt) => open(records, *attempt, truth, signs),
        Due::Begin(attempt) => begin(*attempt, truth, signs),
    }
}

/// An attempt that was begun and has no end.
fn open(records: &Records, attempt: u32, truth: &Truth, signs: Signs) -> Act {
    if !signs.lapsed || !signs.lasting {
        return Act::Nothing;
    }
    let held = records
        .attempts
        .get(&attempt)
        .and_then(|of| of.held.as_ref())
        .map(|held| held.ending.clone());
    let end = |ending: Ending| Act::End { attempt, ending };
    match truth {
        _ if records.cancelled => end(held.unwrap_or_else(|| Ending::cause(Cause::ByUser))),
        Truth::Unknown | Truth::Running => Act::Nothing,
        // A rank had failed, and only the nodes were held.
        _ if held.is_some() => end(held.unwrap_or_default()),
        // The scheduler saw what ended it. The exit of the batch process says nothing, because that
        // process leaves a record unless it was killed.
        Truth::Ended(ending) if ending.cause.is_some_and(is_from_outside) => end(ending.clone()),
        Truth::Ended(_) | Truth::Waiting | Truth::NeverHeard => {
            end(Ending::cause(Cause::NodeFailed).detail(SILENT))
        }
    }
}

const fn is_from_outside(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::TimeLimit
            | Cause::OutOfMemory
            | Cause::NodeFailed
            | Cause::Preempted
            | Cause::ByUser
    )
}

/// A run of which nothing was begun, or whose last attempt is followed by another.
fn begin(attempt: u32, truth: &Truth, signs: Signs) -> Act {
    match truth {
        Truth::Waiting | Truth::Running | Truth::Unknown => Act::Nothing,
        // No process of it can be starting, so there is nothing to wait for.
        Truth::Ended(ending) if signs.unstarted && ending.cause == Some(Cause::ByUser) => {
            cancelled_there(ending)
        }
        _ if !signs.lasting => Act::Nothing,
        Truth::NeverHeard => Act::SubmitAgain,
        Truth::Ended(ending) if ending.cause == Some(Cause::ByUser) => cancelled_there(ending),
        // The former attempt ended its job, and another is due.
        Truth::Ended(_) if attempt > 1 => Act::SubmitAgain,
        Truth::Ended(ending) => {
            let ending = match ending.cause {
                // Requeued, killed, or its node died, before it could begin: it goes on.
                Some(Cause::Preempted | Cause::NodeFailed | Cause::Signal) => {
                    return Act::SubmitAgain;
                }
                _ => not_started(ending),
            };
            Act::End { attempt: 0, ending }
        }
    }
}

fn cancelled_there(ending: &Ending) -> Act {
    Act::End {
        attempt: 0,
        ending: ending.clone().detail("cancelled on the cluster"),
    }
}

fn not_started(ending: &Ending) -> Ending {
    let how = ending.detail.clone().unwrap_or_else(|| ending.to_string());
    let why = format!("its job ended before anything of it began ({how})");
    Ending {
        exit_code: ending.exit_code,
        ..Ending::not_started(why, ending.obstacle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::cluster::{Claim, End, JobStart};
    use towline_core::obstacle::Obstacle;
    use towline_core::time::Moment;
    use towline_runner::far::records::AttemptRecords;

    const LASTING: Signs = Signs {
        lapsed: true,
        lasting: true,
        unstarted: false,
    };

    fn claimed() -> Records {
        let claim = Claim {
            by: JobStart {
                job: "1".into(),
                restarts: 0,
            },
            at: Moment(1),
            hosts: vec!["a".into()],
            port: 1,
        };
        Records {
            attempts: [(
                1,
                AttemptRecords {
                    claim: Some(claim),
                    ..AttemptRecords::default()
                },
            )]
            .into(),
            cancelled: false,
        }
    }

    fn act(records: &Records, truth: &Truth, signs: Signs) -> Act {
        settle(records, &records.due(None), truth, signs)
    }

    #[test]
    fn the_controller_knows_what_lives_and_the_database_how_it_ended() {
        let (vague, exact) = (
            Truth::Ended(Ending::cause(Cause::NotStarted)),
            Truth::Ended(Ending::cause(Cause::Signal)),
        );
        assert_eq!(
            believed(Some(Truth::Waiting), Some(exact.clone())),
            Truth::Waiting,
            "put back into the queue"
        );
        assert_eq!(believed(Some(vague.clone()), Some(exact.clone())), exact);
        assert_eq!(
            believed(Some(vague.clone()), Some(Truth::Running)),
            vague,
            "the database is late"
        );
        assert_eq!(believed(None, Some(exact.clone())), exact);
        for forgotten in [None, Some(Truth::Waiting), Some(Truth::Running)] {
            assert_eq!(believed(None, forgotten), Truth::NeverHeard);
        }
    }

    #[test]
    fn what_may_be_alive_is_left_alone() {
        let alive = Signs {
            lapsed: false,
            ..LASTING
        };
        for truth in [
            Truth::Waiting,
            Truth::Running,
            Truth::NeverHeard,
            Truth::Unknown,
            Truth::Ended(Ending::cause(Cause::NodeFailed)),
        ] {
            assert_eq!(act(&claimed(), &truth, alive), Act::Nothing, "{truth:?}");
        }
        assert_eq!(
            act(&claimed(), &Truth::Unknown, LASTING),
            Act::Nothing,
            "ignorance is never an ending"
        );
        assert_eq!(act(&claimed(), &Truth::Running, LASTING), Act::Nothing);
    }

    #[test]
    fn what_died_without_a_word_ends_as_the_scheduler_saw_it() {
        let node_failed = Act::End {
            attempt: 1,
            ending: Ending::cause(Cause::NodeFailed).detail(SILENT),
        };
        assert_eq!(act(&claimed(), &Truth::NeverHeard, LASTING), node_failed);
        assert_eq!(act(&claimed(), &Truth::Waiting, LASTING), node_failed);
        assert_eq!(
            act(&claimed(), &Truth::Ended(Ending::success()), LASTING),
            node_failed,
            "its own word would be in the records"
        );
        let limit = Ending::cause(Cause::TimeLimit);
        assert_eq!(
            act(&claimed(), &Truth::Ended(limit.clone()), LASTING),
            Act::End {
                attempt: 1,
                ending: limit
            }
        );
        // A batch process that is killed looks like one that failed, was signalled, or never came
        // up.
        for cause in [Cause::ExitCode, Cause::Signal, Cause::NotStarted] {
            assert_eq!(
                act(&claimed(), &Truth::Ended(Ending::cause(cause)), LASTING),
                node_failed,
                "{cause:?}"
            );
        }
    }

    #[test]
    fn a_forgotten_job_is_submitted_again_once_that_is_sure() {
        let none = Records::default();
        assert_eq!(
            act(
                &none,
                &Truth::NeverHeard,
                Signs {
                    lasting: false,
                    ..LASTING
                }
            ),
            Act::Nothing
        );
        assert_eq!(act(&none, &Truth::NeverHeard, LASTING), Act::SubmitAgain);
        assert_eq!(act(&none, &Truth::Unknown, LASTING), Act::Nothing);
        let cancelled = Records {
            cancelled: true,
            ..Records::default()
        };
        assert_eq!(
            act(&cancelled, &Truth::NeverHeard, LASTING),
            Act::End {
                attempt: 0,
                ending: Ending::cause(Cause::ByUser)
            }
        );
        assert_eq!(
            act(&cancelled, &Truth::Waiting, LASTING),
            Act::Nothing,
            "it is still there"
        );
    }

    #[test]
    fn a_preempted_run_whose_job_is_gone_goes_on_in_another() {
        let end = End {
            at: Moment(2),
            ending: Ending::cause(Cause::Preempted),
        };
        let mut records = claimed();
        records.attempts.get_mut(&1).expect("there").end = Some(end);
        assert_eq!(act(&records, &Truth::Waiting, LASTING), Act::Nothing);
        assert_eq!(
            act(
                &records,
                &Truth::Ended(Ending::cause(Cause::Preempted)),
                LASTING
            ),
            Act::SubmitAgain
        );
        let cancelled = act(
            &records,
            &Truth::Ended(Ending::cause(Cause::ByUser)),
            LASTING,
        );
        assert!(
            matches!(cancelled, Act::End { attempt: 0, .. }),
            "who cancelled it there does not want it back: {cancelled:?}"
        );
    }

    #[test]
    fn a_job_that_is_cancelled_before_it_had_a_node_is_over_at_once() {
        let first = Signs {
            lasting: false,
            ..LASTING
        };
        let never = Signs {
            unstarted: true,
            ..first
        };
        let cancelled = Truth::Ended(Ending::cause(Cause::ByUser));
        assert_eq!(
            act(&Records::default(), &cancelled, first),
            Act::Nothing,
            "its claim may be on its way"
        );
        assert!(matches!(
            act(&Records::default(), &cancelled, never),
            Act::End { attempt: 0, .. }
        ));
        assert_eq!(
            act(
                &Records::default(),
                &Truth::Ended(Ending::cause(Cause::NodeFailed)),
                never
            ),
            Act::Nothing
        );
        assert_eq!(
            act(&claimed(), &cancelled, never),
            Act::Nothing,
            "it was begun after all"
        );
    }

    #[test]
    fn a_job_that_never_began_says_why() {
        let Act::End { attempt: 0, ending } = act(
            &Records::default(),
            &Truth::Ended(Ending::cause(Cause::ExitCode)),
            LASTING,
        ) else {
            panic!("an end")
        };
        assert_eq!(ending.cause, Some(Cause::NotStarted));
        assert_eq!(ending.obstacle, None);
    }

    #[test]
    fn what_kept_a_job_from_beginning_is_passed_on() {
        let unopened = Ending::not_started("no output file", Some(Obstacle::StageNotShared));
        let Act::End { ending, .. } = act(&Records::default(), &Truth::Ended(unopened), LASTING)
        else {
            panic!("an end")
        };
        assert_eq!(ending.obstacle, Some(Obstacle::StageNotShared));
        let detail = ending.detail.expect("a detail");
        assert!(detail.ends_with("(no output file)"), "{detail}");
    }

    #[test]
    fn a_job_that_was_killed_before_it_began_goes_on() {
        for cause in [Cause::Signal, Cause::NodeFailed, Cause::Preempted] {
            assert_eq!(
                act(
                    &Records::default(),
                    &Truth::Ended(Ending::cause(cause)),
                    LASTING
                ),
                Act::SubmitAgain,
                "{cause:?}"
            );
        }
    }
}
