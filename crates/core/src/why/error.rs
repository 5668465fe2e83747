//! An error in the words of the log.

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of message that shows an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// An exception of Python, Java, JavaScript, Julia or R.
    Exception,
    /// Python could not read the program.
    #[serde(rename = "syntax_error")]
    Syntax,
    /// The program did not accept its options.
    Usage,
    Shell,
    /// A signal or an abort, reported by the program itself: faulthandler, C++, glibc.
    Crash,
    /// A panic of Rust or Go.
    Panic,
    /// Only the launcher's report is in the log.
    Launcher,
    /// A line that calls itself an error.
    ErrorLine,
}

impl Form {
    /// Whether trying again unchanged can help, if that is certain.
    pub const fn transient(self) -> Option<bool> {
        match self {
            Self::Syntax | Self::Usage => Some(false),
            _ => None,
        }
    }
}

/// A line of code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The file; below the code root if it is part of the run's code.
    pub file: String,
    /// The number of the line.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// The line's text, if the log shows it.
    pub source: Option<String>,
}

impl Place {
    /// `train.py:42`.
    pub fn short(&self) -> String {
        self.line
            .map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }
}

/// An error as a log words it. All texts are printable and of bounded length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogError {
    /// What kind of error it is.
    #[serde(rename = "kind")]
    pub form: Form,
    /// The line that names it.
    pub message: String,
    /// The lines below, which may belong to the message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// The deepest line of the user's own code; if there is none, the deepest of all.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The exception that the chain ended with, if it is another.
    pub ended_as: Option<String>,
    /// The rank that the log itself names, such as one of torchrun's.
    pub rank: Option<u32>,
    /// It ended a thread, and perhaps the program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub thread: bool,
    /// It only reports the end of another program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
    /// The program wrote much after it, so that it may have been caught.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub went_on: bool,
}

impl LogError {
    pub(super) const fn new(form: Form, message: String) -> Self {
        Self {
            form,
            message,
            more: Vec::new(),
            place: None,
            ended_as: None,
            rank: None,
            thread: false,
            report: false,
            went_on: false,
        }
    }

    /// How likely this only follows from another rank's end.
    pub(super) fn consequence_level(&self) -> u8 {
        let lost_peer = || {
            self.form == Form::Crash
                && (self.message.contains("NCCL") || self.message.contains("Dist"))
        };
        match self.form {
            _ if self.report => 5,
            Form::Launcher => 5,
            _ if self.went_on || lost_peer() => 4,
            Form::ErrorLine => 3,
            _ if self.thread => 2,
            _ => 0,
        }
    }
}
