//! Tunnels: the meaning of a definition, and the checks on it. Target and route are decided here,
//! before anything is opened.

use crate::config::Tunnel;
use crate::suggest::did_you_mean;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The first port to try for a tunnel that names none.
pub const FIRST_PORT: u16 = 22222;
/// The placeholder in a command for the port it has to listen on.
pub const PORT_PLACEHOLDER: &str = "{port}";
const MAX_NAME_CHARACTERS: usize = 40;

/// How the far end is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// An ssh server sends its banner first.
    Ssh,
    /// A web server answers a request.
    Http,
    /// The connection is accepted and not closed at once.
    Tcp,
}

impl Probe {
    pub const ALL: [&str; 3] = ["ssh", "http", "tcp"];

    pub fn parse(word: &str) -> Result<Self> {
        match word {
            "ssh" => Ok(Self::Ssh),
            "http" => Ok(Self::Http),
            "tcp" => Ok(Self::Tcp),
            _ => Err(Error::usage(format!("`{word}` is no probe")).hint(
                did_you_mean(word, Self::ALL)
                    .unwrap_or_else(|| format!("known: {}", Self::ALL.join(", "))),
            )),
        }
    }

    /// The likely service behind a port.
    pub const fn of_port(port: u16) -> Self {
        match port {
            22 | 2222 => Self::Ssh,
            _ => Self::Tcp,
        }
    }
}

/// A host and a port, as the last hop sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.port == 22 {
            f.write_str(&self.host)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Target {
    /// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::config(format!("`{text}` is not HOST or HOST:PORT"))
                .hint("for instance gcrazgdl1234, or box:8888")
        };
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or_else(wrong)?)),
            None if text.matches(':').count() > 1 => (text, None),
            None => text
                .split_once(':')
                .map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            None => 22,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(wrong)?,
        };
        if !is_host(host) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host == "::1" || self.host.starts_with("127.")
    }
}

/// How the target is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunnelRoute {
    /// By ssh, through these hosts in order. At least one.
    Hops(Vec<String>),
    /// By a program that listens on a port here.
    Command(Vec<String>),
}

/// A tunnel with all defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub to: Target,
    /// The address that the last hop connects to. It differs from `to` if `to` is the last hop
    /// itself.
    pub dial: Target,
    #[serde(rename = "way")]
    pub route: TunnelRoute,
    pub port: u16,
    pub user: Option<String>,
    pub probe: Probe,
    pub ssh_config: Option<String>,
}

impl Definition {
    /// Completes the user's definition. `port` is used if the definition names none.
    pub fn new(name: &str, tunnel: &Tunnel, port: u16) -> Result<Self> {
        check_name(name)?;
        let to = Target::parse(&tunnel.to)?;
        let probe = tunnel.probe.unwrap_or_else(|| Probe::of_port(to.port));
        if let Some(user) = &tunnel.user {
            check_user(user)?;
        }
        let (route, dial) = match (&tunnel.via, &tunnel.command) {
            (Some(_), Some(_)) => {
                return Err(
                    Error::config(format!("tunnel `{name}` has both `via` and `command`"))
                        .hint("hops for ssh, or a program of its own: one of them"),
                );
            }
            (Some(via), None) => (TunnelRoute::Hops(hops(via)?), to.clone()),
            (None, Some(words)) => {
                if tunnel.ssh_config.is_some() {
                    return Err(Error::config(format!(
                        "tunnel `{name}` has both `ssh_config` and `command`"
                    ))
                    .hint("no ssh is on the way, so none is configured"));
                }
                (TunnelRoute::Command(command(words)?), to.clone())
            }
            (None, None) if to.port == 22 => {
                let error = Error::refused(format!(
                    "tunnel `{name}` goes to `{to}` by ssh, which needs no tunnel: ssh {to}"
                ));
                return Err(error
                    .hint("behind a bastion: --via BASTION")
                    .hint(format!("another port of it: --to {}:8888", to.host)));
            }
            (None, None) => {
                let hop = tunnel
                    .user
                    .as_ref()
                    .map_or_else(|| to.host.clone(), |user| format!("{user}@{}", to.host));
                (
                    TunnelRoute::Hops(vec![hop]),
                    Target {
                        host: "127.0.0.1".to_owned(),
                        port: to.port,
                    },
                )
            }
        };
        let port = tunnel.port.unwrap_or(port);
        if port < 1024 {
            return Err(
                Error::config(format!("port {port} of this machine is not for users"))
                    .hint("take one from 1024 on, such as 22222"),
            );
        }
        Ok(Self {
            to,
            dial,
            route,
            port,
            user: tunnel.user.clone(),
            probe,
            ssh_config: tunnel.ssh_config.clone(),
        })
    }

    /// Whether the target is an ssh server, so that an alias makes sense.
    pub fn is_for_ssh(&self) -> bool {
        self.probe == Probe::Ssh
    }

