//! The certificate authorities that a client trusts: those of `SSL_CERT_FILE` and `SSL_CERT_DIR` if
//! they are set, else the system's bundle, else the roots that are built in. The bundle is one
//! file; reading a folder of hundreds would take longer than most verbs.

use crate::network::Network;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_core::{Error, Result};

/// Systems keep the bundle here: Debian, Fedora, openSUSE, newer Fedora, Alpine and macOS.
const BUNDLE_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// A system without a bundle may have one file for each authority in these folders.
const CERTIFICATE_FOLDERS: [&str; 2] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];

/// A TLS configuration that also trusts the authorities of the PEM text `more`.
pub(crate) fn client(network: &Network, more: &[u8]) -> Result<ClientConfig> {
    let mut roots = authorities(
        &|name| network.variable(name),
        &BUNDLE_FILES.map(Path::new),
        &CERTIFICATE_FOLDERS.map(Path::new),
    )?;
    for authority in CertificateDer::pem_slice_iter(more) {
        let added = authority
            .ok()
            .and_then(|authority| roots.add(authority).ok());
        added.ok_or_else(|| Error::config("the authorities to trust are not PEM"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder =
        versions.map_err(|error| Error::bug("TLS cannot be set up").source_error(error))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn authorities(
    variable: &dyn Fn(&str) -> Option<OsString>,
    bundles: &[&Path],
    folders: &[&Path],
) -> Result<RootCertStore> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let (file, places) = (set("SSL_CERT_FILE").map(PathBuf::from), set("SSL_CERT_DIR"));
    if file.is_some() || places.is_some() {
        let mut roots = RootCertStore::empty();
        if let Some(file) = file {
            // Without this error an unreadable file would only show as an untrusted server.
            let unread = |error| {
                Error::config(format!(
                    "`SSL_CERT_FILE` names {}, which cannot be read",
                    file.display()
                ))
                .source_error(error)
                .hint("unset it, or correct it")
            };
            fs::File::open(&file).map_err(unread)?;
            add_file(&mut roots, &file);
        }
        for folder in places.iter().flat_map(std::env::split_paths) {
            add_folder(&mut roots, &folder);
        }
        let what = || {
            Error::config("`SSL_CERT_FILE` and `SSL_CERT_DIR` name no certificate that can be read")
                .hint("unset them, or correct them")
        };
        return if roots.is_empty() {
            Err(what())
        } else {
            Ok(roots)
        };
    }
    let mut roots = RootCertStore::empty();
    for bundle in bundles {
        add_file(&mut roots, bundle);
        if !roots.is_empty() {
            return Ok(roots);
        }
    }
    for folder in folders {
        add_folder(&mut roots, folder);
    }
    // A node without any certificate uses the roots that are built in.
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    Ok(roots)
}

/// Adds the certificates of a file; unusable ones are skipped.
fn add_file(roots: &mut RootCertStore, path: &Path) {
    let bytes = fs::read(path).unwrap_or_default();
    roots.add_parsable_certificates(
        CertificateDer::pem_slice_iter(&bytes).filter_map(std::result::Result::ok),
    );
}

fn add_folder(roots: &mut RootCertStore, folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_file() {
            add_file(roots, &entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some of the built-in roots as PEM text.
    fn pem(count: usize) -> String {
        use base64::Engine;
        let one = |der: &CertificateDer<'_>| {
            format!(
                "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
                base64::engine::general_purpose::STANDARD.encode(der)
            )
        };
        webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .take(count)
            .map(one)
            .collect()
    }

    #[test]
    fn named_files_come_first_then_the_system_then_the_built_in_roots() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for (name, count) in [("three", 3), ("hashed/two", 2), ("system", 5)] {
            fs::create_dir_all(at(name).parent().expect("a parent")).expect("made");
            fs::write(
                at(name),
                pem(count) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            )
            .expect("written");
        }
        let found = |named: &[(&str, PathBuf)], bundles: &[&Path], folders: &[&Path]| {
            let variable = |name: &str| {
                named
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value.clone().into_os_string())
            };
            authorities(&variable, bundles, folders).map(|roots| roots.len())
        };
        let (system, hashed, none) = (at("system"), at("hashed"), at("none"));
        assert_eq!(
            found(&[("SSL_CERT_FILE", at("three"))], &[&system], &[]).ok(),
            Some(3)
        );
        assert_eq!(
            found(
                &[
                    ("SSL_CERT_FILE", at("three")),
                    ("SSL_CERT_DIR", hashed.clone())
                ],
                &[],
                &[]
            )
            .ok(),
            Some(5)
        );
        assert_eq!(
            found(&[("SSL_CERT_DIR", hashed.clone())], &[&system], &[]).ok(),
            Some(2)
        );
        assert_eq!(found(&[], &[&none, &system], &[&hashed]).ok(), Some(5));
        assert_eq!(found(&[], &[&none], &[&hashed]).ok(), Some(2));
        assert_eq!(
            found(&[], &[&none], &[]).ok(),
            Some(webpki_root_certs::TLS_SERVER_ROOT_CERTS.len())
        );
        let wrong =
            found(&[("SSL_CERT_FILE", none.clone())], &[&system], &[]).expect_err("nothing there");
        assert!(wrong.to_string().contains("SSL_CERT_FILE"), "{wrong}");
    }
}
