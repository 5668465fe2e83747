//! `cargo xtask picture`: a recorded terminal session as an SVG. `docs/picture/record.sh` records
//! it; what a reader sees is what the program printed, colours too.

use crate::{Outcome, root};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const COLUMN_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 20;
/// The space around the text, and the bar above it.
const MARGIN: usize = 20;
const BAR_HEIGHT: usize = 34;
/// The width of the terminal. A longer line goes on in the next.
const TERMINAL_COLUMNS: usize = 115;

/// How a character looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Style {
    is_bold: bool,
    is_dim: bool,
    /// 0 is the usual one, else 1 to 8 for black to white.
    colour: u8,
}

impl Style {
    /// Select graphic rendition: numbers between semicolons.
    fn select(&mut self, numbers: &str) {
        for number in numbers.split(';') {
            match number.parse().unwrap_or(0) {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                39 => self.colour = 0,
                colour @ (30..=37) => self.colour = colour - 29,
                colour @ (90..=97) => self.colour = colour - 89,
                _ => {}
            }
        }
    }

    fn class(self) -> String {
        let colours = [
            "", "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
        ];
        let mut class = colours[usize::from(self.colour)].to_owned();
        for (is_so, word) in [(self.is_bold, " bold"), (self.is_dim, " dim")] {
            if is_so {
                class += word;
            }
        }
        class.trim().to_owned()
    }
}

type Line = Vec<(char, Style)>;

