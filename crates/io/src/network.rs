//! The proxies and the trusted certificates, from environment variables. They may come from another
//! process: the daemon uses those of the shell that submitted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use towline_core::network::VARIABLES;
use towline_core::{Error, Result};

/// Variables that were given count, even empty ones; all others are those of this process.
#[derive(Clone, Default)]
pub struct Network(BTreeMap<String, String>);

/// Makes a proxy of one kind from its address.
type MakeProxy = fn(String) -> reqwest::Result<reqwest::Proxy>;

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Network").field(&self.0.keys()).finish()
    }
}

impl Network {
    /// Keeps those of the variables that concern the network.
    pub fn new<'v>(given: impl IntoIterator<Item = (&'v String, &'v String)>) -> Self {
        let of_network = |(name, _): &(&String, &String)| VARIABLES.contains(&name.as_str());
        Self(
            given
                .into_iter()
                .filter(of_network)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// The given variables, for a program that is started. One without a value is to be removed.
    pub fn given(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(name, value)| {
            (
                name.as_str(),
                Some(value.as_str()).filter(|value| !value.is_empty()),
            )
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let value = self
            .0
            .get(name)
            .map_or_else(|| std::env::var_os(name), |value| Some(value.into()));
        value.filter(|value| !value.is_empty())
    }

    /// The variable in lower or upper case, as other programs read it.
    fn either(&self, name: &str) -> Option<String> {
        let value = self
            .variable(&name.to_lowercase())
            .or_else(|| self.variable(name))?;
        value.into_string().ok()
    }

    /// The proxies of a client. SOCKS proxies are ignored.
    pub(crate) fn proxies(&self) -> Result<Vec<reqwest::Proxy>> {
        let except = self
            .either("NO_PROXY")
            .and_then(|list| reqwest::NoProxy::from_string(&list));
        let mut proxies = Vec::new();
        let kinds: [(&str, MakeProxy); 3] = [
            ("HTTPS_PROXY", |address| reqwest::Proxy::https(address)),
            ("HTTP_PROXY", |address| reqwest::Proxy::http(address)),
            ("ALL_PROXY", |address| reqwest::Proxy::all(address)),
        ];
        for (name, make) in kinds {
            let Some(address) = self.either(name) else {
                continue;
            };
            let address = if address.contains("://") {
                address
            } else {
                format!("http://{address}")
            };
            if address.to_lowercase().starts_with("socks") {
                continue;
            }
            let proxy = make(address).map_err(|_| {
                Error::config(format!("`{name}` is not the address of a proxy"))
                    .hint("such as http://proxy:3128")
            })?;
            proxies.push(proxy.no_proxy(except.clone()));
        }
        Ok(proxies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_variables_count_and_no_password_is_shown() {
        let given: BTreeMap<String, String> = [
            ("HTTPS_PROXY", "http://me:canary@proxy:1"),
            ("no_proxy", ""),
            ("HTTP_PROXY", "proxy:2"),
            ("ALL_PROXY", "socks5://x:3"),
            ("PATH", "/bin"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let network = Network::new(&given);
        assert!(!format!("{network:?}").contains("canary"));
        assert_eq!(
            network.proxies().expect("proxies").len(),
            2,
            "one of another protocol is passed over"
        );
        let given: Vec<_> = network.given().collect();
        assert!(
            given.contains(&("no_proxy", None))
                && given.contains(&("HTTP_PROXY", Some("proxy:2")))
                && !given.iter().any(|(name, _)| *name == "PATH")
        );
        let wrong: BTreeMap<String, String> =
            [("HTTPS_PROXY".to_owned(), "http://[".to_owned())].into();
        assert!(
            Network::new(&wrong)
                .proxies()
                .expect_err("no address")
                .to_string()
                .contains("HTTPS_PROXY")
        );
    }
}
