//! Writing a value as YAML that reads back the same: for job files made from the history.

use crate::visible::{is_hidden, visible_json};
use serde_json::Value;

/// Block style. Every text that YAML could read as something else is quoted.
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// The same on one line.
pub fn write_inline(value: &Value) -> String {
    flow(value)
}

fn block(value: &Value, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                *text += &format!("{pad}{}:", scalar(key));
                nested(value, indent + 2, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                *text += &format!("{pad}- {}\n", flow(item));
            }
        }
        other => *text += &format!("{pad}{}\n", flow(other)),
    }
}

fn nested(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(entries) if entries.is_empty() => *text += " {}\n",
        Value::Array(items) if items.is_empty() => *text += " []\n",
        Value::Object(_) => {
            *text += "\n";
            block(value, indent, text);
        }
        Value::String(lines) if is_literal(lines) => {
            *text += " |\n";
            lines.lines().for_each(|line| {
                *text += &if line.is_empty() {
                    "\n".to_owned()
                } else {
                    format!("{}{line}\n", " ".repeat(indent))
                }
            });
        }
        other => *text += &format!(" {}\n", flow(other)),
    }
}

/// Several lines, whole, without anything a literal block cannot hold.
fn is_literal(text: &str) -> bool {
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && text.len() > 1
        && !text.starts_with([' ', '\n', '\t'])
        && !text.contains(is_hidden)
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(flow).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(entries) => {
            format!(
                "{{{}}}",
                entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", scalar(key), flow(value)))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        other => other.to_string(),
    }
}

/// Plain if that is safe, else JSON's double quotes, which YAML reads too.
fn scalar(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let plain = !text.is_empty()
        && text.chars().all(safe)
        && !text.starts_with(['-', '.', '+'])
        && !matches!(text, "null" | "true" | "false" | "Null" | "NULL");
    if plain {
        text.to_owned()
    } else {
        visible_json(&Value::from(text).to_string()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::job::Job;
    use crate::yaml::{decode, parse};

    proptest::proptest! {
        #[test]
        fn a_job_made_from_the_history_reads_back(script in "[ \
            -~\n\t]{0,80}", name in ".{0,20}", word in ".{0,20}") {
            let mut job = Job { script: Some(script), name: Some(name), ..Job::default() };
            job.environment.env.insert("A".into(), word.clone());
            job.tags = vec![word];
            let text = super::write(&serde_json::to_value(&job).expect("serialises"));
            let read: Job = decode(&parse("job", &text).expect(&text)).expect(&text);
            proptest::prop_assert_eq!(read, job, "{}", text);
        }
    }

    #[test]
    fn lines_are_a_literal_block_and_nothing_is_written_as_nothing() {
        let written = |value: serde_json::Value| super::write(&value);
        assert_eq!(
            written(serde_json::json!({"a": "x\ny\n"})),
            "a: |\n  x\n  y\n"
        );
        assert_eq!(written(serde_json::json!({"a": {}})), "a: {}\n");
        assert_eq!(
            written(serde_json::json!({"a": "\u{7}\n"})).lines().count(),
            1
        );
    }
}