/// The screen after a session, without a limit on its height. Escapes other than colours and the
/// erasing of a line are left out.
fn screen(transcript: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![Line::new()];
    let mut column = 0;
    let mut style = Style::default();
    let mut letters = transcript.chars();
    while let Some(letter) = letters.next() {
        if column == TERMINAL_COLUMNS && !letter.is_control() {
            lines.push(Line::new());
            column = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        match letter {
            '\n' => {
                lines.push(Line::new());
                column = 0;
            }
            '\r' => column = 0,
            '\x1b' => {
                // Only control sequences: `ESC [ numbers letter`.
                if letters.next() != Some('[') {
                    continue;
                }
                let mut numbers = String::new();
                let end = letters.by_ref().find(|letter| {
                    let is_end = letter.is_ascii_alphabetic();
                    if !is_end {
                        numbers.push(*letter);
                    }
                    is_end
                });
                match end {
                    Some('m') => style.select(&numbers),
                    Some('K') if numbers == "2" => line.clear(),
                    Some('K') => line.truncate(column),
                    _ => {}
                }
            }
            letter if letter.is_control() => {}
            letter => {
                if line.len() <= column {
                    line.resize(column + 1, (' ', Style::default()));
                }
                line[column] = (letter, style);
                column += 1;
            }
        }
    }
    while lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

/// Words of a line that look alike and stand together, with their columns. Several blanks are not
/// part of a text, because viewers draw them as one.
fn parts(line: &Line) -> Vec<(usize, Style, String)> {
    let mut parts: Vec<(usize, Style, String)> = Vec::new();
    let mut blanks = 0;
    for (column, (letter, style)) in line.iter().enumerate() {
        if *letter == ' ' {
            blanks += 1;
            continue;
        }
        match parts.last_mut() {
            Some((_, last, text)) if last == style && blanks < 2 => {
                text.extend(std::iter::repeat_n(' ', blanks));
                text.push(*letter);
            }
            _ => parts.push((column, *style, letter.to_string())),
        }
        blanks = 0;
    }
    parts
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The picture of a transcript. A line that begins with `$ ` was typed.
fn svg(transcript: &str) -> String {
    let lines = screen(transcript);
    let width = 2 * MARGIN + pixels(TERMINAL_COLUMNS);
    let height = BAR_HEIGHT + lines.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
        height=\"{height}\" role=\"img\">\n<title>A session of tow in a terminal</title>\n<style>\n\
        .back {{ fill: #1d2230 }} .bar {{ fill: #2a3042 }} .dot {{ fill: #4b546e }}\n\
        text {{ fill: #d6dae6; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, \
        'DejaVu Sans Mono', monospace }}\n\
        .typed {{ fill: #ffffff; font-weight: 700 }} .bold {{ font-weight: 700 }} .dim {{ fill: #8a93ab }}\n\
        .red {{ fill: #f07178 }} .green {{ fill: #a5d76e }} .yellow {{ fill: #ffcb6b }}\n\
        .blue {{ fill: #82aaff }} .magenta {{ fill: #c792ea }} .cyan {{ fill: #6fd3e8 }}\n</style>\n\
        <rect class=\"back\" width=\"{width}\" height=\"{height}\" rx=\"10\"/>\n\
        <rect class=\"bar\" width=\"{width}\" height=\"{BAR_HEIGHT}\" rx=\"10\"/>\n"
    );
    for dot in [20, 40, 60] {
        let _ = writeln!(
            svg,
            "<circle class=\"dot\" cx=\"{dot}\" cy=\"17\" r=\"6\"/>"
        );
    }
    for (number, line) in lines.iter().enumerate() {
        let is_typed = line.len() > 1 && line[0].0 == '$' && line[1].0 == ' ';
        let y = BAR_HEIGHT + MARGIN + (number + 1) * LINE_HEIGHT - 6;
        for (column, style, text) in parts(line) {
            let class = match is_typed {
                true if text.starts_with('#') => "dim".to_owned(),
                true => "typed".to_owned(),
                false => style.class(),
            };
            let class = if class.is_empty() {
                class
            } else {
                format!(" class=\"{class}\"")
            };
            // The length is given, because another font would move the columns.
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{y}\" textLength=\"{}\"{class}>{}</text>",
                MARGIN + pixels(column),
                pixels(text.chars().count()),
                escaped(&text)
            );
        }
    }
    svg + "</svg>\n"
}

/// The width of so many columns.
fn pixels(columns: usize) -> usize {
    let columns = u32::try_from(columns).map_or(0.0, f64::from);
    // Whole pixels are enough.
    format!("{:.0}", columns * COLUMN_WIDTH)
        .parse()
        .unwrap_or(0)
}

/// The picture as it should be, for the check of generated files.
pub(crate) fn file() -> Result<(PathBuf, String), String> {
    let folder = root().join("docs/picture");
    let transcript = folder.join("session.ansi");
    let text = fs::read_to_string(&transcript)
        .map_err(|error| format!("{}: {error}", transcript.display()))?;
    Ok((folder.join("session.svg"), svg(&text)))
}

pub(crate) fn run() -> Outcome {
    let (path, text) = file()?;
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Line) -> String {
        line.iter().map(|(letter, _)| letter).collect()
    }

    #[test]
    fn a_screen_is_what_a_terminal_would_show() {
        let lines = screen(
            "$ tow ps\r\n\x1b[?2004hab\r\x1b[2Kprogress\rdone\x1b[K\n\x1b[32mgood\x1b[0m \x1b[1;31mbad\x1b[0m\n\n",
        );
        assert_eq!(
            lines.iter().map(text).collect::<Vec<_>>(),
            ["$ tow ps", "done", "good bad"]
        );
        let looks: Vec<(usize, String)> = parts(&lines[2])
            .into_iter()
            .map(|(column, style, _)| (column, style.class()))
            .collect();
        assert_eq!(looks, [(0, "green".to_owned()), (5, "red bold".to_owned())]);
    }

    #[test]
    fn a_picture_is_whole_and_holds_every_word() {
        let picture = svg("$ tow run 'a < b && c'\n\x1b[2m  a hint\x1b[0m\n");
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert!(picture.contains("class=\"typed\">$ tow run 'a &lt; b &amp;&amp; c'</text>"));
        assert!(picture.contains("class=\"dim\">a hint</text>"));
        assert!(!picture.contains('\x1b'));
    }

    #[test]
    fn a_line_that_is_too_long_goes_on_in_the_next() {
        let lines = screen(&"x".repeat(TERMINAL_COLUMNS * 2 + 1));
        let lengths: Vec<usize> = lines.iter().map(Vec::len).collect();
        assert_eq!(lengths, [TERMINAL_COLUMNS, TERMINAL_COLUMNS, 1]);
        let whole = "y".repeat(TERMINAL_COLUMNS);
        assert_eq!(screen(&format!("{whole}\n{whole}\n")).len(), 2);
    }
}
