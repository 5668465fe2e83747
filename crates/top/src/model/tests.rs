//! The model driven by events, and drawn after each.

use super::State;
use super::event::{Answer, Ask, ChangeAsk, Event, Now, Refusal, Verb};
use super::layer::Layer;
use super::rows::{Row, Window};
use crate::view::{self, look::Look};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Rect, Size};
use serde_json::{Value, json};
use std::time::Duration;
use towline_core::time::Moment;
use towline_wire::api::stream::Item;

/// A run as the interface tells it.
pub(crate) fn run_value(number: u32, state: &str) -> Value {
    json!({
        "id": format!("train-1700000000-0000{number:04x}"), "name": format!("train-{number}"),
        "experiment": null, "cluster": "local", "state": state, "reason": null, "detail": null,
        "exit_code": null, "attempt": u32::from(state != "queued"), "tier": "standard",
        "tags": [], "sweep": null, "parameters": {}, "command": "python train.py",
        "gpus": 2, "nodes": 1, "ranks": 2, "cancel_requested": false, "held_until": null,
        "created": "2023-11-14T22:13:20.000Z",
        "started": (state != "queued").then_some("2023-11-14T22:14:20.000Z"),
        "ended": matches!(state, "failed" | "succeeded").then_some("2023-11-14T22:15:20.000Z"),
        "resubmits": null, "stale_since": null,
    })
}

pub(crate) fn row(number: u32, state: &str) -> Row {
    let value = json!({ "run": run_value(number, state) });
    serde_json::from_value(value).expect("it is a row")
}

pub(crate) fn window(offset: u64, rows: Vec<Row>) -> Window {
    Window {
        offset,
        total: rows.len() as u64,
        states: rows.iter().map(|row| row.run().state).collect(),
        rows,
    }
}

/// A model, its clock, and what it asked for.
struct Driven {
    state: State,
    steady: Duration,
    asks: Vec<Ask>,
}

impl Driven {
    /// With these runs in its list, and a stream.
    fn with(rows: &[(u32, &str)]) -> Self {
        let size = Size::new(100, 24);
        let state = State::new(size, Now::default(), |moment| moment.to_string());
        let mut driven = Self {
            state,
            steady: Duration::ZERO,
            asks: Vec::new(),
        };
        driven.happens(Event::Item(Box::new(Item::Begun {
            stream: "s".to_owned(),
            cursor: "c".to_owned(),
        })));
        let asked = driven.asks.iter().find_map(|ask| match ask {
            Ask::Rows(ask) => Some(ask.clone()),
            _ => None,
        });
        let rows = rows.iter().map(|(number, state)| row(*number, state));
        let answer = Answer::Rows(asked.expect("it asks"), Ok(window(0, rows.collect())));
        driven.happens(Event::Answer(answer));
        driven.asks.clear();
        driven
    }

    fn happens(&mut self, event: Event) {
        self.steady += Duration::from_millis(300);
        let milliseconds = i64::try_from(self.steady.as_millis()).expect("it fits");
        let now = Now {
            wall: Moment(1_700_000_100_000 + milliseconds),
            steady: self.steady,
        };
        let asks = self.state.update(event, now);
        self.asks.extend(asks);
    }

    fn press(&mut self, key: KeyCode) {
        self.happens(Event::Key(KeyEvent::new(key, KeyModifiers::NONE)));
    }

    fn type_in(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(KeyCode::Char(c)));
    }

    fn changes(&self) -> Vec<&ChangeAsk> {
        fn change(ask: &Ask) -> Option<&ChangeAsk> {
            match ask {
                Ask::Change(change) => Some(change),
                _ => None,
            }
        }
        self.asks.iter().filter_map(change).collect()
    }

    fn text(&self) -> String {
        let mut buffer = Buffer::empty(Rect::from((
            ratatui::layout::Position::ORIGIN,
            self.state.size,
        )));
        let look = Look {
            has_colour: true,
            has_unicode: true,
        };
        view::draw(&self.state, look, &mut buffer);
        let cells = buffer
            .content()
            .chunks(usize::from(buffer.area.width).max(1));
        let lines: Vec<String> = cells
            .map(|line| line.iter().map(ratatui::buffer::Cell::symbol).collect())
            .collect();
        lines.join("\n")
    }
}

