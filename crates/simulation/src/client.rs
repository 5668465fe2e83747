//! A client: one `tow` command with what it wants.

use crate::action::Job;
use towline_core::RunId;
use towline_core::after::After;
use towline_core::change::Change;
use towline_wire::daemon::{Hello, Reply, Request};

#[derive(Debug, Clone)]
pub(crate) enum Want {
    Submit {
        job: Job,
        number: u32,
        after: Vec<After>,
    },
    Change(RunId, Change),
    Cancel(RunId),
    Watch(RunId),
    Logs(RunId),
    Forget(RunId),
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) want: Want,
    /// Its connection, and the number of the daemon behind it.
    pub(crate) connection: Option<(u64, u64)>,
    /// How often it has asked.
    pub(crate) asked: u32,
    pub(crate) is_done: bool,
    /// The numbers of the events that a watch was sent on this connection.
    pub(crate) events: Vec<i64>,
    /// Whether the last state that a watch was told is an end.
    pub(crate) told_end: Option<bool>,
    /// The last reply has come.
    pub(crate) is_answered: bool,
    /// The job of its run was over when it asked.
    pub(crate) asked_after_end: bool,
}

impl Client {
    pub(crate) const fn new(want: Want) -> Self {
        Self {
            want,
            connection: None,
            asked: 0,
            is_done: false,
            events: Vec::new(),
            told_end: None,
            is_answered: false,
            asked_after_end: false,
        }
    }

    pub(crate) fn request(&self, plans: &crate::plans::Plans) -> Hello {
        Hello::new(match &self.want {
            Want::Submit { job, number, after } => {
                Request::Submit(Box::new(plans.submit(*job, *number, after)))
            }
            Want::Change(run, change) => Request::Change {
                runs: vec![run.clone()],
                change: change.clone(),
            },
            Want::Cancel(run) => Request::Cancel {
                runs: vec![run.clone()],
                by: None,
            },
            Want::Watch(run) => Request::Watch {
                runs: vec![run.clone()],
                logs: true,
            },
            Want::Logs(run) => Request::BringLogs { run: run.clone() },
            Want::Forget(run) => Request::Forget {
                runs: vec![run.clone()],
                told: false,
            },
        })
    }

    /// Whether a reply ends what the client wants.
    pub(crate) const fn ends_with(reply: &Reply) -> bool {
        !matches!(reply, Reply::State { .. } | Reply::Event { .. })
    }
}
