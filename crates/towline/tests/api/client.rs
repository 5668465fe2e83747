//! A program that calls `tow api --stdio`.

use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use towline_testkit::Home;

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    waiting: HashMap<u64, VecDeque<Value>>,
    last: u64,
}

/// How long a reply may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    pub(crate) fn new(home: &Home) -> Self {
        let mut child = home
            .command(["api", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { break };
                let value = serde_json::from_str(&line).expect("each line is JSON");
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            waiting: HashMap::new(),
            last: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// Begins a call; returns its number.
    pub(crate) fn begin(&mut self, call: &str, args: &Value) -> u64 {
        self.last += 1;
        let line = json!({ "id": self.last, "call": call, "args": args });
        self.write(&line.to_string());
        self.last
    }

    /// The next reply to a call; `None` if the program has ended.
    pub(crate) fn next(&mut self, id: u64) -> Option<Value> {
        self.next_within(id, PATIENCE)
            .unwrap_or_else(|()| panic!("no reply to call {id} within a minute"))
    }

    /// The same, or an error if there is none in that time.
    pub(crate) fn next_within(&mut self, id: u64, limit: Duration) -> Result<Option<Value>, ()> {
        loop {
            if let Some(reply) = self.waiting.get_mut(&id).and_then(VecDeque::pop_front) {
                return Ok(Some(reply));
            }
            match self.lines.recv_timeout(limit) {
                Ok(line) => {
                    let of = line["id"].as_u64().unwrap_or(0);
                    self.waiting.entry(of).or_default().push_back(line);
                }
                Err(RecvTimeoutError::Timeout) => return Err(()),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// A call's last reply, and the others.
    pub(crate) fn replies(&mut self, call: &str, args: &Value) -> (Value, Vec<Value>) {
        let id = self.begin(call, args);
        let mut others = Vec::new();
        loop {
            let reply = self.next(id).expect("the program answers");
            if reply.get("done").is_some() || reply.get("error").is_some() {
                return (reply, others);
            }
            others.push(reply);
        }
    }

    /// The answer of a call.
    #[track_caller]
    pub(crate) fn call(&mut self, call: &str, args: &Value) -> Value {
        let (reply, _) = self.replies(call, args);
        match reply.get("done") {
            Some(answer) => answer.clone(),
            None => panic!("{call} failed: {reply}"),
        }
    }

    /// The error of a call.
    #[track_caller]
    pub(crate) fn refused(&mut self, call: &str, args: &Value) -> Map<String, Value> {
        let (reply, _) = self.replies(call, args);
        match reply.get("error") {
            Some(Value::Object(failure)) => failure.clone(),
            _ => panic!("{call} was not refused: {reply}"),
        }
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        self.write(&json!({ "cancel": id }).to_string());
    }

    /// Closes standard input; returns the exit code.
    pub(crate) fn close(mut self) -> i32 {
        self.input = None;
        let status = towline_testkit::until("tow api to end", || self.child.try_wait().unwrap());
        status.code().unwrap_or(-1)
    }

    /// Kills it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
