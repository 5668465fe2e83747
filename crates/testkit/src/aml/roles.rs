//! Privileged identity management of the resource manager: eligible roles, assignments, requests
//! and policies, version 2020-10-01 of `Microsoft.Authorization`.

use super::answer::{Answer, Outcome, good, refusal};
use super::call::Call;
use super::ids::{SUBSCRIPTION, uuid_of};
use super::role_requests::{self, Request};
use super::world::World;
use serde_json::{Value, json};
use std::time::Duration;
use towline_core::time::Moment;

const API: &str = "2020-10-01";

/// A role that the signed-in user may activate.
#[derive(Debug, Clone)]
pub struct EligibleRole {
    pub name: String,
    /// `/subscriptions/…`
    pub scope: String,
    pub scope_name: String,
}

impl EligibleRole {
    pub(super) fn definition(&self) -> String {
        format!(
            "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{}",
            uuid_of(&self.name)
        )
    }
    /// The id of the schedule by which the user is eligible.
    pub(super) fn schedule(&self) -> String {
        format!(
            "{}/providers/Microsoft.Authorization/roleEligibilitySchedules/{}",
            self.scope,
            uuid_of(&format!("{}{}", self.name, self.scope))
        )
    }
    pub(super) fn is(&self, scope: &str, definition: &str) -> bool {
        self.scope.eq_ignore_ascii_case(scope) && self.definition().eq_ignore_ascii_case(definition)
    }
    /// Names of role, scope and user, which a list has beside the ids.
    fn expanded(&self) -> Value {
        let kind = if self.scope.to_lowercase().contains("/resourcegroups/") {
            "resourcegroup"
        } else {
            "subscription"
        };
        json!({
            "scope": {"id": self.scope, "displayName": self.scope_name, "type": kind},
            "roleDefinition": {"id": self.definition(), "displayName": self.name, "type": "BuiltInRole"},
            "principal": {"id": uuid_of(&uuid_of("client")), "displayName": "Alice", "email": "alice@example.com", "type": "User"},
        })
    }
}

/// An active role.
#[derive(Debug, Clone)]
pub struct ActiveRole {
    pub role: EligibleRole,
    pub start: Moment,
    pub end: Option<Moment>,
    /// `Activated`, or `Assigned` without an activation.
    pub assignment: String,
}

/// Roles and the behaviour of the service. A test may change them at any time.
#[derive(Debug)]
pub struct Directory {
    pub eligible: Vec<EligibleRole>,
    pub active: Vec<ActiveRole>,
    /// The longest activation that the policies allow.
    pub maximum: String,
    /// Policies want a justification.
    pub needs_reason: bool,
    /// People who must approve; if there are any, requests wait for them.
    pub approvers: Vec<String>,
    /// How often a look at a request says that it is pending, before it has its last status.
    pub polls: usize,
    pub last_status: String,
    /// A role that has been active for less time is not deactivated.
    pub least_active: Duration,
    /// The user may read no policies.
    pub secret_policies: bool,
    /// Entries on a page.
    pub page: usize,
    pub(super) requests: Vec<Request>,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            eligible: Vec::new(),
            active: Vec::new(),
            maximum: "PT8H".to_owned(),
            needs_reason: false,
            approvers: Vec::new(),
            polls: 0,
            last_status: "Provisioned".to_owned(),
            least_active: Duration::from_secs(300),
            secret_policies: false,
            page: 50,
            requests: Vec::new(),
        }
    }
}

impl Directory {
    /// Adds a role at a scope.
    pub fn add(&mut self, name: &str, scope: &str, scope_name: &str) -> EligibleRole {
        let role = EligibleRole {
            name: name.to_owned(),
            scope: scope.to_owned(),
            scope_name: scope_name.to_owned(),
        };
        self.eligible.push(role.clone());
        role
    }
    /// The properties of each request, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.requests
            .iter()
            .map(|request| request.properties.clone())
            .collect()
    }
}

/// `None` for a path of another service.
pub(super) fn route(world: &World, call: &Call, words: &[&str]) -> Option<Outcome> {
    let at = words
        .iter()
        .position(|word| word.eq_ignore_ascii_case("Microsoft.Authorization"))?;
    let scope = format!("/{}", words.get(..at.checked_sub(1)?)?.join("/"));
    let rest: Vec<String> = words[at + 1..]
        .iter()
        .map(|word| word.to_lowercase())
        .collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    if call.query("api-version") != Some(API) {
        let message = format!("The resource type is not known in this api-version, only in {API}.");
        return Some(Err(refusal(400, "NoRegisteredProviderFound", &message)));
    }
    Some(match (call.method.as_str(), rest.as_slice()) {
        ("GET", ["roleeligibilityscheduleinstances"]) => list(world, call, &scope, |directory| {
            directory.eligible.iter().map(eligibility).collect()
        }),
        ("GET", ["roleassignmentscheduleinstances"]) => list(world, call, &scope, |directory| {
            directory.active.iter().map(assignment).collect()
        }),
        ("GET", ["roleassignmentschedulerequests"]) => list(world, call, &scope, |directory| {
            directory.requests.iter().map(Request::shown).collect()
        }),
        ("GET", ["rolemanagementpolicyassignments"]) => policies(world, call, &scope),
        ("GET", ["roleassignmentschedulerequests", id]) => role_requests::get(world, id),
        ("PUT", ["roleassignmentschedulerequests", id]) => {
            role_requests::put(world, call, &scope, id)
        }
        _ => Err(super::routes::not_allowed()),
    })
}

