//! Every path that ARCHITECTURE.md names is there.

use super::sources::crates;
use std::fs;

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

#[test]
fn every_path_of_the_architecture_is_there() {
    let page = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let named: Vec<String> = quoted
        .filter(|text| text.contains("/src/") || text.contains("/tests/"))
        .map(|text| text.split(": ").next().unwrap())
        .filter(|path| !path.contains(['*', '<', '…']))
        .flat_map(spelled_out)
        .collect();
    assert!(named.len() > 50, "{named:?}");
    let missing: Vec<&String> = named
        .iter()
        .filter(|path| !crates().join(path.trim_end_matches('/')).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
