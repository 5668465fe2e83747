//! Frames on a socket: a length (four bytes, little endian) and that many bytes of JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// A larger frame cannot be one of ours.
pub const MAX_FRAME_BYTES: usize = 256 << 20;

/// An empty frame: a heartbeat of a sender that has no message yet.
pub const SIGN_OF_LIFE: [u8; 4] = [0; 4];

/// The bytes of one frame.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).expect("our messages serialise");
    let length = u32::try_from(bytes.len() - 4).expect("a message is smaller than 4 GiB");
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Collects bytes as they come and returns complete frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl FrameBuffer {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete frame, decoded. Skips heartbeats, which are empty frames.
    pub fn next_frame<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        while self.bytes[self.start..].starts_with(&SIGN_OF_LIFE) {
            self.start += SIGN_OF_LIFE.len();
        }
        let waiting = &self.bytes[self.start..];
        let Some(head) = waiting.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame is too large",
            ));
        }
        let Some(body) = waiting.get(4..4 + length) else {
            return Ok(None);
        };
        let message = serde_json::from_slice(body)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.start += 4 + length;
        Ok(Some(message))
    }
}

pub fn write<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    to.write_all(&encode(message))
}

/// Reads one frame, blocking. `None` at a clean end.
pub fn read<T: DeserializeOwned>(
    from: &mut impl Read,
    buffer: &mut FrameBuffer,
) -> io::Result<Option<T>> {
    let mut chunk = [0; 16 << 10];
    loop {
        if let Some(message) = buffer.next_frame()? {
            return Ok(Some(message));
        }
        match from.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(count) => buffer.push(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads one frame and not a byte more, so that raw bytes may follow it. `None` at a clean end.
pub fn read_exactly<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let Some(length) = length(from)? else {
        return Ok(None);
    };
    body(from, length).map(Some)
}

/// The same, but skips heartbeats, which are empty frames.
pub(crate) fn read_past_signs<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    loop {
        match length(from)? {
            None => return Ok(None),
            Some(0) => {}
            Some(length) => return body(from, length).map(Some),
        }
    }
}

fn length(from: &mut impl Read) -> io::Result<Option<usize>> {
    let mut head = [0; 4];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let length = u32::from_le_bytes(head) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a frame is too large",
        ));
    }
    Ok(Some(length))
}

fn body<T: DeserializeOwned>(from: &mut impl Read, length: usize) -> io::Result<T> {
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cut() {
        let mut stream = encode(&"first");
        stream.extend(encode(&"second"));
        for cut in 0..=stream.len() {
            let mut buffer = FrameBuffer::default();
            let mut seen: Vec<String> = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                buffer.push(part);
                while let Some(message) = buffer.next_frame().expect("whole frames") {
                    seen.push(message);
                }
            }
            assert_eq!(seen, ["first", "second"]);
        }
    }

    #[test]
    fn signs_of_life_are_passed_over() {
        let mut buffer = FrameBuffer::default();
        buffer.push(&SIGN_OF_LIFE[..3]);
        assert_eq!(buffer.next_frame::<String>().expect("no frame yet"), None);
        buffer.push(&SIGN_OF_LIFE[3..]);
        buffer.push(&SIGN_OF_LIFE);
        buffer.push(&encode(&"word"));
        buffer.push(&SIGN_OF_LIFE);
        assert_eq!(
            buffer.next_frame::<String>().expect("a frame").as_deref(),
            Some("word")
        );
        assert_eq!(buffer.next_frame::<String>().expect("nothing more"), None);
    }

    #[test]
    fn a_stranger_on_the_socket_is_refused() {
        let mut buffer = FrameBuffer::default();
        buffer.push(b"GET / HTTP/1.1\r\n");
        assert!(buffer.next_frame::<String>().is_err());
    }
}
