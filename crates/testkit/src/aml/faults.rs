//! What goes wrong on demand.

use super::answer::{Answer, refusal};
use super::call::Call;
use super::clusters;
use super::container::Image;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// An answer of this status, with the wish to be asked again in so many seconds.
    Status {
        status: u16,
        retry_after: Option<u32>,
    },
    /// The connection breaks; no answer comes.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing has happened.
    Before,
    /// The request took effect; its true answer is lost.
    After,
}

/// What a virtual cluster may have of a series in a tier, and has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub region: String,
    pub series: String,
    /// Basic, Standard or Premium.
    pub tier: String,
    pub limit: u32,
    pub used: u32,
}

/// Somebody who is to enter a code in a browser, and what the login service says meanwhile.
#[derive(Debug, Clone)]
pub struct Device {
    /// Seconds between questions, as the service wants it.
    pub interval: u32,
    /// So many questions are told to come slower, and then so many that nobody has entered the code
    /// yet.
    pub slow_downs: usize,
    pub pending: usize,
    /// How it ends, where not with a token: `expired_token`, `authorization_declined`.
    pub refusal: Option<String>,
    /// Who has signed in must do so again.
    pub ended: bool,
}

/// How the service behaves; a test changes it as it goes.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// How long a job is in each state before it runs, and in Finalizing after.
    pub pause: Duration,
    /// Jobs stay in this state until it is none.
    pub hold_in: Option<String>,
    /// Jobs that are put from now on wait for ever, without a thread of their own, and bodies are
    /// not recorded: thousands of them cost little.
    pub asleep: bool,
    /// Nothing starts: every job that comes to its nodes fails with these words.
    pub broken_start: Option<String>,
    /// From asking processes to end to killing them.
    pub grace: Duration,
    /// How long something new is not seen yet by reads; what is less from now on is seen at once.
    pub unseen: Duration,
    /// Addresses of logs come with signatures that have expired.
    pub expired_logs: bool,
    /// Addresses of logs lead to copies that end after half of what is asked for, and say nothing
    /// of it.
    pub halved_logs: bool,
    /// So many lists have an empty first page that leads on.
    pub empty_pages: usize,
    /// Entries on a page of jobs.
    pub page: usize,
    /// Lifetime of tokens, in seconds.
    pub token_lifetime: i64,
    pub device: Device,
    /// Whether a job names its artifacts as an output `default`, as newer services do.
    pub default_output: bool,
    /// Whether datastores give signatures that expire where they are asked for such, or their key
    /// all the same.
    pub expirable_secrets: bool,
    /// Datastores give a key that the storage account does not take: it allows identities alone.
    pub forbidden_keys: bool,
    /// The storage account's firewall lets nodes in, and nobody who is told where it is.
    pub firewalled: bool,
    /// What jobs find around them.
    pub image: Image,
    /// How long a mount remembers what is in a folder: what others write is not seen before.
    pub mount_cache: Duration,
    /// How often a cancellation is answered with 202 when it is asked about.
    pub cancel_polls: usize,
    /// The wish that comes with a 202, in seconds; the published description has at least 10.
    pub poll_after: Option<u32>,
    /// Of the virtual cluster.
    pub quotas: Vec<Quota>,
    /// What processes of jobs have in their environment besides: the beginning of the job's name,
    /// and a variable with its value.
    pub variables: Vec<(String, [String; 2])>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(5),
            hold_in: None,
            asleep: false,
            broken_start: None,
            grace: Duration::from_secs(5),
            unseen: Duration::ZERO,
            expired_logs: false,
            halved_logs: false,
            empty_pages: 0,
            page: 50,
            token_lifetime: 3600,
            device: Device {
                interval: 5,
                slow_downs: 0,
                pending: 1,
                refusal: None,
                ended: false,
            },
            default_output: true,
            expirable_secrets: false,
            forbidden_keys: false,
            firewalled: false,
            image: Image::WholeMachine,
            mount_cache: Duration::from_secs(120),
            cancel_polls: 1,
            poll_after: Some(10),
            quotas: clusters::quotas(),
            variables: Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Rule {
    left: usize,
    method: String,
    part: String,
    trouble: Trouble,
    when: When,
}

#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<Rule>>);

impl Faults {
    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, times: usize, method: &str, part: &str, trouble: Trouble, when: When) {
        self.rules().push(Rule {
            left: times,
            method: method.to_owned(),
            part: part.to_owned(),
            trouble,
            when,
        });
    }
    pub(super) fn left(&self) -> usize {
        self.rules().iter().map(|rule| rule.left).sum()
    }
    /// What happens to this request; it counts.
    pub(super) fn take(&self, call: &Call) -> Option<(Trouble, When)> {
        let mut rules = self.rules();
        let fits = |rule: &&mut Rule| {
            rule.left > 0
                && (rule.method == "*" || rule.method == call.method)
                && call.target.contains(&rule.part)
        };
        let rule = rules.iter_mut().find(fits)?;
        rule.left -= 1;
        Some((rule.trouble, rule.when))
    }
}

/// The answer of a trouble; none cuts the connection.
pub(super) fn answer(trouble: Trouble) -> Option<Answer> {
    let Trouble::Status {
        status,
        retry_after,
    } = trouble
    else {
        return None;
    };
    let code = match status {
        409 => "Conflict",
        412 => "PreconditionFailed",
        429 => "TooManyRequests",
        _ => "ServiceError",
    };
    let answer = refusal(status, code, "The service was told to say so.");
    Some(match retry_after {
        Some(seconds) => answer.with("Retry-After", seconds.to_string()),
        None => answer,
    })
}
