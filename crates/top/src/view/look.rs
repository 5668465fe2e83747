//! Colours and signs. Each state has a sign and a word, so that a screen without colours tells the
//! same; a terminal without UTF-8 gets signs of ASCII.

use crate::ansi::Ink;
use crate::model::rows::Condition;
use ratatui::style::{Color, Modifier, Style};
use towline_core::reason::Outcome;
use towline_core::state::Phase;

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) has_colour: bool,
    pub(crate) has_unicode: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Good,
    Bad,
    Busy,
    Waiting,
    Quiet,
    Bold,
    /// A key in the foot line.
    Key,
    /// A title line.
    Title,
    Selected,
    Match,
}

impl Look {
    pub(crate) fn style(self, paint: Paint) -> Style {
        let plain = Style::new();
        let coloured = |colour: Color| {
            if self.has_colour {
                plain.fg(colour)
            } else {
                plain
            }
        };
        match paint {
            Paint::Plain => plain,
            Paint::Good => coloured(Color::Green),
            Paint::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
            Paint::Busy => coloured(Color::Cyan),
            Paint::Waiting => coloured(Color::Yellow),
            Paint::Quiet => plain.add_modifier(Modifier::DIM),
            Paint::Bold | Paint::Key => plain.add_modifier(Modifier::BOLD),
            Paint::Title => plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Paint::Selected => plain.add_modifier(Modifier::REVERSED),
            Paint::Match => plain.add_modifier(Modifier::REVERSED | Modifier::BOLD),
        }
    }

    /// How a part of a log looks.
    pub(crate) fn ink(self, ink: Ink) -> Style {
        let mut style = Style::new();
        if let (true, Some(colour)) = (self.has_colour, ink.colour) {
            style = style.fg(colour_of(colour));
        }
        for (is_set, modifier) in [
            (ink.is_bold, Modifier::BOLD),
            (ink.is_dim, Modifier::DIM),
            (ink.is_underlined, Modifier::UNDERLINED),
        ] {
            if is_set {
                style = style.add_modifier(modifier);
            }
        }
        style
    }

    pub(crate) const fn sign(self, condition: Condition) -> char {
        let (sign, ascii) = match condition {
            Condition::Cancelling => ('◐', '~'),
            Condition::FailedAndHeld => ('✗', 'x'),
            Condition::OnHold => ('‖', '='),
            Condition::Phase(phase) => match phase {
                Phase::Drafted => ('·', '.'),
                Phase::Staging => ('↑', '^'),
                Phase::Submitting => ('→', '>'),
                Phase::Queued => ('○', 'o'),
                Phase::Running => ('●', '*'),
                Phase::Ended(Outcome::Succeeded) => ('✓', '+'),
                Phase::Ended(Outcome::Failed) => ('✗', 'x'),
                Phase::Ended(Outcome::Cancelled) => ('⊘', '-'),
                Phase::Ended(Outcome::Lost) => ('?', '?'),
            },
        };
        if self.has_unicode { sign } else { ascii }
    }

    pub(crate) const fn paint(condition: Condition) -> Paint {
        match condition {
            Condition::Cancelling | Condition::OnHold => Paint::Waiting,
            Condition::FailedAndHeld => Paint::Bad,
            Condition::Phase(phase) => match phase {
                Phase::Drafted | Phase::Staging | Phase::Submitting | Phase::Queued => {
                    Paint::Waiting
                }
                Phase::Running => Paint::Busy,
                Phase::Ended(Outcome::Succeeded) => Paint::Good,
                Phase::Ended(Outcome::Failed | Outcome::Lost) => Paint::Bad,
                Phase::Ended(Outcome::Cancelled) => Paint::Quiet,
            },
        }
    }

    /// Our own signs in what terminals without UTF-8 have.
    pub(crate) fn plain(self, text: &str) -> std::borrow::Cow<'_, str> {
        if self.has_unicode || text.is_ascii() {
            return text.into();
        }
        let ascii = |c: char| match c {
            '…' => '~',
            '·' => '-',
            '▸' => '>',
            c if c.is_ascii() => c,
            _ => '?',
        };
        text.chars().map(ascii).collect::<String>().into()
    }
}

/// The first sixteen by their names, because every terminal with colours has those.
const fn colour_of(number: u8) -> Color {
    match number {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        8 => Color::DarkGray,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        15 => Color::White,
        number => Color::Indexed(number),
    }
}
