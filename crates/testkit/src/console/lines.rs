//! Whether a line of a page and a line of output are the same, apart from what differs at every
//! call: ids, digests, ports, times, durations, rates, compressed sizes (of roots, which hold
//! times), what an account has used, and the size of the machine.
//!
//! An id, a digest or a port of the page stands for one of the output from its first use on, there
//! and in later commands. Everything else is compared character by character, except that several
//! blanks are as good as many, because the width of a column depends on its ids and durations.

use regex::{Captures, Regex};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// On a line of its own: any lines.
const ANY_LINES: &str = "…";

/// The beginning of a line by which a slow call says what it waits for. It is left out unless the
/// page has it, because a quick call does not print it.
const WAITING: &str = "waiting for ";

/// The parts of a page's line that are put aside. What is in none of these groups is compared as it
/// is.
static PUT_ASIDE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?P<time>\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z|\ \d\d:\d\d(?::\d\d)?\ (?:[+-]\d{4}|UTC)))
        |(?P<runner>\b[0-9a-f]{8}-\d{13}-\d+-\d+\b)
        |(?P<id>\b\d{10}-[0-9a-f]{8}\b)
        |(?P<digest>\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{12})\b)
        |(?P<short>\b[0-9a-f]{5}\b)
        |(?:127\.0\.0\.1:|\bMASTER_PORT=)(?P<port>\d+)\b
        |(?P<duration>\b(?:\d+(?:\.\d+)?s|\d+m\d\ds|\d+h\d\dm)\b)
        |(?P<rate>\b\d+(?:\.\d+)?[BKMGT]/s)
        |\bjob\ (?P<job>\d+)\b
        |\b(?:version|Slurm)\ (?P<version>\d+\.\d+\.\d+)\b
        |\binherits\ +(?P<variables>\d+)\ variables\b
        |(?P<stored>\b\d+(?:\.\d+)?(?:[KMGT]|\ bytes))\ stored\b
        |\bpacks,\ (?P<packed>\d+(?:\.\d+)?[KMGT]?);
        |(?P<usage>\bused\ \d+\ %,\ fair\ share\ \d+\.\d+)
        |(?P<disk>\b\d+(?:\.\d+)?[KMGT]\ of\ \d+(?:\.\d+)?[KMGT])\ free\b
        |\bthis\ machine\ +ok:\ (?P<machine>\d+\ CPUs,\ \d+(?:\.\d+)?[KMGT](?:\ \([^)]*\))?);
        |(?P<blanks>\ {2,})",
    )
    .expect("the pattern is a constant")
});

/// A group of [`PUT_ASIDE`], and the shape that the output has in its place. A bound one stands for
/// the same text from then on.
struct Class {
    name: &'static str,
    shape: &'static str,
    is_bound: bool,
}

const CLASSES: [Class; 17] = [
    class(
        "time",
        r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z| \d\d:\d\d(?::\d\d)? (?:[+-]\d{4}|UTC))",
    ),
    class("runner", r"[0-9a-f]{8}-\d{13}-\d+-\d+"),
    bound("id", r"\d{10}-[0-9a-f]{8}"),
    bound("digest", "[0-9a-f]{LENGTH}"),
    bound("short", "[0-9a-f]{5}"),
    bound("port", r"\d+"),
    class("duration", r"(?:\d+(?:\.\d+)?s|\d+m\d\ds|\d+h\d\dm)"),
    class("rate", r"\d+(?:\.\d+)?[BKMGT]/s"),
    class("job", r"\d+"),
    class("version", r"\d+\.\d+\.\d+"),
    class("variables", r"\d+"),
    class("stored", r"\d+(?:\.\d+)?(?:[KMGT]| bytes)"),
    class("packed", r"\d+(?:\.\d+)?[KMGT]?"),
    class("usage", r"used \d+ %, fair share \d+\.\d+"),
    class("disk", r"\d+(?:\.\d+)?[KMGT] of \d+(?:\.\d+)?[KMGT]"),
    class("machine", r"\d+ CPUs, \d+(?:\.\d+)?[KMGT](?: \([^)]*\))?"),
    class("blanks", " {2,}"),
];

const fn class(name: &'static str, shape: &'static str) -> Class {
    Class {
        name,
        shape,
        is_bound: false,
    }
}

const fn bound(name: &'static str, shape: &'static str) -> Class {
    Class {
        name,
        shape,
        is_bound: true,
    }
}

/// What names of the page stand for.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    here: BTreeMap<String, String>,
    on_page: BTreeMap<String, String>,
}

