//! The service's words for how far a request is.

/// Words of a request that is refused or given up. No other word follows.
const ENDED_BADLY: [&str; 8] = [
    "Denied",
    "AdminDenied",
    "Failed",
    "FailedAsResourceIsLocked",
    "Canceled",
    "Revoked",
    "TimedOut",
    "Invalid",
];

/// Words of a request that somebody or something still works on. `ScheduleCreated` is none of
/// them, because old requests keep it for ever.
const PENDING: [&str; 12] = [
    "Accepted",
    "PendingEvaluation",
    "Granted",
    "PendingProvisioning",
    "ProvisioningStarted",
    "PendingApproval",
    "PendingApprovalProvisioning",
    "PendingAdminDecision",
    "AdminApproved",
    "PendingRevocation",
    "PendingScheduleCreation",
    "PendingExternalProvisioning",
];

pub(super) fn is_pending(status: &str) -> bool {
    PENDING.contains(&status)
}

pub(super) fn is_refusal(status: &str) -> bool {
    ENDED_BADLY.contains(&status)
}

/// A person must decide, which may take hours.
pub(super) fn waits_for_approval(status: &str) -> bool {
    matches!(status, "PendingApproval" | "PendingAdminDecision")
}
