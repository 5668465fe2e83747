//! The variables by which a shell sets proxies and trusted certificates.

/// Proxies and certificates. Programs read either case of a proxy variable. The last two are those
/// of the Azure CLI and of curl.
pub const VARIABLES: [&str; 12] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Whether a value is an address with a password in it. Such a value is not stored on disk.
pub fn holds_password(value: &str) -> bool {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
    rest.split('/').next().is_some_and(|authority| {
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_seen() {
        assert!(
            ["http://me:word@proxy:3128", "me:word@proxy:3128/"]
                .iter()
                .all(|value| holds_password(value))
        );
        assert!(
            [
                "http://proxy:3128",
                "proxy:3128",
                "http://me@proxy:3128",
                "/etc/ssl/a@b:c.pem",
                ""
            ]
            .iter()
            .all(|value| !holds_password(value))
        );
    }
}
