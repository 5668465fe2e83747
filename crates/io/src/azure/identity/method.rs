//! The methods of signing in, as the configuration names them.

use crate::credential::known_keys;
use std::path::{Path, PathBuf};
use towline_core::config::Credential;
use towline_core::suggest::did_you_mean;
use towline_core::{Error, Result};

/// The public client id of the Azure CLI, which every tenant knows.
pub(super) const AZURE_CLI_CLIENT_ID: &str = "04b07795-8ddb-461a-bbee-02f9e1bf7b46";
/// The login service takes this word for the user's own tenant.
pub(super) const ANY_TENANT: &str = "organizations";

/// Credentials that are one word.
const CREDENTIAL_WORDS: [&str; 4] = [
    "azure_cli",
    "device_code",
    "managed_identity",
    "workload_identity",
];
/// Keys of any form of a credential.
const CREDENTIAL_KEYS: [&str; 8] = [
    "azure_cli",
    "device_code",
    "managed_identity",
    "workload_identity",
    "tenant_id",
    "client_id",
    "client_secret",
    "client_certificate",
];
/// Every form of a credential, for messages.
const CREDENTIAL_FORMS: &str = "azure_cli, device_code, managed_identity, workload_identity, \
    {device_code: CLIENT_ID, tenant_id}, {managed_identity: CLIENT_ID}, \
                     {workload_identity: CLIENT_ID, tenant_id}, \
                         {tenant_id, client_id, client_secret} or \
                         {tenant_id, client_id, client_certificate}";

/// A method of signing in. It holds no secret, only references to secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignInMethod {
    Cli {
        tenant: Option<String>,
        profile: Option<PathBuf>,
    },
    Device {
        tenant: String,
        client: String,
    },
    Managed {
        client: Option<String>,
    },
    Principal {
        tenant: String,
        client: String,
        secret: String,
    },
    /// A service principal by the PEM text behind the reference: private key and certificate.
    Certificate {
        tenant: String,
        client: String,
        pem: String,
    },
    Workload {
        tenant: Option<String>,
        client: Option<String>,
    },
}

impl SignInMethod {
    /// `at` names the owner of the credential in messages.
    pub(super) fn read(
        at: &str,
        credential: Option<&Credential>,
        profile: Option<&str>,
        home: Option<&Path>,
    ) -> Result<Self> {
        let method = match credential {
            None => Self::word("azure_cli"),
            // The value may be a secret. It is repeated only if it is close to a known word.
            Some(Credential::Word(word)) if !CREDENTIAL_WORDS.contains(&word.as_str()) => {
                let error =
                    Error::config(format!("{at}: `credential` is none of {CREDENTIAL_FORMS}"));
                return Err(error.maybe_hint(did_you_mean(word, CREDENTIAL_WORDS)));
            }
            Some(Credential::Word(word)) => Self::word(word),
            Some(Credential::Map(map)) => {
                Self::map(at, &|name| map.get(name).cloned(), &|names| {
                    known_keys(at, map.keys(), names, &CREDENTIAL_KEYS)
                })?
            }
        };
        match (
            method,
            profile.map(str::trim).filter(|profile| !profile.is_empty()),
        ) {
            (method, None) => Ok(method),
            (Self::Cli { tenant, .. }, Some(profile)) => Ok(Self::Cli {
                tenant,
                profile: Some(folder(at, profile, home)?),
            }),
            _ => Err(Error::config(format!(
                "{at}: `profile` is a login of the Azure CLI, and `credential` is something else"
            ))
            .hint("leave out one of them")),
        }
    }

    fn word(word: &str) -> Self {
        match word {
            "device_code" => Self::Device {
                tenant: ANY_TENANT.to_owned(),
                client: AZURE_CLI_CLIENT_ID.to_owned(),
            },
            "managed_identity" => Self::Managed { client: None },
            "workload_identity" => Self::Workload {
                tenant: None,
                client: None,
            },
            _ => Self::Cli {
                tenant: None,
                profile: None,
            },
        }
    }

