//! Changes of runs: each is asked about first, by the name and the whole id of the run.

use super::State;
use super::details::Details;
use super::event::{Ask, ChangeAsk, Verb};
use super::layer::Layer;
use super::rows::Row;

impl State {
    /// Asks whether the selected run is to be changed, or says why it cannot be.
    pub(super) fn ask_to_change(&mut self, verb: Verb) {
        let Some(row) = self.list.selected_row() else {
            return;
        };
        let verb = if verb == Verb::Hold && row.run().on_hold {
            Verb::Resume
        } else {
            verb
        };
        if let Some(why) = refusal(verb, row) {
            let text = format!("{}: {why}", row.id());
            self.say(text, true);
            return;
        }
        let ask = ChangeAsk {
            verb,
            id: row.id().clone(),
        };
        let question = question(verb, row);
        self.layer = Some(Layer::Confirm { ask, question });
    }

    pub(super) fn change(&mut self, ask: ChangeAsk) {
        self.changing += 1;
        self.asks.push(Ask::Change(ask));
    }

    pub(super) fn open_details(&mut self) {
        let Some(row) = self.list.selected_row() else {
            return;
        };
        let row = row.clone();
        self.asks.push(Ask::Why(row.id().clone()));
        let details = Details {
            row,
            why: None,
            top: 0,
        };
        self.layer = Some(Layer::Details(Box::new(details)));
    }
}

fn refusal(verb: Verb, row: &Row) -> Option<&'static str> {
    match verb {
        Verb::Abort if row.is_ended() => Some("it has ended already"),
        Verb::Hold if row.is_ended() => Some("it has ended already"),
        Verb::Hold if !row.waits() => Some("it runs already; only what waits can be put on hold"),
        _ => None,
    }
}

fn question(verb: Verb, row: &Row) -> String {
    let Row::Sweep(sweep) = row else {
        let run = row.run();
        let (name, id) = (&run.name, &run.id);
        return match verb {
            Verb::Abort => format!("Abort {name} ({id})?"),
            Verb::Resubmit if row.is_ended() => {
                format!("Submit {name} ({id}) again, with the code it had?")
            }
            Verb::Resubmit => format!("Abort {name} ({id}) and submit it again?"),
            Verb::Hold => format!("Keep {name} ({id}) from starting?"),
            Verb::Resume => format!("Let {name} ({id}) start?"),
        };
    };
    let (name, id) = (&sweep.first.name, &sweep.id);
    let runs = sweep.states.total();
    match verb {
        Verb::Abort => {
            let active = sweep.states.active();
            format!("Abort the {active} active runs of the sweep {name} ({id})?")
        }
        Verb::Resubmit => format!(
            "Submit those of the {runs} runs of the sweep {name} ({id}) again that failed, were \
                cancelled or are lost?"
        ),
        Verb::Hold => format!("Keep the waiting runs of the sweep {name} ({id}) from starting?"),
        Verb::Resume => format!("Let the runs of the sweep {name} ({id}) start?"),
    }
}