#[test]
fn only_a_yes_changes_a_run() {
    for (key, changes) in [('n', 0), ('x', 0), (' ', 0), ('q', 0), ('y', 1), ('Y', 1)] {
        let mut driven = Driven::with(&[(1, "running")]);
        driven.press(KeyCode::Char('a'));
        assert!(
            driven
                .text()
                .contains("Abort train-1 (train-1700000000-00000001)?")
        );
        driven.press(KeyCode::Char(key));
        assert_eq!(driven.changes().len(), changes, "{key:?}");
        assert!(driven.changes().iter().all(|ask| ask.verb == Verb::Abort));
    }
}

#[test]
fn what_cannot_be_done_is_said_and_not_asked() {
    let mut driven = Driven::with(&[(1, "failed")]);
    driven.press(KeyCode::Char('a'));
    assert!(
        driven.text().contains("it has ended already"),
        "{}",
        driven.text()
    );
    driven.press(KeyCode::Char('y'));
    assert!(driven.changes().is_empty());
    let mut driven = Driven::with(&[(1, "running")]);
    driven.press(KeyCode::Char('h'));
    driven.press(KeyCode::Char('y'));
    assert!(driven.changes().is_empty(), "only what waits can be held");
}

#[test]
fn a_refused_change_is_said_with_what_to_do() {
    let mut driven = Driven::with(&[(1, "running")]);
    driven.press(KeyCode::Char('a'));
    driven.press(KeyCode::Char('y'));
    let ask = driven.changes()[0].clone();
    let refusal = Refusal {
        message: "the disk is full".to_owned(),
        hints: vec!["make room".to_owned()],
    };
    driven.happens(Event::Answer(Answer::Change(ask, Err(refusal))));
    assert!(
        driven
            .text()
            .contains("abort: the disk is full · make room")
    );
}

#[test]
fn letters_of_a_filter_are_no_keys_and_an_escape_takes_them_back() {
    let mut driven = Driven::with(&[(1, "running"), (2, "queued")]);
    driven.press(KeyCode::Char('f'));
    driven.type_in("qay");
    assert!(!driven.asks.contains(&Ask::Quit));
    assert!(driven.changes().is_empty());
    assert_eq!(driven.state.list.question.text, "qay");
    driven.press(KeyCode::Esc);
    assert_eq!(driven.state.list.question.text, "");
    driven.press(KeyCode::Char('q'));
    assert!(driven.asks.contains(&Ask::Quit));
}

#[test]
fn in_a_terminal_that_is_too_small_nothing_can_be_changed_unseen() {
    let mut driven = Driven::with(&[(1, "running")]);
    driven.happens(Event::Resize {
        width: 40,
        height: 10,
    });
    driven.press(KeyCode::Char('a'));
    driven.press(KeyCode::Char('y'));
    assert!(driven.changes().is_empty());
    assert!(driven.state.layer.is_none());
    assert!(driven.text().contains("tow top needs 60 columns"));
}

#[test]
fn pasted_text_outside_of_a_field_does_nothing() {
    let mut driven = Driven::with(&[(1, "running")]);
    driven.happens(Event::Paste("ayq".to_owned()));
    assert!(driven.changes().is_empty() && !driven.asks.contains(&Ask::Quit));
    driven.press(KeyCode::Char('/'));
    driven.happens(Event::Paste("two\nlines".to_owned()));
    assert!(
        matches!(&driven.state.layer, Some(Layer::Write { text, .. }) if text == "two"),
        "{:?}",
        driven.state.layer
    );
}

proptest! {
    /// Whatever is pressed at whatever size, it is drawn, and no run is changed without a yes to a
    /// question.
    #[test]
    fn no_keys_break_it(
        keys in proptest::collection::vec("[a-xzG?/\\[\\]{} ]", 0..40),
        sizes in proptest::collection::vec((1..200_u16, 1..60_u16), 1..4)
    ) {
        let mut driven = Driven::with(&[(1, "running"), (2, "queued"), (3, "failed")]);
        for (place, key) in keys.iter().enumerate() {
            driven.type_in(key);
            let (width, height) = sizes[place % sizes.len()];
            if place % 7 == 0 {
                driven.happens(Event::Resize { width, height });
            }
            let text = driven.text();
            prop_assert!(text.lines().count() <= usize::from(driven.state.size.height));
        }
        prop_assert!(driven.changes().is_empty());
    }
}
