//! The calls to a folder behind ssh, and its answers. Raw bytes follow their frame.

use crate::data::{Block, FolderMark, Key, Marks, Object, Page, Shape, Sums};
use serde::{Deserialize, Serialize};
use towline_wire::daemon::Refusal;
use towline_wire::line::Hello;

/// `tow __folder NAME PATH`, on the host that has the folder.
pub const FOLDER_VERB: &str = "__folder";
/// The version of this protocol.
pub(super) const PROTOCOL_VERSION: u32 = 1;

/// The first frame.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FolderHello {
    pub(super) protocol: u32,
    /// The BLAKE3 of the program that answers.
    pub(super) program: String,
    /// Why the folder cannot be used.
    pub(super) refused: Option<Refusal>,
}

impl Hello for FolderHello {
    fn program(&self) -> &str {
        &self.program
    }
    fn is_understood(&self) -> bool {
        self.protocol == PROTOCOL_VERSION
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Call {
    List {
        prefix: String,
        deep: bool,
        from: Option<String>,
    },
    Head {
        key: Key,
    },
    Read {
        key: Key,
        start: u64,
        end: u64,
        version: Option<String>,
    },
    /// `size` bytes follow.
    Write {
        key: Key,
        size: u64,
        marks: Marks,
        create: bool,
    },
    Open {
        key: Key,
        shape: Shape,
        marks: Marks,
        id: Option<String>,
    },
    Blocks {
        key: Key,
        id: String,
    },
    /// `size` bytes follow.
    Put {
        key: Key,
        id: String,
        index: u32,
        size: u64,
        sums: Sums,
    },
    Finish {
        key: Key,
        id: String,
        blocks: Vec<Block>,
        marks: Marks,
    },
    Abandon {
        key: Key,
        id: String,
    },
    DeleteMarks {
        marks: Vec<FolderMark>,
    },
    Delete {
        keys: Vec<Key>,
    },
}

impl Call {
    pub(super) const fn is_of_an_upload(&self) -> bool {
        matches!(
            self,
            Self::Open { .. }
                | Self::Blocks { .. }
                | Self::Put { .. }
                | Self::Finish { .. }
                | Self::Abandon { .. }
        )
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Page(Page),
    Object(Option<Object>),
    /// `size` bytes follow.
    Bytes {
        size: u64,
    },
    Made(bool),
    Upload(String),
    Blocks(Option<Vec<Block>>),
    Block(Block),
    Done,
    Refused(Refusal),
}
