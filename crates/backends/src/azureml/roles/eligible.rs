//! The roles that the signed-in user is eligible for, and which of them are active.

use super::super::client::{self, versioned};
use super::super::state::moment;
use super::{last, text};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;
use towline_core::Result;
use towline_core::cloud::{Call, Cloud};
use towline_core::time::Moment;
use towline_wire::report::roles::Role;

const ROLES_API: &str = "2020-10-01";

/// Characters of a scope that would end the path of a URL, or mean something else in it.
const NOT_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\');

/// A role that the user may activate.
#[derive(Debug, Clone)]
pub(super) struct Eligible {
    pub(super) role: Role,
    /// The guid of the schedule that makes the user eligible.
    pub(super) schedule: String,
    /// When the role became active.
    pub(super) since: Option<Moment>,
}

impl Eligible {
    #[must_use]
    pub(super) fn set(mut self, active: bool) -> Self {
        self.role.active = active;
        if !active {
            self.role.until = None;
            self.role.assignment = None;
        }
        self
    }
}

/// The URL of a resource of the authorization service at a scope.
pub(super) fn address(cloud: &dyn Cloud, scope: &str, rest: &str) -> String {
    let scope = utf8_percent_encode(scope.trim_end_matches('/'), NOT_IN_PATH);
    let path = format!("{scope}/providers/Microsoft.Authorization/{rest}");
    versioned(cloud, &path, ROLES_API)
}

/// The entries of a list that concern the signed-in user.
pub(super) fn own(
    cloud: &dyn Cloud,
    what: &str,
    scope: &str,
    resource: &str,
) -> Result<Vec<Value>> {
    let url = address(cloud, scope, &format!("{resource}?$filter=asTarget()"));
    client::list(cloud, what, Call::get(url))
}

/// Eligible roles by name and scope, each with its assignment.
fn join(eligible: &[Value], assigned: &[Value]) -> Vec<Eligible> {
    let mut all: Vec<Eligible> = eligible.iter().filter_map(read).collect();
    for one in &mut all {
        let mine = assigned
            .iter()
            .map(|entry| &entry["properties"])
            .filter(|active| concerns(&one.role, active));
        // An assignment without an end is the longest.
        if let Some(active) = mine.max_by_key(|active| end(active).unwrap_or(Moment(i64::MAX))) {
            one.role.active = true;
            one.role.until = end(active).map(Into::into);
            one.role.assignment = text(&active["assignmentType"]).map(|kind| kind.to_lowercase());
            one.since = active["startDateTime"].as_str().and_then(moment);
        }
    }
    let key = |one: &Eligible| {
        let role = &one.role;
        (
            role.name.to_lowercase(),
            role.scope.to_lowercase(),
            last(&role.role_id).to_lowercase(),
        )
    };
    all.sort_by_key(key);
    // The user and a group of the user may both be eligible: that is one role.
    all.dedup_by_key(|one| key(one));
    all
}

/// All eligible roles in a subscription.
pub(super) fn list(cloud: &dyn Cloud, scope: &str) -> Result<Vec<Eligible>> {
    let eligible = own(
        cloud,
        "your eligible roles",
        scope,
        "roleEligibilityScheduleInstances",
    )?;
    let assigned = own(
        cloud,
        "your active roles",
        scope,
        "roleAssignmentScheduleInstances",
    )?;
    Ok(join(&eligible, &assigned))
}

fn end(active: &Value) -> Option<Moment> {
    active["endDateTime"].as_str().and_then(moment)
}

/// Whether an entry is about this role: the same definition at the same scope.
pub(super) fn concerns(role: &Role, properties: &Value) -> bool {
    let definition = properties["roleDefinitionId"].as_str().unwrap_or_default();
    let scope = properties["scope"].as_str().unwrap_or_default();
    last(definition).eq_ignore_ascii_case(last(&role.role_id))
        && scope
            .trim_end_matches('/')
            .eq_ignore_ascii_case(role.scope.trim_end_matches('/'))
}

/// `None` for an entry without the fields that a request needs, and for a scope that is no path:
/// behind the endpoint it could name another host.
fn read(entry: &Value) -> Option<Eligible> {
    let properties = &entry["properties"];
    let expanded = &properties["expandedProperties"];
    let scope = text(&properties["scope"]).or_else(|| text(&expanded["scope"]["id"]))?;
    if !scope.starts_with('/') || scope.starts_with("//") {
        return None;
    }
    let role_id = text(&properties["roleDefinitionId"])?;
    let name = text(&expanded["roleDefinition"]["displayName"]);
    Some(Eligible {
        schedule: last(&text(&properties["roleEligibilityScheduleId"])?).to_owned(),
        since: None,
        role: Role {
            name: name.unwrap_or_else(|| last(&role_id).to_owned()),
            role_id,
            scope,
            scope_name: text(&expanded["scope"]["displayName"]),
            active: false,
            until: None,
            assignment: None,
        },
    })
}
