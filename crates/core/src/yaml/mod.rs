//! YAML 1.2 with positions: a tree that remembers where each value was written and how it was
//! spelled, and a serde decoder that reports mistakes by line and column.

mod decode;
mod tree;

pub use decode::{DecodeError, Warning, decode, decode_leniently};
pub use tree::{Content, Node, Position, YamlError, parse};

mod print;
pub use print::{write, write_inline};
