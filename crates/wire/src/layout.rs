//! Paths in the state folder. This module only makes names; it opens nothing.

use crate::log_name::LogName;
use crate::transfer::STATUS_SUFFIX;
use std::path::{Path, PathBuf};
use towline_core::RunId;
use towline_core::cluster::LogSource;

/// `$XDG_STATE_HOME/towline/<host>/`, mode 0700.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }
    pub fn root(&self) -> &Path {
        &self.0
    }
    pub fn history(&self) -> PathBuf {
        self.0.join("history.db")
    }
    /// The daemon holds this lock while it lives.
    pub fn daemon_lock(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }
    /// A submission of an agent holds this lock while its budget is looked at.
    pub fn agents_lock(&self) -> PathBuf {
        self.0.join("agents.lock")
    }
    pub fn daemon_log(&self) -> PathBuf {
        self.0.join("daemon.log")
    }
    /// Disk space in reserve, removed when the disk is full.
    pub fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }
    /// The last configured size of this machine.
    pub fn limits(&self) -> PathBuf {
        self.0.join("limits.json")
    }
    pub fn runners(&self) -> PathBuf {
        self.0.join("runners")
    }
    pub fn runner_journal(&self, runner: &str) -> PathBuf {
        self.runners().join(format!("{runner}.journal"))
    }
    /// The path of a runner's cgroup, if it has one.
    pub fn runner_group(&self, runner: &str) -> PathBuf {
        self.runners().join(format!("{runner}.cgroup"))
    }
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }
    /// Logs and scripts of one run; kept until pruned.
    pub fn run(&self, run: &RunId) -> PathBuf {
        self.runs().join(run.as_str())
    }
    pub fn log(&self, run: &RunId, attempt: u32, source: LogSource) -> PathBuf {
        self.run(run).join(LogName::new(attempt, source).file())
    }
    /// The folder that a run starts in.
    pub fn code(&self, run: &RunId) -> PathBuf {
        self.run(run).join("code")
    }
    /// Datasets that runs share.
    pub fn copies(&self) -> PathBuf {
        self.0.join("copies")
    }
    /// The folder of files about far clusters.
    pub fn clusters(&self) -> PathBuf {
        self.0.join("clusters")
    }
    /// A file about a far cluster: its configuration, its last answer, its facts. The name is
    /// encoded, because users may choose any name.
    pub fn cluster(&self, name: &str, what: &str) -> PathBuf {
        let safe: String = name
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02x}")
                }
            })
            .collect();
        self.clusters().join(format!("{safe}.{what}.json"))
    }
    /// The cluster of a file in [`StateFolder::clusters`], if it is such a file about one.
    pub fn cluster_of(file: &str, what: &str) -> Option<String> {
        let mut encoded = file.strip_suffix(".json")?.strip_suffix(what)?;
        encoded = encoded.strip_suffix('.')?;
        let mut bytes = Vec::with_capacity(encoded.len());
        while let Some(first) = encoded.chars().next() {
            let length = if first == '%' {
                bytes.push(u8::from_str_radix(encoded.get(1..3)?, 16).ok()?);
                3
            } else {
                bytes.extend_from_slice(first.encode_utf8(&mut [0; 4]).as_bytes());
                first.len_utf8()
            };
            encoded = &encoded[length..];
        }
        String::from_utf8(bytes).ok()
    }
    /// Control sockets of ssh, and the hosts it knows.
    pub fn ssh(&self) -> PathBuf {
        self.0.join("ssh")
    }
    /// The compressed program, for other machines.
    pub fn packed_program(&self) -> PathBuf {
        self.0.join("packed")
    }
    /// Tokens for Azure and facts about its clouds, mode 0700.
    pub fn azure(&self) -> PathBuf {
        self.0.join("azure")
    }
    pub fn tunnels(&self) -> PathBuf {
        self.0.join("tunnels")
    }
    /// The folder of a tunnel: `wanted`, `status`, `log`, `lock` and its socket.
    pub fn tunnel(&self, name: &str) -> PathBuf {
        self.tunnels().join(name)
    }
    /// Workspaces that this machine backs up.
    pub fn workspaces(&self) -> PathBuf {
        self.0.join("workspaces")
    }
    /// A file about one workspace: `auto`, `secrets`, `status`, and `lock` on the machine that has
    /// it.
    pub fn workspace(&self, name: &str, what: &str) -> PathBuf {
        self.workspaces().join(name).join(what)
    }
    /// Journals of transfers that may be interrupted.
    pub fn transfers(&self) -> PathBuf {
        self.0.join("transfers")
    }
    /// How far a transfer that is under way is, by the name of the transfer.
    pub fn transfer_status(&self, id: &str) -> PathBuf {
        self.transfers().join(format!("{id}{STATUS_SUFFIX}"))
    }
    /// Content and manifests of snapshots; a cache that all runs on this machine share.
    pub fn snapshots(&self) -> PathBuf {
        self.0.join("snapshots")
    }
    /// Files of datastores on their way to a browser.
    pub fn downloads(&self) -> PathBuf {
        self.0.join("downloads")
    }
    /// A lock: shared by processes that take snapshots, exclusive for one that removes some.
    pub fn snapshots_lock(&self) -> PathBuf {
        self.0.join("snapshots.lock")
    }
    /// The stat cache of a tree, by the name of its root.
    pub fn stat_cache(&self, tree: &str) -> PathBuf {
        self.0.join("trees").join(tree)
    }
    /// The index of a store, by its name.
    pub fn store_index(&self, store: &str) -> PathBuf {
        self.0.join("indexes").join(store)
    }
    pub fn secrets(&self) -> PathBuf {
        self.0.join("secrets")
    }
    /// The secrets of one submission, mode 0600, removed when its last run ends.
    pub fn secret(&self, submission: &RunId) -> PathBuf {
        self.secrets().join(submission.as_str())
    }
}

/// The daemon's socket, inside the state folder.
pub const DAEMON_SOCKET: &str = "daemon.sock";

/// The socket of a tunnel's supervisor, inside its folder.
pub const TUNNEL_SOCKET: &str = "control.sock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_known_by_its_file() {
        let state = StateFolder::new("/state");
        for name in ["lab", "a b", "ü/../x", "100%", "a.status"] {
            let path = state.cluster(name, "status");
            let file = path.file_name().and_then(|name| name.to_str());
            let file = file.expect("a name");
            assert_eq!(
                StateFolder::cluster_of(file, "status").as_deref(),
                Some(name),
                "{file}"
            );
            assert_eq!(StateFolder::cluster_of(file, "facts"), None, "{file}");
        }
        for file in [
            "status.json",
            "%zz.status.json",
            "%.status.json",
            "lab.status",
        ] {
            assert_eq!(StateFolder::cluster_of(file, "status"), None, "{file}");
        }
    }
}
