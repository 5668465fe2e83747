//! Tokens that the user wrote into a command, a script or a variable. They are found by their shape
//! or by the name beside them and taken out before anything is stored. They travel as secrets of
//! the run, and the runner puts them back on the node.

use crate::job::{Job, OneOrMany};
use crate::redact::{Secret, SecretSet, looks_like_credential};
use crate::secret_name::{SecretName, TOKEN_PREFIX};
use crate::{Error, Result};
use std::ops::Range;

/// Beginnings by which a token is recognised, and the name of its variable if it has none.
pub const TOKEN_BEGINNINGS: [(&str, &str); 12] = [
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
/// Beginnings that are not part of the secret itself.
pub const TOKEN_LABELS: [&str; 2] = ["sig=", "AccountKey="];
/// Characters of tokens, besides letters and digits.
pub const TOKEN_CHARACTERS: &str = "_-%+/=.…";
/// The last words of options whose value is a credential.
const CREDENTIAL_OPTIONS: [&str; 9] = [
    "token",
    "password",
    "passwd",
    "secret",
    "api-key",
    "api_key",
    "access-key",
    "account-key",
    "pat",
];

/// The common name of a token that `text` begins with.
pub fn begins_like_secret(text: &str) -> Option<&'static str> {
    let (beginning, name) = TOKEN_BEGINNINGS
        .iter()
        .find(|(beginning, _)| text.starts_with(beginning))?;
    let rest = &text[beginning.len()..];
    let dots = rest.chars().all(|c| c == '.' || c == '…') && !rest.is_empty();
    let token: String = rest
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "_-%+/=.".contains(*c))
        .collect();
    let long = token.len() >= 12 && token.contains(|c: char| c.is_ascii_digit());
    (long || dots && beginning.len() > 3).then_some(*name)
}

/// Whether `NAME=VALUE` holds a secret, by its name or by its value. A use of another variable, a
/// number, a switch and the path of a file are no secrets.
pub fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let is_use = value.starts_with('$') || value.starts_with('`') || value.starts_with("<(");
    let is_setting = value.parse::<f64>().is_ok() && value.len() < 10
        || matches!(
            value.to_ascii_lowercase().as_str(),
            "true" | "false" | "none" | "null"
        );
    let is_path = ["/", "./", "~/", "../"]
        .iter()
        .any(|start| value.starts_with(start));
    if value.len() <= 3 || is_use || is_setting || is_path || value.contains("${{") {
        return false;
    }
    looks_like_credential(name) || begins_like_secret(value).is_some()
}

/// The name and the value as it is written, quotes included, of an assignment that `text` begins
/// with.
pub fn assignment(text: &str) -> Option<(&str, &str)> {
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

/// The positions of tokens in a text, from left to right.
fn spans(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut before = ' ';
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let at_word = before.is_whitespace() || ";&|({\"'".contains(before);
        let inner = (at_word)
            .then(|| assigned(rest))
            .flatten()
            .or_else(|| password_in_address(rest))
            .or_else(|| {
                let begins = !before.is_ascii_alphanumeric() && before != '_';
                begins.then(|| by_shape(rest)).flatten()
            });
        if let Some(Range { start, end }) = inner {
            found.push(at + start..at + end);
            at += end;
            before = 'x';
        } else {
            at += first.len_utf8();
            before = first;
        }
    }
    found
}

/// The value of `NAME=VALUE` or `--token=VALUE`, without its quotes.
fn assigned(text: &str) -> Option<Range<usize>> {
    let dashes = text.len() - text.trim_start_matches('-').len();
    let (name, value, is_secret) = if dashes > 0 {
        let end = text.find('=')?;
        let name = text[dashes..end].to_ascii_lowercase();
        let value = &text[end + 1..];
        let value = &value[..value.find(char::is_whitespace).unwrap_or(value.len())];
        (
            end,
            value,
            is_credential_option(&name) && is_secret("token", value),
        )
    } else {
        let (name, value) = assignment(text)?;
        (name.len(), value, is_secret(name, value))
    };
    let bare = value.trim_matches(['"', '\'']);
    let start = name + 1 + (value.len() - value.trim_start_matches(['"', '\'']).len());
    // In an address, only the token is taken out, so that the rest stays readable.
    let has_shape = |value: &str| value.contains("://");
    (is_secret && !has_shape(bare)).then(|| start..start + bare.len())
}

fn is_credential_option(name: &str) -> bool {
    CREDENTIAL_OPTIONS.iter().any(|option| {
        name == *option
            || name.ends_with(&format!("-{option}"))
            || name.ends_with(&format!("_{option}"))
    })
}

