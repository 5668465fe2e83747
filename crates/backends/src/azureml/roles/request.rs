//! Requests to activate or deactivate a role: sent once, then watched until the service decides.

use super::super::client::{found, good, refusal};
use super::super::state::moment;
use super::eligible::{Eligible, address, concerns, own};
use super::{Waiting, shown, status, text};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use towline_core::cloud::{Call, Cloud, Reply};
use towline_core::quantity::Span;
use towline_core::time::{Moment, human_millis};
use towline_core::{Error, ErrorKind, Result};
use towline_host::backoff::Backoff;
use towline_host::clock;
use towline_wire::report::roles::Role;

const RESOURCE: &str = "roleAssignmentScheduleRequests";
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The service gives up on a request for approval after this time.
const PENDING_MILLIS: u64 = 24 * 3_600 * 1_000;
/// The service deactivates no role that has been active for less time.
const LEAST_ACTIVE_MILLIS: u64 = 5 * 60 * 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Activate,
    Deactivate,
}

impl Action {
    const fn request_type(self) -> &'static str {
        match self {
            Self::Activate => "SelfActivate",
            Self::Deactivate => "SelfDeactivate",
        }
    }
    /// The state that the request leads to.
    const fn goal(self) -> &'static str {
        match self {
            Self::Activate => "active",
            Self::Deactivate => "inactive",
        }
    }
    fn is_done(self, status: &str) -> bool {
        match self {
            Self::Activate => status == "Provisioned",
            Self::Deactivate => matches!(status, "Revoked" | "Provisioned"),
        }
    }
}

/// A request that the service has accepted.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: String,
    properties: Value,
}

pub(super) enum Sent {
    Accepted(Request),
    /// The role is already as it should be.
    Superfluous,
}

/// A request of the same kind that the service has not decided yet: of an earlier call whose answer
/// was lost, or of the portal.
pub(super) fn pending(cloud: &dyn Cloud, role: &Role, action: Action) -> Result<Option<Request>> {
    let what = format!("requests for {}", shown(role));
    let now = clock::now();
    let fits = |entry: &Value| {
        let properties = &entry["properties"];
        let created = properties["createdOn"].as_str().and_then(moment);
        concerns(role, properties)
            && properties["requestType"] == action.request_type()
            && status::is_pending(properties["status"].as_str().unwrap_or_default())
            && created.is_none_or(|created| now.since(created) < PENDING_MILLIS)
    };
    let all = own(cloud, &what, &role.scope, RESOURCE)?;
    let known = all.into_iter().find(fits);
    Ok(known.and_then(|mut entry| {
        Some(Request {
            id: text(&entry["name"])?,
            properties: entry["properties"].take(),
        })
    }))
}

