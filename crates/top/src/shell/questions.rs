//! The calls that answer a question of the model.

use crate::model::event::{
    Answer, Answered, Ask, ChangeAsk, LinesAsk, LinesFrom, Question, Refusal, RowsAsk, SearchAsk,
    Verb,
};
use crate::model::gpus::ClusterGpus;
use crate::model::log::LogFile;
use crate::model::rows::Window;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use towline_api::replies::Caller;
use towline_api::session::{Args, Session};
use towline_core::counts::PhaseCounts;
use towline_core::{Error, Result, RunId};
use towline_wire::api::stream::LogFrom;

/// The answer; `None` for what is no question.
pub(super) fn answer(session: &Session, ask: Ask, caller: &mut dyn Caller) -> Option<Answer> {
    let mut asker = Asker { session, caller };
    Some(match ask {
        Ask::Rows(ask) => {
            let window = asker.rows(&ask);
            Answer::Rows(ask, refused(window))
        }
        Ask::Clusters => Answer::Clusters(refused(asker.clusters())),
        Ask::Logs(run) => {
            let files = asker.logs(&run);
            Answer::Logs(run, refused(files))
        }
        Ask::Lines(ask) => {
            let lines = asker.read("logs.read", lines_args(&ask));
            Answer::Lines(ask, refused(lines))
        }
        Ask::Search(ask) => {
            let found = asker.read("logs.search", search_args(&ask));
            Answer::Search(ask, refused(found))
        }
        Ask::Why(run) => {
            let why = asker.read("why", json!({ "run": run }));
            Answer::Why(run, refused(why))
        }
        Ask::Change(ask) => {
            let done = asker.change(&ask);
            Answer::Change(ask, refused(done))
        }
        Ask::Follow { .. } | Ask::Suspend | Ask::Repaint | Ask::Quit => return None,
    })
}

fn refused<T>(answer: Result<T>) -> Answered<T> {
    answer.map_err(|error| Refusal::from(&error))
}

/// Changes which logs the stream follows.
pub(super) fn follow(
    session: &Session,
    stream: &str,
    logs: &[LogFrom],
    caller: &mut dyn Caller,
) -> Result<()> {
    let mut asker = Asker { session, caller };
    asker.call("events.logs", json!({ "stream": stream, "logs": logs }))?;
    Ok(())
}

struct Asker<'s> {
    session: &'s Session,
    caller: &'s mut dyn Caller,
}

impl Asker<'_> {
    fn call(&mut self, call: &str, args: Value) -> Result<Value> {
        let args = match args {
            Value::Object(args) => args,
            _ => Args::new(),
        };
        self.session.call(call, args, self.caller)
    }

    fn read<T: DeserializeOwned>(&mut self, call: &str, args: Value) -> Result<T> {
        let answer = self.call(call, args)?;
        serde_json::from_value(answer).map_err(|error| {
            Error::bug(format!("the answer of {call} cannot be read")).source_error(error)
        })
    }

    fn rows(&mut self, ask: &RowsAsk) -> Result<Window> {
        let question = &ask.question;
        if question.active_first && question.state.is_none() {
            return self.active_first(ask);
        }
        let states = question.state.map(|state| vec![state]);
        self.part(question, states, ask.offset, ask.limit)
    }

    /// The active runs, then those that have ended, as one list.
    fn active_first(&mut self, ask: &RowsAsk) -> Result<Window> {
        let RowsAsk {
            question,
            offset,
            limit,
        } = ask;
        let active = self.part(question, Some(vec!["active"]), *offset, *limit)?;
        let taken = u32::try_from(active.rows.len()).unwrap_or(u32::MAX);
        let left = limit.saturating_sub(taken);
        let behind = offset.saturating_sub(active.total);
        // Also if no row is wanted: the answer has the counts.
        let ended = self.part(question, Some(vec!["ended"]), behind, left.max(1))?;
        Ok(joined(active, ended, left))
    }

    fn part(
        &mut self,
        question: &Question,
        states: Option<Vec<&str>>,
        offset: u64,
        limit: u32,
    ) -> Result<Window> {
        let args = json!({
            "filter": {
                "text": question.text,
                "states": states.unwrap_or_default(),
                "sweep": question.sweep,
            },
            "fold": question.sweep.is_none(),
            "offset": offset,
            "limit": limit,
        });
        let mut window: Window = self.read("runs.page", args)?;
        window.offset = offset;
        Ok(window)
    }

    fn clusters(&mut self) -> Result<Vec<ClusterGpus>> {
        #[derive(Deserialize)]
        struct Clusters {
            clusters: Vec<ClusterGpus>,
        }
        let answer: Clusters = self.read("clusters", json!({}))?;
        Ok(answer.clusters)
    }

    fn logs(&mut self, run: &RunId) -> Result<Vec<LogFile>> {
        #[derive(Deserialize)]
        struct Logs {
            logs: Vec<LogFile>,
        }
        let answer: Logs = self.read("logs.list", json!({ "run": run }))?;
        Ok(answer.logs)
    }

    fn change(&mut self, ask: &ChangeAsk) -> Result<String> {
        let answer = self.call(ask.verb.word(), json!({ "runs": [ask.id] }))?;
        Ok(done_text(ask, &answer))
    }
}

