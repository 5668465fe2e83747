//! The errors of this crate, and what the user can do about them.

use crate::backup::Listed;
use crate::continues::Mark;
use crate::digest::Digest;
use std::io;
use std::path::{Path, PathBuf};
use towline_core::{Error, ErrorKind};

pub type Result<T, E = Problem> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{} cannot be {doing}: {source}", path.display())]
    File {
        path: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
    /// Stored bytes have changed.
    #[error("{what} is damaged: {how}")]
    Damaged { what: String, how: String },
    /// A manifest that no walk of ours can have made.
    #[error("the snapshot is refused: {0}")]
    Hostile(String),
    #[error("there is no snapshot {}", .0.short())]
    NoSnapshot(Digest),
    #[error("pack {} of the snapshot is gone", .0.short())]
    NoPack(Digest),
    #[error("the snapshot needs {needed} bytes and {free} are free at {}", at.display())]
    NoRoom { needed: u64, free: u64, at: PathBuf },
    /// A workspace without any file.
    #[error("{} holds nothing: there is nothing to back up", .0.display())]
    Empty(PathBuf),
    /// The newest backup holds something that the folder does not know of. It was made elsewhere,
    /// or after this copy of the folder.
    #[error("{} does not continue the newest backup, {}", folder.display(), newest.blob.digest().short())]
    Overtaken {
        folder: PathBuf,
        mark: Option<Mark>,
        newest: Box<Listed>,
    },
    /// The store refused.
    #[error("{0}")]
    Store(#[source] Box<Error>),
}

impl Problem {
    pub fn file(path: &Path, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::File {
            path: path.to_owned(),
            doing,
            source: source.into(),
        }
    }
    pub fn damaged(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self::Damaged {
            what: what.into(),
            how: how.into(),
        }
    }
    pub fn hostile(why: impl Into<String>) -> Self {
        Self::Hostile(why.into())
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Store(error) => *error,
            Problem::File { ref source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Self::denied(problem.to_string()).hint(
                    "leave it out: add it to `.towignore` or \
                    to `code.ignore`",
                )
            }
            Problem::File { ref source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Self::no_room(problem.to_string()).hint(
                    "the disk is full: `tow prune` and `tow \
                    snapshot prune` make room",
                )
            }
            Problem::NoSnapshot(_) | Problem::NoPack(_) => {
                Self::not_found(problem.to_string()).hint("`tow snapshot ls` lists them")
            }
            Problem::Damaged { .. } => Self::refused(problem.to_string()).hint(
                "`tow snapshot check --repair` drops what \
                    is damaged; then submit again from the folder",
            ),
            Problem::NoRoom { .. } => Self::no_room(problem.to_string()).hint(
                "`tow prune` and \
                `tow snapshot prune` make room",
            ),
            Problem::File { ref source, .. } => {
                Self::new(ErrorKind::refusal_of_io(source), problem.to_string())
            }
            other => Self::refused(other.to_string()),
        }
    }
}