    fn map(
        at: &str,
        get: &dyn Fn(&str) -> Option<String>,
        only: &dyn Fn(&[&str]) -> Result<()>,
    ) -> Result<Self> {
        let filled = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let need = |name: &str| {
            filled(name).ok_or_else(|| Error::config(format!("{at}: `credential` lacks `{name}`")))
        };
        if get("device_code").is_some() {
            only(&["device_code", "tenant_id"])?;
            let tenant = filled("tenant_id").unwrap_or_else(|| ANY_TENANT.to_owned());
            return Ok(Self::Device {
                tenant,
                client: filled("device_code").unwrap_or_else(|| AZURE_CLI_CLIENT_ID.to_owned()),
            });
        }
        if get("managed_identity").is_some() {
            return only(&["managed_identity"]).map(|()| Self::Managed {
                client: filled("managed_identity"),
            });
        }
        if get("workload_identity").is_some() {
            only(&["workload_identity", "tenant_id"])?;
            return Ok(Self::Workload {
                tenant: filled("tenant_id"),
                client: filled("workload_identity"),
            });
        }
        if get("client_certificate").is_some() {
            only(&["tenant_id", "client_id", "client_certificate"])?;
            return Ok(Self::Certificate {
                tenant: need("tenant_id")?,
                client: need("client_id")?,
                pem: reference(at, "client_certificate", need("client_certificate")?)?,
            });
        }
        if get("client_id").is_some() || get("client_secret").is_some() {
            only(&["tenant_id", "client_id", "client_secret"])?;
            let secret = reference(at, "client_secret", need("client_secret")?)?;
            return Ok(Self::Principal {
                tenant: need("tenant_id")?,
                client: need("client_id")?,
                secret,
            });
        }
        only(&["azure_cli", "tenant_id"])?;
        match (get("azure_cli"), filled("tenant_id")) {
            (None, None) => Err(Error::config(format!("{at}: `credential` is empty"))
                .hint(format!("write one of {CREDENTIAL_FORMS}"))),
            (Some(value), _) if !value.trim().is_empty() => {
                Err(Error::config(format!("{at}: `azure_cli` has no value"))
                    .hint("another login of the Azure CLI is `profile: FOLDER`"))
            }
            (_, tenant) => Ok(Self::Cli {
                tenant,
                profile: None,
            }),
        }
    }

    /// The name in the configuration.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Cli { .. } => "azure_cli",
            Self::Device { .. } => "device_code",
            Self::Managed { .. } => "managed_identity",
            Self::Principal { .. } => "service principal",
            Self::Certificate { .. } => "certificate",
            Self::Workload { .. } => "workload_identity",
        }
    }

    /// The part of a cache key that identifies this method.
    pub(super) fn cache_key(&self) -> [&str; 4] {
        match self {
            Self::Cli { tenant, profile } => [
                self.name(),
                profile
                    .as_deref()
                    .and_then(Path::to_str)
                    .unwrap_or_default(),
                text(tenant.as_ref()),
                "",
            ],
            Self::Device { tenant, client }
            | Self::Principal { tenant, client, .. }
            | Self::Certificate { tenant, client, .. } => [self.name(), "", tenant, client],
            Self::Managed { client } => [self.name(), "", "", text(client.as_ref())],
            Self::Workload { tenant, client } => [
                self.name(),
                "",
                text(tenant.as_ref()),
                text(client.as_ref()),
            ],
        }
    }
}

/// Refuses a secret that stands in the configuration itself; it is not repeated.
fn reference(at: &str, key: &str, value: String) -> Result<String> {
    if ["env:", "keyring:", "file:"]
        .iter()
        .any(|scheme| value.starts_with(scheme))
    {
        return Ok(value);
    }
    let error = Error::config(format!("{at}: `{key}` must be a reference, not a value"));
    Err(error.hint("write env:NAME, keyring:NAME or file:PATH"))
}

fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

