//! Follows a run: shows log bytes as they are written, over every attempt, until the end.
//!
//! The daemon reports the state of the run, and the kernel reports that a log has grown. The bytes
//! are read from the file itself, from the last position on. An attempt is over only when the
//! history says so, and its logs are read once more after that: no byte is missed.

mod crowd;
mod lines;
mod progress;
mod waiting;

use crate::context::Context;
use crate::output;
use crate::runs::loglines::Lines;
pub(crate) use crowd::follow_all;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use towline_backends::local::read_log;
use towline_client::{self as client, Conversation};
use towline_core::cluster::{Cursor, LogSource};
use towline_core::state::RunState;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Reply, Request};
pub(crate) use waiting::{wait_for, wait_for_end};

/// How much is read at once: a log of any size needs only this much memory.
const LOG_CHUNK_BYTES: usize = 1 << 20;

/// What to show of a run.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) run: RunId,
    pub(crate) sources: Vec<LogSource>,
    /// The first attempt to show, and the only one if `one_attempt`.
    pub(crate) attempt: u32,
    pub(crate) one_attempt: bool,
    pub(crate) grep: Option<regex::bytes::Regex>,
    /// Show only this many last lines of each log of the first attempt, and what follows them.
    pub(crate) tail: Option<usize>,
    /// Go on until the run has ended; if not, stop after the present bytes.
    pub(crate) follow: bool,
    /// Report the run's progress on stderr.
    pub(crate) narrate: bool,
    pub(crate) label: Label,
}

/// How the lines of a run are told from those of other runs.
#[derive(Debug, Clone, Default)]
pub(crate) enum Label {
    /// Not at all: there is one run.
    #[default]
    None,
    /// A line above them. With a filter it is shown only if a line matches.
    Heading(String),
    /// A text before each line.
    Prefix(String),
}

/// How following ended.
#[derive(Debug)]
pub(crate) enum Followed {
    Ended(Box<RunState>),
    /// The user pressed Ctrl-C: the run goes on.
    Detached,
    /// All present bytes have been shown.
    Shown,
}

pub(crate) fn follow(context: &Context, view: &View, known: RunState) -> Result<Followed> {
    let interrupts = if view.follow {
        Some(interrupts()?)
    } else {
        None
    };
    let mut follower = Follower::new(context, view, known);
    if view.grep.is_none() {
        follower.show_heading()?;
    }
    let mut daemon = if view.follow && !follower.state.phase.is_ended() {
        Some(follower.connect()?)
    } else {
        None
    };
    loop {
        if let Some(conversation) = &mut daemon
            && !follower.hear(conversation)?
        {
            // The daemon exited: connect to the next one.
            daemon = Some(follower.connect()?);
            continue;
        }
        follower.watch_folder();
        if follower.advance()? {
            return Ok(Followed::Ended(Box::new(follower.state)));
        }
        if !view.follow {
            follower.flush_partial_lines()?;
            return Ok(Followed::Shown);
        }
        follower.tell_that_it_waits();
        follower.trouble.look(context);
        if follower.wait(daemon.as_ref(), interrupts.as_ref())? {
            return Ok(Followed::Detached);
        }
    }
}

/// A socket that becomes readable when the user presses Ctrl-C.
pub(crate) fn interrupts() -> Result<UnixStream> {
    let failed = |error| Error::bug("signals cannot be watched").source_error(error);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let end = theirs.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, end).map_err(failed)?;
    }
    Ok(ours)
}

/// Passes on the daemon's replies that have arrived. `false` if it hung up.
fn hear_arrived(conversation: &mut Conversation, note: &mut dyn FnMut(Reply)) -> Result<bool> {
    let lost = |error| Error::unreachable("the daemon's answer cannot be read").source_error(error);
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        while let Some(reply) = conversation.waiting().map_err(lost)? {
            note(reply);
        }
        let mut ready = [PollFd::new(conversation.stream(), PollFlags::IN)];
        if poll(&mut ready, Some(&at_once)).unwrap_or(0) == 0 {
            return conversation.check().map(|()| true);
        }
        if !conversation.fill().unwrap_or(false) {
            return Ok(false);
        }
    }
}

/// The offsets at which the logs of the first attempt begin to be shown, if not at 0.
fn first_offsets(context: &Context, view: &View) -> HashMap<(u32, LogSource), u64> {
    let (Some(lines), Ok(state)) = (view.tail, context.state()) else {
        return HashMap::new();
    };
    let attempt = view.attempt.max(1);
    let offset = |source: &LogSource| {
        let log = state.log(&view.run, attempt, *source);
        // An unreadable log is told when it is shown.
        let offset = crate::runs::logfiles::tail_offset(&log, lines).unwrap_or(0);
        ((attempt, *source), offset)
    };
    view.sources.iter().map(offset).collect()
}

