//! Requests to activate or deactivate a role, and the service's rules for them.

use super::answer::{Answer, Outcome, good, refusal};
use super::call::Call;
use super::ids::uuid_of;
use super::roles::{ActiveRole, Directory, EligibleRole};
use super::world::World;
use serde_json::{Value, json};
use towline_core::quantity::Span;
use towline_core::time::Moment;
use towline_host::clock;

#[derive(Debug)]
pub(super) struct Request {
    id: String,
    role: EligibleRole,
    /// As a client sees them.
    pub(super) properties: Value,
    /// How often it is still pending.
    polls: usize,
    end: Moment,
}

impl Request {
    pub(super) fn shown(&self) -> Value {
        json!({
            "id": format!("{}/providers/Microsoft.Authorization/RoleAssignmentScheduleRequests/{}", self.role.scope, self.id),
            "name": self.id,
            "type": "Microsoft.Authorization/RoleAssignmentScheduleRequests",
            "properties": self.properties,
        })
    }
    fn is_pending(&self) -> bool {
        let status = self.properties["status"].as_str().unwrap_or_default();
        status.starts_with("Pending")
    }
}

/// A look at a request, which brings it forward.
pub(super) fn get(world: &World, id: &str) -> Outcome {
    let mut directory = world.directory();
    let at = directory
        .requests
        .iter()
        .position(|request| request.id.eq_ignore_ascii_case(id));
    let Some(at) = at else {
        return Err(refusal(
            404,
            "RoleAssignmentScheduleRequestNotFound",
            "The request is not found.",
        ));
    };
    advance(&mut directory, at);
    good(directory.requests[at].shown())
}

/// One step of a request: it stays pending for some looks, then has its last status.
fn advance(directory: &mut Directory, at: usize) {
    let waits = !directory.approvers.is_empty();
    let last = directory.last_status.clone();
    let request = &mut directory.requests[at];
    if request.properties["status"] != "PendingProvisioning" {
        return;
    }
    if request.polls > 0 {
        request.polls -= 1;
        return;
    }
    request.properties["status"] = json!(if waits { "PendingApproval" } else { &last });
    if request.properties["status"] != "Provisioned" {
        return;
    }
    let active = ActiveRole {
        role: request.role.clone(),
        start: clock::now(),
        end: Some(request.end),
        assignment: "Activated".to_owned(),
    };
    directory.active.push(active);
}

pub(super) fn put(world: &World, call: &Call, scope: &str, id: &str) -> Outcome {
    let mut sent = call.properties()?;
    let mut directory = world.directory();
    if !is_guid(id) {
        return Err(refusal(
            400,
            "InvalidRoleAssignmentRequestId",
            "The request's name must be a GUID.",
        ));
    }
    if directory
        .requests
        .iter()
        .any(|request| request.id.eq_ignore_ascii_case(id))
    {
        let message = "A request with this name exists already.";
        return Err(refusal(409, "RoleAssignmentRequestExists", message));
    }
    if sent["principalId"] != uuid_of(&uuid_of("client")) {
        let message = "The requestor and the subject of a self-service request must be the same.";
        return Err(refusal(400, "InvalidPrincipal", message));
    }
    let definition = sent["roleDefinitionId"].as_str().unwrap_or_default();
    let linked = sent["linkedRoleEligibilityScheduleId"]
        .as_str()
        .unwrap_or_default();
    let known = directory
        .eligible
        .iter()
        .find(|role| role.is(scope, definition) && role.schedule().ends_with(&format!("/{linked}")))
        .cloned();
    let Some(role) = known else {
        return Err(refusal(
            400,
            "RoleEligibilityScheduleNotFound",
            "The subject is not eligible.",
        ));
    };
    let (status, end) = match sent["requestType"].as_str() {
        Some("SelfActivate") => ("PendingProvisioning", activation(&directory, &role, &sent)?),
        Some("SelfDeactivate") => ("Revoked", deactivation(&mut directory, &role)?),
        _ => {
            return Err(refusal(
                400,
                "InvalidRequestType",
                "The request type is not supported.",
            ));
        }
    };
    sent["status"] = json!(status);
    sent["scope"] = json!(role.scope);
    sent["principalType"] = json!("User");
    sent["createdOn"] = json!(clock::now().to_string());
    let polls = directory.polls;
    directory.requests.push(Request {
        id: id.to_owned(),
        role,
        properties: sent,
        polls,
        end,
    });
    let at = directory.requests.len() - 1;
    if polls == 0 {
        advance(&mut directory, at);
    }
    Ok(Answer::json(201, directory.requests[at].shown()))
}

/// Checks a request to activate; the end of the activation.
fn activation(directory: &Directory, role: &EligibleRole, sent: &Value) -> Result<Moment, Answer> {
    let is_same = |other: &EligibleRole| other.is(&role.scope, &role.definition());
    if directory.active.iter().any(|active| is_same(&active.role)) {
        let message = "The Role assignment already exists.";
        return Err(refusal(400, "RoleAssignmentExists", message));
    }
    let mut requests = directory.requests.iter();
    if requests.any(|request| request.is_pending() && is_same(&request.role)) {
        let message = "There is already an existing pending Role assignment request.";
        return Err(refusal(400, "PendingRoleAssignmentRequest", message));
    }
    let expiration = &sent["scheduleInfo"]["expiration"];
    let span = |text: &str| Span::from_iso8601(text);
    let asked = expiration["duration"]
        .as_str()
        .filter(|_| expiration["type"] == "AfterDuration")
        .and_then(span);
    let Some(asked) = asked else {
        return Err(refusal(
            400,
            "InvalidExpiration",
            "The expiration is not valid.",
        ));
    };
    let mut failed = Vec::new();
    if span(&directory.maximum).is_some_and(|longest| asked > longest) {
        failed.push("ExpirationRule");
    }
    let reason = sent["justification"].as_str().unwrap_or_default();
    if directory.needs_reason && reason.is_empty() {
        failed.push("JustificationRule");
    }
    if failed.is_empty() {
        Ok(clock::now().plus_millis(asked.0 * 1_000))
    } else {
        let message = format!("The following policy rules failed: {}", json!(failed));
        let code = "RoleAssignmentRequestPolicyValidationFailed";
        Err(refusal(400, code, &message))
    }
}

/// Ends an activation, if it is old enough.
fn deactivation(directory: &mut Directory, role: &EligibleRole) -> Result<Moment, Answer> {
    let now = clock::now();
    let at = directory.active.iter().position(|active| {
        active.role.is(&role.scope, &role.definition()) && active.assignment == "Activated"
    });
    let Some(at) = at else {
        let message = "The Role assignment does not exist.";
        return Err(refusal(400, "RoleAssignmentDoesNotExist", message));
    };
    let age = now.since(directory.active[at].start);
    if u128::from(age) < directory.least_active.as_millis() {
        let message = "The role has been active for too short a time. The minimum is 5 minutes.";
        return Err(refusal(400, "ActiveDurationTooShort", message));
    }
    directory.active.remove(at);
    Ok(now)
}

fn is_guid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
