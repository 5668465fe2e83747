//! Addresses of containers and blobs. Every key can be escaped into a URL and read back.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use towline_core::{Error, Result};
use url::Url;

/// Escaped in a query: every character but those that RFC 3986 calls unreserved.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Escaped in a path: the same, but for the slash.
const IN_PATH: &AsciiSet = &IN_QUERY.remove(b'/');

/// The address of an account's blob service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: String,
    pub host: String,
}

impl Endpoint {
    /// `text` may name the account (`http://127.0.0.1:10000/acct`, `https://acct.blob.…`) or not.
    pub fn new(text: Option<&str>, account: &str) -> Result<Self> {
        let own = format!("https://{account}.blob.core.windows.net");
        let text = text
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .unwrap_or(&own)
            .trim_end_matches('/');
        let wrong = |why: &str| {
            Error::config(format!(
                "endpoint `{}` {why}",
                text.split('?').next().unwrap_or_default()
            ))
        };
        let url = Url::parse(text)
            .map_err(|_| wrong("is not an address such as https://acct.blob.core.windows.net"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("must begin with https:// or http://"));
        }
        if url.query().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must hold neither user nor query")
                .hint("credentials belong under `credential`, as a reference"));
        }
        let Some(host) = url.host_str() else {
            return Err(wrong("names no host"));
        };
        let port = url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let has_account =
            host.split('.').next() == Some(account) || url.path().trim_matches('/') == account;
        let base = if has_account {
            text.to_owned()
        } else {
            format!("{text}/{account}")
        };
        Ok(Self {
            base,
            host: format!("{host}{port}"),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.base
    }

    /// The address of a container, or with a key that of a blob. It holds no secret.
    pub fn url(&self, container: &str, key: Option<&str>) -> String {
        let container = utf8_percent_encode(container, IN_PATH);
        match key {
            Some(key) => format!(
                "{}/{container}/{}",
                self.base,
                utf8_percent_encode(key, IN_PATH)
            ),
            None => format!("{}/{container}", self.base),
        }
    }
}

/// `?a=b&c=d`, or nothing.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let joined: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
        .collect();
    if joined.is_empty() {
        String::new()
    } else {
        format!("?{}", joined.join("&"))
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, IN_QUERY).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_named_once() {
        for (text, base) in [
            (None, "https://acct.blob.core.windows.net"),
            (
                Some("http://127.0.0.1:10000/acct"),
                "http://127.0.0.1:10000/acct",
            ),
            (
                Some("http://127.0.0.1:10000/acct/"),
                "http://127.0.0.1:10000/acct",
            ),
            (
                Some("http://127.0.0.1:10000"),
                "http://127.0.0.1:10000/acct",
            ),
            (
                Some("https://acct.blob.core.chinacloudapi.cn/"),
                "https://acct.blob.core.chinacloudapi.cn",
            ),
            (Some("http://acct.localhost:9"), "http://acct.localhost:9"),
        ] {
            assert_eq!(
                Endpoint::new(text, "acct").expect("good").as_str(),
                base,
                "{text:?}"
            );
        }
        for text in [
            "acct.blob.core.windows.net",
            "ftp://x",
            "https://u:p@host",
            "https://host/?sig=canary",
        ] {
            let error = Endpoint::new(Some(text), "acct").expect_err(text);
            assert_eq!(error.kind(), towline_core::ErrorKind::Config);
            assert!(!error.to_string().contains("canary"));
        }
    }

    #[test]
    fn every_key_survives_its_url() {
        let endpoint = Endpoint::new(Some("http://127.0.0.1:10000"), "acct").expect("good");
        for key in [
            "plain",
            "a b",
            "100%",
            "a#b",
            "a?b=c",
            "a+b",
            "a%2Fb",
            "ü/日本/🚀",
            "a&b;c=d",
            "~-._",
            "'\"\\",
            "[x]{y}^|`<>",
            "a:b@c,d!$*()",
        ] {
            let url = Url::parse(&endpoint.url("data", Some(key))).expect("a URL");
            let path = url
                .path()
                .strip_prefix("/acct/data/")
                .expect("below its container");
            assert_eq!(
                percent_encoding::percent_decode_str(path)
                    .decode_utf8()
                    .expect("UTF-8"),
                key
            );
            assert!(url.query().is_none() && url.fragment().is_none());
        }
        assert_eq!(query(&[("a", "b c"), ("d", "&=+")]), "?a=b%20c&d=%26%3D%2B");
    }
}