struct Follower<'a> {
    context: &'a Context,
    view: &'a View,
    state: RunState,
    attempt: u32,
    offsets: HashMap<(u32, LogSource), u64>,
    /// The last attempt whose logs were fetched after its end.
    brought: u32,
    partial: BTreeMap<LogSource, Lines>,
    /// Several logs are shown on a terminal: progress bars are drawn one over the other.
    draws_over: bool,
    has_heading: bool,
    watch: Option<OwnedFd>,
    /// The user was told that the run waits.
    told: bool,
    begun: Instant,
    trouble: Trouble,
}

/// How often a waiting user is told that the daemon is in trouble.
const TROUBLE_EVERY: Duration = Duration::from_secs(2);

/// What keeps the daemon from writing the history. A waiting user is told once, and again when it
/// is over.
#[derive(Debug)]
struct Trouble {
    looked: Instant,
    told: Option<String>,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            looked: Instant::now(),
            told: None,
        }
    }
}

impl Trouble {
    fn look(&mut self, context: &Context) {
        if self.looked.elapsed() < TROUBLE_EVERY {
            return;
        }
        self.looked = Instant::now();
        let Ok(state) = context.state() else { return };
        let Ok(Some(status)) = client::status(state) else {
            return;
        };
        if status.trouble != self.told {
            match &status.trouble {
                Some(why) => output::status(&format!("waiting: {why}")),
                None => output::status("the trouble is over; going on"),
            }
            self.told = status.trouble;
        }
    }
}

impl<'a> Follower<'a> {
    fn new(context: &'a Context, view: &'a View, known: RunState) -> Self {
        let has_several_logs = view.sources.len() > 1 || matches!(view.label, Label::Prefix(_));
        Self {
            context,
            view,
            state: known,
            attempt: view.attempt.max(1),
            offsets: first_offsets(context, view),
            brought: 0,
            partial: BTreeMap::new(),
            draws_over: view.follow
                && has_several_logs
                && view.grep.is_none()
                && !context.json
                && output::stdout_knows_escapes(),
            has_heading: false,
            watch: None,
            told: false,
            begun: Instant::now(),
            trouble: Trouble::default(),
        }
    }

    /// Shows all new bytes, and goes on to the next attempt when one is over. `true` after the last
    /// one.
    fn advance(&mut self) -> Result<bool> {
        loop {
            let over = self.attempt_is_over();
            if over {
                self.bring_last_bytes()?;
            }
            self.drain()?;
            if !over {
                return Ok(false);
            }
            self.flush_partial_lines()?;
            let last = self.state.phase.is_ended() && self.attempt >= self.state.attempt;
            if last || self.view.one_attempt {
                return Ok(true);
            }
            if self.state.attempt <= self.attempt {
                return Ok(false);
            }
            self.attempt += 1;
            if self.view.narrate {
                let whose = match &self.view.label {
                    Label::Prefix(run) => format!("{run}: "),
                    _ => String::new(),
                };
                output::status(&format!("{whose}attempt {} begins", self.attempt));
            }
        }
    }

    fn connect(&mut self) -> Result<Conversation> {
        let run = self.view.run.clone();
        let watch = || Request::Watch {
            runs: vec![run.clone()],
            logs: true,
        };
        let (first, conversation) =
            client::ask_until(self.context.state()?, &watch, None, &mut || {
                self.trouble.look(self.context);
            })?;
        self.note(first);
        Ok(conversation)
    }

    /// Handles the daemon's replies. `false` if it hung up before the run's end.
    fn hear(&mut self, conversation: &mut Conversation) -> Result<bool> {
        let view = self.view;
        let goes_on = |error: Error| error.hint(format!("{} goes on", view.run));
        let is_there =
            hear_arrived(conversation, &mut |reply| self.note(reply)).map_err(goes_on)?;
        Ok(is_there || self.state.phase.is_ended())
    }

    fn note(&mut self, reply: Reply) {
        if let Reply::State { state, .. } | Reply::Event { state, .. } = reply {
            self.note_state(state);
        }
    }

