//! Conversions as a whole, on texts.

mod act;
mod amlt;
mod existing;
mod sbatch;
mod toolkit;

use super::*;

/// Imports the texts that are `given`; the others are files beside them.
fn import_texts(
    kind: Kind,
    texts: &[(&str, &str)],
    given: &[&str],
    existing: Option<&str>,
    force: bool,
) -> Result<Imported> {
    let text = |file: &Path| {
        texts
            .iter()
            .find(|(name, _)| Path::new(name) == file)
            .map(|(_, text)| (*text).to_owned())
    };
    let read = |file: &Path| text(file).ok_or_else(|| io::ErrorKind::NotFound.into());
    import(
        kind,
        &given.iter().map(PathBuf::from).collect::<Vec<_>>(),
        &read,
        &Destination {
            existing,
            force,
            keyring: true,
        },
    )
}

/// Imports all of the texts.
#[track_caller]
fn imported(kind: Kind, texts: &[(&str, &str)]) -> Imported {
    import_texts(
        kind,
        texts,
        &texts.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        None,
        false,
    )
    .expect("converts")
}

/// The error of one text.
#[track_caller]
fn refused(kind: Kind, name: &str, text: &str) -> Error {
    import_texts(kind, &[(name, text)], &[name], None, false).expect_err("refused")
}

fn converted(kind: Kind, text: &str) -> Result<Imported> {
    import_texts(kind, &[("x", text)], &["x"], None, false)
}

/// The value at a path of the file of that name.
#[track_caller]
fn value(imported: &Imported, file: &str, path: &str) -> String {
    let made = imported
        .files
        .iter()
        .find(|made| made.name == file)
        .expect("made");
    let tree = yaml::parse(file, &made.text).expect("YAML");
    let node = path.split('/').try_fold(&tree, |node, key| node.get(key));
    node.map_or_else(|| "(none)".to_owned(), merge::shown)
}

#[track_caller]
fn assert_values(imported: &Imported, file: &str, expected: &[(&str, &str)]) {
    for (path, word) in expected {
        assert_eq!(
            value(imported, file, path),
            *word,
            "{path} of {:#?}",
            imported.files
        );
    }
}

/// The report's line about a key.
fn says<'r>(lines: &'r [Line], key: &str) -> &'r str {
    lines
        .iter()
        .find(|line| line.key == key)
        .map_or("(nothing)", |line| line.says.as_str())
}

/// All that a report says.
fn everything(report: &Report) -> String {
    format!("{report:?}")
}

fn warns(report: &Report, part: &str) -> bool {
    report.warnings.iter().any(|warning| warning.contains(part))
}

#[test]
fn names_of_files_are_plain() {
    for (name, file) in [
        ("train ${{lr}}", "train-lr"),
        ("../x", "x"),
        ("", "job"),
        ("a/b", "a-b"),
    ] {
        assert_eq!(file_name(name), file);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_converted_or_refused(text in ".{0,200}", line in "#SBATCH -[-a-zA-Z]{1,12}[ \
        =]?[0-9:,%a-zG-]{0,8}") {
        for kind in [Kind::Act, Kind::Qd, Kind::Toolkit, Kind::Sbatch] {
            let _ = converted(kind, &text);
        }
        let _ = converted(Kind::Sbatch, &format!("#!/bin/sh\n{line}\necho {text}\n"));
    }

    #[test]
    fn a_script_comes_out_as_it_went_in(script in "[ -~]{0,60}(\n[ -~]{0,60}){0,4}") {
        proptest::prop_assume!(!script.contains("${{") && scrub::scrub(&script).1.is_empty() && !script.trim().is_empty());
        let form = serde_json::json!({ "experiment": { "script": script.lines().collect::<Vec<_>>() } });
        let imported = converted(Kind::Toolkit, &form.to_string()).expect("converts");
        let job: towline_core::job::Job = yaml::decode(&yaml::parse("x", &imported.files[0].text).expect("YAML")).expect("a job");
        let (made, lines) = (job.script.unwrap_or_default(), script.lines().collect::<Vec<_>>().join("\n"));
        proptest::prop_assert_eq!(made.trim_end_matches('\n'), lines.trim_end_matches('\n'));
    }
}

#[test]
fn json_may_have_comments_and_its_mistakes_have_their_place() {
    let form = "{ // a form\n \"experiment\": {\"script\": [\"x // no comment\",],},\n}";
    assert_values(
        &imported(Kind::Toolkit, &[("a.json", form)]),
        "a.tow.yaml",
        &[("script", "x // no comment\n")],
    );
    let wrong = refused(Kind::Toolkit, "a.json", "{\"experiment\": {}\n \"x\": 1}").to_string();
    assert!(
        wrong.starts_with("a.json:2:2: not valid JSON: expected `,`"),
        "{wrong}"
    );
    for text in ["{}", "", "{ /* nothing */ }"] {
        assert_eq!(
            refused(Kind::Toolkit, "a.json", text).to_string(),
            "a.json:1:1: it is empty"
        );
    }
    assert_eq!(
        refused(Kind::Act, "a.yaml", "[a]").to_string(),
        "a.yaml:1:1: expected a mapping of keys to values"
    );
}

#[test]
fn what_is_no_plain_file_is_not_read() {
    let wrong = import(
        Kind::Act,
        &["/dev/zero".into()],
        &read_plain,
        &Destination::default(),
    )
    .expect_err("refused");
    assert_eq!(wrong.to_string(), "/dev/zero is not a plain file");
}
