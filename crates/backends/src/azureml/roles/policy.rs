//! The rules by which a role is activated: for how long, with which reason, approved by whom.

use super::super::client;
use super::eligible::address;
use super::{DEFAULT_ACTIVE_TIME, last, shown, text};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use towline_core::cloud::{Call, Cloud};
use towline_core::quantity::Span;
use towline_core::{Error, ErrorKind, Result};
use towline_wire::report::roles::Role;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Policy {
    max_time: Option<Span>,
    needs_reason: bool,
    pub(super) approvers: Vec<String>,
}

/// Reads the policy of a role. A user who may not read it gets one that says nothing: the service
/// applies its rules all the same.
pub(super) fn read(cloud: &dyn Cloud, role: &Role) -> Result<Policy> {
    let filter = format!("roleDefinitionId eq '{}'", role.role_id);
    let filter = utf8_percent_encode(&filter, NON_ALPHANUMERIC);
    let rest = format!("roleManagementPolicyAssignments?$filter={filter}");
    let call = Call::get(address(cloud, &role.scope, &rest));
    match client::list(cloud, &format!("the policy of {}", shown(role)), call) {
        Ok(all) => Ok(of(&all, role)),
        Err(error) if error.kind() == ErrorKind::Unreachable => Err(error),
        Err(_) => Ok(Policy::default()),
    }
}

fn of(all: &[Value], role: &Role) -> Policy {
    let is_own = |properties: &&Value| {
        let id = properties["roleDefinitionId"].as_str().unwrap_or_default();
        last(id).eq_ignore_ascii_case(last(&role.role_id))
    };
    let mut policy = Policy::default();
    let own = all.iter().map(|entry| &entry["properties"]).find(is_own);
    let rules = own.and_then(|own| own["effectiveRules"].as_array());
    for rule in rules.into_iter().flatten() {
        match rule["id"].as_str().unwrap_or_default() {
            "Expiration_EndUser_Assignment" => {
                let longest = rule["maximumDuration"].as_str();
                policy.max_time = longest
                    .and_then(Span::from_iso8601)
                    .filter(|span| span.0 > 0);
            }
            "Enablement_EndUser_Assignment" => {
                let enabled = rule["enabledRules"].as_array();
                policy.needs_reason = enabled
                    .into_iter()
                    .flatten()
                    .any(|rule| rule == "Justification");
            }
            "Approval_EndUser_Assignment" => policy.approvers = approvers(&rule["setting"]),
            _ => {}
        }
    }
    policy
}

/// The names of people and groups; their ids where they have no names.
fn approvers(setting: &Value) -> Vec<String> {
    let stages = setting["approvalStages"].as_array().into_iter().flatten();
    let all = stages.flat_map(|stage| stage["primaryApprovers"].as_array().into_iter().flatten());
    all.filter_map(|one| text(&one["description"]).or_else(|| text(&one["id"])))
        .collect()
}

impl Policy {
    /// How long the role shall be active. More than the policy allows is refused here, because the
    /// service's refusal does not name the maximum.
    pub(super) fn time(&self, role: &Role, asked: Option<Span>) -> Result<Span> {
        match (asked, self.max_time) {
            (Some(asked), Some(longest)) if asked > longest => Err(Error::too_large(format!(
                "{} can be active for at most {longest}, not {asked}",
                shown(role)
            ))
            .hint(format!("ask for less: --for {longest}"))),
            (Some(time), _) | (None, Some(time)) => Ok(time),
            (None, None) => Ok(DEFAULT_ACTIVE_TIME),
        }
    }

    pub(super) fn check_reason(&self, role: &Role, reason: Option<&str>) -> Result<()> {
        if self.needs_reason && reason.is_none() {
            let message = format!("{} is activated only with a reason", shown(role));
            return Err(Error::refused(message).hint("say why you need it: --reason TEXT"));
        }
        Ok(())
    }
}
