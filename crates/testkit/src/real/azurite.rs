//! Microsoft's own blob service, on loopback.

use super::certificate::Certificate;
use super::server::{Recipe, Server};
use super::{Account, BlobClient, http, parts};
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The published account of the emulator, and one of our own for copies between accounts.
const ACCOUNT_KEYS: [(&str, &str); 2] = [
    (
        "devstoreaccount1",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    ),
    (
        "towtestaccount2",
        "dG93IHRlc3RzIGNvcHkgYmV0d2VlbiBhY2NvdW50cywgYW5kIHRoaXMgaXMgdGhlIHNlY29uZCBvbmUncyBrZXkuLg==",
    ),
];

/// A module that is loaded into it, so that it can be killed as a real service would be.
const CUT_MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/real/cut.js");

const IN_MEMORY_OPTIONS: [&str; 1] = ["--inMemoryPersistence"];
const SILENT_OPTION: &str = "--silent";

#[derive(Debug)]
pub struct Azurite {
    server: Server,
    accounts: [Account; 2],
    secured: Option<(Certificate, TempDir)>,
    in_memory: bool,
}

/// The file with the next fault.
const RULE_FILE: &str = "trouble";

impl Azurite {
    /// In memory. Costs a second and 100 MB: tests without special needs share one, each with
    /// containers of its own.
    pub fn start() -> Self {
        Self::launch(
            [IN_MEMORY_OPTIONS[0], SILENT_OPTION].map(Into::into).into(),
            None,
        )
    }

