//! tests
use super::rows::{Row, Window};
use serde_json::{Value, json};

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
    let states = rows.iter().map(|row| row.run().state).collect();
    Window {
        offset,
        total: rows.len() as u64,
        states,
        rows,
    }
}
