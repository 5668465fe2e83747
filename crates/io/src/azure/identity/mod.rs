//! Signing in to Azure: tokens for its services, by the method that the configuration names.
//!
//! A token is requested when it is first needed. It is kept in memory and in private files until
//! five minutes before its end. Only [`SignIn::sign_in`] ever asks the user.

pub(crate) mod cache;
mod cli;
mod device;
#[cfg(test)]
mod golden_tests;
pub(crate) mod grant;
mod managed;
mod method;
mod obtain;
mod token;

use crate::credential::{Lookup, no_reach};
use crate::network::Network;
use crate::web::WebWhenNeeded;
use cache::Cache;
use method::SignInMethod;
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

/// Reads an environment variable.
pub type Variable = dyn Fn(&str) -> Option<String> + Send + Sync;
/// Reads a secret of the keyring.
pub type Keyring = dyn Fn(&str) -> Option<Secret> + Send + Sync;

/// The environment of the process that signs in.
#[derive(Clone)]
pub struct Surroundings {
    pub variable: Arc<Variable>,
    pub keyring: Arc<Keyring>,
    /// The folder that `~` stands for.
    pub home: Option<PathBuf>,
    /// Shows a line to the user who signs in.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
    /// The command that signs in, for hints.
    pub command: String,
    /// The proxies and certificates, also for programs that are started.
    pub network: Network,
}

impl Surroundings {
    fn secret(&self, at: &str, reference: &str) -> Result<Secret> {
        let lookup = Lookup {
            variable: &*self.variable,
            keyring: &*self.keyring,
            home: self.home.as_deref(),
            reach: &no_reach,
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

/// The claims of a token, if it is a JWT.
pub(crate) fn claims(token: &Secret) -> Option<Value> {
    token::read_claims(token.expose())
}

/// A signed-in user.
#[derive(Debug)]
pub struct SignIn {
    at: String,
    method: SignInMethod,
    surroundings: Surroundings,
    cache: Cache,
    /// Tokens by authority and resource. The lock is held during a request, so that of many callers
    /// only one asks.
    tokens: Mutex<HashMap<[String; 2], Token>>,
}

impl SignIn {
    /// `at` names the owner of the credential in messages; `cache` is the folder for tokens. No
    /// request is sent yet.
    pub fn new(
        at: &str,
        credential: Option<&Credential>,
        profile: Option<&str>,
        surroundings: Surroundings,
        cache: &Path,
    ) -> Result<Self> {
        let method =
            match SignInMethod::read(at, credential, profile, surroundings.home.as_deref())? {
                SignInMethod::Workload { tenant, client } => {
                    let variable = |name| {
                        (surroundings.variable)(name)
                            .filter(|value: &String| !value.trim().is_empty())
                    };
                    SignInMethod::Workload {
                        tenant: tenant.or_else(|| variable("AZURE_TENANT_ID")),
                        client: client.or_else(|| variable("AZURE_CLIENT_ID")),
                    }
                }
                method => method,
            };
        Ok(Self {
            at: at.to_owned(),
            method,
            surroundings,
            cache: Cache::new(cache),
            tokens: Mutex::default(),
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
        self.get_token(web, authority, resource, None, false).await
    }

    /// A token that is not the one that a service has just refused.
    pub async fn replacement_token(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        refused: &Secret,
    ) -> Result<Secret> {
        self.get_token(web, authority, resource, Some(refused), false)
            .await
    }

    /// The same as [`Self::token`], but it asks on the terminal if the method needs it and
    /// `may_ask` allows it.
    pub async fn sign_in(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        may_ask: bool,
    ) -> Result<()> {
        self.get_token(web, authority, resource, None, may_ask)
            .await
            .map(drop)
    }

    async fn get_token(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        refused: Option<&Secret>,
        may_ask: bool,
    ) -> Result<Secret> {
        let name = [authority.to_owned(), resource.to_owned()];
        let mut tokens = self.tokens.lock().await;
        let now = towline_host::clock::now();
        let wanted = |token: &Token| refused != Some(&token.secret);
        let known = tokens.get(&name).filter(|token| wanted(token)).cloned();
        let known = known
            .filter(|token| token.is_fresh(now))
            .or_else(|| self.stored(authority, resource).filter(wanted));
        if let Some(token) = known.as_ref().filter(|token| token.is_fresh(now)) {
            tokens.insert(name, token.clone());
            return Ok(token.secret.clone());
        }
        tokens.remove(&name);
        if refused.is_some() && known.is_none() {
            self.cache
                .forget(&self.cache_key("token", authority, resource));
        }
        let token = match self.obtain(web, authority, resource, may_ask).await {
            Ok(token) => token,
            // A token that is about to end is better than none.
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
            .put(&self.cache_key("token", authority, resource), &private);
        let secret = token.secret.clone();
        tokens.insert(name, token);
        Ok(secret)
    }

    fn cache_key<'a>(
        &'a self,
        what: &'a str,
        authority: &'a str,
        resource: &'a str,
    ) -> [&'a str; 7] {
        let [method, profile, tenant, client] = self.method.cache_key();
        [what, method, profile, tenant, client, authority, resource]
    }

    /// A token that this or another process has stored.
    fn stored(&self, authority: &str, resource: &str) -> Option<Token> {
        let found = self
            .cache
            .get(&self.cache_key("token", authority, resource))?;
        (found.get("login") == Some(&json!(self.login_stamp())))
            .then(|| Token::from_private(&found))
            .flatten()
    }

    /// Changes when somebody signs in to or out of the Azure CLI. Older tokens may then belong to
    /// another user.
    fn login_stamp(&self) -> Option<String> {
        let SignInMethod::Cli { profile, .. } = &self.method else {
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
