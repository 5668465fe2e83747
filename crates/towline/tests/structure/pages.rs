//! What pages say is there: paths, links, and the messages of the troubleshooting index.

use super::sources::{crates, product};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// `{a,b}` names several.
fn spelled_out(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let (names, after) = rest.split_once('}').unwrap();
    let names = names.split(',');
    names
        .map(|name| format!("{before}{}{after}", name.trim()))
        .collect()
}

/// The paths of code that a page quotes, and that are not there. It quotes more than `least`.
fn missing_paths(page: &str, least: usize) -> Vec<String> {
    let page = fs::read_to_string(root().join(page)).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let named: Vec<String> = quoted
        .filter(|text| text.contains("/src/") || text.contains("/tests/"))
        .map(|text| text.split(": ").next().unwrap())
        .filter(|path| !path.contains(['*', '<', '…', ' ']))
        .map(|path| path.trim_start_matches("crates/"))
        .flat_map(spelled_out)
        .collect();
    assert!(named.len() > least, "{named:?}");
    named
        .into_iter()
        .filter(|path| !crates().join(path.trim_end_matches('/')).exists())
        .collect()
}

pub(super) fn root() -> PathBuf {
    crates().join("..")
}

#[test]
fn every_path_of_the_architecture_is_there() {
    let missing = missing_paths("ARCHITECTURE.md", 50);
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_path_of_the_glossary_is_there() {
    let missing = missing_paths("docs/glossary.md", 50);
    assert!(missing.is_empty(), "{missing:?}");
}

/// Those that tell how to add something name what is to be made.
#[test]
fn every_path_of_contributing_is_there() {
    let to_be_made = ["hello.rs", "kubernetes/", "VERB.rs"];
    let mut missing = missing_paths("CONTRIBUTING.md", 20);
    missing.retain(|path| !to_be_made.iter().any(|name| path.ends_with(name)));
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every Markdown page of the repository.
pub(super) fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_ours = name != "target" && name != "node_modules";
        if path.is_dir() && is_ours && !name.starts_with('.') {
            pages(&path, found);
        } else if Path::new(&name).extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// A page without its blocks of code.
fn prose(text: &str) -> String {
    let mut in_block = false;
    let lines = text.lines().filter(|line| {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            return false;
        }
        !in_block
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The addresses of the headings of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let headings = prose
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}

/// The targets of links and pictures.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let starts = prose.match_indices("](").map(|(at, _)| at + 2);
    starts
        .filter_map(|at| Some(prose[at..].split_once(')')?.0.to_owned()))
        .collect()
}

#[test]
fn no_link_is_dead() {
    let mut all = Vec::new();
    pages(&root(), &mut all);
    let mut seen = 0;
    let mut dead = Vec::new();
    for page in all {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            let is_there = target.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&target)
                        .is_ok_and(|text| anchors(&text).contains(anchor)));
            if !is_there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(seen > 200, "only {seen} links were found");
    assert!(dead.is_empty(), "{dead:#?}");
}

/// A page that nobody leads to is not read.
#[test]
fn the_book_leads_to_every_page() {
    let book = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let named: BTreeSet<PathBuf> = links(&book)
        .iter()
        .filter_map(|link| {
            root()
                .join("docs")
                .join(link.split('#').next()?)
                .canonicalize()
                .ok()
        })
        .collect();
    let mut all = Vec::new();
    pages(&root().join("docs"), &mut all);
    all.retain(|page| !page.ends_with("docs/README.md"));
    let lost: Vec<&PathBuf> = all
        .iter()
        .filter(|page| !named.contains(&page.canonicalize().unwrap()))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// All texts of the program, with those that go over several lines as one.
fn texts() -> String {
    let mut texts = String::new();
    for source in product() {
        let mut lines = source.text.split("\\\n");
        texts += lines.next().unwrap_or_default();
        lines.for_each(|line| texts += line.trim_start());
        texts.push('\n');
    }
    texts
}

/// A message that was reworded would not be found in the index any more.
#[test]
fn every_message_of_the_index_is_said_by_the_program() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let (index, _) = page.split_once("## Symptoms").unwrap();
    let messages: Vec<&str> = index
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(message, _)| message)
        .collect();
    assert!(messages.len() > 30, "{messages:?}");
    let texts = texts();
    let mut unsaid = Vec::new();
    for message in messages {
        let parts = message
            .split('…')
            .map(|part| part.trim_matches([' ', ':', ',', ';']));
        let mut looked_at = 0;
        for part in parts.filter(|part| part.len() > 3) {
            looked_at += 1;
            if !texts.contains(part) {
                unsaid.push(format!("{message}: {part}"));
            }
        }
        assert!(looked_at > 0, "{message}");
    }
    assert!(unsaid.is_empty(), "{unsaid:#?}");
}
