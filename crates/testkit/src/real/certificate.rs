//! A certificate for loopback and its authority, made for one server and removed with it.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Certificate {
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Names besides the address: clients of Microsoft read the account from a host's first label.
const CERTIFICATE_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "*.blob.core.localhost"];

impl Certificate {
    pub(super) fn make(folder: &Path) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        // A name different from the certificate's, which would else be its own authority.
        authority
            .distinguished_name
            .push(DnType::CommonName, "towline tests");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer_key = KeyPair::generate().unwrap();
        let root = authority.self_signed(&issuer_key).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(CERTIFICATE_NAMES.map(str::to_owned))
            .unwrap()
            .signed_by(&key, &Issuer::new(authority, issuer_key))
            .unwrap();
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        Self {
            authority: write("authority.pem", root.pem()),
            certificate: write("certificate.pem", leaf.pem()),
            key: write("key.pem", key.serialize_pem()),
        }
    }
}
