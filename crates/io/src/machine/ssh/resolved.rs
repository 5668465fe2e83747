//! The user's ssh configuration for a host, as `ssh -G` prints it.

use super::Client;
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) host_name: String,
    pub(super) port: String,
    user: String,
    /// The jump hosts or the program through which the host is reached.
    proxy: String,
    alias: String,
    pub(super) keys: Vec<String>,
    agent: String,
    is_strict: bool,
    /// The default files of known hosts; `None` if the configuration names others.
    known_hosts: Option<String>,
}

impl Resolved {
    pub(super) fn parse(text: &str) -> Self {
        let mut resolved = Self::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            match key {
                "hostname" => value.clone_into(&mut resolved.host_name),
                "port" => value.clone_into(&mut resolved.port),
                "user" => value.clone_into(&mut resolved.user),
                "proxyjump" | "proxycommand" => value.clone_into(&mut resolved.proxy),
                "hostkeyalias" => value.clone_into(&mut resolved.alias),
                "identityfile" => resolved.keys.push(value.to_owned()),
                "identityagent" => value.clone_into(&mut resolved.agent),
                "stricthostkeychecking" => resolved.is_strict = matches!(value, "true" | "yes"),
                "userknownhostsfile" => resolved.known_hosts = default_known_hosts(value),
                _ => {}
            }
        }
        resolved
    }

    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// Two transports share a connection if this is equal. The name alone is not enough, because it
    /// may come to mean another machine.
    pub(super) fn digest(&self, host: &str, ssh_config: Option<&Path>) -> String {
        let mut hasher = blake3::Hasher::new();
        let config = ssh_config
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        for part in [
            host,
            &config,
            &self.host_name,
            &self.port,
            &self.user,
            &self.proxy,
        ] {
            hasher
                .update(&(part.len() as u64).to_le_bytes())
                .update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..12].to_owned()
    }

    /// Options for host keys. They respect what the user has set for this host. A new host is
    /// accepted, a changed key never.
    pub(super) fn host_key_options(&self, ours: &Path, client: Client) -> Result<Vec<String>> {
        let mut options = Vec::new();
        // An older client asks its user, or refuses if nobody can be asked.
        if !self.is_strict && client.takes_new_hosts() {
            options.push("StrictHostKeyChecking=accept-new".to_owned());
        }
        if let Some(theirs) = &self.known_hosts {
            // ssh writes new hosts to the first file.
            options.push(format!(
                "UserKnownHostsFile=\"{}\" {theirs}",
                option_path(ours)?
            ));
        }
        Ok(options)
    }

    /// Whether the host is reached without a jump host or a program.
    pub(super) fn is_direct(&self) -> bool {
        matches!(self.proxy.as_str(), "" | "none")
    }

    /// The name of the host's key in a file of known hosts.
    pub(super) fn key_name(&self) -> String {
        match (self.alias.as_str(), self.port.as_str()) {
            ("", "22" | "") => self.host_name.clone(),
            ("", port) => format!("[{}]:{port}", self.host_name),
            (alias, _) => alias.to_owned(),
        }
    }

    /// The keys that ssh tried: the files that exist, and those of an agent.
    pub(super) fn keys_tried(&self, home: Option<&Path>, has_agent: bool) -> Vec<String> {
        let is_there = |name: &&String| {
            let path = match (name.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below),
                _ => PathBuf::from(name),
            };
            path.exists()
        };
        let mut tried: Vec<String> = self.keys.iter().filter(is_there).cloned().collect();
        if self.agent != "none" && (has_agent || !self.agent.is_empty()) {
            tried.push("those of your agent".to_owned());
        }
        tried
    }
}

/// The two default files, quoted for an option; `None` if `value` names others. The second is the
/// first with a `2`.
fn default_known_hosts(value: &str) -> Option<String> {
    let middle = value.len().checked_sub(2)? / 2;
    let first = value.get(..middle)?;
    (value == format!("{first} {first}2") && first.ends_with("/.ssh/known_hosts"))
        .then(|| format!("\"{first}\" \"{first}2\""))
}

