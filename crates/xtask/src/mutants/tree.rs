//! A copy of the tree in which mutants are built.

use super::sample::Mutant;
use super::weave::{CHOOSER, Woven, replace, weave};
use crate::{cargo, root, shown};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How often the compiler may complain about the mutants before something else must be wrong.
const MAX_BUILDS: usize = 30;

/// A test program.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) package: String,
    /// The folder of its package, in which cargo would run it.
    pub(super) folder: PathBuf,
}

/// The copy, with the mutants that are built into it.
#[derive(Debug)]
pub(super) struct Tree {
    folder: PathBuf,
    /// The files of the crates as they were copied.
    sources: BTreeMap<String, String>,
    woven: BTreeMap<String, Woven>,
    stay_const: BTreeSet<String>,
    pub(super) unviable: BTreeSet<usize>,
    pub(super) alone: BTreeSet<usize>,
}

impl Tree {
    /// Copies what git knows of the tree. Files that are equal stay untouched, so that cargo builds
    /// only what changed.
    pub(super) fn copy(folder: PathBuf) -> Result<Self, String> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()
            .map_err(|error| format!("git ls-files: {error}"))?;
        let mut tree = Self {
            folder,
            sources: BTreeMap::new(),
            woven: BTreeMap::new(),
            stay_const: BTreeSet::new(),
            unviable: BTreeSet::new(),
            alone: BTreeSet::new(),
        };
        for path in String::from_utf8_lossy(&listed.stdout).lines() {
            if let Ok(bytes) = fs::read(root().join(path)) {
                tree.write(path, &bytes)?;
                if let Ok(text) = String::from_utf8(bytes)
                    && path.contains("/src/")
                {
                    tree.sources.insert(path.to_owned(), text);
                }
            }
        }
        Ok(tree)
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let to = self.folder.join(path);
        let failed = |error| format!("{}: {error}", to.display());
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        fs::write(&to, bytes).map_err(failed)
    }

    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = cargo(words);
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // Few builds, many runs.
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_INCREMENTAL", "1")
            .stderr(Stdio::null());
        command
    }

    /// Builds the tests of packages with all mutants in them. Mutants that the compiler complains
    /// about are unviable.
    pub(super) fn build_all(
        &mut self,
        mutants: &[(usize, &Mutant)],
        packages: &BTreeSet<&str>,
    ) -> Result<Vec<Program>, String> {
        for _ in 0..MAX_BUILDS {
            self.weave_files(mutants)?;
            let (messages, is_built) = self.messages(packages)?;
            if is_built {
                return Ok(programs(&messages));
            }
            let complaints = complaints(messages);
            let before = (self.unviable.len(), self.alone.len(), self.stay_const.len());
            for complaint in &complaints {
                self.judge(complaint);
            }
            if before == (self.unviable.len(), self.alone.len(), self.stay_const.len()) {
                let first = complaints.first().and_then(|first| first.get("rendered"));
                let text = first.and_then(Value::as_str);
                return Err(text.unwrap_or("the tests do not compile").to_owned());
            }
            println!(
                "{} unviable, {} need a build of their own",
                self.unviable.len(),
                self.alone.len()
            );
        }
        Err(format!("{MAX_BUILDS} builds were not enough"))
    }

    fn weave_files(&mut self, mutants: &[(usize, &Mutant)]) -> Result<(), String> {
        let mut by_file: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in mutants {
            let of = by_file.entry(&mutant.file).or_default();
            if !self.unviable.contains(number) && !self.alone.contains(number) {
                of.push((*number, mutant));
            }
        }
        let mut libraries = BTreeSet::new();
        for (file, mutants) in by_file {
            let woven = weave(self.source(file)?, &mutants, &self.stay_const)
                .map_err(|error| format!("{file}: {error}"))?;
            self.alone.extend(&woven.alone);
            self.woven.insert(file.to_owned(), woven);
            libraries.extend(library_of(file));
        }
        for library in libraries {
            let is_woven = self.woven.contains_key(&library);
            if !is_woven {
                let text = self.source(&library)?.to_owned();
                let own = Woven {
                    text,
                    ..Woven::default()
                };
                self.woven.insert(library.clone(), own);
            }
            if let Some(woven) = self.woven.get_mut(&library)
                && !woven.text.ends_with(CHOOSER)
            {
                woven.text += CHOOSER;
            }
        }
        for (file, woven) in &self.woven {
            self.write(file, woven.text.as_bytes())?;
        }
        Ok(())
    }

    /// What cargo says when it builds the tests of packages, and whether it succeeded.
    fn messages(&self, packages: &BTreeSet<&str>) -> Result<(Vec<Value>, bool), String> {
        let mut words = vec!["test", "--no-run", "--message-format=json"];
        words.extend(packages.iter().flat_map(|package| ["--package", package]));
        let mut command = self.cargo(&words);
        println!("$ {}", shown(&command));
        let output = command
            .output()
            .map_err(|error| format!("{}: {error}", shown(&command)))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok((messages.collect(), output.status.success()))
    }

    /// Finds the mutant that an error is about.
    fn judge(&mut self, complaint: &Value) {
        let code = complaint.pointer("/code/code").and_then(Value::as_str);
        if code == Some("E0015") {
            // A constant needs a function that lost its `const`.
            let text = complaint.get("message").and_then(Value::as_str);
            let name = text.and_then(|text| text.split('`').nth(1));
            let last = name.and_then(|name| name.rsplit("::").next());
            self.stay_const.extend(last.map(str::to_owned));
            return;
        }
        let spans = complaint.get("spans").and_then(Value::as_array);
        let mut around = BTreeSet::new();
        for span in spans.into_iter().flatten() {
            let byte = |name| usize::try_from(span.get(name)?.as_u64()?).ok();
            let file = span.get("file_name").and_then(Value::as_str);
            let (Some(start), Some(file)) = (byte("byte_start"), file) else {
                continue;
            };
            let Some(woven) = self.woven.get(file) else {
                continue;
            };
            let holds = |(_, bytes): &&(usize, std::ops::Range<usize>)| bytes.contains(&start);
            if let Some((number, _)) = woven.own.iter().find(holds) {
                self.unviable.insert(*number);
                return;
            }
            if code == Some("E0004") {
                // The arms of the match that is named here are behind this place, and one of them
                // has got a guard.
                let next = woven.own.iter().filter(|(_, bytes)| bytes.start > start);
                around.extend(next.min_by_key(|(_, bytes)| bytes.start).map(|of| of.0));
                break;
            }
            let closest = woven.around.iter().filter(holds);
            around.extend(closest.min_by_key(|(_, bytes)| bytes.len()).map(|of| of.0));
        }
        self.alone.extend(around);
    }

    /// Puts one mutant in place of the original in its file, without the others.
    pub(super) fn put_alone(&self, mutant: &Mutant) -> Result<(), String> {
        let mut changed = replace(self.source(&mutant.file)?, mutant);
        if library_of(&mutant.file).as_ref() == Some(&mutant.file) {
            changed += CHOOSER;
        }
        self.write(&mutant.file, changed.as_bytes())
    }

    /// Puts the file of a mutant back as it was with all the others.
    pub(super) fn put_back(&self, mutant: &Mutant) -> Result<(), String> {
        match self.woven.get(&mutant.file) {
            Some(woven) => self.write(&mutant.file, woven.text.as_bytes()),
            None => Ok(()),
        }
    }

    /// Builds the tests of packages. `None` if they do not compile.
    pub(super) fn build(&self, packages: &BTreeSet<&str>) -> Result<Option<Vec<Program>>, String> {
        let (messages, is_built) = self.messages(packages)?;
        Ok(is_built.then(|| programs(&messages)))
    }

    /// A file as it was when the tree was copied.
    fn source(&self, file: &str) -> Result<&str, String> {
        let source = self.sources.get(file).map(String::as_str);
        source.ok_or_else(|| format!("{file} is no file of the tree"))
    }
}

/// The errors of the compiler.
fn complaints(messages: Vec<Value>) -> Vec<Value> {
    let errors = messages.into_iter().filter_map(|mut message| {
        let message = message.get_mut("message")?.take();
        let is_error = message.get("level").is_some_and(|level| level == "error");
        let spans = message.get("spans").and_then(Value::as_array);
        (is_error && spans.is_some_and(|spans| !spans.is_empty())).then_some(message)
    });
    errors.collect()
}

/// The test programs that cargo has built.
fn programs(messages: &[Value]) -> Vec<Program> {
    let program = |message: &Value| {
        let path = message.get("executable")?.as_str()?;
        let manifest = Path::new(message.get("manifest_path")?.as_str()?);
        let folder = manifest.parent()?.to_owned();
        let name = folder.file_name()?.to_str()?;
        Some(Program {
            path: PathBuf::from(path),
            package: format!("towline-{name}"),
            folder,
        })
    };
    messages.iter().filter_map(program).collect()
}

/// The root of a file's crate.
fn library_of(file: &str) -> Option<String> {
    let (folder, _) = file.split_once("/src/")?;
    Some(format!("{folder}/src/lib.rs"))
}
