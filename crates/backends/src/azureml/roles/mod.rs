//! Roles of Azure's privileged identity management (PIM): lists the roles that the signed-in user
//! is eligible for, activates one for a while, and deactivates it.
//!
//! Nothing is requested twice: an active role and a pending request are looked up first, so the
//! same command can be repeated when its answer was lost.

mod choose;
mod eligible;
mod policy;
mod request;
mod status;

use super::config::AzureSettings;
use super::workspaces::find_workspace;
use eligible::Eligible;
use policy::Policy;
use request::{Action, Request, Sent};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use towline_core::cloud::Cloud;
use towline_core::quantity::Span;
use towline_core::{Error, Result};
use towline_host::clock;
use towline_wire::report::roles::{RoleChange, Roles};

/// How long a role is activated if neither the user nor a policy says it.
const DEFAULT_ACTIVE_TIME: Span = Span(8 * 3_600);

/// The roles of a subscription, as the signed-in user.
#[derive(Debug)]
pub struct RoleService {
    cloud: Arc<dyn Cloud>,
    cluster: String,
    /// `/subscriptions/ID`
    scope: String,
}

/// A role as the user names it.
#[derive(Debug, Clone, Copy)]
pub struct NamedRole<'a> {
    /// The whole display name, or the id of the role definition.
    pub name: &'a str,
    /// The id or the display name of a resource, where the role is eligible at several.
    pub scope: Option<&'a str>,
}

/// How to wait for the service.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    pub timeout: Duration,
    /// Takes a line for people whenever there is something new.
    pub tell: &'a dyn Fn(&str),
}

impl std::fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({:?})", self.timeout)
    }
}

impl RoleService {
    pub(crate) fn new(cloud: Arc<dyn Cloud>, settings: &AzureSettings) -> Result<Self> {
        let subscription = match &settings.subscription {
            Some(subscription) => subscription.clone(),
            // A user whose role is not active may see no workspace at all.
            None => {
                find_workspace(cloud.as_ref(), settings)
                    .map_err(|error| {
                        error.hint(format!(
                            "name the `subscription` of cluster `{}`: without an active role its \
                                workspace may be invisible",
                            settings.name
                        ))
                    })?
                    .subscription
            }
        };
        Ok(Self {
            cloud,
            cluster: settings.name.clone(),
            scope: format!("/subscriptions/{subscription}"),
        })
    }

    /// The roles that the user is eligible for.
    pub fn list(&self) -> Result<Roles> {
        let all = eligible::list(self.cloud.as_ref(), &self.scope)?;
        Ok(Roles {
            cluster: self.cluster.clone(),
            roles: all.into_iter().map(|one| one.role).collect(),
        })
    }

    /// Activates a role and waits until it is active, or until somebody must approve.
    pub fn activate(
        &self,
        named: NamedRole<'_>,
        time: Option<Span>,
        reason: Option<&str>,
        waiting: Waiting<'_>,
    ) -> Result<RoleChange> {
        let eligible = self.eligible(named)?;
        if eligible.role.active {
            return Ok(self.unchanged(eligible));
        }
        let cloud = self.cloud.as_ref();
        let policy = policy::read(cloud, &eligible.role)?;
        let known = request::pending(cloud, &eligible.role, Action::Activate)?;
        let sent = if let Some(known) = known {
            Sent::Accepted(known)
        } else {
            let time = policy.time(&eligible.role, time)?;
            policy.check_reason(&eligible.role, reason)?;
            let more = schedule(time, reason);
            request::send(cloud, &eligible, Action::Activate, &more)?
        };
        let Sent::Accepted(request) = sent else {
            // It became active after the first look; the second one says until when.
            return Ok(self.unchanged(self.eligible(named)?.set(true)));
        };
        let request = request.settle(cloud, &eligible.role, Action::Activate, waiting)?;
        Ok(self.activated(eligible, &policy, &request))
    }

    /// Deactivates a role and waits until the service has done it.
    pub fn deactivate(&self, named: NamedRole<'_>, waiting: Waiting<'_>) -> Result<RoleChange> {
        let eligible = self.eligible(named)?;
        if !eligible.role.active {
            return Ok(self.unchanged(eligible));
        }
        if eligible.role.assignment.as_deref() == Some("assigned") {
            return Err(Error::unsupported(format!(
                "{} is assigned to you without activation; only who assigned it can remove it",
                shown(&eligible.role)
            )));
        }
        let cloud = self.cloud.as_ref();
        let request = match request::pending(cloud, &eligible.role, Action::Deactivate)? {
            Some(known) => known,
            None => match request::send(cloud, &eligible, Action::Deactivate, &json!({}))? {
                Sent::Accepted(request) => request,
                Sent::Superfluous => return Ok(self.unchanged(eligible.set(false))),
            },
        };
        let request = request.settle(cloud, &eligible.role, Action::Deactivate, waiting)?;
        Ok(RoleChange {
            changed: true,
            status: Some(request.status().to_owned()),
            request: Some(request.id),
            ..self.unchanged(eligible.set(false))
        })
    }

    fn eligible(&self, named: NamedRole<'_>) -> Result<Eligible> {
        choose::choose(eligible::list(self.cloud.as_ref(), &self.scope)?, named)
    }

    fn unchanged(&self, eligible: Eligible) -> RoleChange {
        RoleChange {
            cluster: self.cluster.clone(),
            role: eligible.role,
            changed: false,
            status: None,
            request: None,
            approvers: Vec::new(),
        }
    }

    fn activated(&self, eligible: Eligible, policy: &Policy, request: &Request) -> RoleChange {
        let waits = status::waits_for_approval(request.status());
        let mut change = RoleChange {
            changed: !waits,
            status: Some(request.status().to_owned()),
            request: Some(request.id.clone()),
            ..self.unchanged(eligible.set(!waits))
        };
        if waits {
            change.approvers.clone_from(&policy.approvers);
        } else {
            change.role.until = request.until().map(Into::into);
            change.role.assignment = Some("activated".to_owned());
        }
        change
    }
}

/// The options of a request to activate a role.
fn schedule(time: Span, reason: Option<&str>) -> Value {
    json!({
        "justification": reason,
        "scheduleInfo": {
            "startDateTime": clock::now().to_string(),
            "expiration": {"type": "AfterDuration", "duration": time.to_iso8601()},
        },
    })
}

/// A role and its place, for messages.
fn shown(role: &towline_wire::report::roles::Role) -> String {
    let place = role.scope_name.as_ref().unwrap_or(&role.scope);
    format!("role `{}` at `{place}`", role.name)
}

/// The last part of an id, which is a guid. The part before it differs between lists.
fn last(id: &str) -> &str {
    id.trim_end_matches('/').rsplit('/').next().unwrap_or(id)
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(ToOwned::to_owned)
}
