//! Signing in to Azure: tokens for its services, by the way that the configuration names.
//!
//! A token is asked for when it is first needed and kept, in memory and in private files, until
//! five minutes before its end. Only [`SignIn::sign_in`] ever asks somebody something.

pub(crate) mod cache;
mod cli;
mod device;
#[cfg(test)]
mod golden_tests;
pub(crate) mod grant;
mod managed;
mod obtain;
mod token;
mod way;

use crate::credential::{Lookup, no_way};
use crate::network::Network;
use crate::web::WebWhenNeeded;
use cache::Cache;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use token::Token;
use tokio::sync::Mutex;
use towline_core::config::Credential;
use towline_core::redact::Secret;
use towline_core::{ErrorKind, Result};
use way::Way;

/// How a variable of the process is read.
pub type Variable = dyn Fn(&str) -> Option<String> + Send + Sync;
/// How a secret of the keyring is.
pub type Keyring = dyn Fn(&str) -> Option<Secret> + Send + Sync;

/// What signing in needs of the process that does it.
#[derive(Clone)]
pub struct Surroundings {
    pub variable: Arc<Variable>,
    pub keyring: Arc<Keyring>,
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// Shows a line to whoever signs in.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
    /// The command that signs in, for hints.
    pub command: String,
    /// The way to the services, also for programs that are started.
    pub network: Network,
}

impl Surroundings {
    fn secret(&self, at: &str, reference: &str) -> Result<Secret> {
        let lookup = Lookup {
            variable: &*self.variable,
            keyring: &*self.keyring,
            home: self.home.as_deref(),
            reach: &no_way,
            notice: &*self.tell,
        };
        lookup.secret(at, "client_secret", reference)
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// What a token says of itself, where it is one that can be read.
pub(crate) fn claims(token: &Secret) -> Option<Value> {
    token::read_claims(token.expose())
}

/// Whoever is signed in.
#[derive(Debug)]
pub struct SignIn {
    at: String,
    way: Way,
    surroundings: Surroundings,
    cache: Cache,
    /// By authority and resource. Held while one is asked for: of many who need it, one asks.
    kept: Mutex<HashMap<[String; 2], Token>>,
}

impl SignIn {
    /// `at` names in messages whose credential it is, `cache` the folder for tokens. Nothing is
    /// asked yet.
    pub fn new(
        at: &str,
        credential: Option<&Credential>,
        profile: Option<&str>,
        surroundings: Surroundings,
        cache: &Path,
    ) -> Result<Self> {
        let way = match Way::read(at, credential, profile, surroundings.home.as_deref())? {
            Way::Workload { tenant, client } => {
                let variable = |name| {
                    (surroundings.variable)(name).filter(|value: &String| !value.trim().is_empty())
                };
                Way::Workload {
                    tenant: tenant.or_else(|| variable("AZURE_TENANT_ID")),
                    client: client.or_else(|| variable("AZURE_CLIENT_ID")),
                }
            }
            way => way,
        };
        Ok(Self {
            at: at.to_owned(),
            way,
            surroundings,
            cache: Cache::new(cache),
            kept: Mutex::default(),
        })
    }

    pub(crate) const fn network(&self) -> &Network {
        &self.surroundings.network
    }

    /// A token for a resource, such as `https://management.azure.com`, from the login service at
    /// `authority`.
    pub async fn token(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
    ) -> Result<Secret> {
        self.have(web, authority, resource, None, false).await
    }

    /// Another than the one that a service has just refused.
    pub async fn another(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        refused: &Secret,
    ) -> Result<Secret> {
        self.have(web, authority, resource, Some(refused), false)
            .await
    }

    /// The same as [`Self::token`], but asking on the terminal where that is the way and `may_ask`
    /// allows it.
    pub async fn sign_in(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        may_ask: bool,
    ) -> Result<()> {
        self.have(web, authority, resource, None, may_ask)
            .await
            .map(drop)
    }

    async fn have(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        refused: Option<&Secret>,
        may_ask: bool,
    ) -> Result<Secret> {
        let name = [authority.to_owned(), resource.to_owned()];
        let mut kept = self.kept.lock().await;
        let now = towline_host::clock::now();
        let wanted = |token: &Token| refused != Some(&token.secret);
        let known = kept.get(&name).filter(|token| wanted(token)).cloned();
        let known = known
            .filter(|token| token.is_fresh(now))
            .or_else(|| self.stored(authority, resource).filter(wanted));
        if let Some(token) = known.as_ref().filter(|token| token.is_fresh(now)) {
            kept.insert(name, token.clone());
            return Ok(token.secret.clone());
        }
        kept.remove(&name);
        if refused.is_some() && known.is_none() {
            self.cache.forget(&self.marks("token", authority, resource));
        }
        let token = match self.obtain(web, authority, resource, may_ask).await {
            Ok(token) => token,
            // One that is about to end is better than none.
            Err(error) => match known.filter(|token| {
                error.kind() == ErrorKind::Unreachable && token.is_good(towline_host::clock::now())
            }) {
                Some(token) => return Ok(token.secret),
                None => return Err(error),
            },
        };
        let mut private = token.to_private();
        private["login"] = json!(self.login_stamp());
        self.cache
            .put(&self.marks("token", authority, resource), &private);
        let secret = token.secret.clone();
        kept.insert(name, token);
        Ok(secret)
    }

    fn marks<'a>(&'a self, what: &'a str, authority: &'a str, resource: &'a str) -> [&'a str; 7] {
        let [way, profile, tenant, client] = self.way.marks();
        [what, way, profile, tenant, client, authority, resource]
    }

    /// A token that this or another process wrote down.
    fn stored(&self, authority: &str, resource: &str) -> Option<Token> {
        let found = self.cache.get(&self.marks("token", authority, resource))?;
        (found.get("login") == Some(&json!(self.login_stamp())))
            .then(|| Token::from_private(&found))
            .flatten()
    }

    /// Changes when somebody signs in to the Azure CLI, or out: tokens from before are then
    /// another's.
    fn login_stamp(&self) -> Option<String> {
        let Way::Cli { profile, .. } = &self.way else {
            return None;
        };
        let folder = profile
            .clone()
            .or_else(|| (self.surroundings.variable)("AZURE_CONFIG_DIR").map(PathBuf::from));
        let folder = folder.or_else(|| {
            self.surroundings
                .home
                .as_ref()
                .map(|home| home.join(".azure"))
        })?;
        let meta = std::fs::metadata(folder.join("azureProfile.json")).ok()?;
        Some(format!(
            "{}.{}.{}",
            meta.mtime(),
            meta.mtime_nsec(),
            meta.size()
        ))
    }
}
