//! What the terminal is, and what it can show.

use crate::view::look::Look;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal};
use towline_core::{Error, Result};
use towline_host::surroundings::variable;

/// An error if there is no terminal that can be drawn on.
pub(super) fn look() -> Result<Look> {
    let hint = "the runs as text: tow ps";
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Error::usage("`tow top` needs a terminal").hint(hint));
    }
    let term = variable("TERM").unwrap_or_default();
    if matches!(term.as_str(), "" | "dumb") {
        let text = "`tow top` needs a terminal that can be drawn on; TERM says that this cannot";
        return Err(Error::usage(text).hint(hint));
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = locale
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    let no_colour = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    Ok(Look {
        has_colour: !no_colour && has_colours(&term),
        has_unicode: locale.is_some_and(|locale| is_utf8(&locale)),
    })
}

fn has_colours(term: &str) -> bool {
    let is_monochrome = term.starts_with("vt") || term.ends_with("-m") || term.ends_with("-mono");
    !is_monochrome
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Whether the terminal has not been closed. A program that was told to ignore that would go on.
pub(super) fn is_terminal_there() -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let stdin = rustix::stdio::stdin();
    let mut ready = [PollFd::from_borrowed_fd(stdin, PollFlags::empty())];
    let _ = poll(&mut ready, Some(&at_once));
    !ready[0]
        .revents()
        .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_and_locales_are_known_by_their_names() {
        assert!(has_colours("xterm-256color") && has_colours("screen") && has_colours("linux"));
        assert!(!has_colours("vt100") && !has_colours("xterm-mono") && !has_colours("linux-m"));
        assert!(is_utf8("de_DE.UTF-8") && is_utf8("C.utf8") && !is_utf8("C"));
    }
}
