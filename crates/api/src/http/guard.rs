//! Who may call: whoever has the token, from the page itself or from a program, at the address that
//! we listen on.

use super::Refusal;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, StatusCode};
use std::fmt;
use std::net::SocketAddr;
use towline_core::{Error, Result};

/// The header that carries the token. No page of another origin can send it without being asked
/// first, and we answer no such question.
const TOKEN: HeaderName = HeaderName::from_static("x-towline-token");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A random token, made anew by each server.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    pub fn new() -> Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::bug("there are no random bytes").source_error(error))?;
        let mut text = String::with_capacity(64);
        for byte in bytes {
            text += &format!("{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The token itself, for the address that is printed.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Takes as long for every token of that length.
    fn is(&self, other: &[u8]) -> bool {
        let differences = self
            .0
            .bytes()
            .zip(other)
            .fold(0, |found, (ours, theirs)| found | (ours ^ theirs));
        other.len() == self.0.len() && differences == 0
    }
}

/// A name that leads to loopback, at our port. Another name may belong to a page of a stranger that
/// made it lead here.
pub(super) fn check_host(headers: &HeaderMap, address: SocketAddr) -> Result<(), Refusal> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(|host| is_ours(host, address)) {
        return Ok(());
    }
    let error = Error::denied("this address is not answered under that name")
        .hint(format!("open http://{address}/"));
    Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, error))
}

fn is_ours(host: &str, address: SocketAddr) -> bool {
    let name = host.strip_suffix(&format!(":{}", address.port()));
    matches!(name, Some("127.0.0.1" | "localhost" | "[::1]"))
}

/// Refuses a page of another origin, as far as its browser tells.
pub(super) fn check_origin(headers: &HeaderMap, address: SocketAddr) -> Result<(), Refusal> {
    let denied = |status, text: &str| Err(Refusal::new(status, Error::denied(text)));
    if let Some(origin) = headers.get(ORIGIN) {
        let host = origin.to_str().ok().and_then(|o| o.strip_prefix("http://"));
        if !host.is_some_and(|host| is_ours(host, address)) {
            return denied(
                StatusCode::FORBIDDEN,
                "a page of another origin may not call",
            );
        }
    }
    let site = headers.get(FETCH_SITE).map(http::HeaderValue::as_bytes);
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        return denied(
            StatusCode::FORBIDDEN,
            "a page of another origin may not call",
        );
    }
    Ok(())
}

pub(super) fn check_caller(
    headers: &HeaderMap,
    address: SocketAddr,
    token: &Token,
) -> Result<(), Refusal> {
    check_origin(headers, address)?;
    let given = headers.get(TOKEN).map(http::HeaderValue::as_bytes);
    if !given.is_some_and(|given| token.is(given)) {
        let error = Error::denied("the token is missing or wrong")
            .hint("open the address that `tow ui` printed");
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, error));
    }
    let kind = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let is_json = kind.is_some_and(|kind| {
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    });
    if !is_json {
        let error = Error::usage("the arguments are sent as application/json");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 7777))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let value = HeaderValue::from_str(value).expect("a header");
                (HeaderName::from_static(name), value)
            })
            .collect()
    }

    #[test]
    fn only_names_of_loopback_at_our_port_are_answered() {
        for host in ["127.0.0.1:7777", "localhost:7777", "[::1]:7777"] {
            assert!(check_host(&headers(&[("host", host)]), address()).is_ok());
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:7778",
            "evil.example:7777",
            "localhost.evil.example:7777",
            "127.0.0.1:7777.evil.example",
            "",
        ] {
            let found = check_host(&headers(&[("host", host)]), address());
            assert!(found.is_err(), "{host}");
        }
        assert!(check_host(&HeaderMap::new(), address()).is_err());
    }

    #[test]
    fn a_caller_has_the_token_and_comes_from_here() {
        let token = Token::new().expect("a token");
        let good = [
            ("x-towline-token", token.expose()),
            ("content-type", "application/json; charset=utf-8"),
        ];
        let status = |more: &[(&'static str, &str)]| {
            let all = [&good[..], more].concat();
            let found = check_caller(&headers(&all), address(), &token);
            found.err().map(|refusal| refusal.status.as_u16())
        };
        assert_eq!(status(&[]), None);
        assert_eq!(status(&[("origin", "http://127.0.0.1:7777")]), None);
        assert_eq!(status(&[("sec-fetch-site", "same-origin")]), None);
        for origin in ["http://evil.example", "null", "https://127.0.0.1:7777"] {
            assert_eq!(status(&[("origin", origin)]), Some(403), "{origin}");
        }
        assert_eq!(status(&[("sec-fetch-site", "cross-site")]), Some(403));
        for wrong in [
            "",
            "0",
            &token.expose()[1..],
            &format!("{}0", token.expose()),
        ] {
            let all = headers(&[("x-towline-token", wrong), good[1]]);
            let found = check_caller(&all, address(), &token).err();
            assert_eq!(found.map(|refusal| refusal.status.as_u16()), Some(401));
        }
        let form = headers(&[good[0], ("content-type", "text/plain")]);
        let found = check_caller(&form, address(), &token).err();
        assert_eq!(found.map(|refusal| refusal.status.as_u16()), Some(415));
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = Token::new().expect("a token");
        assert!(!format!("{token:?}").contains(token.expose()));
        assert_eq!(token.expose().len(), 64);
    }
}
