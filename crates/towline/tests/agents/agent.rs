//! An agent that speaks the Model Context Protocol by the official SDK.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use towline_testkit::Home;
use towline_testkit::real::part;

pub(super) struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(super) tools: Value,
}

/// What a tool answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) refused: bool,
    pub(super) text: String,
    pub(super) value: Value,
}

impl Agent {
    /// Starts `tow mcp` as the client of that name.
    pub(super) fn start(home: &Home, name: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/agent.py");
        let tow = home.command(["mcp"]);
        let mut python = std::process::Command::new(part("mcp/bin/python"));
        python
            .arg(script)
            .arg(name)
            .arg(tow.get_program())
            .args(tow.get_args());
        python.env_clear().current_dir(home.project());
        python.envs(
            tow.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let mut process = python
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        let mut agent = Self {
            process,
            input,
            output: BufReader::new(output),
            tools: Value::Null,
        };
        agent.tools = agent.line()["tools"].take();
        agent
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(super) fn call(&mut self, tool: &str, args: &Value) -> Answer {
        let asked = json!({ "tool": tool, "args": args });
        writeln!(self.input.as_mut().unwrap(), "{asked}").unwrap();
        let mut answer = self.line();
        Answer {
            refused: answer["refused"].as_bool().unwrap(),
            text: answer["text"].as_str().unwrap().to_owned(),
            value: answer["value"].take(),
        }
    }

    /// A call that is answered.
    #[track_caller]
    pub(super) fn ask(&mut self, tool: &str, args: &Value) -> Answer {
        let answer = self.call(tool, args);
        assert!(!answer.refused, "{tool} {args}: {}", answer.text);
        answer
    }

    /// A call that is refused; its text.
    #[track_caller]
    pub(super) fn refused(&mut self, tool: &str, args: &Value) -> String {
        let answer = self.call(tool, args);
        assert!(answer.refused, "{tool} {args}: {}", answer.text);
        answer.text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