/// A path for an option of ssh, with the characters escaped that ssh would expand.
pub(super) fn option_path(path: &Path) -> Result<String> {
    let refused = || {
        Error::config(format!(
            "ssh cannot use {}: it has a `\"`, `\\`, `$`, or is not text",
            path.display()
        ))
    };
    let text = path
        .to_str()
        .filter(|text| !text.contains(['"', '\\', '$', '\n', '\r']))
        .ok_or_else(refused)?;
    Ok(text.replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_CONFIG: &str = "host login\nuser me\nhostname 10.0.0.1\nport 22\nidentityfile \
        ~/.ssh/id_rsa\nidentityfile /keys/a b\nstricthostkeychecking ask\n\
                         userknownhostsfile /home/m e/.ssh/known_hosts /home/m \
                             e/.ssh/known_hosts2\n";

    #[test]
    fn new_hosts_are_accepted_and_our_file_comes_first() {
        let options = Resolved::parse(PLAIN_CONFIG)
            .host_key_options(Path::new("/state/100%/known_hosts"), Client::NEWEST)
            .expect("fine");
        let files = "UserKnownHostsFile=\"/state/100%%/known_hosts\" \"/home/m \
            e/.ssh/known_hosts\" \"/home/m e/.ssh/known_hosts2\"";
        assert_eq!(options, ["StrictHostKeyChecking=accept-new", files]);
        assert!(
            Resolved::parse(PLAIN_CONFIG)
                .host_key_options(Path::new("/a\"b"), Client::NEWEST)
                .is_err()
        );
    }

    #[test]
    fn what_the_user_has_set_stays() {
        let text = PLAIN_CONFIG
            .replace("checking ask", "checking true")
            .replace("/home/m e/.ssh/known_hosts2", "/cluster/keys");
        assert_eq!(
            Resolved::parse(&text)
                .host_key_options(Path::new("/ours"), Client::NEWEST)
                .expect("fine"),
            [""; 0]
        );
        let text = PLAIN_CONFIG.replace("checking ask", "checking false");
        assert_eq!(
            Resolved::parse(&text)
                .host_key_options(Path::new("/ours"), Client::NEWEST)
                .expect("fine")[0],
            "StrictHostKeyChecking=accept-new",
            "never `no`"
        );
    }

    #[test]
    fn another_machine_is_another_connection() {
        let digest = |text: &str| Resolved::parse(text).digest("login", None);
        assert_eq!(
            digest(PLAIN_CONFIG),
            digest(&PLAIN_CONFIG.replace("id_rsa", "other"))
        );
        assert_ne!(
            digest(PLAIN_CONFIG),
            digest(&PLAIN_CONFIG.replace("10.0.0.1", "10.0.0.2"))
        );
        assert_ne!(
            digest(PLAIN_CONFIG),
            digest(&format!("{PLAIN_CONFIG}proxyjump bastion\n"))
        );
        assert_eq!(digest(PLAIN_CONFIG).len(), 12);
    }

    #[test]
    fn keys_have_the_names_that_ssh_gives_them() {
        assert_eq!(Resolved::parse(PLAIN_CONFIG).key_name(), "10.0.0.1");
        assert_eq!(
            Resolved::parse(&PLAIN_CONFIG.replace("port 22", "port 2200")).key_name(),
            "[10.0.0.1]:2200"
        );
        assert_eq!(
            Resolved::parse(&format!("{PLAIN_CONFIG}hostkeyalias c\n")).key_name(),
            "c"
        );
        assert_eq!(
            Resolved::parse(PLAIN_CONFIG).keys_tried(None, true),
            ["those of your agent"]
        );
        assert_eq!(
            Resolved::parse(&format!("{PLAIN_CONFIG}identityagent none\n")).keys_tried(None, true),
            [""; 0]
        );
    }
}
