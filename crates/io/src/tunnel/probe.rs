//! Whether the far end answers: one fresh connection to it, through all that is on the way.

use std::io::{Read, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use towline_core::tunnel::Probe;

/// How long the far end may take to answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A TCP probe succeeds when an accepted connection stays open for this long.
const TCP_STABLE_TIME: Duration = Duration::from_secs(1);
/// How often to check whether a connection was accepted.
const ACCEPT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A connection that is only asked something. Dropped, it ends.
pub(super) struct Asked {
    pub(super) from: Box<dyn Read + Send>,
    pub(super) to: Box<dyn Write + Send>,
    pub(super) fate: Box<dyn Fate>,
}

/// What becomes of such a connection.
pub(super) trait Fate: Send {
    /// Whether the far end has taken it.
    fn is_taken(&self) -> bool;
    /// Whether there is no way at all any more.
    fn is_lost(&self) -> bool;
}

/// How it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bad {
    /// The way there is gone.
    Lost,
    /// Nobody takes connections there.
    Refused,
    /// It was taken and ended without a word.
    HungUp,
    /// It was taken, or not even that, and nothing was said in time.
    Silent { is_taken: bool },
    /// Somebody else is there: their first words.
    Other(String),
}

pub(super) fn ask(probe: Probe, asked: Asked) -> Result<(), Bad> {
    let Asked {
        mut from,
        mut to,
        fate,
    } = asked;
    if probe == Probe::Http {
        let _ = to
            .write_all(b"HEAD / HTTP/1.0\r\nHost: localhost\r\n\r\n")
            .and_then(|()| to.flush());
    }
    let (sender, heard) = channel();
    let reading = std::thread::Builder::new().spawn(move || {
        let mut first = [0; 64];
        let count = from.read(&mut first).unwrap_or(0);
        let _ = sender.send(first[..count].to_vec());
    });
    if reading.is_err() {
        return Err(Bad::Lost);
    }
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut lasting = deadline;
    let mut is_taken = false;
    loop {
        if !is_taken && fate.is_taken() {
            is_taken = true;
            lasting = Instant::now() + TCP_STABLE_TIME;
        }
        match heard.recv_timeout(ACCEPT_POLL_INTERVAL) {
            Ok(words) if words.is_empty() => {
                // What it said of itself comes by another way.
                return Err(if fate.is_lost() {
                    Bad::Lost
                } else if is_taken || fate.is_taken() {
                    Bad::HungUp
                } else {
                    Bad::Refused
                });
            }
            Ok(words) if probe == Probe::Ssh && !words.starts_with(b"SSH-") => {
                let shown = String::from_utf8_lossy(&words)
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(40)
                    .collect();
                return Err(Bad::Other(shown));
            }
            Ok(_) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(Bad::Lost),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if probe == Probe::Tcp && is_taken && now >= lasting {
            return Ok(());
        }
        if now >= deadline {
            return Err(Bad::Silent { is_taken });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    struct Taken(bool);
    impl Fate for Taken {
        fn is_taken(&self) -> bool {
            self.0
        }
        fn is_lost(&self) -> bool {
            false
        }
    }

    /// What a server that says this, or hangs up, is taken for.
    fn asked(probe: Probe, says: Option<&'static [u8]>, is_taken: bool) -> Result<(), Bad> {
        let server = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let near = TcpStream::connect(server.local_addr().expect("an address")).expect("connects");
        let (mut far, _) = server.accept().expect("comes");
        match says {
            Some(words) => far.write_all(words).expect("written"),
            None => drop(far.shutdown(std::net::Shutdown::Both)),
        }
        let from = near.try_clone().expect("a copy");
        ask(
            probe,
            Asked {
                from: Box::new(from),
                to: Box::new(near),
                fate: Box::new(Taken(is_taken)),
            },
        )
    }

    #[test]
    fn each_answer_is_told_from_the_others() {
        assert_eq!(asked(Probe::Ssh, Some(b"SSH-2.0-x\r\n"), true), Ok(()));
        assert_eq!(
            asked(Probe::Ssh, Some(b"HTTP/1.0 400\r\n"), true),
            Err(Bad::Other("HTTP/1.0 400".into()))
        );
        assert_eq!(asked(Probe::Ssh, None, true), Err(Bad::HungUp));
        assert_eq!(asked(Probe::Tcp, None, false), Err(Bad::Refused));
        assert_eq!(
            asked(Probe::Http, Some(b"HTTP/1.0 404 Not Found\r\n"), true),
            Ok(())
        );
        assert_eq!(
            asked(Probe::Tcp, Some(b""), true),
            Ok(()),
            "nobody hangs up"
        );
        assert_eq!(
            asked(Probe::Tcp, Some(b""), false),
            Err(Bad::Silent { is_taken: false })
        );
        assert_eq!(
            asked(Probe::Http, Some(b""), true),
            Err(Bad::Silent { is_taken: true })
        );
    }
}
