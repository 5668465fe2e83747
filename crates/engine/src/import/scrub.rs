//! Secrets in the lines of a script: found, named and left behind. What stands in their place uses
//! the variable that `environment.secrets` brings.

use towline_core::redact::looks_like_credential;

/// Beginnings that give a token away, and the name its variable gets when it has none.
const BEGINNINGS: [(&str, &str); 12] = [
    ("github_pat_", "GITHUB_PAT"),
    ("ghp_", "GITHUB_PAT"),
    ("gho_", "GITHUB_PAT"),
    ("ghs_", "GITHUB_PAT"),
    ("glpat-", "GITLAB_TOKEN"),
    ("hf_", "HF_TOKEN"),
    ("sk-", "API_KEY"),
    ("xoxb-", "SLACK_TOKEN"),
    ("AKIA", "AWS_ACCESS_KEY_ID"),
    ("eyJ", "ACCESS_TOKEN"),
    ("AccountKey=", "ACCOUNT_KEY"),
    ("sig=", "SAS_SIGNATURE"),
];

/// A secret that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// The text without its secrets, and what they are called now.
pub(super) fn scrub(text: &str) -> (String, Vec<Found>) {
    let mut found = Vec::new();
    let mut lines = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let mut note = |name: &str| found.push(Found { name: name.to_owned(), line: index + 1 });
        let line = assignments(line, &mut note);
        lines.push(tokens(&line, &mut note));
    }
    (lines.join("\n"), found)
}

/// Whether `NAME=VALUE` holds a secret: by its name or by its value. A use of another variable does not,
/// nor does a number or a switch.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let is_use = value.starts_with('$') || value.starts_with('`') || value.starts_with("<(");
    let is_setting = value.parse::<f64>().is_ok() && value.len() < 10 || matches!(value.to_ascii_lowercase().as_str(), "true" | "false" | "none" | "null");
    if value.len() <= 3 || is_use || is_setting || value.contains("${{") {
        return false;
    }
    // Words of language models only sound like it.
    let name = name.to_ascii_uppercase().replace("TOKENIZER", "").replace("TOKENS", "");
    looks_like_credential(&name) || begins_like_secret(value).is_some()
}

fn begins_like_secret(value: &str) -> Option<&'static str> {
    let (beginning, name) = BEGINNINGS.iter().find(|(beginning, _)| value.starts_with(beginning))?;
    let rest = &value[beginning.len()..];
    let dots = rest.chars().all(|c| c == '.' || c == '…') && !rest.is_empty();
    let token: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "_-%+/=.".contains(*c)).collect();
    let long = token.len() >= 12 && token.contains(|c: char| c.is_ascii_digit());
    (long || dots && beginning.len() > 3).then_some(*name)
}

/// `NAME=VALUE` at the beginning of a word becomes `NAME="$NAME"`, wherever the shell allows an assignment.
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

/// The name and the value as it is written, quotes included.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let name = &text[..end];
    let value = text[end..].strip_prefix('=')?;
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut quote = None;
    let length = value.find(|c: char| {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, _) => return c.is_whitespace() || ";&|)".contains(c),
            _ => {}
        }
        false
    });
    Some((name, &value[..length.unwrap_or(value.len())]))
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
            let kept = ["sig=", "AccountKey="].into_iter().find(|kept| rest.starts_with(kept)).unwrap_or_default();
            let value = &rest[kept.len()..];
            let length = value.find(|c: char| !c.is_ascii_alphanumeric() && !"_-%+/=.…".contains(c)).unwrap_or(value.len());
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
            ("export WANDB_API_KEY='0123456789abcdef'; x", "export WANDB_API_KEY=\"$WANDB_API_KEY\"; x", vec!["WANDB_API_KEY"]),
            ("HF_TOKEN=hf_abc python x.py --lr=0.1", "HF_TOKEN=\"$HF_TOKEN\" python x.py --lr=0.1", vec!["HF_TOKEN"]),
            ("git clone https://ghp_0123456789abcdefABCD@github.com/x", "git clone https://${GITHUB_PAT}@github.com/x", vec!["GITHUB_PAT"]),
            ("azcopy cp 'https://a/b?sv=1&sig=abcdefghijklm0p%3D' .", "azcopy cp 'https://a/b?sv=1&sig=${SAS_SIGNATURE}' .", vec!["SAS_SIGNATURE"]),
            ("X=ghp_0123456789abcdefABCD", "X=\"$X\"", vec!["X"]),
            ("git clone https://$PAT@github.com/x", "git clone https://$PAT@github.com/x", vec![]),
            ("export TOKEN=$OTHER KEY=\"${K}\"", "export TOKEN=$OTHER KEY=\"${K}\"", vec![]),
            ("TOKENIZER=meta/llama-7b MAX_TOKENS=4096 USE_AUTH=true", "TOKENIZER=meta/llama-7b MAX_TOKENS=4096 USE_AUTH=true", vec![]),
            ("CONFIG=configs/x.json NUM=32", "CONFIG=configs/x.json NUM=32", vec![]),
            ("echo sk-ip hf_ eyJ", "echo sk-ip hf_ eyJ", vec![]),
        ] {
            let (text, found) = scrub(line);
            assert_eq!(text, made);
            assert_eq!(found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), names, "{line}");
        }
    }
}
