//! `${{name}}` in commands, scripts and names; `$${{` is a literal `${{`.

use crate::suggest::did_you_mean;
use crate::{Error, Result};

/// Puts values in place of `${{name}}`. An unknown name is an error that names the known ones.
pub fn fill<'v>(
    text: &str,
    value_of: impl Fn(&str) -> Option<&'v str>,
    known: &[&str],
) -> Result<String> {
    let mut filled = String::with_capacity(text.len());
    walk(text, |piece| {
        match piece {
            Piece::Literal(literal) => filled.push_str(literal),
            Piece::Name(name) => match value_of(name) {
                Some(value) => filled.push_str(value),
                None => return Err(unknown(name, known)),
            },
        }
        Ok(())
    })?;
    Ok(filled)
}

/// Every name that `text` refers to, in order.
pub fn names(text: &str) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    walk(text, |piece| {
        if let Piece::Name(name) = piece {
            names.push(name);
        }
        Ok(())
    })?;
    Ok(names)
}

enum Piece<'t> {
    Literal(&'t str),
    Name(&'t str),
}

fn walk<'t>(text: &'t str, mut each: impl FnMut(Piece<'t>) -> Result<()>) -> Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find("${{") {
        if rest[..at].ends_with('$') {
            each(Piece::Literal(&rest[..at - 1]))?;
            each(Piece::Literal("${{"))?;
            rest = &rest[at + 3..];
            continue;
        }
        each(Piece::Literal(&rest[..at]))?;
        let inner = &rest[at + 3..];
        let Some(end) = inner.find("}}") else {
            let start: String = rest[at..].chars().take(20).collect();
            return Err(Error::config(format!("`{start}` has no closing `}}}}`"))
                .hint("write `$${{` for a literal `${{`"));
        };
        each(Piece::Name(inner[..end].trim()))?;
        rest = &inner[end + 2..];
    }
    each(Piece::Literal(rest))
}

fn unknown(name: &str, known: &[&str]) -> Error {
    let error = Error::config(format!("`${{{{{name}}}}}` names nothing"));
    match did_you_mean(name, known.iter().copied()) {
        Some(hint) => error.hint(hint),
        None if known.is_empty() => error
            .hint("a sweep or an io entry would give it a value; write `$${{` for a literal `${{`"),
        None => error.hint(format!("known here: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_lr(text: &str) -> Result<String> {
        fill(text, |name| (name == "lr").then_some("0.10"), &["lr"])
    }

    #[test]
    fn values_are_put_in_place() {
        assert_eq!(
            with_lr("--lr ${{lr}} ${{ lr }}$").expect("known"),
            "--lr 0.10 0.10$"
        );
        assert_eq!(
            with_lr("$${{lr}} $HOME ${x}").expect("literal"),
            "${{lr}} $HOME ${x}"
        );
    }

    #[test]
    fn unknown_names_suggest_the_known() {
        let error = with_lr("${{lrr}}").expect_err("unknown");
        assert_eq!(error.to_string(), "`${{lrr}}` names nothing");
        assert_eq!(error.hints(), ["did you mean `lr`?"]);
        assert!(with_lr("${{lr").is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_value_is_never_read_again(value in ".*") {
            let filled = fill("a${{x}}b", |_| Some(&value), &["x"]).expect("known");
            proptest::prop_assert_eq!(filled, format!("a{value}b"));
        }
    }
}
