//! The sessions that documentation pages show: every `console` block is run on the real program,
//! and what it prints is compared with the page.
//!
//! A mark before a block says where it is run, and what lies there: `<!-- console: local, vision -->`
//! is run by the suite of the local cluster, with the fixture `vision`. Blocks of a page are one
//! session, in one home; `fresh` among the words of a mark begins another. A block of another
//! language with the mark `<!-- file: job.yaml -->` is a file of the reader's project.

mod blocks;
mod lines;
mod reader;

pub use blocks::{Block, Part, Setting, Step, parts, steps};
pub use reader::{FIXTURES, Reader, read_page};
