//! Exclusions of `zip` as ignore rules. In `zip` a `*` also matches `/`; in ignore rules it does
//! not.

/// The patterns after `-x`, and the options that are not exclusions.
pub(super) fn split(options: &[&str]) -> (Vec<String>, Vec<String>) {
    let (mut patterns, mut others) = (Vec::new(), Vec::new());
    let mut excluding = false;
    for word in options {
        match *word {
            "-x" | "--exclude" => excluding = true,
            word if word.starts_with("-x") && word.len() > 2 && !word.starts_with("--") => {
                patterns.push(word[2..].to_owned());
            }
            word if word.starts_with('-') => {
                excluding = false;
                others.push(word.to_owned());
            }
            // One `-x` takes all words up to the next option.
            word if excluding => patterns.push(word.to_owned()),
            word => others.push(word.to_owned()),
        }
    }
    (patterns, others)
}

/// `\*src/CMC/\*` → `**/*src/CMC/`
pub(super) fn ignore_rule(pattern: &str) -> String {
    // The backslash protected it from the shell.
    let pattern = pattern.trim_matches(['"', '\'']).replace('\\', "");
    let pattern = pattern.strip_prefix("./").unwrap_or(&pattern);
    let (body, is_folder) = match pattern
        .strip_suffix("/*")
        .or_else(|| pattern.strip_suffix('/'))
    {
        Some(body) if !body.is_empty() => (body, true),
        _ => (pattern, false),
    };
    let anywhere = body.starts_with('*');
    let body = body.strip_prefix("*/").unwrap_or(body);
    let begin = match (anywhere, body.contains('/')) {
        (true, true) => "**/",
        (true, false) => "",
        (false, _) => "/",
    };
    format!("{begin}{body}{}", if is_folder { "/" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_become_ignore_rules() {
        for (zip, rule) in [
            (r"\*src/py-faster-rcnn/\*", "**/*src/py-faster-rcnn/"),
            (r"\*src/CMC/\*", "**/*src/CMC/"),
            ("*.pyc", "*.pyc"),
            ("*/wandb/*", "wandb/"),
            ("data*", "/data*"),
            ("output/*", "/output/"),
            ("./build/x", "/build/x"),
        ] {
            assert_eq!(ignore_rule(zip), rule, "{zip}");
        }
        let (patterns, others) = split(&["-x", "a", "b", "-9", "-xc"]);
        assert_eq!(
            (patterns.as_slice(), others.as_slice()),
            (
                ["a".into(), "b".into(), "c".into()].as_slice(),
                ["-9".to_owned()].as_slice()
            )
        );
    }
}
