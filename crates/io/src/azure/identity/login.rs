//! `tow login` and `tow logout`: a sign-in that is stored until somebody signs out.

use super::device::{self, Granted};
use super::grant::Login;
use super::method::{ANY_TENANT, AZURE_CLI_CLIENT_ID, SignInMethod};
use super::stored::{RefreshPlace, SignInStore, StoredSignIn};
use super::{Effective, SignIn, claims};
use crate::web::WebWhenNeeded;
use std::path::PathBuf;
use towline_core::cloud::Who;
use towline_core::time::Moment;
use towline_core::{Error, Result};

pub use super::device::Watcher;

/// How to sign in, where the configuration leaves it open.
#[derive(Debug, Clone, Default)]
pub struct LoginRequest {
    pub tenant: Option<String>,
    pub client: Option<String>,
    /// A PEM file with the private key and the certificate of a service principal.
    pub certificate: Option<PathBuf>,
    /// The resource that the user signs in for, such as `https://management.azure.com/.default`.
    pub scope: Option<String>,
}

impl LoginRequest {
    const fn names_identity(&self) -> bool {
        self.tenant.is_some() || self.client.is_some() || self.certificate.is_some()
    }
}

/// A sign-in, for its user.
#[derive(Debug, Clone)]
pub struct SignInState {
    /// The word of the configuration: `device_code`, `azure_cli`, `certificate`, …
    pub method: &'static str,
    /// Whether the configuration names the method.
    pub is_configured: bool,
    pub who: Option<Who>,
    /// The end of the present token.
    pub until: Option<Moment>,
    /// The place of the refresh token: `keyring` or `file`.
    pub place: Option<&'static str>,
    pub since: Option<Moment>,
}

/// What `tow logout` did.
#[derive(Debug, Clone)]
pub struct SignedOut {
    pub was_signed_in: bool,
    /// The user who was signed in.
    pub name: Option<String>,
    /// The method that counts from now on.
    pub method: &'static str,
    pub is_configured: bool,
}

impl SignIn {
    /// Signs in anew and stores the sign-in. `None` if the user stops it; then nothing is stored.
    pub async fn login(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        management: &str,
        request: &LoginRequest,
        watcher: &Watcher<'_>,
    ) -> Result<Option<SignInState>> {
        let resource = resource(management, request.scope.as_deref())?;
        let Some(method) = self.method_for(request)? else {
            // It signs in by itself: there is nothing to store.
            return self.state(web, authority, &resource).await.map(Some);
        };
        let store = self.store(authority);
        let is_stopped = watcher.is_stopped;
        let granted = match &method {
            SignInMethod::Device { tenant, client } => {
                let login = Login {
                    at: &self.at,
                    web: web.get()?,
                    authority,
                    tenant,
                };
                device::ask(&login, client, &resource, watcher).await?
            }
            method => {
                let effective = Effective {
                    method: method.clone(),
                    stored: None,
                };
                let wanted = super::Wanted {
                    authority,
                    resource: &resource,
                    refused: None,
                    may_ask: false,
                };
                let token = self.obtain(web, &effective, wanted).await?;
                Some(Granted {
                    token,
                    refresh: None,
                })
            }
        };
        let Some(granted) = granted.filter(|_| !is_stopped()) else {
            return Ok(None);
        };
        let lock = store.lock().await?;
        if is_stopped() {
            return Ok(None);
        }
        self.store_new(&store, &method, &granted)?;
        let effective = self.effective(authority)?;
        self.put_token(&effective, authority, &resource, &granted.token);
        drop(lock);
        self.state(web, authority, &resource).await.map(Some)
    }

    /// The method of a new sign-in; `None` if the configured one needs none.
    fn method_for(&self, request: &LoginRequest) -> Result<Option<SignInMethod>> {
        let word = self.method.name();
        if self.is_configured {
            if request.names_identity() {
                return Err(Error::refused(format!(
                    "{}: the configuration says `credential` ({word}), and that wins",
                    self.at
                ))
                .hint("change it there, or leave out --tenant, --client-id and --certificate"));
            }
            return match &self.method {
                SignInMethod::Device { .. } => Ok(Some(self.method.clone())),
                SignInMethod::Cli { tenant, profile } => {
                    let folder = profile.as_ref().map_or_else(String::new, |profile| {
                        format!("AZURE_CONFIG_DIR='{}' ", profile.display())
                    });
                    let tenant = tenant
                        .as_ref()
                        .map_or_else(String::new, |tenant| format!(" --tenant {tenant}"));
                    Err(Error::unsupported(format!(
                        "{}: the configuration says that the Azure CLI signs in",
                        self.at
                    ))
                    .hint(format!("sign in there: {folder}az login{tenant}"))
                    .hint("or remove `credential` and `profile`: then a `tow login` counts"))
                }
                _ => Ok(None),
            };
        }
        let tenant = || request.tenant.clone();
        let Some(certificate) = &request.certificate else {
            return Ok(Some(SignInMethod::Device {
                tenant: tenant().unwrap_or_else(|| ANY_TENANT.to_owned()),
                client: request
                    .client
                    .clone()
                    .unwrap_or_else(|| AZURE_CLI_CLIENT_ID.to_owned()),
            }));
        };
        let lacks = |name: &str| Error::usage(format!("--certificate needs {name}"));
        Ok(Some(SignInMethod::Certificate {
            tenant: tenant().ok_or_else(|| lacks("--tenant"))?,
            client: request.client.clone().ok_or_else(|| lacks("--client-id"))?,
            pem: format!("file:{}", certificate.display()),
        }))
    }