/// `PASSWORD` of `://USER:PASSWORD@`.
fn password_in_address(text: &str) -> Option<Range<usize>> {
    let inner = text.strip_prefix("://")?;
    let end = inner
        .find(|c: char| c.is_whitespace() || "/\"'?#".contains(c))
        .unwrap_or(inner.len());
    let (user, _) = inner[..end].rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let is_use = password.contains('$') || password.is_empty();
    let start = 3 + name.len() + 1;
    (!is_use).then(|| start..start + password.len())
}

/// A token by its shape alone.
fn by_shape(text: &str) -> Option<Range<usize>> {
    if let Some(bearer) = text.strip_prefix("Bearer ") {
        let length = bearer
            .find(|c: char| !c.is_ascii_alphanumeric() && !TOKEN_CHARACTERS.contains(c))
            .unwrap_or(bearer.len());
        return (length >= 16).then_some(7..7 + length);
    }
    begins_like_secret(text)?;
    let label = TOKEN_LABELS
        .into_iter()
        .find(|label| text.starts_with(label))
        .unwrap_or_default()
        .len();
    let value = &text[label..];
    let length = value
        .find(|c: char| !c.is_ascii_alphanumeric() && !TOKEN_CHARACTERS.contains(c))
        .unwrap_or(value.len());
    Some(label..label + length)
}

/// Takes the tokens out of a job and puts `${{***1}}` in their place. A job that already holds such
/// a placeholder has lost its tokens, and is refused.
pub fn take_out(job: &mut Job) -> Result<SecretSet> {
    let mut tokens = SecretSet::default();
    let begin = placeholder_begin();
    let texts = || {
        job.script
            .iter()
            .chain(job.command.as_slice())
            .chain(&job.environment.setup)
            .chain(job.environment.env.values())
    };
    if texts().any(|text| text.contains(&begin)) {
        return Err(not_kept());
    }
    if let OneOrMany::Many(words) = &mut job.command {
        take_after_options(words, &mut tokens);
    }
    let command: &mut [String] = match &mut job.command {
        OneOrMany::None => &mut [],
        OneOrMany::One(line) => std::slice::from_mut(line),
        OneOrMany::Many(words) => words,
    };
    for text in command
        .iter_mut()
        .chain(&mut job.script)
        .chain(&mut job.environment.setup)
    {
        replace(text, &spans(text), &mut tokens);
    }
    for (name, value) in &mut job.environment.env {
        let all = is_secret(name, value) && !value.contains("://");
        if all {
            replace_whole(value, &mut tokens);
        } else {
            replace(value, &spans(value), &mut tokens);
        }
    }
    Ok(tokens)
}

/// The error for a job whose tokens are gone, because they are not kept after its run.
pub fn not_kept() -> Error {
    Error::refused("its command held a token, which is not kept after a run").hint(
        "submit it anew, and name the token as a secret: `--secret NAME` takes it from your \
            shell or the keyring",
    )
}

/// `--token VALUE`, as two words.
fn take_after_options(words: &mut [String], tokens: &mut SecretSet) {
    for at in 1..words.len() {
        let option = words[at - 1].to_ascii_lowercase();
        let named = option.strip_prefix("--").is_some_and(is_credential_option);
        if named && !words[at].starts_with('-') && is_secret("token", &words[at]) {
            replace_whole(&mut words[at], tokens);
        }
    }
}

fn replace_whole(text: &mut String, tokens: &mut SecretSet) {
    let whole = 0..text.len();
    replace(text, std::slice::from_ref(&whole), tokens);
}

fn replace(text: &mut String, spans: &[Range<usize>], tokens: &mut SecretSet) {
    for span in spans.iter().rev().filter(|span| !span.is_empty()) {
        let value = text[span.clone()].to_owned();
        let known = tokens
            .0
            .iter()
            .find(|(_, secret)| secret.expose() == value)
            .map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| {
            let name = SecretName::Token((tokens.0.len() + 1).to_string());
            tokens.0.insert(name.clone(), Secret::new(value));
            name
        });
        text.replace_range(span.clone(), &format!("${{{{{name}}}}}"));
    }
}

/// The beginning of every placeholder that stands for a token: `${{***`.
fn placeholder_begin() -> String {
    format!("${{{{{TOKEN_PREFIX}")
}

/// The first variable that a token was taken out of.
pub fn variable_with_token(variables: &std::collections::BTreeMap<String, String>) -> Option<&str> {
    let begin = placeholder_begin();
    variables
        .iter()
        .find(|(_, value)| value.contains(&begin))
        .map(|(name, _)| name.as_str())
}

