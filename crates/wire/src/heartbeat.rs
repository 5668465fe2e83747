//! Heartbeats on a connection. The answering side sends an empty frame every few seconds while it
//! works. The asking side hangs up if nothing arrives. So an answer may take as long as it needs,
//! and a frozen process differs from a working one.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use towline_core::transport::Session;

/// How often a heartbeat is sent.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// How long the other side may be silent. Longer than ssh takes to notice a lost connection,
/// because the error of ssh says more.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// How much is written at once: each piece has the whole time limit.
const WRITE_BYTES: usize = 64 << 10;
const HEARTBEAT: [u8; 4] = [0; 4];

fn held<T: ?Sized>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of the answering side. Heartbeats are sent on it between answers.
#[derive(Debug)]
pub struct HeartbeatOutput<W>(Arc<Mutex<W>>);

impl<W: Write + Send + 'static> HeartbeatOutput<W> {
    /// Starts the heartbeats, which end when this is dropped.
    pub fn new(output: W) -> Self {
        Self::every(HEARTBEAT_INTERVAL, output)
    }

    fn every(pause: Duration, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let weak = Arc::downgrade(&output);
        // Without this thread the asking side only hangs up sooner.
        let _ = std::thread::Builder::new()
            .name("pulse".into())
            .spawn(move || send_heartbeats(&weak, pause));
        Self(output)
    }

    /// Writes one whole answer, without a heartbeat in between, and flushes.
    pub fn say(&self, answer: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        let mut output = held(&self.0);
        answer(&mut output)?;
        output.flush()
    }
}

fn send_heartbeats<W: Write>(output: &Weak<Mutex<W>>, pause: Duration) {
    loop {
        std::thread::sleep(pause);
        let Some(output) = output.upgrade() else {
            return;
        };
        let mut output = held(&output);
        if output
            .write_all(&HEARTBEAT)
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Since when the asking side waits for bytes, and whether it has hung up.
#[derive(Debug, Default)]
struct Waiting {
    since: Option<Instant>,
    given_up: bool,
}

/// The time limit of the asking side: hangs up if nothing moves.
#[derive(Debug, Clone, Default)]
pub(crate) struct SilenceLimit(Arc<Mutex<Waiting>>);

/// A session that the time limit may end.
pub(crate) type Shared = Arc<Mutex<Box<dyn Session>>>;

impl SilenceLimit {
    /// Starts the limit, which lasts until the session is dropped.
    pub(crate) fn with(session: &Shared) -> Self {
        Self::lasting(LONGEST_SILENCE, session)
    }

    fn lasting(limit: Duration, session: &Shared) -> Self {
        let silence_limit = Self::default();
        let (waiting, session) = (Arc::downgrade(&silence_limit.0), Arc::downgrade(session));
        // Without this thread a hung connection shows only when TCP gives up.
        let _ = std::thread::Builder::new()
            .name("line".into())
            .spawn(move || watch(&waiting, &session, limit));
        silence_limit
    }

    pub(crate) fn is_over(&self) -> bool {
        held(&self.0).given_up
    }

    pub(crate) fn reading(&self, from: Box<dyn Read + Send>) -> Limited<Box<dyn Read + Send>> {
        Limited {
            inner: from,
            silence_limit: self.clone(),
        }
    }
    pub(crate) fn writing(&self, to: Box<dyn Write + Send>) -> Limited<Box<dyn Write + Send>> {
        Limited {
            inner: to,
            silence_limit: self.clone(),
        }
    }

    fn during<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        held(&self.0).since = Some(Instant::now());
        let done = act();
        held(&self.0).since = None;
        done
    }
}

fn watch(waiting: &Weak<Mutex<Waiting>>, session: &Weak<Mutex<Box<dyn Session>>>, limit: Duration) {
    loop {
        std::thread::sleep((limit / 30).max(Duration::from_millis(10)));
        let (Some(waiting), Some(session)) = (waiting.upgrade(), session.upgrade()) else {
            return;
        };
        let mut waiting = held(&waiting);
        if waiting.since.is_some_and(|since| since.elapsed() > limit) {
            waiting.given_up = true;
            drop(waiting);
            held(&session).hang_up();
            return;
        }
    }
}

/// One end of a pipe, used with the time limit.
pub(crate) struct Limited<T> {
    inner: T,
    silence_limit: SilenceLimit,
}

impl<T: Read> Read for Limited<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.silence_limit.during(|| self.inner.read(bytes))
    }
}

impl<T: Write> Write for Limited<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.silence_limit
            .during(|| self.inner.write(&bytes[..bytes.len().min(WRITE_BYTES)]))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.silence_limit.during(|| self.inner.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use towline_core::Result;

    /// A pipe whose output comes from a sender; hanging up ends it.
    struct Pipe(Option<Sender<u8>>);
    struct End(Receiver<u8>);

    impl Read for End {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let Ok(byte) = self.0.recv() else {
                return Ok(0);
            };
            bytes[0] = byte;
            Ok(1)
        }
    }

    impl Session for Pipe {
        fn input(&mut self) -> Option<Box<dyn Write + Send>> {
            None
        }
        fn output(&mut self) -> Option<Box<dyn Read + Send>> {
            None
        }
        fn said(&self) -> String {
            String::new()
        }
        fn wait(&mut self) -> Result<i32> {
            Ok(0)
        }
        fn hang_up(&mut self) {
            self.0 = None;
        }
    }

    fn line(
        limit: Duration,
    ) -> (
        Shared,
        SilenceLimit,
        Limited<Box<dyn Read + Send>>,
        Sender<u8>,
    ) {
        let (sender, receiver) = channel();
        let session: Shared = Arc::new(Mutex::new(Box::new(Pipe(Some(sender.clone())))));
        let silence_limit = SilenceLimit::lasting(limit, &session);
        let output = silence_limit.reading(Box::new(End(receiver)));
        (session, silence_limit, output, sender)
    }

    #[test]
    fn a_line_on_which_nothing_moves_is_given_up() {
        let (_session, silence_limit, mut output, sender) = line(Duration::from_millis(200));
        drop(sender);
        let mut bytes = [0; 1];
        assert_eq!(output.read(&mut bytes).expect("it ends"), 0);
        assert!(silence_limit.is_over());
    }

    #[test]
    fn one_that_is_not_waited_for_is_kept() {
        let (_session, silence_limit, mut output, sender) = line(Duration::from_millis(100));
        std::thread::sleep(Duration::from_millis(400));
        sender.send(7).expect("it is there");
        let mut bytes = [0; 1];
        assert_eq!((output.read(&mut bytes).expect("a byte"), bytes[0]), (1, 7));
        assert!(!silence_limit.is_over());
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            held(&self.0).write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn signs_come_between_answers_and_never_within_one() {
        let kept = Kept::default();
        let voice = HeartbeatOutput::every(Duration::from_millis(5), kept.clone());
        let answer = |output: &mut Kept| {
            for _ in 0..10 {
                output.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        };
        for _ in 0..3 {
            voice.say(answer).expect("kept");
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = String::from_utf8(held(&kept.0).clone()).expect("text");
        assert_eq!(text.matches("xxxxxxxxxx").count(), 3, "{text:?}");
        assert!(text.contains("\0\0\0\0") && text.len() % 4 == 2, "{text:?}");
    }
}
