//! The sources of the configuration layers: files and variables of this user.

use crate::act_layout::ActLayout;
use std::io;
use std::path::{Path, PathBuf};

pub use towline_core::config::PROJECT_FILE;

/// The entry by which a folder is known as the root of a git repository.
pub(crate) const GIT_ENTRY: &str = ".git";

/// The files and variables that are read.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub user_file: Option<PathBuf>,
    /// Files of ACT, used in place.
    pub act: Option<ActLayout>,
    pub project_file: Option<PathBuf>,
    /// Variables that begin with `TOW_`.
    pub variables: Vec<(String, String)>,
    /// The user's own folder of configuration, where the record of trusted files is.
    pub user_folder: Option<PathBuf>,
    /// Files that another user could have written, and why they are passed over.
    pub untrusted_owners: Vec<(PathBuf, String)>,
}

impl Sources {
    /// The files of configuration among them; a repository is none.
    pub fn files_of_untrusted_owners(&self) -> impl Iterator<Item = &(PathBuf, String)> {
        self.untrusted_owners
            .iter()
            .filter(|(file, _)| !file.ends_with(GIT_ENTRY))
    }

    /// Whether an agent reads, as its variable says.
    pub(crate) fn is_for_agent(&self) -> bool {
        let mut names = self.variables.iter().map(|(name, _)| name);
        names.any(|name| name == towline_host::own::AGENT_VARIABLE)
    }

    /// The files and variables of this user in this folder. A file of the project that another user
    /// owns, or that anybody can write, is passed over; the next one upward counts.
    pub fn find(folder: &Path, environment: &[(String, String)]) -> Self {
        let mut untrusted_owners = Vec::new();
        let mut is_ours = |file: &PathBuf| match towline_host::owner::distrust(file) {
            Ok(None) => true,
            Ok(Some(why)) => {
                untrusted_owners.push((file.clone(), why));
                false
            }
            // A file that cannot be read is reported when it is read.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        let project_file = folder
            .ancestors()
            .map(|folder| folder.join(PROJECT_FILE))
            .find(|file| file.symlink_metadata().is_ok() && is_ours(file));
        let act = ActLayout::find(folder, environment).filter(|act| is_ours(&act.clusters()));
        if project_file.is_none() && act.is_none() {
            // Without configuration, the nearest repository is the code's root. Repositories of other
            // users on the way up to it are reported.
            for folder in folder.ancestors() {
                let git = folder.join(GIT_ENTRY);
                if git.symlink_metadata().is_ok() && is_ours(&git) {
                    break;
                }
            }
        }
        Self {
            user_file: user_folder(environment)
                .map(|folder| folder.join("config.yaml"))
                .filter(|file| {
                    !matches!(towline_host::filesystem::metadata_if_there(file), Ok(None))
                }),
            act,
            project_file,
            variables: environment
                .iter()
                .filter(|(name, _)| name.starts_with("TOW_"))
                .cloned()
                .collect(),
            user_folder: user_folder(environment),
            untrusted_owners,
        }
    }
}

/// The folder of this user's configuration.
pub fn user_folder(environment: &[(String, String)]) -> Option<PathBuf> {
    let value = |name: &str| {
        environment
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    };
    let config_home = value("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| value("HOME").map(|home| Path::new(home).join(".config")));
    config_home.map(|home| home.join("towline"))
}
