//! Facts that only this machine knows: folders, variables, the keyring.

use crate::keyring::Keyring;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use towline_core::redact::Secret;
use towline_core::{Error, Result};

/// The variables of this process.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Those that are valid UTF-8.
    pub variables: Vec<(String, String)>,
    /// The names of the others, which cannot be stored.
    pub not_utf8: Vec<String>,
}

impl Environment {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut variables = self.variables.iter();
        variables
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

pub fn environment() -> Environment {
    let mut found = Environment::default();
    for (name, value) in std::env::vars_os() {
        match name
            .to_str()
            .map(str::to_owned)
            .zip(value.into_string().ok())
        {
            Some(pair) => found.variables.push(pair),
            None => found.not_utf8.push(name.to_string_lossy().into_owned()),
        }
    }
    found
}

/// A variable of this process that is valid UTF-8.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A variable of this process, whatever its bytes.
pub fn variable_os(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The name of this user, as the environment has it; empty where it has none.
pub fn user() -> String {
    variable("USER")
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_default()
}

/// `$XDG_STATE_HOME/towline/<host>`, or `~/.local/state/towline/<host>`.
pub fn state_folder() -> Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state_home =
        absolute("XDG_STATE_HOME").or_else(|| home().map(|home| home.join(".local/state")));
    let state_home = state_home.ok_or_else(|| {
        Error::config("neither HOME nor XDG_STATE_HOME is set").hint("set HOME to your home folder")
    })?;
    Ok(state_home.join("towline").join(host_name()))
}

/// The home folder: `$HOME`, else the entry in `/etc/passwd`. A static program cannot use NSS.
pub fn home() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
    {
        return Some(home);
    }
    let own = rustix::process::getuid().as_raw().to_string();
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let fields = text
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&own.as_str()))?;
    fields.get(5).map(PathBuf::from)
}

pub fn host_name() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let safe: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    if safe.trim_matches('.').is_empty() {
        "localhost".to_owned()
    } else {
        safe
    }
}

/// The umask of this process, without changing it.
pub fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .unwrap_or("0022");
    u32::from_str_radix(text.trim(), 8).unwrap_or(0o022)
}

/// Whether this machine has a keyring that can be read.
pub fn has_keyring() -> bool {
    Keyring::here().is_some()
}

/// Values of `names` in the keyring, if there is one.
pub fn keyring(names: &[String], environment: &[(String, String)]) -> BTreeMap<String, Secret> {
    let missing = names
        .iter()
        .filter(|name| !environment.iter().any(|(known, _)| known == *name));
    // A job without secrets does not search the PATH.
    let mut missing = missing.peekable();
    let Some(keyring) = missing.peek().and_then(|_| Keyring::here()) else {
        return BTreeMap::new();
    };
    missing
        .filter_map(|name| Some((name.clone(), keyring.get(name).ok()??)))
        .collect()
}
