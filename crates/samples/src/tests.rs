use super::*;
use serde::Deserialize;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Plain,
    Full { number: u32, inner: Inner },
}

#[derive(Debug, Serialize, Deserialize)]
struct Inner {
    #[serde(default)]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    list: Vec<u32>,
}

fn check(json: &str) -> Result<(), String> {
    let name = format!("towline-samples-{}-{:p}.json", std::process::id(), json);
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, json).expect("written");
    let outcome = std::panic::catch_unwind(|| {
        let mut samples = Samples::open(&path);
        samples.check::<Word>("word").finish();
    });
    std::fs::remove_file(&path).expect("removed");
    outcome.map_err(|panic| *panic.downcast::<String>().expect("a text"))
}

#[test]
fn samples_of_everything_pass() {
    let full = r#"{"full": {"number": 1, "inner": {"name": "x", "list": [1]}}}"#;
    check(&format!(r#"{{"word": ["plain", {full}]}}"#)).expect("all is there");
}

#[test]
fn what_is_lost_or_missing_is_named() {
    let inner = r#"{"name": "x", "list": [1]}"#;
    for (samples, part) in [
        (
            format!(r#"[{{"full": {{"number": 1, "inner": {inner}}}}}]"#),
            "no sample of Word.plain",
        ),
        (r#"["plain"]"#.to_owned(), "no sample of Word.full"),
        (
            r#"["plain", {"full": {"number": 1, "inner": {"name": "x"}}}]"#.to_owned(),
            "Inner.list",
        ),
        (
            r#"["plain", {"full": {"number": 1, "inner": {"gone": 1}}}]"#.to_owned(),
            "inner.gone",
        ),
        (
            r#"["plain", {"full": {"number": 1, "inner": {"list": []}}}]"#.to_owned(),
            "inner.list",
        ),
        (r#"["other"]"#.to_owned(), "is not read any more"),
        (
            r#"["plain"], "more": [1]"#.to_owned(),
            "no test reads [\"more\"]",
        ),
    ] {
        let why = check(&format!(r#"{{"word": {samples}}}"#)).expect_err(part);
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn a_draft_is_kept_whole_and_with_fewer_keys() {
    let draft = serde_json::json!({"full": {"number": 1, "inner": {"name": "x", "list": [1]}}});
    let forms = least::forms::<Word>(&draft);
    assert_eq!(forms.len(), 2, "{forms:?}");
    assert_eq!(
        forms[1],
        serde_json::json!({"full": {"number": 1, "inner": {}}})
    );
}
