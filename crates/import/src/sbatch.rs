//! A batch script of Slurm as a job: its `#SBATCH` lines become keys, its other lines the script.

use super::act_defaults::is_variable;
use super::sbatch_names::{self as names, Takes};
use super::sbatch_options::{Given, array, options, seconds};
use super::sbatch_size::Size;
use super::section::wrong;
use super::{Converted, ScriptLines, add_secret, put_script, quoted, scrub, shell_words};
use std::path::Path;
use towline_core::Result;
use towline_core::quantity::Span;
use towline_core::yaml::{Node, Position};

/// The report's text for `--signal`. Another signal would replace the one that the runner waits for.
const SIGNAL_NOTE: &str = "Towline asks for a signal of its own: before the time limit the ranks get \
    SIGTERM and a grace of ten seconds; `trap … TERM` in the script hears it";

pub(super) struct Work<'w> {
    pub(super) job: Node,
    pub(super) converted: &'w mut Converted,
    pub(super) native: Vec<Node>,
    pub(super) size: Size,
    /// A folder outside the code where the script starts.
    start_folder: Option<String>,
}

pub(super) fn convert(file: &Path, text: &str) -> Result<Converted> {
    let source = file.display().to_string();
    let top = Position {
        source: source.as_str().into(),
        line: 1,
        column: 1,
    };
    if !text.starts_with("#!") {
        return Err(wrong(
            &top,
            "this is not a batch script: its first line is not `#!` with a shell",
        ));
    }
    let given = options(&source, text)?;
    let mut converted = Converted::new(&source);
    let mut work = Work {
        job: Node::mapping(top.clone()),
        converted: &mut converted,
        native: Vec::new(),
        size: Size::default(),
        start_folder: None,
    };
    // The batch script itself runs once, on the first node.
    for option in &given {
        work.option(option)?;
    }
    work.sizes(&top)?;
    if !work.native.is_empty() {
        let native = Node::sequence(std::mem::take(&mut work.native), top.clone());
        work.job.put(&["resources", "native"], native);
    }
    let Work {
        mut job,
        start_folder,
        ..
    } = work;
    body(text, start_folder, &mut job, &mut converted, &top)?;
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = job
        .get("name")
        .and_then(Node::text)
        .map_or(stem, str::to_owned);
    converted.jobs.push((name, job));
    Ok(converted)
}