impl Names {
    /// A command of the page as it is typed here.
    pub(super) fn typed(&self, command: &str) -> String {
        static NAME: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"\b(?:\d{10}-[0-9a-f]{8}|[0-9a-f]{4,64})\b").expect("a constant")
        });
        let here = |name: &str| {
            self.here.get(name).cloned().or_else(|| {
                self.here.iter().find_map(|(known, here)| {
                    let is_beginning = known.len() >= 12 && known.starts_with(name);
                    let is_end = known.contains('-') && known.ends_with(name);
                    if is_beginning {
                        Some(here[..name.len()].to_owned())
                    } else {
                        is_end.then(|| here[here.len() - name.len()..].to_owned())
                    }
                })
            })
        };
        NAME.replace_all(command, |found: &Captures| {
            here(&found[0]).unwrap_or_else(|| found[0].to_owned())
        })
        .into_owned()
    }

    /// Output with the names of the page, as far as they are known.
    pub(super) fn as_on_page(&self, text: &str) -> String {
        let mut longest_first: Vec<(&String, &String)> = self.on_page.iter().collect();
        longest_first.sort_by_key(|(here, _)| std::cmp::Reverse(here.len()));
        longest_first
            .into_iter()
            .fold(text.to_owned(), |text, (here, page)| {
                text.replace(here, page)
            })
    }

    /// Compares what a page shows with the lines of an output.
    ///
    /// # Errors
    ///
    /// The furthest line of the page that none of the output fits, from 0.
    pub(super) fn fit(&self, shown: &[String], output: &[&str]) -> Result<Self, usize> {
        let Some((first, rest)) = shown.split_first() else {
            let is_over = output.iter().all(|line| line.starts_with(WAITING));
            return is_over.then(|| self.clone()).ok_or(0);
        };
        if first.trim() == ANY_LINES {
            let mut furthest = 0;
            for skipped in 0..=output.len() {
                match self.fit(rest, &output[skipped..]) {
                    Ok(names) => return Ok(names),
                    Err(line) => furthest = furthest.max(line + 1),
                }
            }
            return Err(furthest);
        }
        let line = output.first().ok_or(0_usize)?;
        match self.fit_line(first, line) {
            Some(names) => names.fit(rest, &output[1..]).map_err(|line| line + 1),
            None if line.starts_with(WAITING) => self.fit(shown, &output[1..]),
            None => Err(0),
        }
    }

    /// The names after a line of the page that is the line of the output.
    fn fit_line(&self, shown: &str, line: &str) -> Option<Self> {
        let mut pattern = "^".to_owned();
        let mut new: Vec<&str> = Vec::new();
        let mut end = 0;
        let shown = shown.trim_end();
        for found in PUT_ASIDE.captures_iter(shown) {
            let Some((class, part)) = CLASSES
                .iter()
                .find_map(|class| Some((class, found.name(class.name)?)))
            else {
                continue;
            };
            let text = part.as_str();
            // The indentation of a line is compared as it is; so is a number of five digits, and a
            // word that could be an id, unless it stands for one.
            let is_plain = class.name == "blanks" && part.start() == 0
                || class.name == "short"
                    && !(text.contains(|c: char| c.is_ascii_digit())
                        && text.contains(|c: char| c.is_ascii_alphabetic()));
            pattern += &regex::escape(&shown[end..part.start()]);
            end = part.end();
            if let Some(here) = self.here.get(text).filter(|_| class.is_bound) {
                pattern += &regex::escape(here);
            } else if is_plain {
                pattern += &regex::escape(text);
            } else if class.is_bound {
                let shape = class.shape.replace("LENGTH", &text.len().to_string());
                let _ = write!(pattern, "({shape})");
                new.push(text);
            } else {
                pattern += class.shape;
            }
        }
        pattern += &regex::escape(&shown[end..]);
        pattern += "$";
        let pattern = Regex::new(&pattern).expect("made of constants and escaped text");
        let found = pattern.captures(line.trim_end())?;
        let mut names = self.clone();
        for (page, here) in new.into_iter().zip(found.iter().skip(1).flatten()) {
            names.bind(page, here.as_str())?;
        }
        Some(names)
    }

    /// Has a name stand for another, and with it its short form. None, if either stands for
    /// something else.
    fn bind(&mut self, page: &str, here: &str) -> Option<()> {
        let known = self.here.get(page).map(String::as_str);
        let taken = self.on_page.get(here).map(String::as_str);
        if known.is_some_and(|known| known != here) || taken.is_some_and(|taken| taken != page) {
            return None;
        }
        self.here.insert(page.to_owned(), here.to_owned());
        self.on_page.insert(here.to_owned(), page.to_owned());
        if page.contains('-') {
            let end = |id: &str| id[id.len() - 5..].to_owned();
            self.bind(&end(page), &end(here))?;
        } else if page.len() > 12 {
            self.bind(&page[..12], &here[..12])?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(shown: &str, output: &str) -> Result<Names, usize> {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        let output: Vec<&str> = output.lines().collect();
        Names::default().fit(&shown, &output)
    }

    #[test]
    fn what_differs_at_every_call_is_put_aside() {
        for (shown, output) in [
            ("took 0.5s, 9m52s", "took 12s, 0.0s"),
            ("at 2026-11-15T08:50:52.705Z", "at 2031-01-01T00:00:00.000Z"),
            ("2026-11-15 11:16:18 +0000", "2031-01-01 00:00:00 +0200"),
            (
                "4 sent, 2.8M in 0.0s (238.4M/s)",
                "4 sent, 2.8M in 0.1s (9B/s)",
            ),
            ("AGE   TOOK  COMMAND", "AGE  TOOK      COMMAND"),
            ("box, 1.5G of 2T free", "box, 25.1G of 251.9G free"),
            ("(job 79: PENDING)", "(job 3: PENDING)"),
        ] {
            assert!(fits(shown, output).is_ok(), "{shown} {output}");
        }
    }

    #[test]
    fn nothing_else_is_put_aside() {
        for (shown, output) in [
            ("hello", "hello world"),
            ("at most 7d", "at most 8d"),
            ("10m", "11m"),
            ("50000 files", "60000 files"),
            ("added", "fade5"),
            ("  hint", "   hint"),
            ("a b", "a  b"),
            ("2.8M", "2.9M"),
            ("hello", ""),
            ("", "hello"),
            ("one\ntwo", "two\none"),
            ("took 0.5s", "took long"),
            ("train-1794986139-638664ba", "eval-1794986139-638664ba"),
            ("train-1794986139-638664ba-1", "train-1794986139-638664ba-2"),
        ] {
            assert!(fits(shown, output).is_err(), "{shown} {output}");
        }
    }

    #[test]
    fn a_name_stands_for_the_same_from_its_first_use_on() {
        let names = fits(
            "train-1794986139-638664ba\n  tow logs 664ba\na5eb1 echo",
            "train-1799999999-0000000a\n  tow logs 0000a\n12345 echo",
        )
        .unwrap();
        assert_eq!(names.typed("tow why 664ba-3"), "tow why 0000a-3");
        assert_eq!(names.typed("tow why 64ba"), "tow why 000a");
        assert_eq!(
            names.typed("tow show train-1794986139-638664ba"),
            "tow show train-1799999999-0000000a"
        );
        assert_eq!(
            names.typed("tow logs a5eb1 | head -1"),
            "tow logs 12345 | head -1"
        );
        assert_eq!(names.as_on_page("0000a"), "664ba");
        assert!(
            fits("a1b2c one\na1b2c two", "11111 one\n22222 two").is_err(),
            "one name is one run"
        );
        assert!(
            fits("a1b2c one\nd3e4f two", "11111 one\n11111 two").is_err(),
            "two names are two runs"
        );
        assert!(
            fits(
                "x-1794986139-638664ba\n664bb",
                "x-1794986139-0000000a\n0000a"
            )
            .is_err(),
            "a short form is of its id"
        );
    }

    #[test]
    fn digests_are_named_by_their_beginning() {
        let digest = "d515c43e32381412410e99784964ba4681878d7d62dce01e07f823dd04d0d5a3";
        let other = "0".repeat(64);
        let names = fits(
            &format!("{digest}\nd515c43e3238  vision"),
            &format!("{other}\n000000000000  vision"),
        )
        .unwrap();
        assert_eq!(
            names.typed("tow snapshot get d515c43e x"),
            "tow snapshot get 00000000 x"
        );
    }

    #[test]
    fn lines_are_left_out_where_the_page_says_so() {
        assert!(fits("…\ntwo", "one\ntwo").is_ok());
        assert!(fits("one\n…", "one").is_ok(), "also none");
        assert!(fits("one\n   …\nfour", "one\ntwo\nthree\nfour").is_ok());
        assert_eq!(fits("one\n…\nfive", "one\ntwo").unwrap_err(), 2);
        assert!(fits("one …", "one two").is_err(), "not inside of a line");
        assert!(fits("one", "waiting for `lab`\none\nwaiting for it").is_ok());
        assert!(fits("waiting for it\none", "one").is_err());
    }
}
