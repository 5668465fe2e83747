//! Converts files of other tools. Text in, files and a report out: nothing is written here, and
//! files are read through a function, so that every conversion can be tested on texts alone. No
//! secret is ever copied: it becomes a reference, and the report says where to store its value.

pub mod act;
mod act_accounts;
mod act_defaults;
mod act_file;
pub mod act_folders;
mod act_wrong_file;
mod addition;
mod amlt;
mod amlt_job;
mod amlt_search;
mod amlt_sku;
mod amlt_target;
mod insert;
mod json;
mod merge;
mod no_keyring;
pub mod other_tools;
mod philly;
mod plain_file;
mod report;
mod sbatch;
mod sbatch_names;
mod sbatch_options;
mod sbatch_size;
mod script;
mod scrub;
mod section;
mod shell_words;
mod toolkit;
mod toolkit_code;
mod toolkit_io;
mod toolkit_job;
mod toolkit_storage;
mod toolkit_sweep;
mod yaml_text;
mod zip;

#[cfg(test)]
mod tests;

pub use plain_file::read_plain;
pub use report::{Line, Report};

use script::{ScriptLines, add_secret, put_script, quoted};
use std::io;
use std::path::{Path, PathBuf};
use towline_core::yaml::{self, Content, Node};
use towline_core::{Error, Result};

/// Reads a file's text.
pub type Reader<'r> = &'r dyn Fn(&Path) -> io::Result<String>;

/// The tool whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Act,
    Qd,
    Toolkit,
    Sbatch,
    Amlt,
}

impl Kind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Qd => "qd",
            Self::Toolkit => "toolkit",
            Self::Sbatch => "sbatch",
            Self::Amlt => "amlt",
        }
    }
}

/// The treatment of a present file of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// There must be none, unless it may be overwritten.
    New,
    /// The new text is the present file with additions.
    Added,
    /// The present file is kept under another name.
    Replaced,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    pub name: String,
    pub text: String,
    pub placement: Placement,
}

/// The result of importing all given files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    pub files: Vec<NewFile>,
    pub reports: Vec<Report>,
    /// Notes about all files together.
    pub notes: Vec<String>,
}

/// The result of one conversion: keys of `towline.yaml`, and jobs with their names.
pub(crate) struct Converted {
    pub(crate) config: Node,
    pub(crate) jobs: Vec<(String, Node)>,
    pub(crate) report: Report,
    philly: philly::Part,
}

impl Converted {
    fn new(source: &str) -> Self {
        Self {
            config: Node::empty_mapping(source),
            jobs: Vec::new(),
            report: Report::new(source),
            philly: philly::Part::default(),
        }
    }
}

/// The state of the machine and folder that the import goes to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Destination<'t> {
    /// The text of the present `towline.yaml`.
    pub existing: Option<&'t str>,
    /// Imported values replace present ones.
    pub force: bool,
    /// Credentials can be kept in a keyring; otherwise variables hold them.
    pub keyring: bool,
}

/// Converts all files. The reader resolves relative paths, of the files and in them. The result is
/// added to the present configuration.
pub fn import(
    kind: Kind,
    files: &[PathBuf],
    read: Reader<'_>,
    there: &Destination<'_>,
) -> Result<Imported> {
    let mut config = Node::empty_mapping(kind.word());
    let mut imported = Imported::default();
    let words: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string().replace(char::is_control, " "))
        .collect();
    let title = format!(
        "Written by `tow import {} {}`; its report says what did not map.",
        kind.word(),
        words.join(" ")
    );
    let mut all = convert(kind, files, read)?;
    philly::describe_listed_clusters(&mut all);
    let mut jobs: Vec<(String, String)> = Vec::new();
    for (converted, file) in all.iter_mut().zip(files) {
        merge::add(&mut config, converted);
        for (name, job) in &converted.jobs {
            let name = format!("{}.tow.yaml", file_name(name));
            if let Some((_, other)) = jobs.iter().find(|(known, _)| *known == name) {
                return Err(Error::config(format!(
                    "{}: its job would be {name}, as that of {other}",
                    file.display()
                ))
                .hint("import them one by one, in different folders"));
            }
            imported.files.push(NewFile {
                name: name.clone(),
                text: yaml_text::file(&title, job),
                placement: Placement::New,
            });
            jobs.push((name, file.display().to_string()));
        }
    }
    imported.reports = all.into_iter().map(|converted| converted.report).collect();
    if !there.keyring {
        no_keyring::use_variables(&mut config, &mut imported.reports);
    }
    if matches!(kind, Kind::Act | Kind::Qd) {
        act_folders::exclude_missing_folders(&mut config);
    }
    if kind == Kind::Act {
        put_default(&mut config, files);
    }
    put_config(config, &title, there, &mut imported)?;
    check(&imported)?;
    Ok(imported)
}

