//! Tokens of the user who is signed in to the Azure CLI.

use super::token::Token;
use crate::network::Network;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use towline_core::{Error, Result, quote};

/// How long `az` may take. It starts slowly, and may have to ask over the network.
const AZ_TIMEOUT: Duration = Duration::from_secs(60);

/// The login of the Azure CLI that is used.
#[derive(Debug, Clone)]
pub(super) struct AzureCli {
    pub(super) at: String,
    /// The value of `PATH`.
    pub(super) path: String,
    pub(super) profile: Option<PathBuf>,
    pub(super) tenant: Option<String>,
    pub(super) network: Network,
}

impl AzureCli {
    pub(super) async fn token(self, resource: String) -> Result<Token> {
        let asked = tokio::task::spawn_blocking(move || self.ask(&resource)).await;
        asked.map_err(|error| Error::bug("a task broke").source_error(error))?
    }

    fn ask(&self, resource: &str) -> Result<Token> {
        let at = &self.at;
        let Some(program) = towline_host::program::find_program("az", &self.path) else {
            let error = Error::unsupported(format!("{at}: Azure CLI not installed."));
            return Err(error
                .hint("install it (https://aka.ms/azure-cli)")
                .hint("or choose another `credential`: device_code, managed_identity, …"));
        };
        let mut command = Command::new(program);
        command.args([
            "account",
            "get-access-token",
            "--resource",
            resource,
            "--output",
            "json",
        ]);
        command.args(self.tenant.iter().flat_map(|tenant| ["--tenant", tenant]));
        command.env("PATH", &self.path);
        for (name, value) in self.network.given() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(profile) = &self.profile {
            command.env("AZURE_CONFIG_DIR", profile);
        }
        let finished = run(command, AZ_TIMEOUT)
            .map_err(|error| Error::from_io(format!("{at}: `az` cannot be started"), error))?;
        let Some(finished) = finished else {
            let error = Error::unreachable(format!(
                "{at}: Command timeout: `az account get-access-token` gave no token in {} s",
                AZ_TIMEOUT.as_secs()
            ));
            return Err(error.hint(format!(
                "see how it goes: {}",
                self.line("account get-access-token")
            )));
        };
        if !finished.status.success() {
            return Err(self.refused(&finished.stderr));
        }
        let token = serde_json::from_slice(&finished.stdout)
            .ok()
            .and_then(|json| Token::named(&json, "accessToken", towline_host::clock::now()));
        token.ok_or_else(|| {
            Error::refused(format!(
                "{at}: what `az account get-access-token` says holds no token"
            ))
            .hint("is the Azure CLI up to date?")
        })
    }

    fn refused(&self, stderr: &[u8]) -> Error {
        let at = &self.at;
        let text = String::from_utf8_lossy(stderr);
        let first = text
            .lines()
            .find(|line| line.starts_with("ERROR:"))
            .or_else(|| text.lines().find(|line| !line.trim().is_empty()));
        let first: String = first
            .unwrap_or("it failed")
            .trim_start_matches("ERROR:")
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(300)
            .collect();
        let tenant = self
            .tenant
            .as_ref()
            .map(|tenant| format!(" --tenant {tenant}"))
            .unwrap_or_default();
        if let Some(error) = self.wants_more(&text, &first) {
            return error;
        }
        if [
            "az login",
            "AADSTS",
            "No subscription",
            "refresh token",
            "not logged in",
        ]
        .iter()
        .any(|sign| text.contains(sign))
        {
            let error = Error::denied(format!(
                "{at}: nobody is signed in to the Azure CLI{} ({first})",
                self.shown_profile()
            ));
            return error.hint(format!("sign in: {}", self.line(&format!("login{tenant}"))));
        }
        let error = if ["onnection", "Max retries", "timed out", "resolve"]
            .iter()
            .any(|sign| text.contains(sign))
        {
            Error::unreachable(format!("{at}: the Azure CLI has no token: {first}"))
        } else {
            Error::refused(format!("{at}: the Azure CLI has no token: {first}"))
        };
        error.hint(format!(
            "see that this works: {}",
            self.line("account get-access-token")
        ))
    }

    /// The error if somebody is signed in but the service wants a second factor or a new consent.
    /// The command that `az` suggests has the right scope; without it the same refusal comes again.
    fn wants_more(&self, text: &str, first: &str) -> Option<Error> {
        const SECOND_FACTOR_SIGNS: [&str; 6] = [
            "AADSTS50076",
            "AADSTS50079",
            "AADSTS50078",
            "AADSTS50158",
            "AADSTS53003",
            "nteractive authentication is needed",
        ];
        if !SECOND_FACTOR_SIGNS.iter().any(|sign| text.contains(sign)) {
            return None;
        }
        let words = text.lines().find_map(|line| {
            line.trim()
                .strip_prefix("az login ")
                .map(|rest| rest.chars().filter(|c| !c.is_control()).collect::<String>())
        });
        let line = words.map_or_else(
            || self.line("login --scope https://management.core.windows.net//.default"),
            |words| self.line(&format!("login {}", words.trim())),
        );
        let error = Error::denied(format!(
            "{}: the sign-in of the Azure CLI{} is not enough: a second factor is asked for \
                ({first})",
            self.at,
            self.shown_profile()
        ));
        Some(error.hint(format!("sign in as it wants it: {line}")))
    }

