//! One call of a traceback, and whether it is the user's own code.

use super::lines::{compiled, printable};
use super::{MAX_LINE_CHARACTERS_SHOWN, Place};
use regex::bytes::Regex;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) file: &'a [u8],
    line: &'a [u8],
    /// Empty for the place of a syntax error.
    pub(super) function: &'a [u8],
    pub(super) source: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(super) fn take_source(&mut self, text: &'a [u8]) {
        self.source = boxed_source(text).unwrap_or(text);
    }

    pub(super) fn place(&self) -> Place {
        let line = std::str::from_utf8(self.line)
            .ok()
            .and_then(|digits| digits.parse().ok());
        let text = |bytes: &[u8]| {
            Some(printable(bytes, MAX_LINE_CHARACTERS_SHOWN)).filter(|text| !text.is_empty())
        };
        Place {
            file: printable(self.file, MAX_LINE_CHARACTERS_SHOWN),
            line,
            function: text(self.function),
            source: text(self.source),
        }
    }
}

/// `  File "train.py", line 3, in main`, the same without a function, faulthandler's `line 3 in
/// main`, loguru's `> File …`, and rich's `│ /job/train.py:3 in main      │`.
pub(super) fn frame(text: &[u8]) -> Option<Frame<'_>> {
    static FRAME: OnceLock<Regex> = OnceLock::new();
    static BOXED: OnceLock<Regex> = OnceLock::new();
    let plain = || {
        compiled(
            &FRAME,
            r#"^(?:\s+|> )File "([^"]*)", line (\d+)(?:,? in (.+))?$"#,
        )
        .captures(text)
    };
    let boxed = || {
        compiled(
            &BOXED,
            r"^\xe2\x94\x82 (\S+\.\w+|<\w+>):(\d+) in (\S+)\s+\xe2\x94\x82$",
        )
        .captures(text)
    };
    let found = if text.starts_with("│".as_bytes()) {
        boxed()
    } else {
        plain()
    }?;
    let part = |group| {
        found
            .get(group)
            .map_or(&[][..], |part: regex::bytes::Match| part.as_bytes())
    };
    Some(Frame {
        file: part(1),
        line: part(2),
        function: part(3),
        source: &[],
    })
}

/// Whether a line below a call is its source, and neither carets below it nor a note.
pub(super) fn is_source(text: &[u8]) -> bool {
    if text.starts_with("│".as_bytes()) {
        return boxed_source(text).is_some();
    }
    let text = text.trim_ascii();
    let is_note = text.starts_with(b"[Previous line repeated") || text.starts_with("└".as_bytes());
    !text.starts_with("╰".as_bytes()) && !is_note && text.iter().any(|byte| !b"^~ ".contains(byte))
}

/// `│ ❱ 3 │   main()      │`, where the inner bar marks an indentation.
fn boxed_source(text: &[u8]) -> Option<&[u8]> {
    static SOURCE: OnceLock<Regex> = OnceLock::new();
    let pattern =
        r"^\xe2\x94\x82 \xe2\x9d\xb1\s+\d+ (?:\s|\xe2\x94\x82)*(.*?)\s*(?:\xe2\x94\x82)?$";
    Some(
        compiled(&SOURCE, pattern)
            .captures(text)?
            .get(1)?
            .as_bytes(),
    )
}

/// The call to show: the deepest in the user's own code, else the deepest that has a file.
pub(super) fn own<'f, 'a>(
    frames: impl DoubleEndedIterator<Item = &'f Frame<'a>> + Clone,
) -> Option<&'f Frame<'a>>
where
    'a: 'f,
{
    let mut deepest_first = frames.rev();
    let any = deepest_first
        .clone()
        .find(|frame| !frame.file.starts_with(b"<"))
        .or_else(|| deepest_first.clone().next());
    let named = deepest_first
        .clone()
        .find(|frame| is_own(frame.file) && !frame.file.starts_with(b"<"));
    named
        .or_else(|| deepest_first.find(|frame| is_own(frame.file)))
        .or(any)
}

/// Whether a file is the user's rather than Python's or a library's.
pub(super) fn is_own(file: &[u8]) -> bool {
    static FOREIGN: OnceLock<Regex> = OnceLock::new();
    !compiled(&FOREIGN, FOREIGN_PATTERN).is_match(file)
}

/// Installed packages, Python itself, generated code of libraries, launchers, and builds of torch
/// outside of site-packages.
const FOREIGN_PATTERN: &str = concat!(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\](?:python|pypy)\d|[/\\]Python\d+[/\\]Lib[/\\]|\.egg[/\\]|\.zip[/\\]",
    r"|^<(?:frozen|__array_function__|decorator-gen|attrs generated|eval_with_key|torch_package|makefun|lambdifygenerated)",
    r"|^/(?:usr/)?(?:local/)?s?bin/|[/\\]bin[/\\][^/\\.]+$",
    r"|[/\\]torch[/\\](?:nn|utils|distributed|multiprocessing|autograd|optim|_dynamo|_inductor|_functorch|fx|cuda|jit|hub\.py|_tensor\.py|_ops\.py|serialization\.py|__init__\.py)",
    r"|[/\\]torchinductor_|[/\\]torch_extensions[/\\]|[/\\]transformers_modules[/\\]",
);
