//! Debian's ssh server on a port of loopback, as the user who runs the tests, with keys of its own.

use super::server::{Recipe, Server};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use towline_host::process;

/// Its path in Debian. It executes itself for each connection, and needs its whole path for that.
const SSHD_PROGRAM: &str = "/usr/sbin/sshd";

/// The passphrase of the key in [`Sshd::locked_config`].
pub const PASSPHRASE: &str = "open sesame";

/// The name of the host in [`Sshd::config`].
const HOST_ALIAS: &str = "login";

#[derive(Debug)]
pub struct Sshd {
    server: Server,
    folder: TempDir,
}

impl Sshd {
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// With more lines for its configuration. The first line of a kind counts, and these come
    /// first.
    #[track_caller]
    pub fn start_with(lines: &str) -> Self {
        assert!(
            Path::new(SSHD_PROGRAM).exists(),
            "{SSHD_PROGRAM} is not there: `cargo xtask install` installs what tests need"
        );
        if rustix::process::geteuid().is_root() {
            // The folder that its helper is confined to. The package makes it only when it starts
            // the service.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let folder = tempfile::Builder::new()
            .prefix("tow-sshd-")
            .tempdir()
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        for (key, passphrase) in [
            ("host_key", ""),
            ("key", ""),
            ("strange_key", ""),
            ("locked_key", PASSPHRASE),
        ] {
            make_key(&path(key), passphrase);
        }
        fs::create_dir(path("home")).unwrap();
        let let_in =
            ["key.pub", "locked_key.pub"].map(|key| fs::read_to_string(path(key)).unwrap());
        fs::write(path("authorized_keys"), let_in.concat()).unwrap();
        fs::set_permissions(path("authorized_keys"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(path("sshd_config"), server_config(folder.path(), lines)).unwrap();
        let (log, config) = (path("log"), path("sshd_config"));
        let words = move |port: u16| {
            // Its log tells when it is ready, and is kept over a restart.
            let keep = r#"exec "$@" 2> >(exec tee -a "$0")"#;
            let mut words: Vec<OsString> = ["bash", "-c", keep].map(Into::into).into();
            words.extend([
                log.clone().into(),
                SSHD_PROGRAM.into(),
                "-D".into(),
                "-e".into(),
                "-f".into(),
                config.clone().into(),
                "-p".into(),
            ]);
            words.push(port.to_string().into());
            words
        };
        let server = Server::start(Recipe {
            words: Box::new(words),
            variables: Vec::new(),
            ready_text: "Server listening on",
        });
        for (name, key) in [
            ("config", "key"),
            ("strange_config", "strange_key"),
            ("locked_config", "locked_key"),
        ] {
            fs::write(path(name), client_config(server.port(), &path(key))).unwrap();
        }
        Self { server, folder }
    }

    /// For `ssh -F`.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// As [`Self::config`], with a key that the server refuses.
    pub fn strange_config(&self) -> PathBuf {
        self.folder.path().join("strange_config")
    }

    /// As [`Self::config`], with a key that needs a passphrase: [`PASSPHRASE`].
    pub fn locked_config(&self) -> PathBuf {
        self.folder.path().join("locked_config")
    }

    /// The host's name in the configurations.
    pub fn host(&self) -> &'static str {
        HOST_ALIAS
    }

    /// The home of the user who logs in.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The number of successful logins since the first start.
    pub fn authentications(&self) -> usize {
        // A key that would be accepted is logged as accepted too.
        let is_one = |line: &&str| {
            line.starts_with("Accepted ") && line.contains(" for ") && line.contains(" from ")
        };
        fs::read_to_string(self.folder.path().join("log"))
            .unwrap_or_default()
            .lines()
            .filter(is_one)
            .count()
    }

    /// Cuts every connection; processes that were started over them live on.
    pub fn kill_connections(&self) {
        let connections = self.connections();
        for pid in &connections {
            process::signal(*pid, rustix::process::Signal::KILL);
        }
        crate::until("connections to be gone", || {
            connections
                .iter()
                .all(|pid| process::facts(*pid).is_none_or(|facts| facts.zombie))
                .then_some(())
        });
    }

    /// As if the network were gone: nothing answers on the present connections, and nothing closes
    /// them.
    pub fn freeze_connections(&self) {
        for pid in self.connections() {
            process::signal(pid, rustix::process::Signal::STOP);
        }
    }

    /// Stops it, with all connections.
    pub fn stop(&mut self) {
        self.kill_connections();
        self.server.kill();
    }

    /// Starts it again on the same port.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.server.restart();
    }

    /// Changes the host key, as if another machine had its address.
    #[track_caller]
    pub fn new_host_key(&mut self) {
        self.stop();
        make_key(&self.folder.path().join("host_key"), "");
        self.server.restart();
    }

    fn connections(&self) -> Vec<i32> {
        let own = self.server.pid().and_then(|pid| i32::try_from(pid).ok());
        let is_sshd = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.starts_with("sshd"))
        };
        own.map(process::descendants)
            .unwrap_or_default()
            .into_iter()
            .filter(is_sshd)
            .collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}

fn server_config(folder: &Path, lines: &str) -> String {
    let folder = folder.display();
    format!(
        "{lines}\n\
         ListenAddress 127.0.0.1\n\
         HostKey {folder}/host_key\n\
         AuthorizedKeysFile {folder}/authorized_keys\n\
         PidFile none\n\
         StrictModes no\n\
         UsePAM no\n\
         PermitRootLogin yes\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         LogLevel VERBOSE\n\
         SetEnv HOME={folder}/home\n"
    )
}

/// The older key exchange takes half as long.
fn client_config(port: u16, key: &Path) -> String {
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8_lossy(&user).trim().to_owned();
    format!(
        "Host {HOST_ALIAS}\n\
         HostName 127.0.0.1\n\
         Port {port}\n\
         User {user}\n\
         IdentityFile {}\n\
         IdentitiesOnly yes\n\
         IdentityAgent none\n\
         KexAlgorithms curve25519-sha256\n",
        key.display()
    )
}

#[track_caller]
fn make_key(path: &Path, passphrase: &str) {
    let _ = fs::remove_file(path);
    let made = Command::new("ssh-keygen")
        .args([
            "-q",
            "-t",
            "ed25519",
            "-C",
            "tow tests",
            "-N",
            passphrase,
            "-f",
        ])
        .arg(path)
        .stdin(Stdio::null())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "ssh-keygen");
}
