//! Reading YAML files that people write.

use std::io;
use std::path::Path;
use towline_core::yaml::{self, Content, Node};
use towline_core::{Error, Result};

/// No file that a person writes is larger. Without a limit `/dev/zero` would fill the memory.
const MAX_YAML_BYTES: u64 = 16 << 20;

/// Reads a YAML file; a mistake names it with line and column.
pub fn read_yaml(file: &Path) -> Result<Node> {
    read_yaml_from(open(file)?, &file.display().to_string())
}

pub(super) fn open(file: &Path) -> Result<std::fs::File> {
    std::fs::File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::config(format!("there is no file {}", file.display())),
        _ => Error::config(format!("{} cannot be read", file.display())).source_error(error),
    })
}

/// Reads YAML from any reader. Messages call it `source`.
pub fn read_yaml_from(reader: impl io::Read, source: &str) -> Result<Node> {
    parse_yaml(&read_text(reader, source)?, source)
}

pub(super) fn read_text(reader: impl io::Read, source: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let read = io::Read::read_to_end(&mut reader.take(MAX_YAML_BYTES + 1), &mut bytes);
    read.map_err(|error| Error::config(format!("{source} cannot be read")).source_error(error))?;
    if bytes.len() as u64 > MAX_YAML_BYTES {
        return Err(Error::config(format!(
            "{source} is larger than {} MiB, and so no file of tow's",
            MAX_YAML_BYTES >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|_| Error::config(format!("{source} is not UTF-8 text")))
}

pub(super) fn parse_yaml(text: &str, source: &str) -> Result<Node> {
    let node = yaml::parse(source, text)?;
    if !matches!(node.content, Content::Mapping(_)) {
        return Err(Error::config(format!(
            "{}: expected a mapping of keys to values",
            node.at
        )));
    }
    Ok(node)
}
