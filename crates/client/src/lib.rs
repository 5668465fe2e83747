//! Talks to the daemon, and starts it if there is none. No wait is without a limit: the daemon
//! sends heartbeats while it works.

pub mod stop;

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use towline_core::{Error, ErrorKind, Result};
use towline_wire::daemon::{Hello, RefusalKind, Reply, Request, Status};
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::{DAEMON_SOCKET, StateFolder};

/// How long a daemon may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// A working daemon sends a heartbeat every second. A daemon without one for this long is stopped,
/// or hangs.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
/// The user is told about a wait that is longer than this.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// How long a daemon may take to answer a status request.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
static TELL: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that tells the user about long waits.
pub fn tell_waits_to(tell: fn(&str)) {
    let _ = TELL.set(tell);
}

fn tell(line: &str) {
    if let Some(tell) = TELL.get() {
        tell(line);
    }
}

/// A conversation with the daemon: one request, one or more replies.
#[derive(Debug)]
pub struct Conversation {
    state: StateFolder,
    stream: UnixStream,
    buffer: FrameBuffer,
    /// When the last byte came, heartbeats included.
    heard: Instant,
    has_told: bool,
}

/// The outcome of waiting for a reply.
#[derive(Debug)]
pub enum Heard {
    Reply(Box<Reply>),
    /// The daemon has hung up.
    HungUp,
    /// The daemon works and has not replied in time.
    NotYet,
}

impl Conversation {
    fn open(state: &StateFolder, request: &Hello) -> io::Result<Self> {
        let mut stream =
            towline_host::socket::connect_within(state.root(), DAEMON_SOCKET, SILENCE_TIMEOUT)?;
        frame::write(&mut stream, request)?;
        Ok(Self {
            state: state.clone(),
            stream,
            buffer: FrameBuffer::default(),
            heard: Instant::now(),
            has_told: false,
        })
    }

    /// Waits for the next reply: until `until`, or as long as the daemon sends heartbeats.
    pub fn hear(&mut self, until: Option<Instant>) -> Result<Heard> {
        loop {
            if let Some(reply) = self.waiting().map_err(unreadable)? {
                return Ok(Heard::Reply(Box::new(reply)));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Heard::NotYet);
            }
            let most = if self.has_told {
                SILENCE_TIMEOUT
            } else {
                TELL_AFTER
            }
            .saturating_sub(self.heard.elapsed())
            .max(Duration::from_millis(1));
            self.stream
                .set_read_timeout(Some(left.map_or(most, |left| left.min(most))))
                .map_err(unreadable)?;
            match self.fill() {
                Ok(true) => self.check()?,
                Ok(false) => return Ok(Heard::HungUp),
                Err(error) if is_absent(&error) => return Ok(Heard::HungUp),
                Err(error) => return Err(unreadable(error)),
            }
        }
    }

    /// An error if the daemon was silent for too long. All bytes that arrived are read first.
    pub fn check(&mut self) -> Result<()> {
        let silent = self.heard.elapsed();
        if silent >= SILENCE_TIMEOUT {
            return Err(is_silent(&self.state));
        }
        if silent >= TELL_AFTER && !self.has_told {
            self.has_told = true;
            tell(&format!(
                "waiting for {}, which does not answer",
                daemon_of(&self.state)
            ));
        }
        Ok(())
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// A reply that has already arrived.
    pub fn waiting(&mut self) -> io::Result<Option<Reply>> {
        self.buffer.next_frame()
    }

    /// Reads the available bytes once. `false` if the daemon has hung up.
    pub fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.heard = Instant::now();
                self.buffer.push(&chunk[..count]);
                Ok(true)
            }
            Err(error)
                if error.kind() == io::ErrorKind::Interrupted
                    || towline_host::socket::is_timeout(&error) =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

fn unreadable(error: io::Error) -> Error {
    Error::unreachable("the daemon's answer cannot be read").source_error(error)
}

/// Describes the daemon, with its process id if that is known.
fn daemon_of(state: &StateFolder) -> String {
    match towline_host::lock::holder(&state.daemon_lock()) {
        Ok(Some(pid)) => format!("the daemon (process {pid})"),
        _ => "the daemon".to_owned(),
    }
}

fn with_remedies(error: Error, state: &StateFolder) -> Error {
    error
        .hint(
            "`tow daemon stop` ends it, even if it hangs; runs go on, and the next `tow` starts \
                another",
        )
        .hint(format!("its log is {}", state.daemon_log().display()))
}