fn eligibility(role: &EligibleRole) -> Value {
    json!({
        "id": format!("{}/providers/Microsoft.Authorization/roleEligibilityScheduleInstances/{}", role.scope, uuid_of(&role.schedule())),
        "name": uuid_of(&role.schedule()),
        "type": "Microsoft.Authorization/roleEligibilityScheduleInstances",
        "properties": {
            "scope": role.scope, "roleDefinitionId": role.definition(), "principalId": uuid_of(&uuid_of("client")), "principalType": "User",
            "roleEligibilityScheduleId": role.schedule(), "status": "Provisioned", "memberType": "Direct",
            "startDateTime": "2026-01-01T00:00:00Z", "endDateTime": "2027-01-01T00:00:00Z", "expandedProperties": role.expanded(),
        },
    })
}

fn assignment(active: &ActiveRole) -> Value {
    let role = &active.role;
    let linked = (active.assignment == "Activated").then(|| role.schedule());
    json!({
        "id": format!("{}/providers/Microsoft.Authorization/roleAssignmentScheduleInstances/{}", role.scope, uuid_of(&role.scope)),
        "name": uuid_of(&role.scope),
        "type": "Microsoft.Authorization/roleAssignmentScheduleInstances",
        "properties": {
            "scope": role.scope, "roleDefinitionId": role.definition(), "principalId": uuid_of(&uuid_of("client")), "principalType": "User",
            "linkedRoleEligibilityScheduleId": linked, "assignmentType": active.assignment, "status": "Provisioned", "memberType": "Direct",
            "startDateTime": active.start.to_string(), "endDateTime": active.end.map(|end| end.to_string()), "expandedProperties": role.expanded(),
        },
    })
}

/// A page of the entries at or below a scope.
fn list(
    world: &World,
    call: &Call,
    scope: &str,
    entries: impl Fn(&Directory) -> Vec<Value>,
) -> Outcome {
    if call.query("$filter") != Some("asTarget()") {
        let message = "The caller may only read entries that are their own: asTarget().";
        return Err(refusal(403, "AuthorizationFailed", message));
    }
    let directory = world.directory();
    let is_below = |entry: &Value| {
        let own = entry["properties"]["scope"].as_str().unwrap_or_default();
        own.to_lowercase().starts_with(&scope.to_lowercase())
    };
    let mut all = entries(&directory);
    all.retain(is_below);
    let from = call.number("$skiptoken").unwrap_or(0);
    let end = (from + directory.page).min(all.len());
    let mut answer = json!({"value": all.get(from..end)});
    if end < all.len() {
        let path = call.target.split('?').next().unwrap_or_default();
        let link = format!("{path}?$filter=asTarget()&api-version={API}&$skiptoken={end}");
        answer["nextLink"] = json!(format!("{}{link}", world.endpoint));
    }
    good(answer)
}

/// The policies of a scope, of one role if the filter names it.
fn policies(world: &World, call: &Call, scope: &str) -> Outcome {
    let directory = world.directory();
    if directory.secret_policies {
        return Err(not_authorized(
            "roleManagementPolicyAssignments/read",
            scope,
        ));
    }
    let wanted = call
        .query("$filter")
        .and_then(|filter| filter.strip_prefix("roleDefinitionId eq '"))
        .and_then(|filter| filter.strip_suffix('\''));
    let approvers: Vec<Value> = directory
        .approvers
        .iter()
        .map(|name| json!({"id": uuid_of(name), "description": name, "isBackup": false, "userType": "User"}))
        .collect();
    let enabled: &[&str] = if directory.needs_reason {
        &["Justification"]
    } else {
        &[]
    };
    let rules = json!([
        {"id": "Expiration_Admin_Eligibility", "ruleType": "RoleManagementPolicyExpirationRule", "isExpirationRequired": true, "maximumDuration": "P365D"},
        {"id": "Enablement_EndUser_Assignment", "ruleType": "RoleManagementPolicyEnablementRule", "enabledRules": enabled},
        {"id": "Expiration_EndUser_Assignment", "ruleType": "RoleManagementPolicyExpirationRule", "isExpirationRequired": true, "maximumDuration": directory.maximum},
        {"id": "Approval_EndUser_Assignment", "ruleType": "RoleManagementPolicyApprovalRule", "setting": {
            "isApprovalRequired": !approvers.is_empty(), "approvalMode": "SingleStage",
            "approvalStages": [{"approvalStageTimeOutInDays": 1, "primaryApprovers": approvers}]}},
    ]);
    let known = directory.eligible.iter().filter(|role| {
        role.scope.eq_ignore_ascii_case(scope)
            && wanted.is_none_or(|wanted| role.definition().eq_ignore_ascii_case(wanted))
    });
    let all: Vec<Value> = known
        .map(|role| {
            json!({
                "id": format!("{scope}/providers/Microsoft.Authorization/roleManagementPolicyAssignments/{}", uuid_of(&role.name)),
                "type": "Microsoft.Authorization/RoleManagementPolicyAssignment",
                "properties": {"scope": scope, "roleDefinitionId": role.definition(), "effectiveRules": rules},
            })
        })
        .collect();
    good(json!({"value": all}))
}

fn not_authorized(action: &str, scope: &str) -> Answer {
    let message = format!(
        "The client does not have authorization to perform action \
            'Microsoft.Authorization/{action}' over scope '{scope}' or the scope is invalid."
    );
    refusal(403, "AuthorizationFailed", &message)
}
