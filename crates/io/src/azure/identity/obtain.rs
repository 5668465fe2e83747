//! A new token, by each method of signing in.

use super::certificate::{ASSERTION_TYPE, ClientCertificate};
use super::cli::AzureCli;
use super::grant::Login;
use super::method::SignInMethod;
use super::stored::{SignInStore, StoredSignIn};
use super::token::Token;
use super::{Effective, SignIn, Wanted, device, managed};
use crate::web::{Web, WebWhenNeeded};
use towline_core::redact::Secret;
use towline_core::{Error, ErrorKind, Result};

impl SignIn {
    pub(super) async fn obtain(
        &self,
        web: &WebWhenNeeded,
        effective: &Effective,
        wanted: Wanted<'_>,
    ) -> Result<Token> {
        let Wanted {
            authority,
            resource,
            ..
        } = wanted;
        let login = |tenant| {
            web.get().map(|web| Login {
                at: &self.at,
                web,
                authority,
                tenant,
            })
        };
        match &effective.method {
            SignInMethod::Cli { tenant, profile } => {
                let path = (self.surroundings.variable)("PATH").unwrap_or_default();
                let cli = AzureCli {
                    at: self.at.clone(),
                    path,
                    profile: profile.clone(),
                    tenant: tenant.clone(),
                    network: self.surroundings.network.clone(),
                };
                let token = cli.token(resource.to_owned()).await;
                token.map_err(|error| self.or_login(error))
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
                self.by_device(&login(tenant)?, client, effective, wanted)
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
            SignInMethod::Certificate {
                tenant,
                client,
                pem,
            } => {
                self.by_certificate(&login(tenant)?, client, pem, resource)
                    .await
            }
            SignInMethod::Workload { .. } => {
                self.by_workload(web.get()?, authority, resource).await
            }
        }
    }

    /// Without a credential in the configuration there is a way beside the Azure CLI.
    fn or_login(&self, error: Error) -> Error {
        let is_about_it = matches!(error.kind(), ErrorKind::Denied | ErrorKind::Unsupported);
        if self.is_configured || !is_about_it {
            return error;
        }
        error.hint(format!(
            "or without the Azure CLI: {}",
            self.surroundings.command
        ))
    }

    async fn by_device(
        &self,
        login: &Login<'_>,
        client: &str,
        effective: &Effective,
        wanted: Wanted<'_>,
    ) -> Result<Token> {
        let store = self.store(login.authority);
        let mut why = "nobody has signed in";
        if effective.stored.is_some() {
            match self.renew(&store, login, client, effective, wanted).await? {
                Renewed::Token(token) => return Ok(token),
                Renewed::Ended => why = "the sign-in has ended",
                Renewed::Gone => {}
            }
        }
        if !wanted.may_ask {
            let error = Error::denied(format!("{}: {why}, and nobody can be asked here", self.at));
            return Err(error.hint(format!("sign in: {}", self.surroundings.command)));
        }
        let show = |prompt: &device::DevicePrompt| (self.surroundings.tell)(&prompt.message);
        let watcher = device::Watcher {
            show: &show,
            is_stopped: &|| false,
        };
        let granted = device::ask(login, client, wanted.resource, &watcher).await?;
        let granted = granted.ok_or_else(|| Error::bug("nobody could stop the sign-in"))?;
        let _lock = store.lock().await?;
        self.store_new(&store, &effective.method, &granted)?;
        Ok(granted.token)
    }

    /// A token by the stored refresh token. One process at a time renews a sign-in.
    async fn renew(
        &self,
        store: &SignInStore<'_>,
        login: &Login<'_>,
        client: &str,
        effective: &Effective,
        wanted: Wanted<'_>,
    ) -> Result<Renewed> {
        let _lock = store.lock().await?;
        // Another process may have renewed it, or signed out, meanwhile.
        let Some(mut stored) = store.load(Some(&effective.method))? else {
            return Ok(Renewed::Gone);
        };
        let now = towline_host::clock::now();
        let fresh = self.cached(effective, wanted);
        if let Some(token) = fresh.filter(|token| token.is_fresh(now)) {
            return Ok(Renewed::Token(token));
        }
        let Some(refresh) = store.refresh_token(&stored)? else {
            return Ok(Renewed::Gone);
        };
        match device::renew(login, client, wanted.resource, &refresh).await? {
            Ok(granted) => {
                if let Some(next) = granted.refresh.filter(|next| *next != refresh) {
                    self.save_renewed(store, &mut stored, &next);
                }
                // For the processes that wait for the lock.
                self.put_token(effective, wanted.authority, wanted.resource, &granted.token);
                Ok(Renewed::Token(granted.token))
            }
            Err(refusal) if refusal.wants_user && !wanted.may_ask => {
                Err(self.not_enough(wanted.resource, refusal.message()))
            }
            Err(_) => Ok(Renewed::Ended),
        }
    }

    /// Saves the next refresh token. A failure must not lose the sign-in without a word: the older
    /// one stays, and mostly still works.
    fn save_renewed(&self, store: &SignInStore<'_>, stored: &mut StoredSignIn, next: &Secret) {
        if let Err(error) = store.save_refresh(stored, next) {
            (self.surroundings.tell)(&format!(
                "warning: {error}; the older sign-in stays in its place. If it stops working: {}",
                self.surroundings.command
            ));
        }
    }

    /// The error for a service that asks for more claims than the token has.
    pub(crate) fn challenged(&self, resource: &str, service: &str) -> Error {
        self.not_enough(resource, &format!("{service} says insufficient_claims"))
    }

    /// The error if somebody is signed in, and a service wants more: a second factor, a new consent.
    pub(super) fn not_enough(&self, resource: &str, said: &str) -> Error {
        Error::denied(format!(
            "{}: the sign-in is not enough for {resource}: a second factor or a new consent is \
                asked for ({said})",
            self.at
        ))
        .hint(match &self.method {
            SignInMethod::Cli { tenant, .. } if self.is_configured => format!(
                "sign in again with this scope: az login{} --scope {}",
                tenant
                    .as_ref()
                    .map_or_else(String::new, |tenant| format!(" --tenant {tenant}")),
                device::scope(resource)
            ),
            _ => format!(
                "sign in again with this scope: {} --scope {}",
                self.surroundings.command,
                device::scope(resource)
            ),
        })
    }

    async fn by_secret(
        &self,
        login: &Login<'_>,
        client: &str,
        reference: &str,
        resource: &str,
    ) -> Result<Token> {
        let secret = self
            .surroundings
            .secret(&self.at, "client_secret", reference)?;
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

    async fn by_certificate(
        &self,
        login: &Login<'_>,
        client: &str,
        reference: &str,
        resource: &str,
    ) -> Result<Token> {
        let pem = self
            .surroundings
            .secret(&self.at, "client_certificate", reference)?;
        let now = towline_host::clock::now();
        let assertion = ClientCertificate::read(&self.at, &pem)?.assertion(
            &login.address("token"),
            client,
            now,
        )?;
        let scope = device::scope(resource);
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", client),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", assertion.expose()),
            ("scope", &scope),
        ];
        let answer = login.grant(&fields, &[&assertion]).await?;
        let answer = answer.map_err(|refusal| {
            let error = refusal.error(&self.at, "the certificate");
            // The assertion names the time of this machine.
            if error.message().contains("AADSTS700024") {
                return error.hint(format!("is this machine's clock right? It says {now}"));
            }
            error.hint(
                "look at tenant_id and client_id, and that key and certificate of the file belong \
                    together and to the application",
            )
        })?;
        login.token(&answer)
    }

    async fn by_workload(&self, web: &Web, authority: &str, resource: &str) -> Result<Token> {
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
            ("client_assertion_type", ASSERTION_TYPE),
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

/// The outcome of using a stored sign-in.
enum Renewed {
    Token(Token),
    /// The login service refuses its refresh token.
    Ended,
    /// Somebody has signed out.
    Gone,
}
