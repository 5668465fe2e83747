//! Answers calls: those of the interface itself here, verbs by what the program provides.

use crate::feed::{self, streams::Streams};
use crate::logs;
use crate::logs::index::{self, Indexes};
use crate::replies::Caller;
use crate::runs;
use crate::runs::page::Lists;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::Read;
use towline_core::{Error, Result};
use towline_wire::api::Empty;
use towline_wire::api::about::About;
use towline_wire::api::files::Download;
use towline_wire::layout::StateFolder;

/// The arguments of a call.
pub type Args = Map<String, Value>;

/// What the program around the interface provides.
pub trait Verbs: Send + Sync {
    /// Does what a verb does, and answers what its `--json` prints.
    fn call(&self, verb: &str, args: &Args, caller: &mut dyn Caller) -> Result<Value>;

    /// The program, its folder and its clusters.
    fn about(&self) -> Result<About>;

    /// Opens a log or a file for somebody who saves it.
    fn open(&self, what: &Download) -> Result<Opened>;
}

/// Something to be saved.
pub struct Opened {
    /// The name that it should have.
    pub name: String,
    /// The number of bytes, if it is known.
    pub bytes: Option<u64>,
    pub content: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// One program or page, or several of the same user, that call.
pub struct Session {
    state: StateFolder,
    verbs: Box<dyn Verbs>,
    lists: Lists,
    indexes: Indexes,
    streams: Streams,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub fn new(state: StateFolder, verbs: Box<dyn Verbs>) -> Self {
        Self {
            state,
            verbs,
            lists: Lists::default(),
            indexes: Indexes::default(),
            streams: Streams::default(),
        }
    }

    /// Answers one call. Items, notes and progress go to `caller` meanwhile.
    pub fn call(&self, call: &str, args: Args, caller: &mut dyn Caller) -> Result<Value> {
        let state = &self.state;
        match call {
            "about" => {
                read::<Empty>(args)?;
                answer(&self.verbs.about()?)
            }
            "runs.page" => answer(&self.lists.page(state, &read(args)?)?),
            "runs.get" => answer(&runs::page::get(state, &read(args)?)?),
            "runs.words" => {
                read::<Empty>(args)?;
                answer(&runs::page::words(state)?)
            }
            "logs.list" => answer(&logs::list(state, &read(args)?, caller)?),
            "logs.read" => answer(&self.indexes.read(state, &read(args)?)?),
            "logs.search" => answer(&index::search(state, &read(args)?, caller.cancel())?),
            "logs.error" => answer(&index::first_error(state, &read(args)?, caller.cancel())?),
            "events" => {
                feed::run(state, &self.streams, read(args)?, caller)?;
                answer(&Empty {})
            }
            "download" => Err(Error::unsupported(
                "only the server of `tow ui` has addresses for downloads",
            )
            .hint("read a log with logs.read, a file with files.read; copy with get or down")),
            "events.logs" => {
                self.streams.follow(read(args)?)?;
                answer(&Empty {})
            }
            verb => self.verbs.call(verb, &args, caller),
        }
    }
}

impl Session {
    /// Opens what `download` asks for.
    pub(crate) fn open(&self, args: Args) -> Result<Opened> {
        self.verbs.open(&read(args)?)
    }
}

fn read<T: DeserializeOwned>(args: Args) -> Result<T> {
    serde_json::from_value(Value::Object(args))
        .map_err(|error| Error::usage(format!("the arguments cannot be read: {error}")))
}

fn answer<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Error::bug("the answer cannot be written").source_error(error))
}
