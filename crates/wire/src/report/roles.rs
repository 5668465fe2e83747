//! The answers of `tow roles`.

use super::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// The roles that the signed-in user can activate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Roles {
    /// The cluster whose subscription was asked.
    pub cluster: String,
    /// The roles, by name and scope.
    pub roles: Vec<Role>,
}

/// A role at a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Role {
    /// The display name, such as `Contributor`.
    pub name: String,
    /// The id of the role definition.
    pub role_id: String,
    /// The resource for which the role counts, such as `/subscriptions/ID`.
    pub scope: String,
    /// The display name of that resource.
    pub scope_name: Option<String>,
    /// Whether the role is active.
    pub active: bool,
    /// When it ends. Null if it is not active, or has no end.
    pub until: Option<Time>,
    /// How it became active: `activated` or `assigned`. Null if it is not active.
    pub assignment: Option<String>,
}

/// What `tow roles activate` and `tow roles deactivate` did.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RoleChange {
    /// The cluster whose subscription was asked.
    pub cluster: String,
    /// The role, as it is now.
    pub role: Role,
    /// Whether the role became active or inactive by this call.
    pub changed: bool,
    /// The service's word for the request, such as `Provisioned` or `PendingApproval`. Null if
    /// nothing was requested.
    pub status: Option<String>,
    /// The id of the request.
    pub request: Option<String>,
    /// People and groups that must approve, while the request waits for them.
    pub approvers: Vec<String>,
}
