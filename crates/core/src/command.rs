//! The program of a job: a list of arguments, a line for a shell, or a script.

use crate::job::{Job, OneOrMany};
use crate::token::hidden;
use crate::{Error, Result, quote};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a rank is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A program and its arguments, without a shell.
    #[serde(rename = "words")]
    Argv(Vec<String>),
    /// One line for `sh -c`.
    Line(String),
    /// Lines for `bash -e`, or for the interpreter in their `#!` line.
    Script(String),
}

impl Program {
    /// Several words run without a shell. A single word with blanks or shell characters needs a
    /// shell.
    pub fn from_words(words: &[String]) -> Option<Self> {
        match words {
            [] => None,
            [line] if needs_shell(line) => Some(Self::Line(line.clone())),
            words => Some(Self::Argv(words.to_vec())),
        }
    }

    pub fn from_job(job: &Job) -> Result<Self> {
        let none = || {
            Error::config("the job has neither `command` nor `script`")
                .hint(
                    "for example `tow submit python train.py`, or `command: python train.py` in \
                    the job file",
                )
                .about("command")
        };
        match (&job.command, &job.script) {
            (command, Some(_)) if !command.is_empty() => {
                Err(Error::config("the job has both `command` and `script`")
                    .hint("keep one of them")
                    .about("command"))
            }
            (_, Some(script)) if script.trim().is_empty() => Err(none()),
            (_, Some(script)) => Ok(Self::Script(script.clone())),
            (command, None) => {
                let program = Self::from_words(command.as_slice()).ok_or_else(none)?;
                match &program {
                    Self::Argv(words) if words[0].is_empty() => {
                        Err(Error::config("the command's first word is empty").about("command"))
                    }
                    Self::Line(line) if line.trim().is_empty() => Err(none()),
                    _ => Ok(program),
                }
            }
        }
    }

    pub fn into_job(self, job: &mut Job) {
        match self {
            Self::Argv(words) => (job.command, job.script) = (OneOrMany::Many(words), None),
            Self::Line(line) => (job.command, job.script) = (OneOrMany::One(line), None),
            Self::Script(script) => (job.command, job.script) = (OneOrMany::None, Some(script)),
        }
    }

    /// A new program with every text passed through `change`.
    pub fn try_map(&self, mut change: impl FnMut(&str) -> Result<String>) -> Result<Self> {
        Ok(match self {
            Self::Argv(words) => Self::Argv(
                words
                    .iter()
                    .map(|word| change(word))
                    .collect::<Result<_>>()?,
            ),
            Self::Line(line) => Self::Line(change(line)?),
            Self::Script(script) => Self::Script(change(script)?),
        })
    }

    /// One line for tables: words are quoted if a shell would need it.
    pub fn display(&self) -> String {
        match self {
            Self::Argv(words) => words
                .iter()
                .map(|word| quote::shown(&hidden(word)))
                .collect::<Vec<_>>()
                .join(" "),
            Self::Line(line) => hidden(line),
            Self::Script(script) => {
                let script = hidden(script);
                let line = script
                    .lines()
                    .map(str::trim)
                    .find(|line| !line.is_empty() && !line.starts_with('#'));
                format!("script: {}", line.unwrap_or_default())
            }
        }
    }

    /// The name a run gets when the user gave none: the script of an interpreter, or the program.
    pub fn default_name(&self) -> String {
        let words: Vec<&str> = match self {
            Self::Argv(words) => words.iter().map(String::as_str).collect(),
            Self::Line(line) => line.split_whitespace().collect(),
            Self::Script(_) => return "script".to_owned(),
        };
        named_after(&words)
    }
}

