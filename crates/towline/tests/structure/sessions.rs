//! Every session that a page shows is run by a suite, on fixtures that are there.

use super::pages::{pages, root};
use std::collections::BTreeSet;
use std::fs;
use towline_testkit::console::{Block, FIXTURES, Part, Setting, parts};

/// The sessions of all pages: the page's path, and the block.
fn sessions() -> (Vec<(String, Block)>, Vec<String>) {
    let mut paths = Vec::new();
    pages(&root(), &mut paths);
    let (mut sessions, mut wrong) = (Vec::new(), Vec::new());
    for path in paths {
        let page = path.strip_prefix(root()).unwrap().display().to_string();
        let (parts, complaints) = parts(&fs::read_to_string(&path).unwrap());
        wrong.extend(complaints.iter().map(|said| format!("{page}:{said}")));
        for part in parts {
            if let Part::Session(block) = part {
                sessions.push((page.clone(), block));
            }
        }
    }
    (sessions, wrong)
}

/// A mark names the suite, and the suite names the page.
#[test]
fn every_session_of_a_page_is_run_by_a_suite() {
    let (sessions, mut wrong) = sessions();
    let suites = Setting::ALL.map(|setting| {
        let path = root().join("crates/towline/tests").join(setting.suite());
        (setting, fs::read_to_string(path).unwrap())
    });
    for (page, block) in &sessions {
        let (setting, text) = suites
            .iter()
            .find(|(setting, _)| *setting == block.setting)
            .unwrap();
        if !text.contains(&format!("\"{page}\"")) {
            wrong.push(format!(
                "{page}:{}: {} does not run this page",
                block.line,
                setting.suite()
            ));
        }
    }
    assert!(sessions.len() > 70, "only {} were found", sessions.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_fixture_of_a_session_is_there_and_used() {
    let (sessions, _) = sessions();
    let named: BTreeSet<&str> = sessions
        .iter()
        .flat_map(|(_, block)| block.fixtures.iter().map(String::as_str))
        .collect();
    let entries = fs::read_dir(root().join(FIXTURES)).unwrap();
    let there: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let there: BTreeSet<&str> = there.iter().map(String::as_str).collect();
    assert_eq!(named, there);
}
