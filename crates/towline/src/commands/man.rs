//! `tow man`: manual pages, for packagers. They are made from the help of the verbs.

use super::Report;
use crate::help;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};

/// Write the manual pages of all verbs into a folder, for packagers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow man ~/.local/share/man/man1   then: man tow-submit")]
pub(crate) struct Args {
    /// The folder; it is made if it is not there.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Report> {
    let mut command = help::command();
    command.build();
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| write_pages(&command, &args.folder))
        .map_err(|error| {
            Error::refused(format!("{} cannot be written", args.folder.display()))
                .source_error(error)
        })?;
    Ok(Report::default())
}

/// The page of a command, and those of its verbs.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    for verb in listed(command) {
        write_pages(verb, folder)?;
    }
    std::fs::write(folder.join(format!("{}.1", name(command))), page(command)?)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    // Title, section, date, source, manual. No date: the same program makes the same page.
    let title = name(command).to_uppercase();
    let version = towline_wire::version::version();
    let mut page = format!(".TH {title} 1 \"\" \"tow {version}\" \"Towline\"\n").into_bytes();
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if name(command) == "tow" {
        groups(command).to_writer(&mut page)?;
    } else if command.has_subcommands() {
        let mut roff = Roff::default();
        roff.control("SH", ["VERBS"]);
        listed(command).for_each(|verb| row(&mut roff, verb));
        roff.to_writer(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    examples(command).to_writer(&mut page)?;
    Ok(page)
}

/// The verbs under the headings of `tow --help`.
fn groups(command: &Command) -> Roff {
    let mut roff = Roff::default();
    for (group, verbs) in help::GROUPS {
        roff.control("SH", [group.to_uppercase().as_str()]);
        for verb in verbs
            .iter()
            .filter_map(|verb| command.find_subcommand(verb))
        {
            row(&mut roff, verb);
        }
    }
    roff
}

fn row(roff: &mut Roff, verb: &Command) {
    let about = verb.get_about().map(ToString::to_string);
    roff.control("TP", []);
    roff.text([bold(name(verb)), roman("(1)")]);
    roff.text([roman(about.unwrap_or_default())]);
}

/// What help says at its end, line by line: examples, or the notes of the first page.
fn examples(command: &Command) -> Roff {
    let mut roff = Roff::default();
    let text = command.get_after_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    if let Some(examples) = text.strip_prefix("Examples:\n") {
        roff.control("SH", ["EXAMPLES"]);
        roff.control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("tow"), roman("(1)")]);
    } else {
        roff.control("SH", ["NOTES"]);
        for line in text.lines() {
            roff.text([roman(line)]);
            roff.control("br", []);
        }
    }
    roff
}

fn listed(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

/// `tow-scratch-backup`
fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}