impl Work<'_> {
    fn put(&mut self, given: &Given, path: &[&str], node: Node) {
        self.job.put(path, node);
        self.converted
            .report
            .mapped(format!("--{}", given.name), &given.at, path.join("."));
    }

    pub(super) fn scalar(&mut self, given: &Given, path: &[&str], text: &str) {
        self.put(given, path, quoted(text, &given.at));
    }

    /// Passes the option to Slurm unchanged.
    fn pass(&mut self, given: &Given) {
        let has_secret = |text: &str| !scrub::scrub(text).1.is_empty();
        if has_secret(&given.option_text()) || given.value.as_deref().is_some_and(has_secret) {
            return self.converted.report.not_mapped(
                format!("--{}", given.name),
                &given.at,
                "its value holds a secret: it was not copied",
            );
        }
        self.native.push(quoted(&given.option_text(), &given.at));
        self.converted.report.mapped(
            format!("--{}", given.name),
            &given.at,
            "resources.native, as it is",
        );
    }

    fn option(&mut self, given: &Given) -> Result<()> {
        let at = &given.at;
        match given.name.as_str() {
            "job-name" => self.scalar(given, &["name"], given.text()?),
            "account" => self.scalar(given, &["resources", "account"], given.text()?),
            "qos" if ["premium", "standard", "basic"].contains(&given.text()?) => {
                self.scalar(given, &["resources", "tier"], given.text()?);
            }
            "partition" => {
                self.pass(given);
                self.converted.report.warn(format!(
                    "the partition `{}` is now that of this job alone; for all jobs, set \
                        `partition` of the cluster in the configuration",
                    given.text()?
                ));
            }
            "time" => match seconds(given)? {
                Some(seconds) => {
                    self.scalar(given, &["resources", "time"], &Span(seconds).to_string());
                }
                None => self.converted.report.not_needed(
                    "--time",
                    at,
                    "without a time there is no limit but the cluster's",
                ),
            },
            "chdir" => self.folder(given)?,
            "export" => self.export(given)?,
            "array" => self.array(given)?,
            _ if self.is_left_out(given) => {}
            name if names::takes(name) == Takes::Unknown => self.unknown(given),
            _ if self.count(given)? => {}
            _ => self.pass(given),
        }
        Ok(())
    }

    /// Reports an option that has no counterpart in a job; `false` for any other.
    fn is_left_out(&mut self, given: &Given) -> bool {
        let at = &given.at;
        match given.name.as_str() {
            "output" | "error" | "open-mode" | "parsable" | "quiet" | "verbose" => {
                self.converted.report.not_needed(
                    format!("--{}", given.name),
                    at,
                    "every rank's output is kept: `tow logs`",
                );
            }
            "wait" => {
                self.converted
                    .report
                    .not_needed("--wait", at, "`tow run` and `tow wait` do so");
            }
            "requeue" => self.converted.report.not_needed(
                "--requeue",
                at,
                "a run that is evicted is queued again by itself",
            ),
            "no-requeue" => self.converted.report.not_mapped(
                "--no-requeue",
                at,
                "a run that is evicted is always queued again",
            ),
            "help" | "usage" | "version" | "test-only" => self.converted.report.not_needed(
                format!("--{}", given.name),
                at,
                "it submits nothing",
            ),
            "signal" => self
                .converted
                .report
                .not_mapped("--signal", at, SIGNAL_NOTE),
            "input" => self.converted.report.not_mapped(
                "--input",
                at,
                "a run reads no input: write `< FILE` behind the command",
            ),
            "ntasks-per-core" | "ntasks-per-gpu" | "ntasks-per-socket" => {
                self.converted.report.not_mapped(
                    format!("--{}", given.name),
                    at,
                    "Towline starts its own task on each node: write it behind `srun` in the \
                        script",
                );
            }
            "clusters" => self.converted.report.not_mapped(
                "--clusters",
                at,
                "name the cluster with `cluster:` or `-c`",
            ),
            "hetjob" | "packjob" => {
                self.converted.report.not_mapped(
                    given.name.clone(),
                    at,
                    "a run has one kind of \
                    node: the parts of the job behind this line are left out",
                );
                self.converted.report.warn(format!(
                    "{at}: the job has several parts with machines of their own \
                        (`{}`); only the first was imported",
                    given.name
                ));
            }
            _ => return false,
        }
        true
    }

    /// An option that `sbatch` itself does not have. A plugin of the cluster may.
    fn unknown(&mut self, given: &Given) {
        let guess = names::suggested(&given.name)
            .map_or(".".to_owned(), |near| format!(": did you mean `--{near}`?"));
        self.converted.report.not_mapped(
            format!("--{}", given.name),
            &given.at,
            format!("`sbatch` does not know it{}", guess.trim_end_matches('.')),
        );
        self.converted.report.warn(format!(
            "{}: `sbatch` does not know `--{}`{guess} It was not passed on; where a plugin of the \
                cluster knows it, write it under `resources.native`",
            given.at, given.name
        ));
    }

    fn folder(&mut self, given: &Given) -> Result<()> {
        let path = given.text()?;
        if path.starts_with('/')
            || path.starts_with('~')
            || path.split('/').any(|part| part == "..")
        {
            self.start_folder = Some(path.to_owned());
            self.converted.report.mapped(
                "--chdir",
                &given.at,
                "the script's first line, `cd`: the folder lies outside the code",
            );
        } else {
            self.scalar(given, &["code", "workdir"], path);
        }
        Ok(())
    }

    fn export(&mut self, given: &Given) -> Result<()> {
        for part in given.text()?.split(',') {
            match part.split_once('=') {
                Some((name, _)) if !is_variable(name) => {
                    return Err(wrong(
                        &given.at,
                        format!(
                            "`--export`: `{name}` is not the name of a variable: letters, digits \
                                and `_`, no digit first"
                        ),
                    ));
                }
                Some((name, value)) if scrub::is_secret(name, value) => {
                    add_secret(&mut self.job, name, &given.at);
                    self.converted.report.not_mapped(
                        format!("--export: {name}"),
                        &given.at,
                        "a secret: its value was not copied, only its name to environment.secrets",
                    );
                    self.converted.report.store(
                        name,
                        &format!(
                            "the value of {name} in \
                        `--export`"
                        ),
                    );
                }
                Some((name, value)) => self.scalar(given, &["environment", "env", name], value),
                None if part == "NONE" || part == "NIL" => {
                    self.converted.report.not_needed(
                        "--export: \
                        NONE",
                        &given.at,
                        "a far run gets only the variables that the job file names",
                    );
                }
                None => self.converted.report.not_mapped(
                    format!("--export: {part}"),
                    &given.at,
                    "a far run gets only the variables that the job file names: write them under \
                        `environment.env`",
                ),
            }
        }
        Ok(())
    }

    fn array(&mut self, given: &Given) -> Result<()> {
        let (numbers, at_once) = array(given)?;
        let values = numbers
            .iter()
            .map(|number| quoted(number, &given.at))
            .collect();
        self.put(
            given,
            &["sweep", "task"],
            Node::sequence(values, given.at.clone()),
        );
        self.job.put(
            &["environment", "env", "SLURM_ARRAY_TASK_ID"],
            quoted("${{task}}", &given.at),
        );
        if let Some(at_once) = at_once {
            self.converted.report.not_mapped(
                format!("--array: %{at_once}"),
                &given.at,
                "how many run at once is the cluster's choice",
            );
        }
        Ok(())
    }
}

/// The script without its `#SBATCH` lines. Its `#!` line stays, so that the same shell runs it.
fn body(
    text: &str,
    start_folder: Option<String>,
    job: &mut Node,
    converted: &mut Converted,
    top: &Position,
) -> Result<()> {
    let mut lines: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with("#SBATCH"))
        .map(|(index, line)| (index + 1, line.to_owned()))
        .collect();
    if lines
        .iter()
        .skip(1)
        .all(|(_, line)| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Err(wrong(top, "the script has no command"));
    }
    if let Some(folder) = start_folder {
        lines.insert(1, (1, format!("cd {}", shell_words::quoted(&folder))));
    }
    for variable in [
        "SLURM_ARRAY_JOB_ID",
        "SLURM_ARRAY_TASK_COUNT",
        "SLURM_ARRAY_TASK_MAX",
        "SLURM_ARRAY_TASK_MIN",
        "SLURM_SUBMIT_DIR",
    ] {
        if lines.iter().any(|(_, line)| line.contains(variable)) {
            converted.report.warn(format!(
                "the script uses ${variable}, which is another one here, or none"
            ));
        }
    }
    // `${{` in the script is its own text, not a value of a sweep.
    let lines = lines
        .into_iter()
        .map(|(number, line)| (number, line.replace("${{", "$${{")))
        .collect();
    put_script(
        converted,
        job,
        &["script"],
        &ScriptLines {
            lines,
            source_name: &top.source,
        },
        top,
    );
    Ok(())
}
