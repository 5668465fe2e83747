//! Secrets in the lines of a script: each is replaced by a variable that `environment.secrets`
//! sets.

pub(super) use towline_core::token::is_secret;
use towline_core::token::{TOKEN_CHARACTERS, TOKEN_LABELS, assignment, begins_like_secret};

/// A secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// The text without its secrets, and the names of their variables.
pub(super) fn scrub(text: &str) -> (String, Vec<Found>) {
    let mut found = Vec::new();
    let mut lines = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let mut note = |name: &str| {
            found.push(Found {
                name: name.to_owned(),
                line: index + 1,
            });
        };
        let line = assignments(line, &mut note);
        lines.push(tokens(&line, &mut note));
    }
    (lines.join("\n"), found)
}

/// `NAME=VALUE` at the beginning of a word becomes `NAME="$NAME"`, wherever the shell allows an
/// assignment.
fn assignments(line: &str, note: &mut dyn FnMut(&str)) -> String {
    let mut made = String::new();
    let mut rest = line;
    let mut at_word = true;
    while let Some(first) = rest.chars().next() {
        if at_word && let Some((name, value)) = assignment(rest) {
            if is_secret(name, value) {
                note(name);
                made += &format!("{name}=\"${name}\"");
            } else {
                made += &rest[..name.len() + 1 + value.len()];
            }
            rest = &rest[name.len() + 1 + value.len()..];
            at_word = false;
            continue;
        }
        at_word = first.is_whitespace() || ";&|({".contains(first);
        made.push(first);
        rest = &rest[first.len_utf8()..];
    }
    made
}

/// A token anywhere else, in an address or behind an option, becomes `${NAME}`.
fn tokens(line: &str, note: &mut dyn FnMut(&str)) -> String {
    let mut made = String::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        if !before.is_ascii_alphanumeric()
            && before != '_'
            && let Some(name) = begins_like_secret(rest)
        {
            let kept = TOKEN_LABELS
                .into_iter()
                .find(|kept| rest.starts_with(kept))
                .unwrap_or_default();
            let value = &rest[kept.len()..];
            let length = value
                .find(|c: char| !c.is_ascii_alphanumeric() && !TOKEN_CHARACTERS.contains(c))
                .unwrap_or(value.len());
            note(name);
            made += &format!("{kept}${{{name}}}");
            rest = &value[length..];
            before = ' ';
            continue;
        }
        made.push(first);
        before = first;
        rest = &rest[first.len_utf8()..];
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_behind_and_the_rest_is_kept() {
        for (line, made, names) in [
            ("PAT=github_pat_....", "PAT=\"$PAT\"", vec!["PAT"]),
            (
                "export WANDB_API_KEY='0123456789abcdef'; x",
                "export WANDB_API_KEY=\"$WANDB_API_KEY\"; x",
                vec!["WANDB_API_KEY"],
            ),
            (
                "HF_TOKEN=hf_abc python x.py --lr=0.1",
                "HF_TOKEN=\"$HF_TOKEN\" python x.py --lr=0.1",
                vec!["HF_TOKEN"],
            ),
            (
                "git clone https://ghp_0123456789abcdefABCD@github.com/x",
                "git clone https://${GITHUB_PAT}@github.com/x",
                vec!["GITHUB_PAT"],
            ),
            (
                "azcopy cp 'https://a/b?sv=1&sig=abcdefghijklm0p%3D' .",
                "azcopy cp 'https://a/b?sv=1&sig=${SAS_SIGNATURE}' .",
                vec!["SAS_SIGNATURE"],
            ),
            ("X=ghp_0123456789abcdefABCD", "X=\"$X\"", vec!["X"]),
            (
                "git clone https://$PAT@github.com/x",
                "git clone https://$PAT@github.com/x",
                vec![],
            ),
            (
                "export TOKEN=$OTHER KEY=\"${K}\"",
                "export TOKEN=$OTHER KEY=\"${K}\"",
                vec![],
            ),
            (
                "TOKENIZER=meta/llama-7b MAX_TOKENS=4096 USE_AUTH=true",
                "TOKENIZER=meta/llama-7b MAX_TOKENS=4096 USE_AUTH=true",
                vec![],
            ),
            (
                "CONFIG=configs/x.json NUM=32",
                "CONFIG=configs/x.json NUM=32",
                vec![],
            ),
            ("echo sk-ip hf_ eyJ", "echo sk-ip hf_ eyJ", vec![]),
        ] {
            let (text, found) = scrub(line);
            assert_eq!(text, made);
            assert_eq!(
                found
                    .iter()
                    .map(|found| found.name.as_str())
                    .collect::<Vec<_>>(),
                names,
                "{line}"
            );
        }
    }
}