    /// The one of this test program, in memory.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Azurite> = LazyLock::new(Azurite::start);
        &SHARED
    }

    /// With its data in a folder, which outlives it.
    pub fn start_in(folder: &Path) -> Self {
        Self::launch(
            [SILENT_OPTION.into(), "--location".into(), folder.into()].into(),
            None,
        )
    }

    /// By TLS with a throw-away authority (see [`Self::authority`]), which accepts bearer tokens
    /// too. In memory.
    pub fn start_tls() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tow-tls-")
            .tempdir()
            .unwrap();
        let made = Certificate::make(folder.path());
        let mut words: Vec<OsString> = IN_MEMORY_OPTIONS.map(Into::into).into();
        // Not silent: see [`Self::seen`].
        words.extend(["--oauth", "basic", "--cert"].map(Into::into));
        words.extend([
            made.certificate.clone().into(),
            "--key".into(),
            made.key.clone().into(),
        ]);
        Self::launch(words, Some((made, folder)))
    }

    #[track_caller]
    fn launch(options: Vec<OsString>, secured: Option<(Certificate, TempDir)>) -> Self {
        let program = parts::file("azurite/node_modules/azurite/dist/src/blob/main.js");
        let in_memory = options.iter().any(|word| word == IN_MEMORY_OPTIONS[0]);
        let words = move |port: u16| {
            let mut words: Vec<OsString> = vec![
                "node".into(),
                "--require".into(),
                CUT_MODULE.into(),
                program.clone().into(),
            ];
            // Newer clients name versions that it does not know, and it sends telemetry by default.
            words.extend(
                [
                    "--blobHost",
                    "127.0.0.1",
                    "--skipApiVersionCheck",
                    "--disableTelemetry",
                    "--blobPort",
                ]
                .map(Into::into),
            );
            words.push(port.to_string().into());
            words.extend(options.clone());
            words
        };
        let listed = ACCOUNT_KEYS
            .map(|(name, key)| format!("{name}:{key}"))
            .join(";");
        let mut variables = vec![("AZURITE_ACCOUNTS".to_owned(), OsString::from(listed))];
        // It fetches the source of a copy from itself, by TLS.
        variables.extend(secured.iter().map(|(made, _)| {
            (
                "NODE_EXTRA_CA_CERTS".to_owned(),
                made.authority.clone().into(),
            )
        }));
        variables.extend(secured.iter().map(|(_, folder)| {
            (
                "TOW_CUT_RULE".to_owned(),
                folder.path().join(RULE_FILE).into(),
            )
        }));
        let server = Server::start(Recipe {
            words: Box::new(words),
            variables,
            ready_text: "successfully listens",
        });
        let scheme = if secured.is_some() { "https" } else { "http" };
        let accounts = ACCOUNT_KEYS.map(|(name, key)| Account {
            name: name.to_owned(),
            key: key.to_owned(),
            endpoint: format!("{scheme}://127.0.0.1:{}/{name}", server.port()),
        });
        Self {
            server,
            accounts,
            secured,
            in_memory,
        }
    }

    /// The next such request has a fault: `cut`, `busy` or `lost` (it takes effect). Only for the
    /// TLS service.
    pub fn trouble(&self, method: &str, part: &str, what: &str) {
        let (_, folder) = self.secured.as_ref().unwrap();
        let path = folder.path().join(RULE_FILE);
        std::fs::write(
            path.with_extension("new"),
            format!("{method}\t{part}\t{what}"),
        )
        .unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    }
    /// Removes the fault. Returns whether it had not happened yet.
    pub fn heal(&self) -> bool {
        self.secured
            .as_ref()
            .is_some_and(|(_, folder)| std::fs::remove_file(folder.path().join(RULE_FILE)).is_ok())
    }

    /// The first account: `http://127.0.0.1:PORT/devstoreaccount1`, without a slash at the end.
    pub fn endpoint(&self) -> &str {
        &self.accounts[0].endpoint
    }
    pub fn account(&self) -> &str {
        &self.accounts[0].name
    }
    /// In base64.
    pub fn key(&self) -> &str {
        &self.accounts[0].key
    }
    pub fn first(&self) -> &Account {
        &self.accounts[0]
    }
    /// The other account, with the same rights.
    pub fn second(&self) -> &Account {
        &self.accounts[1]
    }
    pub fn port(&self) -> u16 {
        self.server.port()
    }
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }
    /// The certificate that a client of the TLS service must trust, as PEM.
    pub fn authority(&self) -> Option<PathBuf> {
        self.secured
            .as_ref()
            .map(|(made, _)| made.authority.clone())
    }

    /// The requests to [`Self::start_tls`] so far: `METHOD PATH?QUERY`, without signatures.
    pub fn seen(&self) -> Vec<String> {
        let asked = |line: &str| {
            let words = line.split('"').nth(1)?.strip_suffix(" HTTP/1.1")?;
            Some(words.split("&sig=").next().unwrap_or_default().to_owned())
        };
        self.server.output().lines().filter_map(asked).collect()
    }

    /// Its certificate if it uses TLS, for use by another server.
    pub(crate) fn secured(&self) -> Option<&Certificate> {
        self.secured.as_ref().map(|(made, _)| made)
    }

    /// A signature for all of the first account (`sv=…&sig=…`); less than 0 seconds is expired.
    pub fn sas(&self, permissions: &str, expires_in_seconds: i64) -> String {
        self.first().sas(permissions, expires_in_seconds)
    }
    /// A bearer token for [`Self::start_tls`]; less than 0 seconds is expired.
    pub fn bearer_token(&self, lifetime_seconds: i64) -> String {
        self.first().bearer_token(lifetime_seconds)
    }

    #[track_caller]
    pub fn make_container(&self, name: &str) {
        self.make_container_of(self.first(), name);
    }
    #[track_caller]
    pub fn make_container_of(&self, account: &Account, name: &str) {
        if self.secured.is_some() {
            self.client_of(account).run(["make-container", name]).json();
            return;
        }
        let url = format!(
            "{}/{name}?restype=container&{}",
            account.endpoint,
            account.sas("rwc", 600)
        );
        let answer = http::request("PUT", &url, &[("x-ms-version", "2022-11-02")], b"").unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Microsoft's own client, with the first account's key.
    pub fn client(&self) -> BlobClient {
        self.client_of(self.first())
    }
    pub fn client_of(&self, account: &Account) -> BlobClient {
        self.client_with(account, "--key", &account.key)
    }
    /// By `--key`, `--sas` or `--bearer`.
    pub fn client_with(&self, account: &Account, how: &str, secret: &str) -> BlobClient {
        let mut options: Vec<OsString> = ["--url", &account.endpoint, how, secret]
            .map(Into::into)
            .into();
        if let Some(authority) = self.authority() {
            options.extend(["--ca".into(), authority.into()]);
        }
        BlobClient { options }
    }

    /// Kills the service at once: every connection is reset. With a folder, everything that was
    /// answered before is there after [`Self::restart`]; requests in progress may be. SIGKILL alone
    /// would lose answered requests, because Azurite saves them only every five seconds.
    pub fn kill(&mut self) {
        if self.in_memory {
            self.server.kill();
        } else {
            self.server.end_by(Signal::USR2);
        }
    }
    /// Starts it again on the same port and, if one was given, with the same folder.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        self.server.restart();
    }
}