    /// The name under which the target's host key is stored. `localhost` alone would name many
    /// machines.
    pub fn key_name(&self) -> String {
        match (&self.route, self.dial.is_loopback()) {
            (TunnelRoute::Hops(hops), true) => hops
                .last()
                .map_or_else(|| self.to.host.clone(), |hop| host_of(hop).to_owned()),
            _ => self.to.host.clone(),
        }
    }

    /// The route, in a few words.
    pub fn shown_route(&self) -> String {
        match &self.route {
            TunnelRoute::Hops(hops) => hops.join(", "),
            TunnelRoute::Command(words) => words.first().cloned().unwrap_or_default(),
        }
    }
}

/// Checks a name. It becomes a file name and a host in an ssh configuration.
pub fn check_name(name: &str) -> Result<()> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || !name.bytes().all(is_good)
        || name.len() > MAX_NAME_CHARACTERS
    {
        return Err(
            Error::usage(format!("`{name}` cannot be the name of a tunnel")).hint(format!(
                "letters, digits, `.`, `_` and `-`, a letter or digit first, at most {MAX_NAME_CHARACTERS}"
            )),
        );
    }
    if name == "node" {
        return Err(Error::usage(
            "`node` cannot be the name of a tunnel: `tow-node` is the newest allocation",
        ));
    }
    Ok(())
}

/// The host name of a hop.
pub fn host_of(hop: &str) -> &str {
    hop.rsplit_once('@').map_or(hop, |(_, host)| host)
}

fn is_host(host: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    !host.is_empty() && !host.starts_with('-') && host.bytes().all(is_good)
}

fn check_user(user: &str) -> Result<()> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-\\+@".contains(&byte);
    if user.is_empty() || user.starts_with('-') || !user.bytes().all(is_good) {
        return Err(Error::config(format!("`{user}` is not the name of a user")));
    }
    Ok(())
}

fn hops(via: &str) -> Result<Vec<String>> {
    let hops: Vec<String> = via.split(',').map(|hop| hop.trim().to_owned()).collect();
    for hop in &hops {
        let user = hop
            .rsplit_once('@')
            .map_or(Ok(()), |(user, _)| check_user(user));
        if user.is_err() || !is_host(host_of(hop)) || host_of(hop).contains(':') {
            return Err(Error::config(format!("`{hop}` is no hop")).hint(
                "HOST or USER@HOST, as ssh knows it, separated by commas; a port belongs \
                    into your ssh configuration",
            ));
        }
    }
    let is_again = |at: usize| {
        hops[..at]
            .iter()
            .any(|hop| host_of(hop) == host_of(&hops[at]))
    };
    if let Some(at) = (0..hops.len()).find(|at| is_again(*at)) {
        return Err(Error::config(format!(
            "`{}` is on the way twice",
            host_of(&hops[at])
        )));
    }
    Ok(hops)
}

fn command(words: &[String]) -> Result<Vec<String>> {
    if words.first().is_none_or(String::is_empty) {
        return Err(Error::config("the command of the tunnel has no words"));
    }
    if !words.iter().any(|word| word.contains(PORT_PLACEHOLDER)) {
        return Err(Error::config(format!(
            "the command of the tunnel has no `{PORT_PLACEHOLDER}`"
        ))
        .hint(format!(
            "it has to listen on a port that tow chooses: write {PORT_PLACEHOLDER} in its \
                place, as in `--port {PORT_PLACEHOLDER}`"
        )));
    }
    Ok(words.to_vec())
}

/// The command with its port filled in.
pub fn filled(words: &[String], port: u16) -> Vec<String> {
    words
        .iter()
        .map(|word| word.replace(PORT_PLACEHOLDER, &port.to_string()))
        .collect()
}

/// A tunnel through Azure Bastion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureBastion {
    pub name: String,
    pub resource_group: String,
    /// The resource id of the machine.
    pub target: String,
    pub subscription: Option<String>,
}

impl AzureBastion {
    /// The arguments for the Azure CLI.
    pub fn words(&self, port: u16) -> Vec<String> {
        let port = port.to_string();
        let fixed = [
            "az",
            "network",
            "bastion",
            "tunnel",
            "--name",
            &self.name,
            "--resource-group",
            &self.resource_group,
        ];
        let rest = [
            "--target-resource-id",
            &self.target,
            "--resource-port",
            &port,
            "--port",
            PORT_PLACEHOLDER,
        ];
        let subscription = self
            .subscription
            .iter()
            .flat_map(|id| ["--subscription", id]);
        fixed
            .into_iter()
            .chain(rest)
            .chain(subscription)
            .map(str::to_owned)
            .collect()
    }