    fn shown_profile(&self) -> String {
        self.profile
            .as_ref()
            .map(|profile| format!(" of profile {}", profile.display()))
            .unwrap_or_default()
    }

    /// The command for the user to type.
    fn line(&self, words: &str) -> String {
        match &self.profile {
            Some(profile) => {
                let folder = quote::word(&profile.display().to_string());
                format!("AZURE_CONFIG_DIR={folder} az {words}")
            }
            None => format!("az {words}"),
        }
    }
}

struct Finished {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs a program to its end; `None` if it took too long, and then all of it was killed.
fn run(mut command: Command, limit: Duration) -> std::io::Result<Option<Finished>> {
    // In a group of its own, so that its children can be killed too.
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let (sender, receiver) = mpsc::channel();
    let outputs: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    for (number, pipe) in outputs.into_iter().enumerate() {
        let sender = sender.clone();
        std::thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            let _ = sender.send((number, bytes));
        })?;
    }
    let begun = std::time::Instant::now();
    let mut read = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let Ok((number, bytes)) = receiver.recv_timeout(limit.saturating_sub(begun.elapsed()))
        else {
            if let Some(group) = i32::try_from(child.id())
                .ok()
                .and_then(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            child.wait()?;
            return Ok(None);
        };
        read[number] = bytes;
    }
    let [stdout, stderr] = read;
    Ok(Some(Finished {
        status: child.wait()?,
        stdout,
        stderr,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use towline_core::ErrorKind;

    fn cli(path: &Path, profile: Option<&str>) -> AzureCli {
        let path = path.display().to_string();
        AzureCli {
            at: "cluster `c`".to_owned(),
            path,
            profile: profile.map(PathBuf::from),
            tenant: None,
            network: Network::default(),
        }
    }

    #[test]
    fn a_missing_az_has_a_hint() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = cli(folder.path(), None)
            .ask("https://r")
            .expect_err("none is there");
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (
                ErrorKind::Unsupported,
                "cluster `c`: Azure CLI not installed."
            )
        );
        assert_eq!(error.hints().len(), 2);
    }

    /// The daemon was started from another shell, perhaps days ago, with other variables.
    #[test]
    fn az_gets_the_proxy_of_the_shell_that_submits() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let az = folder.path().join("az");
        std::fs::write(
            &az,
            "#!/bin/sh\necho \"ERROR: by $HTTPS_PROXY, not by [$NO_PROXY]\" >&2\nexit 1\n",
        )
        .expect("written");
        std::fs::set_permissions(&az, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let given = [("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let network = Network::new(given.iter().map(|(name, value)| (name, value)));
        let error = AzureCli {
            network,
            ..cli(folder.path(), None)
        }
        .ask("https://r")
        .expect_err("it refuses");
        assert!(
            error
                .to_string()
                .contains("by http://proxy:3128, not by []"),
            "{error}"
        );
    }

    #[test]
    fn each_refusal_has_its_own_error() {
        let cli = cli(Path::new("/"), Some("/home/u/my login"));
        let signed_out =
            cli.refused(b"WARNING: x\nERROR: Please run 'az login' to setup account.\n");
        assert_eq!(signed_out.kind(), ErrorKind::Denied);
        assert_eq!(
            signed_out.hints(),
            ["sign in: AZURE_CONFIG_DIR='/home/u/my login' az login"]
        );
        assert_eq!(
            cli.refused(b"ERROR: HTTPSConnectionPool: Max retries exceeded")
                .kind(),
            ErrorKind::Unreachable
        );
        assert_eq!(cli.refused(b"").kind(), ErrorKind::Refused);
        let factor = b"ERROR: AADSTS50076: Due to a configuration change, you must use \
            multi-factor authentication.\nInteractive authentication is needed. Please run:\naz \
                login --tenant \"t\" --scope \"https://management.core.windows.net//.default\"\n";
        let wanted = cli.refused(factor);
        assert!(
            wanted.to_string().contains("a second factor is asked for")
                && !wanted.to_string().contains("nobody is signed in"),
            "{wanted}"
        );
        let line =
            "az login --tenant \"t\" --scope \"https://management.core.windows.net//.default\"";
        assert_eq!(
            wanted.hints(),
            [format!(
                "sign in as it wants it: AZURE_CONFIG_DIR='/home/u/my login' {line}"
            )]
        );
        let other = AzureCli {
            profile: None,
            tenant: Some("t".to_owned()),
            ..cli
        };
        assert_eq!(
            other.refused(b"ERROR: AADSTS70043: expired").hints(),
            ["sign in: az login --tenant t"]
        );
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; sleep 600"]);
        assert!(
            run(command, Duration::from_millis(200))
                .expect("started")
                .is_none()
        );
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let finished = run(command, AZ_TIMEOUT).expect("started").expect("ended");
        assert_eq!(
            (
                finished.status.code(),
                finished.stdout.as_slice(),
                finished.stderr.as_slice()
            ),
            (Some(3), &b"out\n"[..], &b"err\n"[..])
        );
    }
}
