//! Whether the far end answers: one fresh connection to it over the whole route.

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

/// A connection that is opened only for a probe, and closed when it is dropped.
pub(super) struct ProbeConnection {
    pub(super) from: Box<dyn Read + Send>,
    pub(super) to: Box<dyn Write + Send>,
    pub(super) status: Box<dyn ProbeStatus>,
}

/// The state of such a connection.
pub(super) trait ProbeStatus: Send {
    /// Whether the far end has accepted it.
    fn is_accepted(&self) -> bool;
    /// Whether the route itself is gone.
    fn is_lost(&self) -> bool;
}

/// Why a probe failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeFailure {
    /// The route is gone.
    Lost,
    /// Nothing accepts connections there.
    Refused,
    /// The connection was accepted and closed without a byte.
    HungUp,
    /// No answer came in time.
    Silent { is_accepted: bool },
    /// No ssh server answered; this is the beginning of the answer.
    WrongProtocol(String),
}

pub(super) fn ask(probe: Probe, asked: ProbeConnection) -> Result<(), ProbeFailure> {
    let ProbeConnection {
        mut from,
        mut to,
        status,
    } = asked;
    if probe == Probe::Http {
        let _ = to
            .write_all(b"HEAD / HTTP/1.0\r\nHost: localhost\r\n\r\n")
            .and_then(|()| to.flush());
    }
    let (sender, received) = channel();
    let reading = std::thread::Builder::new().spawn(move || {
        let mut first = [0; 64];
        let count = from.read(&mut first).unwrap_or(0);
        let _ = sender.send(first[..count].to_vec());
    });
    if reading.is_err() {
        return Err(ProbeFailure::Lost);
    }
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut lasting = deadline;
    let mut is_accepted = false;
    loop {
        if !is_accepted && status.is_accepted() {
            is_accepted = true;
            lasting = Instant::now() + TCP_STABLE_TIME;
        }
        match received.recv_timeout(ACCEPT_POLL_INTERVAL) {
            Ok(words) if words.is_empty() => {
                return Err(if status.is_lost() {
                    ProbeFailure::Lost
                } else if is_accepted || status.is_accepted() {
                    ProbeFailure::HungUp
                } else {
                    ProbeFailure::Refused
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
                return Err(ProbeFailure::WrongProtocol(shown));
            }
            Ok(_) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(ProbeFailure::Lost),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if probe == Probe::Tcp && is_accepted && now >= lasting {
            return Ok(());
        }
        if now >= deadline {
            return Err(ProbeFailure::Silent { is_accepted });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    struct FixedStatus(bool);
    impl ProbeStatus for FixedStatus {
        fn is_accepted(&self) -> bool {
            self.0
        }
        fn is_lost(&self) -> bool {
            false
        }
    }

    /// The result of probing a server that sends `says`, or hangs up.
    fn asked(
        probe: Probe,
        says: Option<&'static [u8]>,
        is_accepted: bool,
    ) -> Result<(), ProbeFailure> {
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
            ProbeConnection {
                from: Box::new(from),
                to: Box::new(near),
                status: Box::new(FixedStatus(is_accepted)),
            },
        )
    }

    #[test]
    fn every_kind_of_answer_is_recognised() {
        assert_eq!(asked(Probe::Ssh, Some(b"SSH-2.0-x\r\n"), true), Ok(()));
        assert_eq!(
            asked(Probe::Ssh, Some(b"HTTP/1.0 400\r\n"), true),
            Err(ProbeFailure::WrongProtocol("HTTP/1.0 400".into()))
        );
        assert_eq!(asked(Probe::Ssh, None, true), Err(ProbeFailure::HungUp));
        assert_eq!(asked(Probe::Tcp, None, false), Err(ProbeFailure::Refused));
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
            Err(ProbeFailure::Silent { is_accepted: false })
        );
        assert_eq!(
            asked(Probe::Http, Some(b""), true),
            Err(ProbeFailure::Silent { is_accepted: true })
        );
    }
}
