//! A new token, by each method of signing in.

use super::cli::AzureCli;
use super::grant::Login;
use super::method::SignInMethod;
use super::token::Token;
use super::{SignIn, device, managed};
use crate::web::{Web, WebWhenNeeded};
use serde_json::{Value, json};
use towline_core::redact::Secret;
use towline_core::{Error, Result};

impl SignIn {
    pub(super) async fn obtain(
        &self,
        web: &WebWhenNeeded,
        authority: &str,
        resource: &str,
        may_ask: bool,
    ) -> Result<Token> {
        let login = |tenant| {
            web.get().map(|web| Login {
                at: &self.at,
                web,
                authority,
                tenant,
            })
        };
        match &self.method {
            SignInMethod::Cli { tenant, profile } => {
                let path = (self.surroundings.variable)("PATH").unwrap_or_default();
                AzureCli {
                    at: self.at.clone(),
                    path,
                    profile: profile.clone(),
                    tenant: tenant.clone(),
                    network: self.surroundings.network.clone(),
                }
                .token(resource.to_owned())
                .await
            }
            SignInMethod::Managed { client } => {
                managed::token(
                    &self.at,
                    web.get()?,
                    &*self.surroundings.variable,
                    resource,
                    client.as_deref(),
                )
                .await
            }
            SignInMethod::Device { tenant, client } => {
                self.by_device(&login(tenant)?, client, resource, may_ask)
                    .await
            }
            SignInMethod::Principal {
                tenant,
                client,
                secret,
            } => {
                self.by_secret(&login(tenant)?, client, secret, resource)
                    .await
            }
            SignInMethod::Workload { .. } => {
                self.by_workload(web.get()?, authority, resource).await
            }
        }
    }

    async fn by_device(
        &self,
        login: &Login<'_>,
        client: &str,
        resource: &str,
        may_ask: bool,
    ) -> Result<Token> {
        let cache_key = self.cache_key("refresh", login.authority, "");
        let refresh = self.cache.get(&cache_key).and_then(|found| {
            found
                .get("refresh")
                .and_then(Value::as_str)
                .map(Secret::new)
        });
        let mut granted = None;
        if let Some(refresh) = &refresh {
            // A refused one is not removed, because another process may have replaced it in the
            // file meanwhile.
            granted = device::renew(login, client, resource, refresh).await?.ok();
        }
        let granted = match granted {
            Some(granted) => granted,
            None if may_ask => {
                device::ask(login, client, resource, &*self.surroundings.tell).await?
            }
            None => {
                let why = if refresh.is_some() {
                    "the sign-in has ended"
                } else {
                    "nobody has signed in"
                };
                let error =
                    Error::denied(format!("{}: {why}, and nobody can be asked here", self.at));
                return Err(error.hint(format!(
                    "sign in at a terminal: {}",
                    self.surroundings.command
                )));
            }
        };
        if let Some(next) = granted.refresh {
            self.cache
                .put(&cache_key, &json!({"version": 1, "refresh": next.expose()}));
        }
        Ok(granted.token)
    }

    async fn by_secret(
        &self,
        login: &Login<'_>,
        client: &str,
        reference: &str,
        resource: &str,
    ) -> Result<Token> {
        let secret = self.surroundings.secret(&self.at, reference)?;
        let scope = device::scope(resource);
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", client),
            ("client_secret", secret.expose()),
            ("scope", &scope),
        ];
        let answer = login.grant(&fields, &[&secret]).await?;
        let answer = answer.map_err(|refusal| {
            refusal
                .error(&self.at, "the service principal")
                .hint("look at tenant_id, client_id and client_secret")
        })?;
        login.token(&answer)
    }

    async fn by_workload(&self, web: &Web, authority: &str, resource: &str) -> Result<Token> {
        const CLIENT_ASSERTION_TYPE: &str =
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        let SignInMethod::Workload { tenant, client } = &self.method else {
            return Err(Error::bug("another way than workload_identity"));
        };
        let variable = |name: &str| {
            (self.surroundings.variable)(name).filter(|value| !value.trim().is_empty())
        };
        let missing = |name: &str| {
            let error = Error::refused(format!(
                "{}: workload_identity needs {name}, which is not set",
                self.at
            ));
            error.hint(
                "a pod with a workload identity has it; elsewhere choose another `credential`",
            )
        };
        let file = variable("AZURE_FEDERATED_TOKEN_FILE")
            .ok_or_else(|| missing("AZURE_FEDERATED_TOKEN_FILE"))?;
        let tenant = tenant.as_ref().ok_or_else(|| missing("AZURE_TENANT_ID"))?;
        let client = client.as_ref().ok_or_else(|| missing("AZURE_CLIENT_ID"))?;
        let own = variable("AZURE_AUTHORITY_HOST");
        // The platform renews this file while we run.
        let read = std::fs::read_to_string(&file).map(|text| Secret::new(text.trim()));
        let assertion = read.map_err(|error| {
            Error::from_io(format!("{}: {file} cannot be read", self.at), error)
        })?;
        let login = Login {
            at: &self.at,
            web,
            authority: own.as_deref().unwrap_or(authority),
            tenant,
        };
        let scope = device::scope(resource);
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", client.as_str()),
            ("client_assertion_type", CLIENT_ASSERTION_TYPE),
            ("client_assertion", assertion.expose()),
            ("scope", &scope),
        ];
        let answer = login.grant(&fields, &[&assertion]).await?;
        let answer = answer.map_err(|refusal| {
            refusal
                .error(&self.at, "workload_identity")
                .hint("does the application trust this cluster's tokens?")
        })?;
        login.token(&answer)
    }
}
