//! Host lists: `c[1-3,7],gpu[001-004],x`.

use super::unreadable;
use towline_core::{Error, Result};

/// More hosts than any cluster has; a longer list is a mistake or an attack.
const MAX_HOSTS: usize = 100_000;

/// Every host by name, in the order of the list. An empty text, `(null)` and `None assigned` mean
/// no hosts.
pub fn expand(list: &str) -> Result<Vec<String>> {
    let mut hosts = Vec::new();
    let Some(list) = super::values::present(list) else {
        return Ok(hosts);
    };
    for entry in split_outside(list).ok_or_else(|| wrong(list))? {
        let entry = entry.trim();
        if entry.is_empty() {
            return Err(wrong(list));
        }
        let mut names = vec![String::new()];
        let mut rest = entry;
        // Several brackets in one name are a product: `r[1-2]n[1-4]`.
        while let Some((before, after)) = rest.split_once('[') {
            let (inner, behind) = after.split_once(']').ok_or_else(|| wrong(list))?;
            let numbers = numbers(inner, MAX_HOSTS).ok_or_else(|| wrong(list))?;
            if before.contains(']')
                || names.len().saturating_mul(numbers.len()) + hosts.len() > MAX_HOSTS
            {
                return Err(wrong(list));
            }
            names = names
                .iter()
                .flat_map(|name| {
                    numbers
                        .iter()
                        .map(move |number| format!("{name}{before}{number}"))
                })
                .collect();
            rest = behind;
        }
        if rest.contains(']') || hosts.len() + names.len() > MAX_HOSTS {
            return Err(wrong(list));
        }
        hosts.extend(names.into_iter().map(|name| name + rest));
    }
    Ok(hosts)
}

fn wrong(list: &str) -> Error {
    unreadable("squeue", &format!("`{list}` is not a list of hosts"))
}

/// The parts between commas outside of brackets.
fn split_outside(list: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut begin, mut inside) = (0, false);
    for (at, c) in list.char_indices() {
        match (c, inside) {
            ('[', false) => inside = true,
            (']', true) => inside = false,
            ('[', true) | (']', false) => return None,
            (',', false) => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    (!inside).then_some(parts)
}

/// `001-003,7`, with leading zeros kept.
fn numbers(inner: &str, most: usize) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for part in inner.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(first) || !is_number(last) || first.len() > 18 || last.len() > 18 {
            return None;
        }
        let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if to < from || usize::try_from(to - from).ok()? >= most.saturating_sub(all.len()) {
            return None;
        }
        let width = first.len();
        all.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_names() {
        assert_eq!(
            expand("c[1-3,7],gpu[001-004],x").expect("hosts"),
            [
                "c1", "c2", "c3", "c7", "gpu001", "gpu002", "gpu003", "gpu004", "x"
            ]
        );
        assert_eq!(
            expand("r[1-2]n[08-10]-ib").expect("hosts"),
            [
                "r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib", "r2n09-ib", "r2n10-ib"
            ]
        );
        assert_eq!(expand("c1").expect("hosts"), ["c1"]);
        assert_eq!(
            expand("n[098-101]").expect("hosts"),
            ["n098", "n099", "n100", "n101"]
        );
        for nothing in ["", "(null)", "None assigned", "n/a"] {
            assert!(expand(nothing).expect(nothing).is_empty());
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "c[",
            "c]",
            "c[1",
            "c[1-",
            "c[3-1]",
            "c[a]",
            "c[]",
            "a,,b",
            "c[1[2]]",
            "c[0-999999999]",
            "c[1-1000]d[1-1000]",
            "[1-99999999999999999999]",
        ] {
            assert!(expand(text).is_err(), "{text}");
        }
    }
}
