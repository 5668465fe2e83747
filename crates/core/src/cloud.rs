//! The seam to Azure's services: calls as the signed-in user, and objects of a blob container. No
//! runtime is named: calls block, and a caller that must not wait uses a thread of its own.

use crate::redact::Secret;
use crate::{Error, Result};
use schemars::JsonSchema;
use std::fmt::Debug;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Put,
    Post,
    Patch,
    Delete,
}

/// The service that a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audience {
    /// The resource manager: `https://management.azure.com`.
    Management,
    /// The workspace's own services, run history among them: `https://ml.azure.com`.
    Workspace,
    /// Key Vault: `https://vault.azure.net`.
    Vault,
    /// Blob storage: `https://storage.azure.com`.
    Storage,
    /// No token is sent: the address itself carries the permission, or the call is public.
    Nobody,
}

/// One call. `Debug` shows neither body nor query, which may hold secrets.
#[derive(Clone)]
pub struct Call {
    pub method: Method,
    /// Absolute.
    pub url: String,
    pub audience: Audience,
    pub body: Option<serde_json::Value>,
    pub headers: Vec<(String, Secret)>,
    /// Whether a repetition has no further effect. Then it may be sent again when no answer came.
    pub repeatable: bool,
}

impl Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("url", &self.path())
            .finish_non_exhaustive()
    }
}

impl Call {
    /// The address without its query.
    pub fn path(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }

    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::Get,
            url: url.into(),
            audience: Audience::Management,
            body: None,
            headers: Vec::new(),
            repeatable: true,
        }
    }
    /// For a resource whose name we choose: a repetition changes nothing.
    pub fn put(url: impl Into<String>, body: serde_json::Value) -> Self {
        Self {
            method: Method::Put,
            body: Some(body),
            ..Self::get(url)
        }
    }
    /// With a body, unless it is null.
    pub fn post(url: impl Into<String>, body: serde_json::Value) -> Self {
        Self {
            method: Method::Post,
            body: Some(body).filter(|body| !body.is_null()),
            repeatable: false,
            ..Self::get(url)
        }
    }
    pub fn delete(url: impl Into<String>) -> Self {
        Self {
            method: Method::Delete,
            ..Self::get(url)
        }
    }
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self {
            repeatable: true,
            ..self
        }
    }
    #[must_use]
    pub fn audience(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }
    #[must_use]
    pub fn header(mut self, name: &str, value: Secret) -> Self {
        self.headers.push((name.to_owned(), value));
        self
    }
}

/// A whole answer, whatever its status.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How often it was sent. If more than once, an earlier one may have taken effect.
    pub tries: u32,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
    pub const fn is_good(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// The signed-in user, as a token describes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct Who {
    /// `alice@example.com`; for an application or a managed identity its name or its client id.
    pub name: String,
    /// The unique id of the user or the application in its tenant.
    pub id: String,
    /// The id of the tenant.
    pub tenant: String,
}

