//! The JSON Schema of the interface: its calls, their arguments and answers, the stream's items, and
//! the lines of `tow api --stdio`.

use super::Empty;
use super::about::About;
use super::check::{Checked, JobCheck};
use super::envelope::{Line, Numbered, Reply};
use super::files::{Download, DownloadPlace, FileBegin, FilesList, FilesRead};
use super::log::{FirstError, Lines, Logs, LogsError, LogsList, LogsRead, LogsSearch, Matches};
use super::runs::{RunsGet, RunsPage, RunsWindow, RunsWords};
use super::stream::{Events, EventsLogs, Item};
use crate::report::get::Listed;
use crate::report::{Failure, Runs};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

type Of = fn(&mut SchemaGenerator) -> Schema;

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A call of the interface that no verb has.
#[derive(Debug, Clone, Copy)]
pub struct CallDescription {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub does: &'static str,
    args: Of,
    answer: Of,
    /// It sends items until it is cancelled.
    pub is_stream: bool,
}

const fn call(name: &'static str, does: &'static str, args: Of, answer: Of) -> CallDescription {
    CallDescription {
        name,
        does,
        args,
        answer,
        is_stream: false,
    }
}

/// The calls of the interface, by name.
pub const CALLS: [CallDescription; 14] = [
    call(
        "about",
        "The program that answers, its folder and its clusters.",
        of::<Empty>,
        of::<About>,
    ),
    call(
        "download",
        "An address from which a browser saves a log or a file. Only over HTTP.",
        of::<Download>,
        of::<DownloadPlace>,
    ),
    CallDescription {
        is_stream: true,
        ..call(
            "events",
            "Every change of every run, and the bytes of logs, from a cursor on.",
            of::<Events>,
            of::<Item>,
        )
    },
    call(
        "events.logs",
        "Change which logs an open stream follows.",
        of::<EventsLogs>,
        of::<Empty>,
    ),
    call(
        "files.list",
        "What a folder of a run holds.",
        of::<FilesList>,
        of::<Listed>,
    ),
    call(
        "files.read",
        "The begin of a file of a run.",
        of::<FilesRead>,
        of::<FileBegin>,
    ),
    call(
        "job.check",
        "Every problem of a job file, or the plan that would be sent.",
        of::<JobCheck>,
        of::<Checked>,
    ),
    call(
        "logs.error",
        "The first line of a log that shows an error.",
        of::<LogsError>,
        of::<FirstError>,
    ),
    call(
        "logs.list",
        "The logs of a run.",
        of::<LogsList>,
        of::<Logs>,
    ),
    call(
        "logs.read",
        "Lines of a log, by number, by offset or from its end.",
        of::<LogsRead>,
        of::<Lines>,
    ),
    call(
        "logs.search",
        "Where a text is in a log.",
        of::<LogsSearch>,
        of::<Matches>,
    ),
    call("runs.get", "Runs by their ids.", of::<RunsGet>, of::<Runs>),
    call(
        "runs.page",
        "A window of a list of runs, filtered and sorted.",
        of::<RunsPage>,
        of::<RunsWindow>,
    ),
    call(
        "runs.words",
        "The clusters, experiments and tags that runs have.",
        of::<Empty>,
        of::<RunsWords>,
    ),
];

/// The schemas of the calls, with references to `definitions`, and those definitions.
#[derive(Debug)]
pub struct Described {
    /// For each call of [`CALLS`], the schema of its arguments and that of its answer.
    pub calls: Vec<(CallDescription, Value, Value)>,
    /// The schema of a refusal.
    pub failure: Value,
    /// A line of the input of `tow api --stdio`.
    pub line: Value,
    /// A line of its output.
    pub numbered: Value,
    /// A reply, as an event of a stream over HTTP.
    pub reply: Value,
    /// What the schemas refer to.
    pub definitions: Map<String, Value>,
}

/// Makes the schemas, with references that begin with `path`, such as `/$defs`.
pub fn describe(path: &str) -> Described {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = path.to_owned().into();
    let mut generator = settings.into_generator();
    let mut make = |of: Of| json!(of(&mut generator));
    let calls = CALLS.map(|call| (call, make(call.args), make(call.answer)));
    let [failure, line, numbered, reply] =
        [of::<Failure>, of::<Line>, of::<Numbered>, of::<Reply>].map(&mut make);
    let mut definitions = generator.take_definitions(true);
    definitions.sort_keys();
    Described {
        calls: calls.into(),
        failure,
        line,
        numbered,
        reply,
        definitions,
    }
}

/// The schema as a document of its own.
pub fn document() -> Value {
    let described = describe("/$defs");
    let mut calls = Map::new();
    for (call, args, answer) in described.calls {
        let entry = json!({
            "description": call.does, "stream": call.is_stream, "args": args, "answer": answer,
        });
        calls.insert(call.name.to_owned(), entry);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The interface of `tow api` and `tow ui`",
        "description": "`calls` has the calls that no verb has, `line` and `numbered` the lines of \
            `tow api --stdio`. Fields are only ever added.",
        "calls": calls,
        "line": described.line,
        "numbered": described.numbered,
        "failure": described.failure,
        "$defs": described.definitions,
    })
}