fn is_silent(state: &StateFolder) -> Error {
    let text = format!(
        "{} has not answered for {} s: it is stopped, or hangs",
        daemon_of(state),
        SILENCE_TIMEOUT.as_secs()
    );
    with_remedies(Error::unreachable(text), state)
}

/// The error if a daemon holds the lock but does not answer on its socket.
fn takes_no_questions(state: &StateFolder) -> Error {
    with_remedies(
        Error::unreachable(format!(
            "{} runs but does not accept connections",
            daemon_of(state)
        )),
        state,
    )
}

/// Sends `request`, starting a daemon if there is none, and returns the first reply. If a daemon
/// exits meanwhile, the request is sent again; every request allows that.
pub fn ask(state: &StateFolder, make: &dyn Fn() -> Request) -> Result<(Reply, Conversation)> {
    ask_until(state, make, None, &mut || {})
}

/// The same, but gives up at `until`, when the user's time is over. Calls `meanwhile` now and then
/// while the daemon works.
pub fn ask_until(
    state: &StateFolder,
    make: &dyn Fn() -> Request,
    until: Option<Instant>,
    meanwhile: &mut dyn FnMut(),
) -> Result<(Reply, Conversation)> {
    let begun = Instant::now();
    let mut has_told = false;
    loop {
        match ask_once(state, &Hello::new(make()), until, meanwhile)? {
            Some((Reply::Refused(refusal), _)) if refusal.kind == RefusalKind::Leaving => {
                wait_until_gone(state, START_TIMEOUT);
            }
            Some((Reply::Refused(refusal), _)) => return Err(refusal.into()),
            Some(answer) => return Ok(answer),
            // A daemon is starting or exiting, or hangs.
            None if is_there(state)? => {
                if begun.elapsed() > TELL_AFTER && !std::mem::replace(&mut has_told, true) {
                    tell(&format!(
                        "waiting for {}, which does not accept connections",
                        daemon_of(state)
                    ));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            None => start(state)?,
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            return Err(too_late());
        }
        if begun.elapsed() > START_TIMEOUT {
            return Err(if is_there(state)? {
                takes_no_questions(state)
            } else {
                Error::unreachable("the daemon could not be started")
                    .hint(format!("its log is {}", state.daemon_log().display()))
                    .hint("`tow doctor` looks closer")
            });
        }
    }
}

fn too_late() -> Error {
    Error::new(ErrorKind::Timeout, "the daemon has not answered in time")
}

/// As [`ask`], but waits for the answer no longer than `limit`, because it may depend on a remote
/// service.
pub fn ask_within(
    state: &StateFolder,
    make: &dyn Fn() -> Request,
    limit: Duration,
) -> Result<Reply> {
    match ask_until(state, make, Some(Instant::now() + limit), &mut || {}) {
        Err(error) if error.kind() == ErrorKind::Timeout => Err(Error::unreachable(format!(
            "there was no answer within {} s",
            limit.as_secs()
        ))),
        answer => answer.map(|(reply, _)| reply),
    }
}

/// The daemon's status; `None` if there is no daemon. Starts none.
pub fn status(state: &StateFolder) -> Result<Option<Status>> {
    let until = Instant::now() + STATUS_TIMEOUT;
    while is_there(state)? {
        match ask_once(state, &Hello::new(Request::Status), Some(until), &mut || {}) {
            Ok(Some((Reply::Status(status), _))) => return Ok(Some(status)),
            Ok(Some((Reply::Refused(refusal), _))) if refusal.kind == RefusalKind::Leaving => {
                wait_until_gone(state, STATUS_TIMEOUT);
            }
            Ok(Some((Reply::Refused(refusal), _))) => return Err(refusal.into()),
            Ok(Some(_)) => {
                return Err(Error::bug("the daemon's answer does not match the request"));
            }
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => return Err(takes_no_questions(state)),
            Err(error) if error.kind() == ErrorKind::Timeout => {
                let text = format!(
                    "{} has not answered for {} s: it is stopped, or hangs",
                    daemon_of(state),
                    STATUS_TIMEOUT.as_secs()
                );
                return Err(with_remedies(Error::unreachable(text), state));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Asks a daemon to exit. `true` once it has exited.
fn ask_to_leave(state: &StateFolder) -> bool {
    // The answer does not matter, because the lock shows whether the daemon has exited.
    let asked = ask_once(
        state,
        &Hello::new(Request::Stop),
        Some(Instant::now() + STATUS_TIMEOUT),
        &mut || {},
    );
    let _ = asked.map(|answer| answer.map(|_| wait_until_gone(state, STATUS_TIMEOUT)));
    !is_there(state).unwrap_or(true)
}

/// Whether there is a daemon, by its lock.
pub fn is_there(state: &StateFolder) -> Result<bool> {
    let lock = state.daemon_lock();
    towline_host::lock::is_held(&lock)
        .map_err(|error| Error::from_io(format!("{} cannot be checked", lock.display()), error))
}

/// One try; `None` if there is no daemon, or it exited before it answered.
fn ask_once(
    state: &StateFolder,
    hello: &Hello,
    until: Option<Instant>,
    meanwhile: &mut dyn FnMut(),
) -> Result<Option<(Reply, Conversation)>> {
    let mut conversation = match Conversation::open(state, hello) {
        Ok(conversation) => conversation,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) if towline_host::socket::is_timeout(&error) => return Err(is_silent(state)),
        Err(error) => {
            return Err(Error::unreachable("the daemon cannot be reached").source_error(error));
        }
    };
    match &hello.request {
        Request::Submit(_) => towline_host::crash::pass("client.submit.sent"),
        Request::Cancel { .. } => towline_host::crash::pass("client.cancel.sent"),
        _ => {}
    }
    loop {
        let wake = Instant::now() + TELL_AFTER;
        let heard = conversation
            .hear(Some(until.map_or(wake, |until| until.min(wake))))
            .map_err(|error| match &hello.request {
                Request::Submit(_) => error.hint(
                    "it may have accepted the submission: look at `tow ps` before you submit again",
                ),
                _ => error,
            });
        match heard? {
            Heard::Reply(reply) => return Ok(Some((*reply, conversation))),
            Heard::HungUp => return Ok(None),
            Heard::NotYet if until.is_some_and(|until| until <= Instant::now()) => {
                return Err(too_late());
            }
            Heard::NotYet => meanwhile(),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(
        error.kind(),
        NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof
    )
}

/// Starts a daemon for the next client, without waiting for a slow start.
pub fn nudge(state: &StateFolder) {
    let _ = start_within(state, TELL_AFTER);
}

/// Starts a daemon and waits until it listens, or until it finds another one that does.
pub fn start(state: &StateFolder) -> Result<()> {
    start_within(state, START_TIMEOUT)
}

fn start_within(state: &StateFolder, limit: Duration) -> Result<()> {
    let failed = |error| Error::unreachable("the daemon cannot be started").source_error(error);
    towline_host::filesystem::private_folder(state.root()).map_err(|error| {
        Error::from_io(
            format!("the state folder {} cannot be used", state.root().display()),
            error,
        )
        .hint("set XDG_STATE_HOME to a folder of yours")
    })?;
    let (mut ready, theirs) = io::pipe().map_err(failed)?;
    let mut command = towline_host::daemon::command(state.root());
    let mut child = command.stdout(theirs).spawn().map_err(failed)?;
    drop(command);
    // The daemon closes its end of the pipe when it listens. A daemon that finds another one exits,
    // which closes the pipe too. A daemon that cannot start writes why.
    let words = read_until_end(&mut ready, limit).map_err(failed)?;
    let _ = child.try_wait();
    match serde_json::from_slice::<towline_wire::daemon::Refusal>(&words) {
        Ok(refusal) => Err(refusal.into()),
        Err(_) => Ok(()),
    }
}

/// Reads until the other end is closed. An end that stays open too long is an error.
fn read_until_end(from: &mut io::PipeReader, limit: Duration) -> io::Result<Vec<u8>> {
    let begun = Instant::now();
    let (mut words, mut chunk, mut has_told) = (Vec::new(), [0; 4096], false);
    loop {
        let left = if has_told {
            limit
        } else {
            TELL_AFTER.min(limit)
        }
        .saturating_sub(begun.elapsed());
        let timeout = rustix::event::Timespec::try_from(left).map_err(io::Error::other)?;
        let mut ready = [rustix::event::PollFd::new(
            &*from,
            rustix::event::PollFlags::IN,
        )];
        match rustix::event::poll(&mut ready, Some(&timeout)) {
            Ok(0) if begun.elapsed() >= limit => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("it has not started within {} s", limit.as_secs()),
                ));
            }
            Ok(0) => {
                has_told = true;
                tell("waiting for the daemon to start");
            }
            Ok(_) => match from.read(&mut chunk)? {
                0 => return Ok(words),
                count => words.extend_from_slice(&chunk[..count]),
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until an exiting daemon has exited. Its runs go on.
fn wait_until_gone(state: &StateFolder, limit: Duration) {
    let begun = Instant::now();
    while towline_host::lock::is_held(&state.daemon_lock()).unwrap_or(false)
        && begun.elapsed() < limit
    {
        std::thread::sleep(Duration::from_millis(2));
    }
}
