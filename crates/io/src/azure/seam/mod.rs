//! The cloud as the Azure ML backend uses it: signed-in calls, and objects of blob containers.

mod objects;

use super::cloud;
use super::identity::{LoginRequest, SignInState, SignedOut, Watcher};
use super::{Access, Azure, Place};
use crate::credential::AzureCredential;
use crate::web::Answer;
use objects::BlobObjects;
use std::sync::Arc;
use tokio::runtime::Runtime;
use towline_core::cloud::{Audience, BlobAccess, BlobPlace, Call, Cloud, Objects, Reply, Who};
use towline_core::redact::Secret;
use towline_core::{Error, Result};

/// Gives the runtime that waits for calls; it is made on first use.
pub type Threads = fn() -> Result<&'static Runtime>;

/// No request is sent, and no thread is made, before the first call.
#[derive(Debug)]
pub struct AzureCloud {
    name: String,
    cloud: Arc<cloud::Cloud>,
    threads: Threads,
}

impl AzureCloud {
    /// `name` is the name of the cluster, for messages.
    pub fn new(name: &str, cloud: cloud::Cloud, threads: Threads) -> Self {
        Self {
            name: name.to_owned(),
            cloud: Arc::new(cloud),
            threads,
        }
    }

    /// Signs in anew and stores the sign-in; `None` if the user stops it.
    pub fn login(
        &self,
        request: &LoginRequest,
        watcher: &Watcher<'_>,
    ) -> Result<Option<SignInState>> {
        self.wait(self.cloud.login(request, watcher))
    }

    /// Removes the stored sign-in.
    pub fn logout(&self) -> Result<SignedOut> {
        self.wait(self.cloud.logout())
    }

    /// The signed-in user, and until when.
    pub fn sign_in_state(&self) -> Result<SignInState> {
        self.wait(self.cloud.sign_in_state())
    }

    /// The same for two clusters that share a stored sign-in.
    pub fn stored_under(&self) -> Option<String> {
        self.cloud.stored_under()
    }

    fn wait<T>(&self, act: impl Future<Output = Result<T>>) -> Result<T> {
        (self.threads)()?.block_on(act)
    }
}

impl Cloud for AzureCloud {
    fn endpoint(&self) -> &str {
        self.cloud.endpoint()
    }

    fn trouble(&self) -> Option<Error> {
        self.cloud.trouble()
    }

    fn sign_in(&self, may_ask: bool) -> Result<()> {
        self.wait(self.cloud.sign_in(may_ask))
    }

    fn call(&self, call: &Call) -> Result<Reply> {
        self.wait(self.cloud.call(call))
            .map(|answer| reply(&answer))
    }

    fn call_all(&self, calls: &[Call]) -> Vec<Result<Reply>> {
        match (self.threads)() {
            Ok(runtime) => runtime
                .block_on(self.cloud.call_all(calls))
                .into_iter()
                .map(|answer| answer.map(|answer| reply(&answer)))
                .collect(),
            Err(error) => calls
                .iter()
                .map(|_| Err(Error::bug(error.to_string())))
                .collect(),
        }
    }

    fn token(&self, audience: Audience) -> Result<Secret> {
        self.wait(self.cloud.token(audience))
    }

    fn studio(&self) -> Result<String> {
        self.wait(async {
            self.cloud
                .endpoints()
                .await
                .map(|endpoints| endpoints.workspace.clone())
        })
    }

    fn who(&self) -> Result<Who> {
        let token = self.token(Audience::Management)?;
        crate::azure::identity::claims(&token)
            .and_then(|claims| Who::from_claims(&claims))
            .ok_or_else(|| {
                Error::refused(format!(
                    "cluster `{}`: the token does not say who is signed in",
                    self.name
                ))
            })
    }

    fn container_sas(
        &self,
        account: &str,
        container: &str,
        key: &Secret,
        days: u32,
    ) -> Result<Secret> {
        super::sas::sign_container(
            key,
            account,
            container,
            std::time::Duration::from_secs(u64::from(days) * 86_400),
        )
    }

    fn plain_sas(&self, given: &Secret) -> Result<Secret> {
        Ok(super::sas::Sas::parse(given)?.text())
    }

    fn objects(&self, place: &BlobPlace) -> Result<Box<dyn Objects>> {
        let access = match &place.access {
            BlobAccess::Key(key) => Access::Credential(AzureCredential::Key(key.clone())),
            BlobAccess::Sas(sas) => Access::Credential(AzureCredential::Sas(sas.clone(), None)),
            BlobAccess::Token => Access::SignedIn(Arc::clone(&self.cloud)),
        };
        let root = place.root.trim_matches('/');
        let place = Place {
            name: self.name.clone(),
            account: place.account.clone(),
            container: place.container.clone(),
            root: if root.is_empty() {
                String::new()
            } else {
                format!("{root}/")
            },
            endpoint: Some(place.endpoint.clone()),
            access,
        };
        Ok(Box::new(BlobObjects::new(
            Azure::new(place, self.cloud.web()?.clone())?,
            self.threads,
        )))
    }
}

fn reply(answer: &Answer) -> Reply {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Reply {
        status: answer.status.as_u16(),
        headers: answer
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body: answer.body.to_vec(),
        tries: answer.tries,
    }
}