impl Who {
    /// From the claims of a token; `None` if they name no user.
    pub fn from_claims(claims: &serde_json::Value) -> Option<Self> {
        let text = |name: &str| {
            claims[name]
                .as_str()
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let identity = text("xms_mirid").and_then(|id| id.rsplit('/').next());
        let person = ["upn", "preferred_username", "unique_name", "email"]
            .into_iter()
            .find_map(text);
        let application = ["app_displayname", "appid", "azp"]
            .into_iter()
            .find_map(text);
        let id = text("oid").or_else(|| text("sub"))?;
        let name = person.or(identity).or(application).unwrap_or(id);
        Some(Self {
            name: name.to_owned(),
            id: id.to_owned(),
            tenant: text("tid").unwrap_or_default().to_owned(),
        })
    }
}

/// The cloud, as the signed-in user. Throttled calls are repeated after a pause, tokens are renewed
/// before they expire, and calls that are not repeatable are never sent twice. An error means that
/// there is no answer at all (`Unreachable`), or that nobody is signed in (`Denied`, with a hint
/// how to sign in).
pub trait Cloud: Send + Sync + Debug {
    /// The resource manager, without a slash at its end.
    fn endpoint(&self) -> &str;
    /// The error that calls of other threads are being retried for just now.
    fn trouble(&self) -> Option<Error> {
        None
    }
    /// Signs in. Asks on the terminal if the kind of login needs it and `may_ask` allows it.
    fn sign_in(&self, may_ask: bool) -> Result<()>;
    fn call(&self, call: &Call) -> Result<Reply>;
    /// Many calls, several at a time; answers in their order.
    fn call_all(&self, calls: &[Call]) -> Vec<Result<Reply>>;
    /// A token for a header that the caller sets.
    fn token(&self, audience: Audience) -> Result<Secret>;
    /// The address of the cloud's pages of Azure ML: `https://ml.azure.com`.
    fn studio(&self) -> Result<String>;
    /// The user that is signed in.
    fn who(&self) -> Result<Who>;
    /// A signature (SAS) for one container and so many days, made with the account's key.
    fn container_sas(
        &self,
        account: &str,
        container: &str,
        key: &Secret,
        days: u32,
    ) -> Result<Secret>;
    /// A signature in the form that services take. The given one may be a whole address, or
    /// unescaped.
    fn plain_sas(&self, given: &Secret) -> Result<Secret>;
    /// Objects of a container, below a path.
    fn objects(&self, place: &BlobPlace) -> Result<Box<dyn Objects>>;
}

/// A container, and a path in it.
#[derive(Debug, Clone)]
pub struct BlobPlace {
    pub account: String,
    pub container: String,
    /// `https://ACCOUNT.blob.core.windows.net`
    pub endpoint: String,
    /// Without slashes at its ends.
    pub root: String,
    pub access: BlobAccess,
}

/// How access to a container is granted.
#[derive(Debug, Clone)]
pub enum BlobAccess {
    Key(Secret),
    /// Without the question mark.
    Sas(Secret),
    /// The token of the signed-in user.
    Token,
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: String,
    pub size: u64,
    /// Changes when the bytes change.
    pub version: String,
}

/// Objects by key, below a path. An error that is a refusal, whose text holds no secret, is the
/// service's: `Denied` means that the credential is not accepted or has expired. `Unreachable`
/// means that nothing is known.
pub trait Objects: Send + Sync + Debug {
    /// Writes the whole object. With `once`, `false` means that it exists already and is left
    /// unchanged.
    fn put(&self, key: &str, bytes: &[u8], once: bool) -> Result<bool>;
    /// A part, shorter where the object ends; `None` when there is no object.
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<Vec<u8>>>;
    /// Many whole objects at once, in their order.
    fn get_all(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>>;
    /// The sizes of those that exist.
    fn sizes(&self, keys: &[String]) -> Result<Vec<Option<u64>>>;
    /// All whose key begins with `prefix`.
    fn list(&self, prefix: &str) -> Result<Vec<Item>>;
    /// Deletes them. It is no error if they are gone.
    fn delete(&self, keys: &[String]) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is() {
        let who =
            |claims: serde_json::Value| Who::from_claims(&claims).map(|who| (who.name, who.id));
        let of = |name: &str| Some((name.to_owned(), "o".to_owned()));
        assert_eq!(
            who(serde_json::json!({"oid": "o", "upn": "alice@example.com", "appid": "az"})),
            of("alice@example.com")
        );
        assert_eq!(
            who(
                serde_json::json!({"oid": "o", "appid": "c", "xms_mirid": "/subscriptions/s/…/userAssignedIdentities/tow"})
            ),
            of("tow")
        );
        assert_eq!(
            who(serde_json::json!({"oid": "o", "appid": "c", "upn": " "})),
            of("c")
        );
        assert_eq!(who(serde_json::json!({"upn": "alice@example.com"})), None);
    }

    #[test]
    fn a_call_shows_no_secret() {
        let call = Call::put(
            "https://host/a?sig=canary#canary",
            serde_json::json!({"value": "canary"}),
        )
        .header("x-token", Secret::new("canary"));
        assert_eq!(
            format!("{call:?}"),
            "Call { method: Put, url: \"https://host/a\", .. }"
        );
    }

    #[test]
    fn a_post_has_its_body_unless_it_is_null_and_is_sent_once() {
        let body = serde_json::json!({"a": 1});
        let post = Call::post("https://host/a", body.clone());
        assert_eq!((post.method, post.body), (Method::Post, Some(body)));
        assert!(!post.repeatable);
        assert_eq!(
            Call::post("https://host/a", serde_json::Value::Null).body,
            None
        );
        assert!(
            Call::post("https://host/a", serde_json::Value::Null)
                .repeatable()
                .repeatable
        );
    }

    #[test]
    fn an_answer_says_whether_it_is_good_and_what_it_holds() {
        let reply = |status| Reply {
            status,
            headers: vec![("etag".to_owned(), "7".to_owned())],
            body: b"{\"a\": 1}".to_vec(),
            tries: 1,
        };
        let good = [199, 200, 299, 300].map(|status| reply(status).is_good());
        assert_eq!(good, [false, true, true, false]);
        assert_eq!(reply(200).header("etag"), Some("7"));
        assert_eq!(reply(200).header("location"), None);
        assert_eq!(reply(200).json(), Some(serde_json::json!({"a": 1})));
        assert_eq!(Reply::default().json(), None);
    }
}
