//! Files of other tools as ours. Text in, files and a report out: nothing is written here, and files
//! are read through a function, so that every conversion can be tried on texts alone. No secret is
//! ever copied: it becomes a reference, and the report says where its value is to be stored.

pub(crate) mod act;
mod act_accounts;
mod act_defaults;
mod act_file;
mod philly;
mod report;
mod sbatch;
mod sbatch_options;
mod scrub;
mod section;
mod toolkit;
mod toolkit_job;
mod yaml_text;
mod zip;

pub use report::{Line, Report};

use std::io;
use std::path::{Path, PathBuf};
use towline_core::yaml::{self, Content, Node};
use towline_core::{Error, Result};

/// Reads a file's text.
pub type Reader<'r> = &'r dyn Fn(&Path) -> io::Result<String>;

/// Whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Act,
    Qd,
    Toolkit,
    Sbatch,
}

impl Kind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Qd => "qd",
            Self::Toolkit => "toolkit",
            Self::Sbatch => "sbatch",
        }
    }
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub name: String,
    pub text: String,
}

/// What all given files gave together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    pub files: Vec<Made>,
    pub reports: Vec<Report>,
}

/// What one conversion gives: keys of `towline.yaml`, and a job with its name.
pub(crate) struct Converted {
    pub(crate) config: Node,
    pub(crate) job: Option<(String, Node)>,
    pub(crate) report: Report,
}

impl Converted {
    fn new(source: &str) -> Self {
        Self { config: Node::empty_mapping(source), job: None, report: Report::new(source) }
    }
}

/// Converts all files. Relative paths, theirs and those in them, are the reader's to complete.
pub fn import(kind: Kind, files: &[PathBuf], read: Reader<'_>) -> Result<Imported> {
    let mut config = Node::empty_mapping(kind.word());
    let mut imported = Imported::default();
    let mut jobs: Vec<(String, String)> = Vec::new();
    let words: Vec<String> = files.iter().map(|file| file.display().to_string().replace(char::is_control, " ")).collect();
    let title = format!("Written by `tow import {} {}`; its report says what did not map.", kind.word(), words.join(" "));
    let mut accounts = act::Accounts::for_import();
    for file in files {
        let converted = match kind {
            Kind::Act | Kind::Qd => act::convert(file, read, &mut accounts)?,
            Kind::Toolkit => toolkit::convert(file, &read_tree(file, read)?)?,
            Kind::Sbatch => sbatch::convert(file, &read_text(file, read)?)?,
        };
        // What stands there first counts: the first file's folders are the usual ones.
        let mut merged = converted.config;
        merged.overlay(config);
        config = merged;
        if let Some((name, job)) = converted.job {
            let name = format!("{}.tow.yaml", file_name(&name));
            if let Some((_, other)) = jobs.iter().find(|(known, _)| *known == name) {
                return Err(Error::config(format!("{}: its job would be {name}, as that of {other}", file.display()))
                    .hint("import them one by one, in different folders"));
            }
            imported.files.push(Made { name: name.clone(), text: yaml_text::file(&title, &job) });
            jobs.push((name, file.display().to_string()));
        }
        imported.reports.push(converted.report);
    }
    if kind == Kind::Act {
        put_default(&mut config, files);
    }
    if !matches!(&config.content, Content::Mapping(entries) if entries.is_empty()) {
        imported.files.insert(0, Made { name: crate::layers::PROJECT_FILE.to_owned(), text: yaml_text::file(&title, &config) });
    }
    check(&imported)?;
    Ok(imported)
}

/// The cluster that ACT uses unasked: `aml`, or the only one.
fn put_default(config: &mut Node, files: &[PathBuf]) {
    let names: Vec<String> = files.iter().filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect();
    let default = names.iter().find(|name| *name == "aml").or(names.first().filter(|_| names.len() == 1));
    if let Some(default) = default.filter(|name| config.get("clusters").is_some_and(|clusters| clusters.get(name).is_some())) {
        let at = config.at.clone();
        config.put(&["default_cluster"], Node::scalar(default, at));
    }
}