/// Two parts of a list, the second behind the whole first.
fn joined(mut first: Window, second: Window, room: u32) -> Window {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    first.rows.extend(second.rows.into_iter().take(room));
    let mut states = PhaseCounts::default();
    for (phase, runs) in first.states.present().chain(second.states.present()) {
        states.add(phase, runs);
    }
    Window {
        total: first.total + second.total,
        states,
        ..first
    }
}

fn lines_args(ask: &LinesAsk) -> Value {
    let (from, lines) = match ask.from {
        LinesFrom::Line { first, count } => (json!({ "line": first }), count),
        LinesFrom::End(count) => (json!({ "end": count }), count),
    };
    let log = &ask.log;
    json!({
        "run": log.run, "attempt": log.attempt, "source": log.source,
        "from": from, "lines": lines,
    })
}

/// The numbers of so many matches are kept.
const MAX_MATCHES: u32 = 10_000;

fn search_args(ask: &SearchAsk) -> Value {
    let log = &ask.log;
    json!({
        "run": log.run, "attempt": log.attempt, "source": log.source,
        "pattern": ask.pattern, "limit": MAX_MATCHES,
    })
}

/// What was done, in a sentence.
fn done_text(ask: &ChangeAsk, answer: &Value) -> String {
    let id = &ask.id;
    let count = |name: &str| answer[name].as_array().map_or(0, Vec::len);
    match ask.verb {
        Verb::Abort if count("cancelling") == 0 => format!("{id} had ended already"),
        Verb::Abort if count("cancelling") == 1 => format!("aborting {id}"),
        Verb::Abort => format!("aborting {} runs of {id}", count("cancelling")),
        Verb::Resubmit => {
            let new = answer["resubmitted"][0]["id"].as_str();
            new.map_or_else(
                || format!("{id} was submitted again"),
                |new| format!("{id} was submitted again as {new}"),
            )
        }
        Verb::Hold | Verb::Resume if count("changed") == 0 => {
            let why = answer["unchanged"][0]["why"].as_str();
            format!(
                "{id} is unchanged: {}",
                why.unwrap_or("it cannot be changed now")
            )
        }
        Verb::Hold => format!("{id} is on hold"),
        Verb::Resume => format!("{id} may start"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{row, window};

    #[test]
    fn parts_of_a_list_become_one() {
        let first = window(10, vec![row(1, "running"), row(2, "queued")]);
        let second = window(0, vec![row(3, "failed"), row(4, "failed")]);
        let both = joined(first.clone(), second, 1);
        assert_eq!((both.offset, both.total, both.rows.len()), (10, 4, 3));
        assert_eq!(both.states.to_string(), "2 failed, 1 running, 1 queued");
        assert_eq!(joined(first, window(0, Vec::new()), 0).rows.len(), 2);
    }

    #[test]
    fn what_was_done_is_said() {
        let id = RunId::new("train", 1, 0xabc);
        let text = |verb, answer| {
            let ask = ChangeAsk {
                verb,
                id: id.clone(),
            };
            done_text(&ask, &answer)
        };
        let name = "train-1-00000abc";
        assert_eq!(
            text(
                Verb::Abort,
                json!({ "cancelling": [name], "already_ended": [] })
            ),
            format!("aborting {name}")
        );
        assert_eq!(
            text(
                Verb::Abort,
                json!({ "cancelling": [], "already_ended": [name] })
            ),
            format!("{name} had ended already")
        );
        assert_eq!(
            text(
                Verb::Hold,
                json!({ "changed": [], "unchanged": [{ "why": "it runs" }] })
            ),
            format!("{name} is unchanged: it runs")
        );
        assert_eq!(
            text(Verb::Resume, json!({ "changed": [name] })),
            format!("{name} may start")
        );
        assert_eq!(
            text(Verb::Resubmit, json!(null)),
            format!("{name} was submitted again")
        );
    }
}
