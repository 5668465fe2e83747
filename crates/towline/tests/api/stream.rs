//! The stream of events: nothing is missed and nothing comes twice, whoever is killed.

use super::client::Client;
use super::home;
use base64::Engine as _;
use serde_json::{Value, json};
use std::time::Duration;
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_testkit::campaign::{Seeded, is_soak, seed};
use towline_testkit::{Home, until};

/// One who follows everything, over any number of connections.
struct Reader {
    client: Option<(Client, u64)>,
    cursor: Option<String>,
    /// The numbers of the events, as they came.
    events: Vec<i64>,
    log: Option<(String, Vec<u8>)>,
}

impl Reader {
    fn new() -> Self {
        Self {
            client: None,
            cursor: None,
            events: Vec::new(),
            log: None,
        }
    }

    fn connect(&mut self, home: &Home) {
        let mut client = Client::new(home);
        let mut args = json!({ "cursor": self.cursor });
        if let Some((run, bytes)) = &self.log {
            args["logs"] = json!([{
                "run": run, "attempt": 1, "source": { "rank": 0 }, "offset": bytes.len(),
            }]);
        }
        let stream = client.begin("events", &args);
        self.client = Some((client, stream));
    }

    /// Takes one item, if one comes soon.
    fn take(&mut self, home: &Home, limit: Duration) -> bool {
        if self.client.is_none() {
            self.connect(home);
        }
        let (client, stream) = self.client.as_mut().unwrap();
        let Ok(Some(reply)) = client.next_within(*stream, limit) else {
            return false;
        };
        assert!(reply.get("error").is_none(), "{reply}");
        let item = reply["item"].clone();
        self.note(&item);
        true
    }

    fn note(&mut self, item: &Value) {
        match item["item"].as_str().unwrap() {
            "begun" => {
                let begun = item["cursor"].as_str().unwrap().to_owned();
                if let Some(cursor) = &self.cursor {
                    assert_eq!(*cursor, begun, "it goes on where it ended");
                }
                self.cursor = Some(begun);
            }
            "runs" => {
                let events = item["events"].as_array().unwrap();
                let numbers = events
                    .iter()
                    .map(|event| event["sequence"].as_i64().unwrap());
                self.events.extend(numbers);
                self.cursor = Some(item["cursor"].as_str().unwrap().to_owned());
            }
            "log" => {
                let (run, bytes) = self.log.as_mut().unwrap();
                assert_eq!(item["run"], json!(run));
                assert_eq!(
                    item["offset"],
                    json!(bytes.len()),
                    "no byte twice, none left out"
                );
                if let Some(text) = item["text"].as_str() {
                    bytes.extend_from_slice(text.as_bytes());
                } else {
                    let text = item["base64"].as_str().unwrap();
                    let engine = base64::engine::general_purpose::STANDARD;
                    bytes.extend(engine.decode(text).unwrap());
                }
            }
            "reset" => panic!("nothing was removed: {item}"),
            _ => {}
        }
    }
}