/// Programs that only start another one, with their words that come before it.
const STARTER_PROGRAMS: [(&str, &[&str]); 13] = [
    ("accelerate", &["launch"]),
    ("conda", &["run"]),
    ("deepspeed", &[]),
    ("env", &[]),
    ("mamba", &["run"]),
    ("mpiexec", &[]),
    ("mpirun", &[]),
    ("nice", &[]),
    ("pdm", &["run"]),
    ("poetry", &["run"]),
    ("srun", &[]),
    ("time", &[]),
    ("uv", &["run"]),
];
const INTERPRETERS: [&str; 8] = [
    "python", "bash", "sh", "node", "perl", "torchrun", "ipython", "Rscript",
];
/// The endings of files that an interpreter runs.
const SCRIPT_ENDINGS: [&str; 8] = [".py", ".sh", ".js", ".mjs", ".pl", ".R", ".r", ".ipynb"];

/// `python`, and `python3.11`.
fn is_interpreter(program: &str) -> bool {
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    INTERPRETERS
        .iter()
        .any(|name| program.strip_prefix(name).is_some_and(is_version))
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// The name of the file or module that runs. Programs that only start another one are skipped. For
/// an interpreter it is the script or the module of `python -m`, else the program itself.
fn named_after(words: &[&str]) -> String {
    let program = words.first().map(|word| base(word)).unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    if let Some((_, verbs)) = STARTER_PROGRAMS.iter().find(|(name, _)| *name == program)
        && verbs
            .iter()
            .zip(rest)
            .filter(|(verb, word)| verb == word)
            .count()
            == verbs.len()
        && let Some(name) = started_by(&rest[verbs.len()..])
    {
        return name;
    }
    if is_interpreter(program) {
        return interpreted(rest).unwrap_or_else(|| program.to_owned());
    }
    program.to_owned()
}

/// The name behind a starter and its options. Values of options cannot be told from programs, so
/// the first script, module or interpreter counts. If there is none, the first word counts, unless
/// an option comes before it.
fn started_by(rest: &[&str]) -> Option<String> {
    let is_known = |word: &str| {
        is_interpreter(base(word)) || STARTER_PROGRAMS.iter().any(|(name, _)| *name == base(word))
    };
    for (at, word) in rest.iter().enumerate() {
        if *word == "-m" || *word == "--module" {
            return rest.get(at + 1).map(|module| last_part(module));
        }
        if let Some(script) = script(word) {
            return Some(script);
        }
        if !word.starts_with('-') && is_known(word) {
            return Some(named_after(&rest[at..]));
        }
    }
    let first = rest
        .iter()
        .find(|word| !word.starts_with('-') && !word.contains('='))?;
    let behind_option = rest.first().is_some_and(|word| word.starts_with('-'));
    (!behind_option).then(|| base(first).to_owned())
}

fn interpreted(rest: &[&str]) -> Option<String> {
    for (at, word) in rest.iter().enumerate() {
        match *word {
            // The next word is program text, not a file.
            "-c" => return None,
            "-m" => {
                return rest.get(at + 1).map(|module| {
                    if *module == "torch.distributed.run" {
                        after(rest, at)
                    } else {
                        last_part(module)
                    }
                });
            }
            _ => {}
        }
        let is_file = !word.starts_with('-')
            && word.contains('.')
            && plain(word)
            && word.contains(|c: char| c.is_ascii_alphabetic());
        if is_file {
            return Some(stem(word));
        }
    }
    None
}

/// `python -m torch.distributed.run` is torchrun.
fn after(rest: &[&str], at: usize) -> String {
    interpreted(&rest[at + 2..]).unwrap_or_else(|| "run".to_owned())
}

fn plain(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
}

/// `src/train.py` gives `train`.
fn script(word: &str) -> Option<String> {
    let is_script = !word.starts_with('-')
        && plain(word)
        && SCRIPT_ENDINGS.iter().any(|end| word.ends_with(end));
    is_script.then(|| stem(word))
}

fn stem(word: &str) -> String {
    let name = base(word);
    name.rsplit_once('.')
        .map(|(stem, _)| stem.to_owned())
        .filter(|stem| !stem.is_empty())
        .unwrap_or_else(|| name.to_owned())
}

/// `pkg.train` gives `train`; `pkg.__main__` gives `pkg`.
fn last_part(module: &str) -> String {
    module
        .trim_end_matches(".__main__")
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn needs_shell(word: &str) -> bool {
    word.chars()
        .any(|c| c.is_whitespace() || "|&;<>()$`\\\"'*?[]#~={}!".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        Program::from_words(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
        .expect("not empty")
    }

    #[test]
    fn words_stay_words_and_a_line_gets_a_shell() {
        assert_eq!(
            program(&["echo", "a  b", "$HOME"]),
            Program::Argv(vec!["echo".into(), "a  b".into(), "$HOME".into()])
        );
        assert_eq!(
            program(&["echo a && echo b"]),
            Program::Line("echo a && echo b".into())
        );
        assert_eq!(
            program(&["nvidia-smi"]),
            Program::Argv(vec!["nvidia-smi".into()])
        );
    }

    #[test]
    fn runs_are_named_after_what_they_run() {
        assert_eq!(
            program(&["python", "-u", "src/train.py", "--lr=0.1"]).default_name(),
            "train"
        );
        assert_eq!(
            program(&["/usr/bin/nvidia-smi"]).default_name(),
            "nvidia-smi"
        );
        assert_eq!(program(&["sleep 5; echo x"]).default_name(), "sleep");
        assert_eq!(program(&["python"]).default_name(), "python");
        assert_eq!(
            program(&["python", "-c", "import a.b"]).default_name(),
            "python"
        );
        for (line, name) in [
            ("accelerate launch train.py --lr 1", "train"),
            (
                "accelerate launch --num_processes 8 --mixed_precision bf16 src/train.py",
                "train",
            ),
            ("accelerate launch -m pkg.train", "train"),
            ("accelerate config", "accelerate"),
            ("uv run train.py", "train"),
            ("uv run --with torch python train.py", "train"),
            ("uv run pytest", "pytest"),
            ("uv pip install x", "uv"),
            ("python -m pkg.train --x 1", "train"),
            ("python3.11 -u -m pkg.__main__", "pkg"),
            (
                "python -m torch.distributed.run --nproc-per-node 8 train.py",
                "train",
            ),
            ("torchrun --nproc-per-node 8 train.py", "train"),
            (
                "deepspeed --num_gpus 8 train.py --deepspeed ds.json",
                "train",
            ),
            ("conda run -n base python train.py", "train"),
            ("poetry run python -m pkg.train", "train"),
            ("srun -n 4 python train.py", "train"),
            ("mpirun -np 4 ./solver --x", "mpirun"),
            ("mpirun ./solver --x", "solver"),
            ("env A=1 python train.py", "train"),
            ("nice -n 5 python train.py", "train"),
            ("echo train.py", "echo"),
            ("./train.sh now", "train.sh"),
        ] {
            assert_eq!(
                program(&line.split(' ').collect::<Vec<_>>()).default_name(),
                name,
                "{line}"
            );
        }
    }

    #[test]
    fn a_shown_command_can_be_pasted() {
        assert_eq!(
            program(&["echo", "it's", "a b", ""]).display(),
            r"echo 'it'\''s' 'a b' ''"
        );
    }

    #[test]
    fn a_blank_script_is_no_program() {
        let job = |script: &str| Job {
            script: Some(script.to_owned()),
            ..Job::default()
        };
        assert!(Program::from_job(&job(" \n")).is_err());
        assert_eq!(
            Program::from_job(&job("make")).expect("a script"),
            Program::Script("make".into())
        );
    }

    #[test]
    fn a_starter_is_passed_over_for_the_module_or_the_script_that_it_starts() {
        let name = |words: &[&str]| program(words).default_name();
        assert_eq!(name(&["deepspeed", "--module", "pkg.train"]), "train");
        assert_eq!(name(&["accelerate", "launch", "-m", "pkg.train"]), "train");
        assert_eq!(name(&["deepspeed", "--x", "src/eval.py"]), "eval");
        // Neither an option that ends like a script nor the value of an option is one.
        assert_eq!(name(&["mpirun", "-x.py", "make"]), "mpirun");
        assert_eq!(name(&["mpirun", "-n", "2", "make"]), "mpirun");
    }
}