    fn note_state(&mut self, state: RunState) {
        if self.view.narrate && state.held_until.is_some() && self.state.held_until.is_none() {
            let until = state
                .held_until
                .map(crate::output::local_time::shown)
                .unwrap_or_default();
            output::status(&format!(
                "a rank failed; the nodes are kept for you until {until}: tow ssh {0}    let them \
                    go: tow abort {0}",
                self.view.run.short()
            ));
        }
        self.state = state;
    }

    /// Whether the logs of the current attempt are complete.
    fn attempt_is_over(&self) -> bool {
        self.state.phase.is_ended()
            || self.state.attempt > self.attempt
            || (self.state.attempt == self.attempt && self.state.runner.is_none())
    }

    /// Fetches the last log bytes of an attempt on a far cluster, once it is over. The report of its
    /// end may have been on its way before the cluster's thread knew that we follow.
    fn bring_last_bytes(&mut self) -> Result<()> {
        let is_far = self.state.native.is_some();
        if !self.view.follow || !is_far || self.brought >= self.attempt {
            return Ok(());
        }
        self.brought = self.attempt;
        let history = self.context.history()?;
        crate::runs::far::bring_logs(self.context, &history, &self.view.run)
    }

    /// On a terminal, explains a silence that lasts longer than a moment.
    fn tell_that_it_waits(&mut self) {
        let waits =
            self.state.phase == towline_core::state::Phase::Queued && self.state.runner.is_none();
        if self.told
            || !waits
            || !self.view.narrate
            || self.begun.elapsed() < Duration::from_millis(300)
            || !std::io::stderr().is_terminal()
        {
            return;
        }
        self.told = true;
        output::hint(&format!(
            "{} is queued; what it waits for: tow why {}",
            self.view.run,
            self.view.run.short()
        ));
    }

    fn watch_folder(&mut self) {
        if self.watch.is_some() || !self.view.follow {
            return;
        }
        let Ok(state) = self.context.state() else {
            return;
        };
        let folder = state.run(&self.view.run);
        let watch =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
        self.watch = watch.filter(|watch| {
            inotify::add_watch(
                watch,
                &folder,
                inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE,
            )
            .is_ok()
        });
    }

    /// Shows all new bytes.
    fn drain(&mut self) -> Result<()> {
        for source in self.view.sources.clone() {
            loop {
                let offset = self
                    .offsets
                    .get(&(self.attempt, source))
                    .copied()
                    .unwrap_or(0);
                let cursor = Cursor {
                    attempt: self.attempt,
                    source,
                    offset,
                };
                let chunk = read_log(
                    self.context.state()?,
                    &self.view.run,
                    &cursor,
                    LOG_CHUNK_BYTES,
                )?;
                if let Some(length) = chunk.truncated_to(cursor.offset) {
                    output::status(&format!(
                        "the job cut this log from {offset} to {length} bytes; going on from there"
                    ));
                    self.offsets.insert((self.attempt, source), length);
                    continue;
                }
                if chunk.bytes.is_empty() {
                    break;
                }
                self.offsets
                    .insert((self.attempt, source), offset + chunk.bytes.len() as u64);
                self.show(source, &chunk.bytes)?;
            }
        }
        Ok(())
    }

    /// Sleeps until something may be new. `true` if the user pressed Ctrl-C.
    fn wait(&self, daemon: Option<&Conversation>, interrupts: Option<&UnixStream>) -> Result<bool> {
        let mut descriptors = Vec::with_capacity(3);
        if let Some(stream) = interrupts {
            descriptors.push(PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN));
        }
        if let Some(conversation) = daemon {
            descriptors.push(PollFd::from_borrowed_fd(
                conversation.stream().as_fd(),
                PollFlags::IN,
            ));
        }
        if let Some(watch) = &self.watch {
            descriptors.push(PollFd::new(watch, PollFlags::IN));
        }
        // Without inotify, look often.
        let millis = match (self.watch.is_some(), self.state.runner.is_none(), self.told) {
            (_, true, false) => 300,
            (true, ..) | (_, true, true) => 1000,
            _ => 10,
        };
        let timeout = Timespec {
            tv_sec: millis / 1000,
            tv_nsec: millis % 1000 * 1_000_000,
        };
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(Error::bug("waiting failed").source_error(std::io::Error::from(error)));
            }
        }
        let interrupted = interrupts.is_some() && !descriptors[0].revents().is_empty();
        drop(descriptors);
        if let Some(watch) = &self.watch {
            let mut events = [0u8; 4096];
            while rustix::io::read(watch, &mut events).is_ok_and(|count| count > 0) {}
        }
        Ok(interrupted)
    }
}