fn history_events(home: &Home) -> Vec<i64> {
    let connection = rusqlite::Connection::open(home.state().history()).unwrap();
    let mut statement = connection
        .prepare("SELECT sequence FROM events ORDER BY sequence")
        .unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Ranks write for as long as the campaign takes; text, `\r` and bytes that are no text.
const WRITER: &str = "\
import os, sys, time, random
random.seed(7)
while not os.path.exists('stop'):
    block = random.choice([b'line\\n', b'bar 50%\\r', bytes(random.randrange(256) for _ in range(40)), 'ü'.encode() * 9])
    os.write(1, block)
    time.sleep(0.002)
";

#[test]
fn disconnects_and_daemon_kills_lose_no_event_and_no_byte() {
    let breaks = if is_soak() { 1000 } else { 100 };
    let home = home();
    home.write("writer.py", WRITER);
    let mut random = Seeded(seed());
    let mut reader = Reader::new();
    // Before there is any history.
    assert!(reader.take(&home, Duration::from_secs(60)));
    let writer = home.tow(["submit", "python3", "writer.py"]).ok().id();
    reader.log = Some((writer.clone(), Vec::new()));
    reader.client.take().unwrap().0.kill();
    let (mut disconnects, mut kills) = (0, 0);
    while disconnects + kills < breaks {
        match random.next(6) {
            0 => {
                home.tow(["submit", "--sweep", "x=1-3", "true"]).ok();
            }
            1 => {
                home.tow(["submit", "false"]).ok();
            }
            2 => {
                if let Some(pid) = home.daemon() {
                    let _ = rustix::process::kill_process(
                        rustix::process::Pid::from_raw(pid).unwrap(),
                        rustix::process::Signal::KILL,
                    );
                    kills += 1;
                }
            }
            _ => {
                for _ in 0..random.next(20) {
                    reader.take(&home, Duration::from_millis(20));
                }
                if let Some((client, _)) = reader.client.take() {
                    client.kill();
                    disconnects += 1;
                }
            }
        }
    }
    home.write("stop", "");
    home.tow(["wait"]);
    let run = RunId::try_from(writer).unwrap();
    let written = std::fs::read(home.state().log(&run, 1, LogSource::Rank(0))).unwrap();
    until("the stream to tell the rest", || {
        reader.take(&home, Duration::from_millis(200));
        let is_told = reader.events.len() >= history_events(&home).len();
        let bytes = reader.log.as_ref().map_or(0, |(_, bytes)| bytes.len());
        (is_told && bytes >= written.len()).then_some(())
    });
    assert_eq!(reader.events, history_events(&home));
    assert!(
        reader.log.unwrap().1 == written,
        "the bytes are those that were written"
    );
    println!(
        "stream: {disconnects} disconnects and {kills} kills of the daemon, {} events and {} \
            bytes: none lost, none twice",
        reader.events.len(),
        written.len()
    );
}

#[test]
fn a_removed_run_is_told_and_its_number_is_not_used_again() {
    let home = home();
    let first = home.tow(["submit", "true"]).ok().id();
    home.wait_for_state(&first, "succeeded");
    let mut reader = Reader::new();
    assert!(reader.take(&home, Duration::from_secs(60)));
    let cursor = reader.cursor.clone().unwrap();
    until("the first run to be old enough to be removed", || {
        home.tow(["prune", "--older-than", "1s", "--keep", "0", "--yes"])
            .ok();
        let runs = home.tow(["ps", "--json"]).json();
        runs["runs"].as_array().unwrap().is_empty().then_some(())
    });
    let second = home.tow(["submit", "true"]).ok().id();
    home.wait_for_state(&second, "succeeded");
    let mut client = Client::new(&home);
    let stream = client.begin("events", &json!({ "cursor": cursor }));
    let (mut removed, mut events) = (Vec::new(), Vec::new());
    until("the end of the second run", || {
        let reply = client.next(stream).unwrap();
        let item = &reply["item"];
        removed.extend(item["removed"].as_array().cloned().unwrap_or_default());
        events.extend(item["events"].as_array().cloned().unwrap_or_default());
        events
            .iter()
            .any(|event| event["event"] == "ended")
            .then_some(())
    });
    assert_eq!(removed, [json!(first)]);
    assert!(
        events.iter().all(|event| event["run"] == json!(second)),
        "{events:?}"
    );
}

#[test]
fn a_cursor_of_another_history_begins_anew_and_text_that_is_none_is_refused() {
    let home = home();
    let id = home.tow(["submit", "true"]).ok().id();
    home.wait_for_state(&id, "succeeded");
    let mut client = Client::new(&home);
    let stream = client.begin("events", &json!({ "cursor": "0123456789abcdef-5-1-0" }));
    assert_eq!(client.next(stream).unwrap()["item"]["item"], "begun");
    assert_eq!(client.next(stream).unwrap()["item"]["item"], "reset");
    for wrong in ["", "x", "1-2-3", "a-1-2--3", "a-1-2-99999999999999999999"] {
        let failure = client.refused("events", &json!({ "cursor": wrong }));
        assert_eq!(failure["error"], "usage", "{wrong}");
    }
}

#[test]
fn a_stream_follows_other_logs_when_it_is_told() {
    let home = home();
    let id = home
        .tow(["submit", "--launch", "2", "sh", "-c", "echo rank $RANK"])
        .id();
    home.wait_for_state(&id, "succeeded");
    let mut client = Client::new(&home);
    let stream = client.begin("events", &json!({ "no_runs": true }));
    let name = client.next(stream).unwrap()["item"]["stream"].clone();
    for rank in [1, 0] {
        let log = json!([{ "run": id, "attempt": 1, "source": { "rank": rank } }]);
        client.call("events.logs", &json!({ "stream": name, "logs": log }));
        let item = client.next(stream).unwrap()["item"].clone();
        assert_eq!(item["text"], json!(format!("rank {rank}\n")), "{item}");
    }
    let failure = client.refused("events.logs", &json!({ "stream": "none", "logs": [] }));
    assert_eq!(failure["error"], "not_found");
}
