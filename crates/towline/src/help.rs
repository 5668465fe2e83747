//! The first page of help: each verb in one line, below the heading of what it is for.

use crate::cli::Cli;
use clap::builder::StyledStr;
use clap::{Command, CommandFactory};
use std::fmt::Write;

/// Every verb of the page. Old names work and are not listed.
pub(crate) const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Run jobs",
        &[
            "run", "submit", "resubmit", "abort", "wait", "hold", "resume", "edit", "init",
            "import",
        ],
    ),
    (
        "Look at runs",
        &[
            "ps", "top", "ui", "logs", "why", "show", "query", "diff", "get", "tag", "history",
            "ssh", "port",
        ],
    ),
    ("Data", &["ls", "up", "down", "cp", "rm", "url", "sync"]),
    (
        "Clusters and nodes",
        &[
            "clusters", "nodes", "alloc", "release", "adopt", "login", "logout", "roles",
        ],
    ),
    ("Workspaces and tunnels", &["scratch", "tunnel"]),
    (
        "House-keeping",
        &[
            "doctor",
            "config",
            "trust",
            "prune",
            "snapshot",
            "daemon",
            "completions",
            "api",
            "mcp",
        ],
    ),
];

/// The width of the column of verbs.
const VERB_COLUMN: usize = 11;

/// The command line, with this page as its help.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let page = page(&command);
    command.help_template(page)
}

/// The template that clap fills in. The parser makes a list of verbs too, but without headings.
fn page(command: &Command) -> StyledStr {
    let (heading, literal) = (
        *command.get_styles().get_header(),
        *command.get_styles().get_literal(),
    );
    let mut page = StyledStr::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, verbs) in GROUPS {
        let _ = write!(page, "\n{heading}{group}:{heading:#}\n");
        for verb in verbs {
            let about = command
                .find_subcommand(verb)
                .and_then(Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let _ = writeln!(
                page,
                "  {literal}{verb}{literal:#}{:gap$}  {about}",
                "",
                gap = VERB_COLUMN - verb.len()
            );
        }
    }
    let _ = write!(
        page,
        "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_verb_is_in_one_group() {
        let command = Cli::command();
        let shown: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .collect();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| verbs.iter().copied())
            .collect();
        assert_eq!(grouped.len(), shown.len(), "a verb is listed twice");
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), shown);
    }

    #[test]
    fn no_line_is_taken_for_a_template() {
        for verb in Cli::command().get_subcommands() {
            let about = verb.get_about().map(ToString::to_string);
            assert!(
                about.is_some_and(|about| !about.contains('{')),
                "{}",
                verb.get_name()
            );
        }
    }
}
