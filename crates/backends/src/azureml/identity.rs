//! The identity of a job, as each flavour spells it.

use super::client::{get, list, versioned};
use super::cluster::AzureCluster;
use super::discover::IDENTITIES_API;
use super::site::{AzureSite, Flavour, IdentityFacts};
use super::workspaces::subscriptions;
use serde_json::{Map, Value, json};
use towline_core::cloud::Call;
use towline_core::{Error, Result, suggest};

/// The variable that tells a virtual cluster the identity.
const SINGULARITY_IDENTITY: &str = "_AZUREML_SINGULARITY_JOB_UAI";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobIdentity {
    None,
    /// The user who submitted it.
    User,
    Managed(IdentityFacts),
}

/// `managed:NAME`, `managed:CLIENT_ID`, `managed:/subscriptions/…`, `user`, `none`.
pub(super) fn identity(text: Option<&str>, site: &AzureSite) -> Result<JobIdentity> {
    match text {
        None | Some("none") => Ok(JobIdentity::None),
        Some("user") if site.flavour == Flavour::Singularity => Err(Error::unsupported(
            "a virtual cluster does not run jobs as their user",
        )
        .hint("name a managed identity: `identity: managed:NAME`")),
        Some("user") => Ok(JobIdentity::User),
        Some(text) => {
            let Some(name) = text
                .strip_prefix("managed:")
                .map(str::trim)
                .filter(|name| !name.is_empty())
            else {
                let suggestions = site
                    .identities
                    .contains_key(text)
                    .then(|| format!("did you mean `managed:{text}`?"));
                return Err(Error::config(format!(
                    "`identity: {text}` is none of managed:NAME, user, none"
                ))
                .maybe_hint(suggestions));
            };
            managed(name, site).map(JobIdentity::Managed)
        }
    }
}

fn managed(name: &str, site: &AzureSite) -> Result<IdentityFacts> {
    if let Some(known) = site.identities.get(name) {
        return Ok(known.clone());
    }
    if let Some(known) = site.identities.values().find(|known| {
        known.client_id.eq_ignore_ascii_case(name) || known.id.eq_ignore_ascii_case(name)
    }) {
        return Ok(known.clone());
    }
    if name.starts_with("/subscriptions/") {
        return Ok(IdentityFacts {
            id: name.to_owned(),
            client_id: String::new(),
        });
    }
    if is_uuid(name) && site.flavour != Flavour::Singularity {
        return Ok(IdentityFacts {
            id: String::new(),
            client_id: name.to_owned(),
        });
    }
    let known: Vec<&str> = site.identities.keys().map(String::as_str).collect();
    let has = if known.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has: {}", known.join(", "))
    };
    Err(Error::refused(format!(
        "workspace `{}` has no identity `{name}`",
        site.scope.workspace
    ))
    .maybe_hint(suggest::did_you_mean(name, known))
    .hint(format!(
        "{has}; for an identity that you cannot see, or a name that several have, give the whole \
            id: `managed:/subscriptions/…`"
    )))
}

impl AzureCluster {
    /// An identity outside the workspace, by its id. Libraries on the nodes need its client id. A
    /// user who may not read the identity may still use it.
    pub(super) fn identity_elsewhere(
        &self,
        asked: Option<&str>,
        site: &AzureSite,
    ) -> Option<(String, IdentityFacts)> {
        let id = asked?
            .strip_prefix("managed:")
            .map(str::trim)
            .filter(|id| !id.is_empty())?;
        if managed(id, site).is_ok_and(|known| !known.client_id.is_empty()) {
            return None;
        }
        if !id.starts_with("/subscriptions/") {
            return if is_uuid(id) {
                None
            } else {
                self.identity_called(id).map(|facts| (id.to_owned(), facts))
            };
        }
        let known = self.memory().clients.get(id).cloned();
        let client_id = known.or_else(|| {
            let answer = get(
                self.cloud(),
                "the identity",
                &Call::get(versioned(self.cloud(), id, IDENTITIES_API)),
            )
            .ok()
            .flatten()?;
            answer["properties"]["clientId"]
                .as_str()
                .map(ToOwned::to_owned)
        })?;
        self.memory()
            .clients
            .insert(id.to_owned(), client_id.clone());
        Some((
            id.to_owned(),
            IdentityFacts {
                id: id.to_owned(),
                client_id,
            },
        ))
    }

    /// The one identity of that name that the user can see, in any resource group. `None` if there
    /// are several.
    fn identity_called(&self, name: &str) -> Option<IdentityFacts> {
        let of = |subscription: &String| {
            let path = format!(
                "/subscriptions/{subscription}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
            );
            list(
                self.cloud(),
                "identities",
                Call::get(versioned(self.cloud(), &path, IDENTITIES_API)),
            )
            .unwrap_or_default()
        };
        let all: Vec<Value> = subscriptions(self.cloud())
            .ok()?
            .iter()
            .flat_map(of)
            .collect();
        let mut called = all.iter().filter(|identity| {
            identity["name"]
                .as_str()
                .is_some_and(|known| known.eq_ignore_ascii_case(name))
        });
        let (Some(found), None) = (called.next(), called.next()) else {
            return None;
        };
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        Some(IdentityFacts {
            id: text(&found["id"])?,
            client_id: text(&found["properties"]["clientId"]).unwrap_or_default(),
        })
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

impl JobIdentity {
    /// Its part of the job's document; a virtual cluster has none.
    pub(super) fn document(&self, flavour: Flavour) -> Option<Value> {
        match self {
            Self::None => None,
            _ if flavour == Flavour::Singularity => None,
            Self::User => Some(json!({"identityType": "UserIdentity"})),
            Self::Managed(facts) if facts.client_id.is_empty() => {
                Some(json!({"identityType": "Managed", "resourceId": facts.id}))
            }
            Self::Managed(facts) => {
                Some(json!({"identityType": "Managed", "clientId": facts.client_id}))
            }
        }
    }

    /// Variables that tell the job and its libraries the identity.
    pub(super) fn variables(&self, flavour: Flavour, variables: &mut Map<String, Value>) {
        let Self::Managed(facts) = self else { return };
        if flavour == Flavour::Singularity {
            variables.insert(SINGULARITY_IDENTITY.to_owned(), json!(facts.id));
        }
        if !facts.client_id.is_empty() {
            for name in ["DEFAULT_IDENTITY_CLIENT_ID", "AZURE_CLIENT_ID"] {
                variables.insert(name.to_owned(), json!(facts.client_id));
            }
        }
    }

    pub(super) fn client_id(&self) -> Option<String> {
        match self {
            Self::Managed(facts) if !facts.client_id.is_empty() => Some(facts.client_id.clone()),
            _ => None,
        }
    }
}