/// Sends a request under a new id. The id stays the same when the call is repeated because no
/// answer came, so that the service makes one request of it.
pub(super) fn send(
    cloud: &dyn Cloud,
    eligible: &Eligible,
    action: Action,
    more: &Value,
) -> Result<Sent> {
    let role = &eligible.role;
    let mut properties = json!({
        "principalId": cloud.who()?.id,
        "roleDefinitionId": role.role_id,
        "requestType": action.request_type(),
        "linkedRoleEligibilityScheduleId": eligible.schedule,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        properties[key] = value.clone();
    }
    let id = new_guid()?;
    let url = address(cloud, &role.scope, &format!("{RESOURCE}/{id}"));
    let call = Call::put(url, json!({"properties": properties}));
    let reply = cloud.call(&call).map_err(|error| {
        error.hint("the request may have arrived; the same command looks for it first")
    })?;
    if reply.is_good() {
        let mut answer = good(&shown(role), &reply)?;
        let properties = answer["properties"].take();
        return Ok(Sent::Accepted(Request { id, properties }));
    }
    refused(cloud, eligible, action, &id, &reply)
}

/// A refusal may be about an earlier try of the same call that has arrived, or about a change that
/// somebody else made a moment ago.
fn refused(
    cloud: &dyn Cloud,
    eligible: &Eligible,
    action: Action,
    id: &str,
    reply: &Reply,
) -> Result<Sent> {
    let role = &eligible.role;
    if reply.tries > 1
        && let Some(properties) = look(cloud, role, id)?
    {
        let id = id.to_owned();
        return Ok(Sent::Accepted(Request { id, properties }));
    }
    let body = reply.json().unwrap_or_default();
    match (action, body["error"]["code"].as_str().unwrap_or_default()) {
        (Action::Activate, "RoleAssignmentExists")
        | (Action::Deactivate, "RoleAssignmentDoesNotExist") => Ok(Sent::Superfluous),
        (_, "PendingRoleAssignmentRequest") => match pending(cloud, role, action)? {
            Some(request) => Ok(Sent::Accepted(request)),
            None => Err(refusal(&shown(role), reply)),
        },
        (Action::Deactivate, "ActiveDurationTooShort") => Err(too_early(eligible)),
        (Action::Activate, "RoleAssignmentRequestPolicyValidationFailed") => {
            Err(refusal(&shown(role), reply)
                .hint("the policy of the role may want less time (--for) or a reason (--reason)"))
        }
        _ => Err(refusal(&shown(role), reply)),
    }
}

fn too_early(eligible: &Eligible) -> Error {
    let error = Error::refused(format!(
        "{} was activated less than 5 minutes ago, and the service deactivates it only after \
            that (ActiveDurationTooShort)",
        shown(&eligible.role)
    ));
    let active = eligible.since.map(|since| clock::now().since(since));
    let left = active.map_or(LEAST_ACTIVE_MILLIS, |active| {
        LEAST_ACTIVE_MILLIS.saturating_sub(active).max(1_000)
    });
    error.hint(format!("try again in {}", human_millis(left)))
}

fn look(cloud: &dyn Cloud, role: &Role, id: &str) -> Result<Option<Value>> {
    let url = address(cloud, &role.scope, &format!("{RESOURCE}/{id}"));
    let answer = found(&shown(role), &cloud.call(&Call::get(url))?)?;
    Ok(answer.map(|mut answer| answer["properties"].take()))
}

impl Request {
    pub(super) fn status(&self) -> &str {
        self.properties["status"].as_str().unwrap_or_default()
    }

    /// When the activation ends.
    pub(super) fn until(&self) -> Option<Moment> {
        let schedule = &self.properties["scheduleInfo"];
        let expiration = &schedule["expiration"];
        let end = expiration["endDateTime"].as_str().and_then(moment);
        end.or_else(|| {
            let start = schedule["startDateTime"].as_str().and_then(moment)?;
            let span = Span::from_iso8601(expiration["duration"].as_str()?)?;
            Some(start.plus_millis(span.0.saturating_mul(1_000)))
        })
    }

    /// Waits until the service has decided, or a person must.
    pub(super) fn settle(
        mut self,
        cloud: &dyn Cloud,
        role: &Role,
        action: Action,
        waiting: Waiting<'_>,
    ) -> Result<Self> {
        let begun = Instant::now();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut told = String::new();
        loop {
            let status = self.status();
            if action.is_done(status) || status::waits_for_approval(status) {
                return Ok(self);
            }
            if status::is_refusal(status) {
                return Err(Error::refused(format!(
                    "{} does not become {}: the service says `{status}`",
                    shown(role),
                    action.goal()
                )));
            }
            if status != told {
                status.clone_into(&mut told);
                (waiting.tell)(&format!(
                    "waiting until {} is {}: {status}",
                    shown(role),
                    action.goal()
                ));
            }
            let left = waiting.timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(timeout(role, action, status, waiting.timeout));
            }
            std::thread::sleep(backoff.pause().min(left));
            // A new request may be unknown to reads for a moment.
            if let Some(properties) = look(cloud, role, &self.id).map_err(going_on)? {
                self.properties = properties;
            }
        }
    }
}

fn timeout(role: &Role, action: Action, status: &str, timeout: Duration) -> Error {
    let message = format!(
        "{} is not {} after {}: the service says `{status}`",
        shown(role),
        action.goal(),
        Span(timeout.as_secs())
    );
    going_on(Error::new(ErrorKind::Timeout, message))
}

fn going_on(error: Error) -> Error {
    error.hint("the request goes on; the same command waits for it and requests nothing new")
}

/// A random UUID of version 4.
fn new_guid() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::bug("the system gives no random numbers"))?;
    let number = u128::from_be_bytes(bytes);
    let versioned = number & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{versioned:032x}");
    let groups = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    Ok(groups.join("-"))
}