    /// Stores a new sign-in in place of the present one, and forgets the tokens of that.
    pub(super) fn store_new(
        &self,
        store: &SignInStore<'_>,
        method: &SignInMethod,
        granted: &Granted,
    ) -> Result<()> {
        let former = store.load(Some(method)).ok().flatten();
        let who = claims(&granted.token.secret).and_then(|claims| Who::from_claims(&claims));
        let mut sign_in = StoredSignIn {
            method: method.clone(),
            refresh: RefreshPlace::None,
            id: Some(crate::random::token()?),
            since: Some(towline_host::clock::now()),
            name: who.map(|who| who.name),
        };
        store.save(&mut sign_in, granted.refresh.as_ref())?;
        if let Some(id) = former.and_then(|former| former.id) {
            self.cache.forget_login(&id);
        }
        Ok(())
    }

    /// The signed-in user, and until when. Asks for a token if there is no fresh one; never asks the
    /// user.
    pub async fn state(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
    ) -> Result<SignInState> {
        let token = self.token(web, authority, resource).await?;
        let claims = claims(&token);
        let effective = self.effective(authority)?;
        let stored = effective.stored.as_ref();
        Ok(SignInState {
            method: effective.method.name(),
            is_configured: self.is_configured,
            who: claims.as_ref().and_then(Who::from_claims),
            until: claims
                .as_ref()
                .and_then(|claims| claims["exp"].as_i64())
                .map(|seconds| Moment(seconds.saturating_mul(1000))),
            place: stored.and_then(|stored| stored.refresh.name()),
            since: stored.and_then(|stored| stored.since),
        })
    }

    /// Removes the stored sign-in and its tokens. Nothing to remove is no error.
    pub async fn logout(&self, authority: &str) -> Result<SignedOut> {
        let is_storable = !self.is_configured || matches!(self.method, SignInMethod::Device { .. });
        let mut signed_out = SignedOut {
            was_signed_in: false,
            name: None,
            method: self.method.name(),
            is_configured: self.is_configured,
        };
        if !is_storable {
            return Ok(signed_out);
        }
        let store = self.store(authority);
        if !store.path().exists() && !store.path().is_symlink() {
            return Ok(signed_out);
        }
        let _lock = store.lock().await?;
        // A file that others could read is removed as well.
        let stored = store.load(Some(&self.method)).ok().flatten();
        signed_out.was_signed_in = store.remove(stored.as_ref())?;
        signed_out.name = stored.and_then(|stored| stored.name);
        self.tokens.lock().await.clear();
        Ok(signed_out)
    }

    /// The mark that two clusters share if they use the same stored sign-in; `None` if none is stored for
    /// this method.
    pub fn stored_under(&self) -> Option<String> {
        match (&self.method, self.is_configured) {
            (_, false) => Some("login".to_owned()),
            (SignInMethod::Device { tenant, client }, true) => Some(format!("{tenant} {client}")),
            _ => None,
        }
    }
}

/// The resource of a scope: `https://ml.azure.com` of `https://ml.azure.com/.default`.
fn resource(management: &str, scope: Option<&str>) -> Result<String> {
    let Some(scope) = scope.map(str::trim) else {
        return Ok(management.to_owned());
    };
    let resource = scope.strip_suffix("/.default").unwrap_or(scope);
    let resource = resource.trim_end_matches('/');
    let is_good = url::Url::parse(resource)
        .is_ok_and(|url| url.scheme() == "https" && url.has_host() && url.query().is_none());
    if is_good && !resource.contains(char::is_whitespace) {
        Ok(resource.to_owned())
    } else {
        Err(
            Error::usage(format!("--scope `{scope}` is no scope of a service"))
                .hint(format!("write it such as {management}/.default")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_a_resource() {
        let of = |scope: &str| resource("https://m", Some(scope));
        assert_eq!(resource("https://m", None).expect("good"), "https://m");
        for scope in [
            "https://ml.azure.com/.default",
            "https://ml.azure.com//.default",
            "https://ml.azure.com",
        ] {
            assert_eq!(of(scope).expect(scope), "https://ml.azure.com");
        }
        for scope in ["", "openid", "http://a", "https://a b/.default"] {
            assert!(of(scope).is_err(), "{scope}");
        }
    }
}
