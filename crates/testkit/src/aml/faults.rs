//! Faults that a test asks for.

use super::answer::{Answer, refusal};
use super::call::Call;
use super::clusters;
use super::container::Image;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// An answer of this status, with a `Retry-After` of so many seconds.
    Status {
        status: u16,
        retry_after: Option<u32>,
    },
    /// The connection breaks; no answer comes.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The request has no effect.
    Before,
    /// The request takes effect; its answer is lost.
    After,
}

/// The limit and the use of a series in a tier on a virtual cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub region: String,
    pub series: String,
    /// Basic, Standard or Premium.
    pub tier: String,
    pub limit: u32,
    pub used: u32,
}

/// A person who has to enter a code in a browser, and the login service's answers meanwhile.
#[derive(Debug, Clone)]
pub struct Device {
    /// The interval between requests that the service asks for, in seconds.
    pub interval: u32,
    /// The number of requests that are answered with "slow down", and then with "authorization
    /// pending".
    pub slow_downs: usize,
    pub pending: usize,
    /// The final error, if no token is given: `expired_token`, `authorization_declined`.
    pub refusal: Option<String>,
    /// Signed-in users must sign in again.
    pub ended: bool,
    /// A refresh token is good once: the next one comes with each token.
    pub good_once: bool,
    /// Tokens for this resource need a second factor, which only a new sign-in brings.
    pub wants_factor: Option<String>,
}

/// The behaviour of the service. A test may change it at any time.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// How long a job stays in each state before it runs, and in Finalizing after.
    pub pause: Duration,
    /// Jobs stay in this state until it is `None`.
    pub hold_in: Option<String>,
    /// Jobs that are put from now on wait for ever, without a thread of their own, and bodies are
    /// not recorded, so that thousands of them cost little.
    pub asleep: bool,
    /// Every job fails to start, with this error.
    pub broken_start: Option<String>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How long something new is invisible to reads. Shortening it has an immediate effect.
    pub unseen: Duration,
    /// Addresses of logs come with signatures that have expired.
    pub expired_logs: bool,
    /// Addresses of logs lead to copies that end after half of the requested bytes, without an
    /// error.
    pub halved_logs: bool,
    /// So many lists have an empty first page with a link to the next.
    pub empty_pages: usize,
    /// Entries on a page of jobs.
    pub page: usize,
    /// Lifetime of tokens, in seconds.
    pub token_lifetime: i64,
    pub device: Device,
    /// The resource manager refuses every token with a challenge for more claims.
    pub insufficient_claims: bool,
    /// Whether a job names its artifacts as an output `default`, as newer services do.
    pub default_output: bool,
    /// Whether datastores give expiring signatures to clients that ask for them, or always their
    /// key.
    pub expirable_secrets: bool,
    /// Datastores give a key that the storage account refuses, because it allows only identities.
    pub forbidden_keys: bool,
    /// The storage account's firewall admits nodes and no other client.
    pub firewalled: bool,
    /// The environment of jobs.
    pub image: Image,
    /// How long a mount caches the content of a folder. Changes by others are visible only later.
    pub mount_cache: Duration,
    /// How often a poll of a cancellation is answered with 202.
    pub cancel_polls: usize,
    /// `Retry-After` of a 202, in seconds; the published description has at least 10.
    pub poll_after: Option<u32>,
    /// The quotas of the virtual cluster.
    pub quotas: Vec<Quota>,
    /// Additional variables of job processes: the beginning of the job's name, and a variable with
    /// its value.
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
                good_once: false,
                wants_factor: None,
            },
            insufficient_claims: false,
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
    /// The fault for this request, which is counted.
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

/// The answer of a fault; none cuts the connection.
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
