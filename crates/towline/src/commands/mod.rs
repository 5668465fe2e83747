//! One file per verb: its arguments, its help, and one function that returns a report.

pub(crate) mod abort;
pub(crate) mod adopt;
pub(crate) mod alloc;
pub(crate) mod api;
pub(crate) mod clusters;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod daemon;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod edit;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod hold;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod nodes;
pub(crate) mod port;
pub(crate) mod prune;
pub(crate) mod ps;
pub(crate) mod query;
pub(crate) mod release;
pub(crate) mod resubmit;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod roles;
pub(crate) mod scratch;
pub(crate) mod show;
pub(crate) mod snapshot;
pub(crate) mod ssh;
pub(crate) mod submit;
pub(crate) mod sync;
pub(crate) mod tag;
pub(crate) mod top;
pub(crate) mod trust;
pub(crate) mod tunnel;
pub(crate) mod ui;
pub(crate) mod up;
pub(crate) mod url;
pub(crate) mod wait;
pub(crate) mod why;

use crate::arguments;
use crate::cli::{self, Verb};
use crate::context::Context;
use crate::diagnose;
use crate::output;
use crate::usage;
use crate::wiring::{agent, threads};
use std::ffi::OsString;
use std::process::ExitCode;
use towline_core::Result;

/// What a verb has to say, in both renderings, and the code to leave with.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// For people, on stdout.
    pub(crate) text: String,
    /// For programs, on stdout, instead of the text.
    pub(crate) json: Option<serde_json::Value>,
    /// For people, on stderr: next steps.
    pub(crate) hints: Vec<String>,
    /// The last line on stderr.
    pub(crate) last_words: Option<String>,
    /// What stays done, should nobody be able to read the report.
    pub(crate) done: Option<String>,
    pub(crate) code: u8,
}

impl Report {
    /// The answer of a verb, a type of `towline_wire::report`: for programs as it is, and for
    /// people as `text` words it.
    pub(crate) fn of<A: serde::Serialize>(answer: &A, text: impl FnOnce(&A) -> String) -> Self {
        Self {
            text: text(answer),
            json: Some(serde_json::to_value(answer).unwrap_or_default()),
            ..Self::default()
        }
    }
    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    /// Sets what was done and stays done if the report cannot be printed.
    pub(crate) fn done(mut self, done: impl Into<String>) -> Self {
        self.done = Some(done.into());
        self
    }

    /// Prints the report; returns the exit code.
    fn print(&self, json: bool) -> u8 {
        let printed = match (&self.json, json) {
            (Some(value), true) => output::json(value),
            (None, true) => Ok(()),
            (_, false) if self.text.is_empty() => Ok(()),
            (_, false) => output::text(&self.text),
        };
        if !json {
            self.hints.iter().for_each(|hint| output::hint(hint));
        }
        if let Some(words) = &self.last_words {
            output::status(words);
        }
        match printed {
            Err(error) => {
                let code = diagnose::report(&error.maybe_hint(self.done.clone()), json);
                if self.code == 0 { code } else { self.code }
            }
            Ok(()) => self.code,
        }
    }
}

pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    towline_client::tell_waits_to(output::status);
    let asked_for_json = words
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json");
    threads::without_panics(asked_for_json, move || parse_and_run(words, asked_for_json))
}

fn parse_and_run(words: Vec<OsString>, asked_for_json: bool) -> ExitCode {
    let (words, notes) = arguments::normalise(words);
    for note in &notes {
        output::hint(note);
    }
    let cli = match cli::parse_quickly(&words) {
        Some(cli) => cli,
        None => match cli::parse(words.clone()) {
            Ok(cli) => cli,
            Err(error) => return ExitCode::from(usage::report(&error, &words, asked_for_json)),
        },
    };
    let context = Context::new(cli.json, cli.verb.reads_only());
    if let Err(error) = agent::check_verb(&context, &cli.verb) {
        return ExitCode::from(diagnose::report(&error, context.json));
    }
    towline_io::web::tell_of_trouble(output::trouble);
    match run(&context, cli.verb) {
        Ok(report) => ExitCode::from(report.print(context.json)),
        Err(error) => ExitCode::from(diagnose::report(&error, context.json)),
    }
}

fn run(context: &Context, verb: Verb) -> Result<Report> {
    match verb {
        Verb::Submit(args) => submit::run(context, args),
        Verb::Run(args) => submit::run_and_follow(context, args),
        Verb::Ps(args) => ps::run(context, &args),
        Verb::Qf(args) => ps::run(context, &args.only("failed")),
        Verb::Qq(args) => ps::run(context, &args.only("queued")),
        Verb::Qr(args) => ps::run(context, &args.only("running")),
        Verb::Query(args) => query::run(context, &args),
        Verb::Logs(args) => logs::run(context, &args),
        Verb::Why(args) => why::run(context, &args),
        Verb::Show(args) => show::run(context, &args),
        Verb::Get(args) => get::run(context, &args),
        Verb::Abort(args) => abort::run(context, &args),
        Verb::Resubmit(args) => resubmit::run(context, &args),
        Verb::Hold(args) => hold::run(context, &args),
        Verb::Resume(args) => resume::run(context, &args),
        Verb::Edit(args) => edit::run(context, &args),
        Verb::Tag(args) => tag::run(context, &args),
        Verb::Wait(args) => wait::run(context, &args),
        Verb::Diff(args) => diff::run(context, &args),
        Verb::History(args) => history::run(context, &args),
        Verb::Import(args) => import::run(context, &args),
        Verb::Init(args) => init::run(context, &args),
        Verb::Snapshot(args) => snapshot::run(context, &args),
        Verb::Prune(args) => prune::run(context, &args),
        Verb::Ssh(args) => ssh::run(context, &args),
        Verb::Adopt(args) => adopt::run(context, &args),
        Verb::Port(args) => port::run(context, &args),
        Verb::Tunnel(args) => tunnel::run(context, &args),
        Verb::Api(args) => api::run(context, &args),
        Verb::Mcp(args) => mcp::run(context, &args),
        Verb::Top(args) => top::run(context, &args),
        Verb::Ui(args) => ui::run(context, &args),
        Verb::Alloc(args) => alloc::run(context, args),
        Verb::Release(args) => release::run(context, &args),
        Verb::Ls(args) => ls::run(context, &args),
        Verb::Up(args) => up::run(context, &args),
        Verb::Down(args) => down::run(context, &args),
        Verb::Rm(args) => rm::run(context, &args),
        Verb::Cp(args) => cp::run(context, &args),
        Verb::Sync(args) => sync::run(context, &args),
        Verb::Scratch(args) => scratch::run(context, &args),
        Verb::Url(args) => url::run(context, &args),
        Verb::Clusters(args) => clusters::run(context, &args),
        Verb::Nodes(args) => nodes::run(context, &args),
        Verb::Login(args) => login::run(context, &args),
        Verb::Logout(args) => logout::run(context, &args),
        Verb::Roles(args) => roles::run(context, &args),
        Verb::Config(args) => config::run(context, &args),
        Verb::Trust(args) => trust::run(context, &args),
        Verb::Doctor(args) => doctor::run(context, &args),
        Verb::Daemon(args) => daemon::run(context, &args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    }
}

/// One line for each item.
fn lines<T>(items: impl IntoIterator<Item = T>, line: impl Fn(T) -> String) -> String {
    let mut text = String::new();
    for item in items {
        text += &line(item);
        text.push('\n');
    }
    text
}

/// A number of things on the command line.
fn count(text: &str) -> std::result::Result<u32, String> {
    text.parse()
        .map_err(|_| "write a whole number, 0 or more".to_owned())
}
