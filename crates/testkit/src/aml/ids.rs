//! Names of the resource manager.

/// A workspace's place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub subscription: String,
    pub group: String,
    pub workspace: String,
}

pub(super) const PROVIDER: &str = "Microsoft.MachineLearningServices";
pub(super) const SUBSCRIPTION: &str = "6560575d-fa06-4e7d-95fb-f962e74efd7a";
pub(super) const TENANT: &str = "72f988bf-0000-4000-8000-2d7cd011db47";
pub(super) const LOCATION: &str = "westus3";

impl Scope {
    /// The workspace that exists from the start.
    pub(super) fn first() -> Self {
        Self {
            subscription: SUBSCRIPTION.to_owned(),
            group: "towtests".to_owned(),
            workspace: "towline".to_owned(),
        }
    }
    /// `/subscriptions/…/workspaces/…`
    pub fn id(&self) -> String {
        format!(
            "{}/providers/{PROVIDER}/workspaces/{}",
            self.group_id(),
            self.workspace
        )
    }
    pub(super) fn group_id(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}",
            self.subscription, self.group
        )
    }
    /// A key that ignores case, as the resource manager's names do.
    pub(super) fn key(&self) -> String {
        self.id().to_lowercase()
    }
}

/// 32 hex digits in five groups, always the same for the same text.
pub(super) fn uuid_of(words: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, words.as_bytes());
    let hex = format!(
        "{:032x}",
        digest
            .as_ref()
            .iter()
            .take(16)
            .fold(0_u128, |number, byte| number << 8 | u128::from(*byte))
    );
    format!(
        "{}-{}-4{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..]
    )
}
