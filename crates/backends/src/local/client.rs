//! Talking to the daemon, and starting it when nobody is there.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use towline_core::{Error, Result};
use towline_wire::daemon::{Hello, RefusalKind, Reply, Request};
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::{DAEMON_SOCKET, StateFolder};

/// How long a daemon may take to be there.
const PATIENCE: Duration = Duration::from_secs(20);
/// What the daemon keeps of the environment it is started from: never a secret.
const KEPT: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// A conversation with the daemon: one request, one or more replies.
#[derive(Debug)]
pub struct Conversation {
    stream: UnixStream,
    buffer: FrameBuffer,
}

impl Conversation {
    fn open(state: &StateFolder, request: &Hello) -> io::Result<Self> {
        let mut stream = towline_host::socket::connect(state.root(), DAEMON_SOCKET)?;
        frame::write(&mut stream, request)?;
        Ok(Self { stream, buffer: FrameBuffer::default() })
    }

    /// The next reply; `None` when the daemon has hung up.
    pub fn next_reply(&mut self) -> io::Result<Option<Reply>> {
        frame::read(&mut self.stream, &mut self.buffer)
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// A reply that has arrived already.
    pub fn waiting(&mut self) -> io::Result<Option<Reply>> {
        self.buffer.next_frame()
    }

    /// Reads what is there, once. `false` when the daemon has hung up.
    pub fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.buffer.push(&chunk[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Sends `request`, starting a daemon if there is none, and returns the first reply. Requests may
/// be sent twice when a daemon goes away in between; all of them allow it.
pub fn ask(state: &StateFolder, make: &dyn Fn() -> Request) -> Result<(Reply, Conversation)> {
    let begun = Instant::now();
    loop {
        match ask_once(state, &Hello::new(make())) {
            Ok(Some((Reply::Refused(refusal), _))) if refusal.kind == RefusalKind::Leaving => wait_until_gone(state),
            Ok(Some((Reply::Refused(refusal), _))) => return Err(refusal.into()),
            Ok(Some(answer)) => return Ok(answer),
            // Nobody is there, or it went away before it answered.
            Ok(None) => start(state)?,
            Err(error) if is_absent(&error) => start(state)?,
            Err(error) => return Err(Error::unreachable("the daemon does not answer").source_error(error)),
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::unreachable("the daemon could not be started")
                .hint(format!("its log is {}", state.daemon_log().display()))
                .hint("`tow doctor` looks closer"));
        }
    }
}

/// As [`ask`], but waits for the answer no longer than `limit`: it may depend on somebody far away.
pub fn ask_within(state: &StateFolder, request: Request, limit: Duration) -> Result<Reply> {
    let failed = |error| Error::unreachable("the daemon does not answer").source_error(error);
    let hello = Hello::new(request);
    let mut conversation = match Conversation::open(state, &hello) {
        Err(error) if is_absent(&error) => {
            start(state)?;
            Conversation::open(state, &hello).map_err(failed)?
        }
        other => other.map_err(failed)?,
    };
    conversation.stream.set_read_timeout(Some(limit)).map_err(failed)?;
    match conversation.next_reply() {
        Ok(Some(Reply::Refused(refusal))) => Err(refusal.into()),
        Ok(Some(reply)) => Ok(reply),
        Ok(None) => Err(Error::unreachable("the daemon left before it answered").hint("try again")),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(Error::unreachable(format!("there was no answer within {} s", limit.as_secs())))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Sends `request` only if a daemon is there; `None` if not.
pub fn ask_if_there(state: &StateFolder, request: Request) -> Result<Option<(Reply, Conversation)>> {
    match ask_once(state, &Hello::new(request)) {
        Ok(Some((Reply::Refused(refusal), _))) if refusal.kind == RefusalKind::Leaving => Ok(None),
        Ok(Some((Reply::Refused(refusal), _))) => Err(refusal.into()),
        Ok(answer) => Ok(answer),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(Error::unreachable("the daemon does not answer").source_error(error)),
    }
}

fn ask_once(state: &StateFolder, hello: &Hello) -> io::Result<Option<(Reply, Conversation)>> {
    let mut conversation = Conversation::open(state, hello)?;
    match &hello.request {
        Request::Submit(_) => towline_host::crash::pass("client.submit.sent"),
        Request::Cancel { .. } => towline_host::crash::pass("client.cancel.sent"),
        _ => {}
    }
    Ok(conversation.next_reply()?.map(|reply| (reply, conversation)))
}

fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

/// Starts a daemon and waits until it listens or has found that another does.
pub fn start(state: &StateFolder) -> Result<()> {
    let failed = |error| Error::unreachable("the daemon cannot be started").source_error(error);
    towline_host::filesystem::private_folder(state.root()).map_err(|error| {
        Error::refused(format!("the state folder {} cannot be used", state.root().display()))
            .source_error(error)
            .hint("set XDG_STATE_HOME to a folder of yours")
    })?;
    let (mut ready, theirs) = io::pipe().map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tow").args(["daemon", "run", "--state"]).arg(state.root()).current_dir("/").env_clear();
    for (name, value) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if KEPT.contains(&text.as_ref()) || (text.starts_with("TOW_") && !towline_core::redact::looks_like_credential(&text)) {
            command.env(&name, value);
        }
    }
    let mut child = command.stdin(Stdio::null()).stdout(theirs).stderr(Stdio::null()).spawn().map_err(failed)?;
    drop(command);
    // The daemon closes its end when it listens; one that lost the race leaves, which closes it too;
    // one that cannot come up says why.
    let mut words = Vec::new();
    let _ = ready.read_to_end(&mut words);
    let _ = child.try_wait();
    match serde_json::from_slice::<towline_wire::daemon::Refusal>(&words) {
        Ok(refusal) => Err(refusal.into()),
        Err(_) => Ok(()),
    }
}

/// Waits until a daemon that is leaving has left. Its runs are not touched.
pub fn wait_until_gone(state: &StateFolder) {
    let begun = Instant::now();
    while towline_host::lock::is_held(&state.daemon_lock()).unwrap_or(false) && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
}
