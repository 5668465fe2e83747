//! What runs: words as they are, a line for a shell, or a script.

use crate::job::{Job, Words};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How a rank is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Words, without a shell; boundaries kept.
    Words(Vec<String>),
    /// One line for `sh -c`.
    Line(String),
    /// Lines for `bash -e`, or for the interpreter in their `#!` line.
    Script(String),
}

impl Program {
    /// Several words run as they are; a single word with blanks or shell characters needs a shell.
    pub fn from_words(words: &[String]) -> Option<Self> {
        match words {
            [] => None,
            [line] if needs_shell(line) => Some(Self::Line(line.clone())),
            words => Some(Self::Words(words.to_vec())),
        }
    }

    pub fn from_job(job: &Job) -> Result<Self> {
        let none = || {
            Error::config("the job has neither `command` nor `script`")
                .hint("for example `tow submit python train.py`, or `command: python train.py` in the job file")
        };
        match (&job.command, &job.script) {
            (command, Some(_)) if !command.is_empty() => Err(Error::config("the job has both `command` and `script`").hint("keep one of them")),
            (_, Some(script)) if script.trim().is_empty() => Err(none()),
            (_, Some(script)) => Ok(Self::Script(script.clone())),
            (command, None) => {
                let program = Self::from_words(command.as_slice()).ok_or_else(none)?;
                match &program {
                    Self::Words(words) if words[0].is_empty() => Err(Error::config("the command's first word is empty")),
                    Self::Line(line) if line.trim().is_empty() => Err(none()),
                    _ => Ok(program),
                }
            }
        }
    }

    pub fn into_job(self, job: &mut Job) {
        match self {
            Self::Words(words) => (job.command, job.script) = (Words::Many(words), None),
            Self::Line(line) => (job.command, job.script) = (Words::One(line), None),
            Self::Script(script) => (job.command, job.script) = (Words::None, Some(script)),
        }
    }

    /// A new program with every text passed through `change`.
    pub fn try_map(&self, mut change: impl FnMut(&str) -> Result<String>) -> Result<Self> {
        Ok(match self {
            Self::Words(words) => Self::Words(words.iter().map(|word| change(word)).collect::<Result<_>>()?),
            Self::Line(line) => Self::Line(change(line)?),
            Self::Script(script) => Self::Script(change(script)?),
        })
    }

    /// One line for tables: words quoted where a shell would need it.
    pub fn display(&self) -> String {
        match self {
            Self::Words(words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            Self::Line(line) => line.clone(),
            Self::Script(script) => {
                let line = script.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
                format!("script: {}", line.unwrap_or_default())
            }
        }
    }

    /// The name a run gets when the user gave none: the script of an interpreter, or the program.
    pub fn default_name(&self) -> String {
        let words: Vec<&str> = match self {
            Self::Words(words) => words.iter().map(String::as_str).collect(),
            Self::Line(line) => line.split_whitespace().collect(),
            Self::Script(_) => return "script".to_owned(),
        };
        let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let program = words.first().map(|word| base(word)).unwrap_or_default();
        let interpreter = ["python", "bash", "sh", "node", "perl", "torchrun", "env"].iter().any(|name| program.starts_with(name));
        let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        let is_script = |word: &&&str| word.contains('.') && plain(word) && word.contains(|c: char| c.is_ascii_alphabetic());
        // What follows `-c` is a text, not a file.
        let script = words.iter().skip(1).take_while(|word| **word != "-c").filter(|word| !word.starts_with('-')).find(is_script);
        match script {
            Some(script) if interpreter => {
                let name = base(script);
                name.rsplit_once('.').map(|(stem, _)| stem.to_owned()).filter(|stem| !stem.is_empty()).unwrap_or(name)
            }
            _ => program,
        }
    }
}

fn needs_shell(word: &str) -> bool {
    word.chars().any(|c| c.is_whitespace() || "|&;<>()$`\\\"'*?[]#~={}!".contains(c))
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%^".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        Program::from_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).expect("not empty")
    }

    #[test]
    fn words_stay_words_and_a_line_gets_a_shell() {
        assert_eq!(program(&["echo", "a  b", "$HOME"]), Program::Words(vec!["echo".into(), "a  b".into(), "$HOME".into()]));
        assert_eq!(program(&["echo a && echo b"]), Program::Line("echo a && echo b".into()));
        assert_eq!(program(&["nvidia-smi"]), Program::Words(vec!["nvidia-smi".into()]));
    }

    #[test]
    fn runs_are_named_after_what_they_run() {
        assert_eq!(program(&["python", "-u", "src/train.py", "--lr=0.1"]).default_name(), "train");
        assert_eq!(program(&["/usr/bin/nvidia-smi"]).default_name(), "nvidia-smi");
        assert_eq!(program(&["sleep 5; echo x"]).default_name(), "sleep");
        assert_eq!(program(&["python"]).default_name(), "python");
    }

    #[test]
    fn a_shown_command_can_be_pasted() {
        assert_eq!(program(&["echo", "it's", "a b", ""]).display(), r"echo 'it'\''s' 'a b' ''");
    }
}