    /// The machine's own name: the last part of its id.
    pub fn machine(&self) -> Result<String> {
        let parts: Vec<&str> = self.target.split('/').collect();
        match parts.as_slice() {
            ["", "subscriptions", .., machine] if is_host(machine) => Ok((*machine).to_owned()),
            _ => Err(Error::usage(format!("`{}` is not the id of a resource", self.target))
                .hint("/subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/virtualMachines/NAME; `az vm show --query id` tells it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel(to: &str, via: Option<&str>) -> Tunnel {
        Tunnel {
            to: to.to_owned(),
            via: via.map(str::to_owned),
            ..Tunnel::default()
        }
    }

    #[test]
    fn targets_read_as_people_write_them() {
        for (text, host, port) in [
            ("box", "box", 22),
            ("box:8888", "box", 8888),
            ("[::1]:80", "::1", 80),
            ("fe80::1", "fe80::1", 22),
            ("10.0.0.1:1", "10.0.0.1", 1),
        ] {
            assert_eq!(
                Target::parse(text).expect(text),
                Target {
                    host: host.into(),
                    port
                },
                "{text}"
            );
        }
        for text in [
            "",
            ":22",
            "box:",
            "box:0",
            "box:99999",
            "-oX",
            "a b",
            "[::1]x",
            "a;b:22",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_shortest_definition_has_all_it_needs() {
        let box_ = Definition::new("box", &tunnel("gcrazgdl1234", Some("bastion")), FIRST_PORT)
            .expect("fine");
        assert_eq!(
            (box_.port, box_.probe, box_.dial.to_string()),
            (22222, Probe::Ssh, "gcrazgdl1234".to_owned())
        );
        assert_eq!(box_.route, TunnelRoute::Hops(vec!["bastion".into()]));
        let two = Definition::new("box", &tunnel("c1:8888", Some("me@bastion, login")), 22223)
            .expect("fine");
        assert_eq!(
            (two.route, two.probe),
            (
                TunnelRoute::Hops(vec!["me@bastion".into(), "login".into()]),
                Probe::Tcp
            )
        );
    }

    #[test]
    fn without_a_hop_the_host_is_the_hop() {
        let page = Definition::new(
            "page",
            &Tunnel {
                user: Some("me".into()),
                ..tunnel("box:8888", None)
            },
            FIRST_PORT,
        )
        .expect("fine");
        assert_eq!(
            (page.route, page.dial.host.as_str(), page.dial.port),
            (TunnelRoute::Hops(vec!["me@box".into()]), "127.0.0.1", 8888)
        );
        let error = Definition::new("page", &tunnel("box", None), FIRST_PORT)
            .expect_err("nothing to tunnel");
        assert!(
            error.to_string().contains("needs no tunnel") && error.hints()[0].contains("--via"),
            "{error}"
        );
    }

    #[test]
    fn a_key_of_localhost_is_that_of_the_last_hop() {
        let key = |to: &str, via: &str| {
            Definition::new("x", &tunnel(to, Some(via)), FIRST_PORT)
                .expect("fine")
                .key_name()
        };
        assert_eq!(key("box", "a,me@b"), "box");
        assert_eq!(key("localhost", "a,me@b"), "b");
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let both = Tunnel {
            command: Some(vec!["az".into(), "{port}".into()]),
            ..tunnel("box", Some("bastion"))
        };
        let portless = Tunnel {
            command: Some(vec!["az".into()]),
            ..tunnel("box", None)
        };
        let low = Tunnel {
            port: Some(80),
            ..tunnel("box", Some("bastion"))
        };
        for (wrong, words) in [
            (both, "both"),
            (portless, "{port}"),
            (low, "not for users"),
            (tunnel("box", Some("a,,b")), "no hop"),
            (tunnel("box", Some("a,b,me@a")), "twice"),
            (tunnel("box", Some("a:22")), "no hop"),
        ] {
            let error = Definition::new("box", &wrong, FIRST_PORT).expect_err(words);
            assert!(error.to_string().contains(words), "{error}");
        }
        for name in [
            "",
            "-x",
            "a b",
            "a/b",
            "..",
            ".x",
            "node",
            "a\nb",
            &"x".repeat(41),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn words_for_azure_bastion() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/GCRAZGDL1234";
        let mut preset = AzureBastion {
            name: "b".into(),
            resource_group: "g".into(),
            target: id.into(),
            subscription: Some("s".into()),
        };
        let words = filled(&preset.words(22), 4711).join(" ");
        assert_eq!(
            words,
            format!(
                "az network bastion tunnel --name b --resource-group g --target-resource-id {id} \
                    --resource-port 22 --port 4711 --subscription s"
            )
        );
        assert_eq!(preset.machine().expect("its name"), "GCRAZGDL1234");
        preset.target = "GCRAZGDL1234".into();
        assert!(preset.machine().is_err());
    }

    #[test]
    fn a_probe_is_known_by_its_name_and_a_long_name_is_refused() {
        let probes = Probe::ALL.map(|word| Probe::parse(word).ok());
        assert_eq!(probes, [Probe::Ssh, Probe::Http, Probe::Tcp].map(Some));
        assert!(Probe::parse("udp").is_err());
        assert!(check_name(&"x".repeat(40)).is_ok());
        assert!(check_name(&"x".repeat(41)).is_err());
    }
}
