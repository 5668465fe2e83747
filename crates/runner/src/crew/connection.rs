//! One connection between a node and its leader: frames both ways, and heartbeats.

use super::Pace;
use rustix::net::{RecvFlags, recv};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use towline_wire::frame::{self, FrameBuffer};

/// The limits in bytes and time for a peer that has not introduced itself.
const MAX_INTRODUCTION_BYTES: usize = 16 << 10;
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct PeerConnection {
    stream: TcpStream,
    /// Each write is a whole frame, from any thread.
    writer: Arc<Mutex<TcpStream>>,
    buffer: FrameBuffer,
    received: usize,
    received_at: Instant,
    pace: Pace,
}

impl PeerConnection {
    pub(super) fn new(stream: TcpStream, pace: Pace) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        // A peer that reads nothing for this long is lost.
        stream.set_write_timeout(Some(pace.silence))?;
        let writer = Arc::new(Mutex::new(stream.try_clone()?));
        Ok(Self {
            stream,
            writer,
            buffer: FrameBuffer::default(),
            received: 0,
            received_at: Instant::now(),
            pace,
        })
    }

    /// Sends `heartbeat` every few seconds, also while this thread is busy.
    pub(super) fn keep_alive<T: Serialize>(&self, heartbeat: &T) -> io::Result<()> {
        let frame = frame::encode(heartbeat);
        let writer = Arc::downgrade(&self.writer);
        let every = self.pace.alive_every;
        std::thread::Builder::new()
            .name("alive".into())
            .spawn(move || while send_heartbeat(&writer, &frame, every) {})
            .map(|_| ())
    }

    pub(super) fn send<T: Serialize>(&self, message: &T) -> io::Result<()> {
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(&frame::encode(message))
    }

    /// Closes our side: nothing more will be sent.
    pub(super) fn finish(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Reads everything that has arrived, without waiting. An error means that the connection is
    /// lost, and why.
    fn read_available(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        loop {
            match recv(&self.stream, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::Error::other("it broke off")),
                Ok((count, _)) => {
                    self.buffer.push(&chunk[..count]);
                    self.received = self.received.saturating_add(count);
                    self.received_at = Instant::now();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// All messages since the last call, and the reason if the connection is lost.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> (Vec<T>, Option<String>) {
        let taken = self.read_available();
        let mut messages = Vec::new();
        let frames = loop {
            match self.buffer.next_frame() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let silent = self.received_at.elapsed() >= self.pace.silence;
        let lost = match taken.and(frames) {
            Err(error) => Some(error.to_string()),
            Ok(()) if silent => Some(format!(
                "no message came for {} s",
                self.pace.silence.as_secs()
            )),
            Ok(()) => None,
        };
        (messages, lost)
    }

    /// The first message of a peer. An error means that it is not a node of ours.
    pub(super) fn introduction<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let taken = self.read_available();
        if self.received > MAX_INTRODUCTION_BYTES {
            return Err(io::Error::other("too long"));
        }
        match self.buffer.next_frame()? {
            Some(message) => Ok(Some(message)),
            None if self.received_at.elapsed() > INTRODUCTION_TIMEOUT => {
                Err(io::Error::other("too late"))
            }
            None => taken.map(|()| None),
        }
    }
}

/// Sends one heartbeat; `false` if the connection is gone.
fn send_heartbeat(writer: &Weak<Mutex<TcpStream>>, frame: &[u8], every: Duration) -> bool {
    std::thread::park_timeout(every);
    let Some(writer) = writer.upgrade() else {
        return false;
    };
    let mut stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
    stream.write_all(frame).is_ok()
}

impl AsFd for PeerConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use towline_wire::crew::{FromNode, SharedToken, ToNode};

    fn pair(pace: Pace) -> (PeerConnection, PeerConnection) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (far, _) = listener.accept().expect("called");
        (
            PeerConnection::new(near, pace).expect("a line"),
            PeerConnection::new(far, pace).expect("a line"),
        )
    }

    fn lost(connection: &mut PeerConnection) -> String {
        loop {
            if let (_, Some(why)) = connection.receive::<ToNode>() {
                return why;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_is_silent_is_lost_and_who_gives_signs_is_not() {
        let pace = Pace {
            alive_every: Duration::from_millis(10),
            silence: Duration::from_secs(1),
            ..Pace::default()
        };
        let (mut near, far) = pair(pace);
        far.keep_alive(&ToNode::Alive).expect("a thread");
        let begun = Instant::now();
        let mut heartbeats = 0;
        while begun.elapsed() < pace.silence * 2 {
            let (messages, lost) = near.receive::<ToNode>();
            assert_eq!(lost, None, "it gives signs");
            heartbeats += messages.len();
            std::thread::yield_now();
        }
        assert!(heartbeats > 1, "{heartbeats} signs");
        let (mut near, _mute) = pair(pace);
        assert_eq!(lost(&mut near), "no message came for 1 s");
    }

    #[test]
    fn what_was_said_before_the_end_is_heard() {
        let (mut near, far) = pair(Pace::default());
        far.send(&ToNode::Leave { code: 7 }).expect("told");
        drop(far);
        let mut received_at = Vec::new();
        let why = loop {
            let (messages, lost) = near.receive::<ToNode>();
            received_at.extend(messages);
            if let Some(why) = lost {
                break why;
            }
        };
        assert_eq!(
            (received_at, why.as_str()),
            (vec![ToNode::Leave { code: 7 }], "it broke off")
        );
    }

    #[test]
    fn a_stranger_may_not_fill_our_memory() {
        let (near, mut far) = pair(Pace::default());
        near.send(&FromNode::Here {
            shared_token: SharedToken::new("x".repeat(MAX_INTRODUCTION_BYTES)),
            node: 1,
            host: String::new(),
        })
        .expect("told");
        let refused = loop {
            match far.introduction::<FromNode>() {
                Ok(None) => {}
                other => break other,
            }
        };
        assert!(refused.is_err());
    }
}