fn convert(kind: Kind, files: &[PathBuf], read: Reader<'_>) -> Result<Vec<Converted>> {
    let mut accounts = act::Accounts::for_import();
    let one = |file: &PathBuf| match kind {
        Kind::Act | Kind::Qd => act::convert(file, read, &mut accounts),
        Kind::Toolkit => toolkit::convert(file, &read_tree(file, read)?),
        Kind::Sbatch => sbatch::convert(file, &read_text(file, read)?),
        Kind::Amlt => amlt::convert(file, &read_tree(file, read)?),
    };
    files.iter().map(one).collect()
}

/// The project file, new or extended; none if there is nothing to write.
fn put_config(
    config: Node,
    title: &str,
    there: &Destination<'_>,
    imported: &mut Imported,
) -> Result<()> {
    if matches!(&config.content, Content::Mapping(entries) if entries.is_empty()) {
        return Ok(());
    }
    let name = towline_core::config::PROJECT_FILE.to_owned();
    let made = match there.existing {
        None => Some(NewFile {
            name,
            text: yaml_text::file(title, &config),
            placement: Placement::New,
        }),
        Some(existing) => {
            addition::onto(existing, config, title, there.force, &mut imported.reports)?
        }
    };
    match made {
        Some(made) => imported.files.insert(0, made),
        None => imported.notes.push(format!(
            "{} has all of it already and stays as it is",
            towline_core::config::PROJECT_FILE
        )),
    }
    Ok(())
}

/// The cluster that ACT uses by default: `aml`, or the only one.
fn put_default(config: &mut Node, files: &[PathBuf]) {
    let names: Vec<String> = files
        .iter()
        .filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    let default = names
        .iter()
        .find(|name| *name == "aml")
        .or(names.first().filter(|_| names.len() == 1));
    if let Some(default) = default.filter(|name| {
        config
            .get("clusters")
            .is_some_and(|clusters| clusters.get(name).is_some())
    }) {
        let at = config.at.clone();
        config.put(&["default_cluster"], Node::scalar(default, at));
    }
}

/// Reads every file back before it is written.
fn check(imported: &Imported) -> Result<()> {
    for made in &imported.files {
        let unreadable =
            |error: Error| Error::config(format!("{} would not be readable: {error}", made.name));
        let tree = yaml::parse(&made.name, &made.text).map_err(|error| unreadable(error.into()))?;
        let read = if made.name == towline_core::config::PROJECT_FILE {
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
        io::ErrorKind::InvalidData => {
            Error::config(format!("{}:1:1: not UTF-8 text", file.display()))
        }
        io::ErrorKind::InvalidInput => Error::config(format!("{} {error}", file.display())),
        _ => Error::config(format!("{} cannot be read", file.display())).source_error(error),
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}

/// YAML or JSON.
fn read_tree(file: &Path, read: Reader<'_>) -> Result<Node> {
    let mut text = read_text(file, read)?;
    if json::is_json(file, &text) {
        text = json::plain(file, &text)?;
    } else if text.trim_start().starts_with('{') {
        // YAML does not allow tabs, which JSON does.
        text = text.replace('\t', " ");
    }
    let node = yaml::parse(&file.display().to_string(), &text)?;
    match &node.content {
        Content::Mapping(entries) if entries.is_empty() => Err(Error::config(format!(
            "{}:1:1: it is empty",
            file.display()
        ))),
        Content::Mapping(_) => Ok(node),
        _ => Err(Error::config(format!(
            "{}:1:1: expected a mapping of keys to values",
            file.display()
        ))),
    }
}

/// The name, with only characters that are safe in file names.
fn file_name(name: &str) -> String {
    let plain: String = name
        .replace("${{", "")
        .replace("}}", "")
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "_-.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    let plain = plain.trim_matches(['-', '.']);
    if plain.is_empty() {
        "job".to_owned()
    } else {
        plain.chars().take(60).collect()
    }
}