fn folder(at: &str, profile: &str, home: Option<&Path>) -> Result<PathBuf> {
    let folder = match (profile.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(profile),
    };
    if folder.is_absolute() {
        Ok(folder)
    } else {
        Err(Error::config(format!(
            "{at}: `profile` must begin with `/` or `~/`"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    fn read(yaml: &str, profile: Option<&str>) -> Result<SignInMethod> {
        let credential = towline_core::yaml::decode::<Credential>(
            &towline_core::yaml::parse("test", yaml).expect("YAML"),
        )
        .expect("a credential");
        SignInMethod::read(
            "cluster `c`",
            Some(&credential),
            profile,
            Some(Path::new("/home/u")),
        )
    }

    #[test]
    fn every_form_is_known() {
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(
            SignInMethod::read("c", None, None, None).expect("the default"),
            SignInMethod::Cli {
                tenant: None,
                profile: None
            }
        );
        let device = |tenant: &str, client: &str| SignInMethod::Device {
            tenant: tenant.into(),
            client: client.into(),
        };
        for (yaml, method) in [
            (
                "azure_cli",
                SignInMethod::Cli {
                    tenant: None,
                    profile: None,
                },
            ),
            (
                "{tenant_id: t}",
                SignInMethod::Cli {
                    tenant: own("t"),
                    profile: None,
                },
            ),
            (
                "{azure_cli: '', tenant_id: t}",
                SignInMethod::Cli {
                    tenant: own("t"),
                    profile: None,
                },
            ),
            ("device_code", device(ANY_TENANT, AZURE_CLI_CLIENT_ID)),
            ("{device_code: ''}", device(ANY_TENANT, AZURE_CLI_CLIENT_ID)),
            ("{device_code: c, tenant_id: t}", device("t", "c")),
            ("managed_identity", SignInMethod::Managed { client: None }),
            (
                "{managed_identity: c}",
                SignInMethod::Managed { client: own("c") },
            ),
            (
                "workload_identity",
                SignInMethod::Workload {
                    tenant: None,
                    client: None,
                },
            ),
            (
                "{workload_identity: c, tenant_id: t}",
                SignInMethod::Workload {
                    tenant: own("t"),
                    client: own("c"),
                },
            ),
            (
                "{tenant_id: t, client_id: c, client_secret: 'env:S'}",
                SignInMethod::Principal {
                    tenant: "t".into(),
                    client: "c".into(),
                    secret: "env:S".into(),
                },
            ),
            (
                "{tenant_id: t, client_id: c, client_certificate: 'file:~/app.pem'}",
                SignInMethod::Certificate {
                    tenant: "t".into(),
                    client: "c".into(),
                    pem: "file:~/app.pem".into(),
                },
            ),
        ] {
            assert_eq!(read(yaml, None).expect(yaml), method, "{yaml}");
        }
    }

    #[test]
    fn a_profile_may_begin_with_the_home() {
        assert_eq!(
            read("azure_cli", Some("~/.azure-lab")).expect("good"),
            SignInMethod::Cli {
                tenant: None,
                profile: Some("/home/u/.azure-lab".into())
            }
        );
    }

    #[test]
    fn mistakes_are_named_and_secrets_are_not_repeated() {
        for (yaml, profile, part) in [
            ("azurecli", None, "did you mean `azure_cli`?"),
            ("canarycanarycanary", None, "is none of"),
            ("{}", None, "is empty"),
            ("{clientid: c}", None, "did you mean `client_id`?"),
            ("{sas: 'env:S'}", None, "unknown key `sas`"),
            (
                "{tenant_id: t, client_id: c}",
                None,
                "lacks `client_secret`",
            ),
            (
                "{client_id: c, client_secret: 'env:S'}",
                None,
                "lacks `tenant_id`",
            ),
            (
                "{tenant_id: t, client_id: c, client_secret: canary}",
                None,
                "must be a reference",
            ),
            (
                "{tenant_id: t, client_id: c, client_certificate: canary}",
                None,
                "must be a reference",
            ),
            (
                "{managed_identity: c, tenant_id: t}",
                None,
                "`tenant_id` has no place",
            ),
            ("{azure_cli: x}", None, "has no value"),
            ("device_code", Some("~/.azure"), "`profile` is a login"),
            ("azure_cli", Some("relative"), "must begin with"),
        ] {
            let error = read(yaml, profile).expect_err(yaml);
            let shown = format!("{error} {:?} {error:?}", error.hints());
            assert_eq!(error.kind(), ErrorKind::Config, "{yaml}");
            assert!(shown.contains(part) && !shown.contains("canary"), "{shown}");
        }
    }
}
