//! Bytes that are no JSON: frames, greetings, signs of life.

use std::io::Read;
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::heartbeat::HeartbeatOutput;
use towline_wire::{journal, line, version};

/// Two frames, an empty one between them.
const STREAM: &[u8] = b"\x08\0\0\0\"status\"\0\0\0\0\x11\0\0\0{\"known\":\"caf\xc3\xa9\"}";

#[test]
fn a_frame_is_four_bytes_of_length_and_json() {
    let word = serde_json::json!({ "known": "café" });
    let mut stream = frame::encode(&"status");
    stream.extend(frame::SIGN_OF_LIFE);
    frame::write(&mut stream, &word).expect("written");
    assert_eq!(stream, STREAM);

    let mut buffer = FrameBuffer::default();
    buffer.push(STREAM);
    let first: Option<String> = buffer.next_frame().expect("a frame");
    assert_eq!(first.as_deref(), Some("status"));
    assert_eq!(buffer.next_frame().expect("a frame"), Some(word));

    let mut reader = STREAM;
    let first: Option<String> = frame::read_exactly(&mut reader).expect("a frame");
    assert_eq!(
        (first.as_deref(), reader.len()),
        (Some("status"), STREAM.len() - 12)
    );
    assert_eq!(frame::MAX_FRAME_BYTES, 268_435_456);
}

#[test]
fn a_line_greets_before_its_first_frame() {
    assert_eq!(line::GREETING, b"\0tow-line\0");
}

#[test]
fn an_answer_goes_over_a_line_as_a_frame() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let voice = HeartbeatOutput::new(writer);
    voice
        .say(|output| frame::write(output, &"ready"))
        .expect("written");
    let mut said = [0; 11];
    reader.read_exact(&mut said).expect("an answer");
    assert_eq!(&said, b"\x07\0\0\0\"ready\"");
}

#[test]
fn a_journal_is_one_json_value_a_line() {
    let text = b"{\"record\":\"claim\",\"run\":\"x-1-00000002\",\"attempt\":1,\"at\":5}\n";
    let records = journal::parse(text);
    assert_eq!(records.len(), 1);
    assert_eq!(journal::line(&records[0]), text);
}

#[test]
fn the_version_is_the_number_of_the_package() {
    assert_eq!(version::version(), env!("CARGO_PKG_VERSION"));
    assert!(version::is_older("0.1.0", "0.1.1-rc1"));
}