/// A text for people, with `***` in the place of its tokens.
pub fn hidden(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    let begin = placeholder_begin();
    while let Some(at) = rest.find(&begin) {
        shown.push_str(&rest[..at]);
        shown.push_str(TOKEN_PREFIX);
        rest = rest[at..]
            .find("}}")
            .map_or("", |end| &rest[at + end + 2..]);
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template;

    fn job(script: &str) -> Job {
        Job {
            script: Some(script.to_owned()),
            ..Job::default()
        }
    }

    /// Has the shape of a token and is none.
    fn token() -> String {
        ["ghp", "0123456789abcdefABCD"].join("_")
    }

    #[test]
    fn tokens_are_taken_out_shown_as_stars_and_put_back_exactly() {
        let token = token();
        for (script, shown) in [
            (format!("PAT={token}\necho hello"), "PAT=***\necho hello"),
            (
                format!("git clone https://{token}@github.com/x/y"),
                "git clone https://***@github.com/x/y",
            ),
            (
                format!("git clone https://ann:{token}@github.com/x"),
                "git clone https://ann:***@github.com/x",
            ),
            (
                "psql postgres://ann:hunter2@db/x".to_owned(),
                "psql postgres://ann:***@db/x",
            ),
            (
                format!("curl -H 'Authorization: Bearer {token}' x"),
                "curl -H 'Authorization: Bearer ***' x",
            ),
            (
                "export WANDB_API_KEY='0123456789abcdef'; x".to_owned(),
                "export WANDB_API_KEY='***'; x",
            ),
            (
                "azcopy cp 'https://a/b?sv=1&sig=abcdefghijklm0p%3D' .".to_owned(),
                "azcopy cp 'https://a/b?sv=1&sig=***' .",
            ),
            (
                "python x.py --hf-token=abcdefgh12".to_owned(),
                "python x.py --hf-token=***",
            ),
            (format!("A={token}; B={token}"), "A=***; B=***"),
        ] {
            let mut job = job(&script);
            let tokens = take_out(&mut job).expect("taken out");
            let stored = job.script.clone().expect("a script");
            assert_eq!(hidden(&stored), shown, "{stored}");
            assert!(
                tokens
                    .0
                    .values()
                    .all(|secret| !stored.contains(secret.expose())),
                "{stored}"
            );
            let back = template::fill(
                &stored,
                |name| tokens.0.get(&name.into()).map(Secret::expose),
                &[],
            )
            .expect("filled");
            assert_eq!(back, script);
            assert!(take_out(&mut job).is_err(), "its values are gone");
        }
    }

    #[test]
    fn what_is_no_token_stays() {
        for script in [
            "MAX_TOKENS=512 NUM_TOKENS=1000000 TOKENIZER=meta/llama-7b",
            "PRIMARY_KEY_COLUMN=identifier API_KEY_FILE=/run/key PASSWORD_FILE=secrets.txt \
                SECRETARY=alice",
            "git clone https://$PAT@github.com/x; export TOKEN=$OTHER KEY=\"${K}\"",
            "python train.py --max-tokens 512 --tokenizer bert-base-uncased --token-dropout 0.1 \
                --lr=0.1",
            "curl https://example.com:8080/a@b; echo sk-ip hf_ eyJ",
        ] {
            let mut job = job(script);
            assert!(
                take_out(&mut job).expect("nothing to do").is_empty(),
                "{script} → {:?}",
                job.script
            );
            assert_eq!(job.script.as_deref(), Some(script));
        }
    }

    #[test]
    fn words_and_variables_are_looked_at_too() {
        let mut job = Job {
            command: OneOrMany::Many(
                ["python", "x.py", "--password", "hunter22"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            ..Job::default()
        };
        job.environment
            .env
            .insert("HF_TOKEN".to_owned(), "some-value-1".to_owned());
        job.environment
            .env
            .insert("MAX_TOKENS".to_owned(), "512".to_owned());
        let tokens = take_out(&mut job).expect("taken out");
        assert_eq!(tokens.0.len(), 2);
        assert_eq!(job.command.as_slice()[3], "${{***1}}");
        assert_eq!(
            (
                job.environment.env["HF_TOKEN"].as_str(),
                job.environment.env["MAX_TOKENS"].as_str()
            ),
            ("${{***2}}", "512")
        );
    }

    #[test]
    fn a_short_number_is_a_setting_and_a_long_one_a_secret() {
        assert!(!is_secret("API_TOKEN", "123456789"));
        assert!(is_secret("API_TOKEN", "1234567890"));
        assert!(!is_secret("API_TOKEN", "true"));
    }

    #[test]
    fn only_options_of_credentials_hold_one_and_a_use_of_a_variable_is_none() {
        for option in ["token", "hf-token", "my_password"] {
            assert!(is_credential_option(option), "{option}");
        }
        assert!(!is_credential_option("tokenizer"));
        assert_eq!(password_in_address("://me:hunter22@host/a"), Some(6..14));
        assert_eq!(password_in_address("://me:$PAT@host/a"), None);
        assert_eq!(password_in_address("://me:@host/a"), None);
    }
}
