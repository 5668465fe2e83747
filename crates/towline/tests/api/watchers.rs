//! A hundred watchers are told everything, and the daemon does not know of them.

use super::home;
use super::http::{begin_stream, next_data};
use super::web::Web;
use serde_json::{Value, json};
use std::fs;

const WATCHERS: usize = 100;

/// The processor time that a process has used, in ticks of the kernel.
fn ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = rest.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[test]
fn a_hundred_are_told_and_the_daemon_has_no_more_to_do() {
    let home = home();
    home.configure("clusters: {local: {cpus: 8}}\n");
    let writes = "while [ ! -e stop ]; do echo a line; sleep 0.02; done";
    let writer = home.tow(["submit", "sh", "-c", writes]).ok().id();
    home.wait_for_state(&writer, "running");
    let web = Web::new(&home);
    let daemon = home.daemon().unwrap();
    let before = descriptors(daemon);
    let mut streams: Vec<_> = (0..WATCHERS).map(|_| begin_stream(&web)).collect();
    let logs = json!([{
        "run": writer, "attempt": 1, "source": {"rank": 0}, "offset": 0,
    }]);
    for stream in &mut streams {
        let begun = next_data(stream);
        let name = begun["item"]["stream"].clone();
        let follow = json!({"stream": name, "logs": logs});
        assert_eq!(web.call("events.logs", &follow).status, 200);
    }
    assert!(
        descriptors(daemon) <= before + 2,
        "they are not connected to it"
    );
    let used = ticks(daemon);
    // A stream that says nothing for a minute ends the test.
    for stream in &mut streams {
        let mut lines = 0;
        while lines < 100 {
            let told = next_data(stream);
            if told["item"]["item"] == "log" {
                let text = told["item"]["text"].as_str().unwrap_or_default();
                lines += text.lines().count();
            }
        }
    }
    // Each line would cost it a wake-up for each of them, were they its own: thousands of ticks.
    assert!(ticks(daemon) - used < 50, "{} ticks", ticks(daemon) - used);
    fs::write(home.project().join("stop"), "").unwrap();
    let ends = |told: &Value| {
        let events = told["item"]["events"].as_array().cloned();
        let mut events = events.unwrap_or_default().into_iter();
        events.any(|event| event["run"] == json!(writer) && event["event"] == "ended")
    };
    for stream in &mut streams {
        while !ends(&next_data(stream)) {}
    }
}
