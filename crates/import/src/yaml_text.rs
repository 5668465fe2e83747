//! The text of a YAML file, from its tree.

use serde_json::Value;
use towline_core::yaml::{self, Content, Node};

/// The file's text, with a comment on top that tells its origin.
pub(super) fn file(title: &str, tree: &Node) -> String {
    format!("# {title}\n{}", yaml::write(&value(tree)))
}

pub(super) fn value(node: &Node) -> Value {
    match &node.content {
        Content::Scalar { .. } if node.is_null() => Value::Null,
        Content::Scalar { text, plain: true } if matches!(text.as_str(), "true" | "false") => {
            Value::Bool(text == "true")
        }
        Content::Scalar { text, .. } => Value::from(text.as_str()),
        Content::Sequence(items) => items.iter().map(value).collect(),
        Content::Mapping(entries) => entries
            .iter()
            .map(|(key, node)| (key.text().unwrap_or_default().to_owned(), value(node)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let text = "a: {b: 'x: y', c: [1, '- two', \"th\\tree\"], d: true, e: '007'}\nscript: \
            |\n  one\n    two\n\n  three\n";
        let tree = yaml::parse("x", text).expect("parses");
        let again = yaml::parse("x", &file("made", &tree)).expect("parses again");
        assert_eq!(value(&tree), value(&again));
    }
}
