//! `tow mcp` leaves when its agent does, and leaves nothing behind.

use super::allowing;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use towline_testkit::until;

#[test]
fn it_ends_with_its_input_and_so_do_its_verbs() {
    let home = allowing();
    let run = home.tow(["submit", "sleep", "1000"]).ok().id();
    let mut server = home
        .command(["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    writeln!(input, "{hello}").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let hello: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(hello["result"]["serverInfo"]["name"], "towline");
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    let wait = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "wait", "arguments": {"run": run, "seconds": 500}}});
    writeln!(input, "{wait}").unwrap();
    let pid = server.id();
    let waiting = || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let found: String = threads
            .map(|thread| {
                std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
            })
            .collect();
        found
            .split_whitespace()
            .find(|child| {
                std::fs::read(format!("/proc/{child}/cmdline"))
                    .is_ok_and(|words| String::from_utf8_lossy(&words).contains("wait"))
            })
            .map(str::to_owned)
    };
    let verb = until("it waits", waiting);
    drop(input);
    let status = until("it ends", || server.try_wait().unwrap());
    assert!(status.success(), "{status}");
    let place = format!("/proc/{verb}");
    until("its verb ends", || {
        (!Path::new(&place).exists()).then_some(())
    });
    assert_eq!(home.state_of(&run), "running", "the run goes on");
}

#[test]
fn what_is_not_the_protocol_is_refused_in_words() {
    let home = allowing();
    let mut server = home
        .command(["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server
        .stdin
        .take()
        .unwrap()
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .unwrap();
    let ended = server.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(120), "{said}");
    assert!(said.contains("does not speak the protocol"), "{said}");
}