/// What is written is read again before anybody sees it.
fn check(imported: &Imported) -> Result<()> {
    for made in &imported.files {
        let unreadable = |error: Error| Error::config(format!("{} would not be readable: {error}", made.name));
        let tree = yaml::parse(&made.name, &made.text).map_err(|error| unreadable(error.into()))?;
        let read = if made.name == crate::layers::PROJECT_FILE {
            yaml::decode_leniently::<towline_core::config::Config>(&tree).map(drop)
        } else {
            yaml::decode::<towline_core::job::Job>(&tree).map(drop)
        };
        read.map_err(|error| unreadable(error.into()))?;
    }
    Ok(())
}

fn read_text(file: &Path, read: Reader<'_>) -> Result<String> {
    let text = read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::config(format!("there is no file {}", file.display())),
        io::ErrorKind::InvalidData => Error::config(format!("{}:1:1: not UTF-8 text", file.display())),
        _ => Error::config(format!("{} cannot be read", file.display())).source_error(error),
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// YAML, or JSON, which is YAML but for tabs between its values.
fn read_tree(file: &Path, read: Reader<'_>) -> Result<Node> {
    let mut text = read_text(file, read)?;
    if text.trim_start().starts_with('{') {
        text = text.replace('\t', " ");
    }
    let node = yaml::parse(&file.display().to_string(), &text)?;
    if !matches!(&node.content, Content::Mapping(entries) if !entries.is_empty()) {
        return Err(Error::config(format!("{}:1:1: expected a mapping of keys to values", file.display())));
    }
    Ok(node)
}

/// A name as a file may have it.
fn file_name(name: &str) -> String {
    let plain: String =
        name.replace("${{", "").replace("}}", "").chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches(['-', '.']);
    if plain.is_empty() { "job".to_owned() } else { plain.chars().take(60).collect() }
}

/// Brings a script's lines into a job, its secrets left behind.
fn put_script(converted: &mut Converted, job: &mut Node, path: &[&str], lines: &[String], at: &yaml::Position) {
    let (text, found) = scrub::scrub(&lines.join("\n"));
    leave_behind(converted, job, &found, &path.join("."), at);
    let node = match path {
        ["script"] => Node { content: Content::Scalar { text: format!("{}\n", text.trim_end_matches('\n')), plain: false }, at: at.clone() },
        _ => Node::sequence(text.split('\n').map(|line| quoted(line, at)).collect(), at.clone()),
    };
    job.put(path, node);
}

fn quoted(text: &str, at: &yaml::Position) -> Node {
    Node { content: Content::Scalar { text: text.to_owned(), plain: false }, at: at.clone() }
}

/// Names under `environment.secrets`, and what to do for each.
fn leave_behind(converted: &mut Converted, job: &mut Node, found: &[scrub::Found], place: &str, at: &yaml::Position) {
    for found in found {
        converted.report.warn(format!(
            "line {} of `{place}` held a secret: it was not copied. `{}` is under `environment.secrets` and used in its place (look at the quotes there); export {}=… before submitting, or store it once",
            found.line, found.name, found.name
        ));
        converted.report.store(&found.name, &format!("the value from line {} of `{place}`", found.line));
        add_secret(job, &found.name, at);
    }
}

fn add_secret(job: &mut Node, name: &str, at: &yaml::Position) {
    let mut names: Vec<Node> = match job.get("environment").and_then(|environment| environment.get("secrets")).map(|node| &node.content) {
        Some(Content::Sequence(names)) => names.clone(),
        _ => Vec::new(),
    };
    if !names.iter().any(|known| known.text() == Some(name)) {
        names.push(quoted(name, at));
        job.put(&["environment", "secrets"], Node::sequence(names, at.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(kind: Kind, text: &str) -> Result<Imported> {
        let read = |file: &Path| if file == Path::new("x") { Ok(text.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) };
        import(kind, &["x".into()], &read)
    }

    #[test]
    fn names_of_files_are_plain() {
        for (name, file) in [("train ${{lr}}", "train-lr"), ("../x", "x"), ("", "job"), ("a/b", "a-b")] {
            assert_eq!(file_name(name), file);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_converted_or_refused(text in ".{0,200}", line in "#SBATCH -[-a-zA-Z]{1,12}[ =]?[0-9:,%a-zG-]{0,8}") {
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
}
