//! Signing in to Azure: tokens for its services, by the method that the configuration names.
//!
//! A token is requested when it is first needed. It is kept in memory and in private files until
//! five minutes before its end. Only [`SignIn::sign_in`] and [`SignIn::login`] ever ask the user.
//!
//! A credential of the configuration wins. Without one a sign-in that `tow login` stored counts,
//! then the login of the Azure CLI.

pub(crate) mod cache;
mod certificate;
mod cli;
mod device;
#[cfg(test)]
mod golden_tests;
pub(crate) mod grant;
mod login;
mod managed;
mod method;
mod obtain;
mod private_file;
mod stored;
mod token;

pub use device::DevicePrompt;
pub use login::{LoginRequest, SignInState, SignedOut, Watcher};

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
use stored::{SignInStore, StoredSignIn};
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
    fn secret(&self, at: &str, key: &str, reference: &str) -> Result<Secret> {
        let lookup = Lookup {
            variable: &*self.variable,
            keyring: &*self.keyring,
            home: self.home.as_deref(),
            reach: &no_reach,
            notice: &*self.tell,
        };
        lookup.secret(at, key, reference)
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

/// Tokens by authority and resource, with the stamp of the sign-in that gave them.
type Tokens = HashMap<[String; 2], (Option<String>, Token)>;

/// A signed-in user.
#[derive(Debug)]
pub struct SignIn {
    at: String,
    method: SignInMethod,
    /// Whether the configuration names the method.
    is_configured: bool,
    surroundings: Surroundings,
    cache: Cache,
    /// The lock is held during a request, so that of many callers only one asks.
    tokens: Mutex<Tokens>,
}

/// The method that counts now, and the sign-in that was stored for it.
#[derive(Debug)]
struct Effective {
    method: SignInMethod,
    stored: Option<StoredSignIn>,
}

/// A token that is wanted.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    authority: &'a str,
    resource: &'a str,
    /// A token that a service has just refused.
    refused: Option<&'a Secret>,
    may_ask: bool,
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
        let variable = |name: &str| {
            (surroundings.variable)(name).filter(|value: &String| !value.trim().is_empty())
        };
        let read = SignInMethod::read(at, credential, profile, surroundings.home.as_deref())?;
        let is_configured =
            credential.is_some() || profile.is_some_and(|profile| !profile.trim().is_empty());
        let method = match read {
            SignInMethod::Workload { tenant, client } => SignInMethod::Workload {
                tenant: tenant.or_else(|| variable("AZURE_TENANT_ID")),
                client: client.or_else(|| variable("AZURE_CLIENT_ID")),
            },
            SignInMethod::Cli {
                tenant,
                profile: None,
            } => SignInMethod::Cli {
                tenant,
                profile: variable("AZURE_CONFIG_DIR").map(PathBuf::from),
            },
            method => method,
        };
        Ok(Self {
            at: at.to_owned(),
            method,
            is_configured,
            surroundings,
            cache: Cache::new(cache),
            tokens: Mutex::default(),
        })
    }

    /// The place of a stored sign-in.
    fn store<'a>(&'a self, authority: &'a str) -> SignInStore<'a> {
        let key = if self.is_configured {
            self.cache_key(&self.method, "refresh", authority, "")
        } else {
            ["refresh", "login", "", "", "", authority, ""]
        };
        SignInStore {
            at: &self.at,
            cache: &self.cache,
            surroundings: &self.surroundings,
            key,
        }
    }

    fn effective(&self, authority: &str) -> Result<Effective> {
        let stored = match (&self.method, self.is_configured) {
            (SignInMethod::Device { .. }, true) => {
                self.store(authority).load(Some(&self.method))?
            }
            (_, true) => None,
            (_, false) => self.store(authority).load(None)?,
        };
        let method = match &stored {
            Some(stored) if !self.is_configured => stored.method.clone(),
            _ => self.method.clone(),
        };
        Ok(Effective { method, stored })
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
        let wanted = Wanted {
            authority,
            resource,
            refused,
            may_ask,
        };
        let effective = self.effective(authority)?;
        let stamp = self.stamp(&effective);
        let name = [authority.to_owned(), resource.to_owned()];
        let mut tokens = self.tokens.lock().await;
        let now = towline_host::clock::now();
        let is_other = |token: &Token| refused != Some(&token.secret);
        let known = tokens
            .get(&name)
            .filter(|(of, token)| *of == stamp && is_other(token))
            .map(|(_, token)| token.clone());
        let known = known
            .filter(|token| token.is_fresh(now))
            .or_else(|| self.cached(&effective, wanted));
        if let Some(token) = known.as_ref().filter(|token| token.is_fresh(now)) {
            tokens.insert(name, (stamp, token.clone()));
            return Ok(token.secret.clone());
        }
        tokens.remove(&name);
        if refused.is_some() && known.is_none() {
            self.cache
                .forget(&self.cache_key(&effective.method, "token", authority, resource));
        }
        let token = match self.obtain(web, &effective, wanted).await {
            Ok(token) => token,
            // A token that is about to end is better than none.
            Err(error) => match known.filter(|token| {
                error.kind() == ErrorKind::Unreachable && token.is_good(towline_host::clock::now())
            }) {
                Some(token) => return Ok(token.secret),
                None => return Err(error),
            },
        };
        // The user may have been asked meanwhile.
        let effective = self.effective(authority)?;
        let stamp = self.stamp(&effective);
        self.put_token(&effective, authority, resource, &token);
        let secret = token.secret.clone();
        tokens.insert(name, (stamp, token));
        Ok(secret)
    }

    /// Stores a token for the next process.
    fn put_token(&self, effective: &Effective, authority: &str, resource: &str, token: &Token) {
        let mut private = token.to_private();
        private["login"] = json!(self.stamp(effective));
        let key = self.cache_key(&effective.method, "token", authority, resource);
        self.cache.put(&key, &private);
    }

    fn cache_key<'a>(
        &self,
        method: &'a SignInMethod,
        what: &'a str,
        authority: &'a str,
        resource: &'a str,
    ) -> [&'a str; 7] {
        let [name, profile, tenant, client] = method.cache_key();
        // A stored sign-in has files of its own beside one that the configuration names.
        let is_stored = !self.is_configured && !matches!(method, SignInMethod::Cli { .. });
        let profile = if is_stored { "login" } else { profile };
        [what, name, profile, tenant, client, authority, resource]
    }

    /// A token that this or another process has stored.
    fn cached(&self, effective: &Effective, wanted: Wanted<'_>) -> Option<Token> {
        let key = self.cache_key(
            &effective.method,
            "token",
            wanted.authority,
            wanted.resource,
        );
        let found = self.cache.get(&key)?;
        (found.get("login") == Some(&json!(self.stamp(effective))))
            .then(|| Token::from_private(&found))
            .flatten()
            .filter(|token| wanted.refused != Some(&token.secret))
    }

    /// Changes when somebody signs in or out. Older tokens may then belong to another user.
    fn stamp(&self, effective: &Effective) -> Option<String> {
        if let Some(stored) = &effective.stored {
            return stored.id.clone();
        }
        let SignInMethod::Cli { profile, .. } = &effective.method else {
            return None;
        };
        let of_home = || Some(self.surroundings.home.as_ref()?.join(".azure"));
        let folder = profile.clone().or_else(of_home)?;
        let meta = std::fs::metadata(folder.join("azureProfile.json")).ok()?;
        Some(format!(
            "{}.{}.{}",
            meta.mtime(),
            meta.mtime_nsec(),
            meta.size()
        ))
    }
}
