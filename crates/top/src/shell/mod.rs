//! The threads, the terminal and the signals around the model. One thread owns the model and the
//! screen; the others send it what happens.

mod calls;
mod closing;
mod gate;
mod input;
mod job_control;
mod output;
mod questions;
mod screen;
mod signals;
mod stream;
mod surroundings;

use crate::model::State;
use crate::model::event::{Ask, Event, Now};
use calls::Calls;
use closing::Closing;
use gate::Gate;
use screen::Screen;
use signals::{Heard, Signals};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use towline_api::session::Session;
use towline_core::time::Moment;
use towline_core::{Error, Result};

/// The screen is drawn ten times a second at most: nobody reads faster.
const FRAME: Duration = Duration::from_millis(100);
/// What happened meanwhile is taken in before the screen is drawn, for so long at most.
const MAX_GATHER: Duration = Duration::from_millis(50);
/// Nothing may happen for so long. Then it is looked whether the terminal is still there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long to wait at the end for changes that the user asked for.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// What the main thread hears.
#[derive(Debug)]
enum Message {
    Event(Event),
    /// An item of the stream, and the bytes that it holds.
    Streamed(Event, usize),
    Heard(Heard),
    /// The terminal gives no more keys.
    InputEnded,
}

/// Shows runs and logs in the terminal until the user quits. `local_time` writes a moment in the
/// user's time zone. The terminal is left as it was, however this ends.
pub fn run(session: &Arc<Session>, local_time: fn(Moment) -> String) -> Result<()> {
    let look = surroundings::look()?;
    let (sender, receiver) = channel();
    let closing = Closing::default();
    let signals = Signals::listen(&sender, &closing)?;
    let screen = Screen::enter(look)?;
    let clock = Clock(Instant::now());
    let state = State::new(screen.size()?, clock.now(), local_time);
    let gate = Gate::default();
    let mut top = Top {
        state,
        screen,
        clock,
        calls: Calls::new(session, &sender),
        receiver,
        gate: gate.clone(),
        is_changed: true,
        drawn: None,
    };
    input::listen(&sender)?;
    let stream = stream::listen(session, &sender, &gate, &closing)?;
    let end = top.go_on();
    // The terminal first: what follows may take a moment.
    top.screen.leave();
    closing.close();
    gate.open();
    stream.cancel();
    top.calls.cancel_questions();
    let end = end?;
    if end != End::Signal {
        top.wait_for_changes();
    }
    drop(top);
    signals.close();
    if let Some(signal) = signals.heard_end() {
        signals::die_of(signal);
    }
    Ok(())
}

struct Clock(Instant);

impl Clock {
    fn now(&self) -> Now {
        Now {
            wall: towline_host::clock::now(),
            steady: self.0.elapsed(),
        }
    }
}

/// Why it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    User,
    Signal,
}

struct Top {
    state: State,
    screen: Screen,
    clock: Clock,
    calls: Calls,
    receiver: Receiver<Message>,
    gate: Gate,
    is_changed: bool,
    drawn: Option<Instant>,
}

impl Top {
    fn go_on(&mut self) -> Result<End> {
        loop {
            let message = match self.receiver.recv_timeout(self.pause()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(End::User),
            };
            screen::check_panic()?;
            if message.is_none() && !surroundings::is_terminal_there() {
                return Ok(End::Signal);
            }
            let begun = Instant::now();
            let mut next = message.or(Some(Message::Event(Event::Tick)));
            while let Some(message) = next {
                if let Some(end) = self.take(message)? {
                    return Ok(end);
                }
                let has_time = begun.elapsed() < MAX_GATHER;
                next = has_time.then(|| self.receiver.try_recv().ok()).flatten();
            }
            self.is_changed |= self.state.take_changed();
            if self.is_changed && self.until_frame().is_zero() {
                self.draw()?;
            }
        }
    }

    /// How long until the next frame may be drawn.
    fn until_frame(&self) -> Duration {
        let drawn = self.drawn.map(|drawn| drawn.elapsed());
        drawn.map_or(Duration::ZERO, |age| FRAME.saturating_sub(age))
    }

    /// How long to wait for something to happen.
    fn pause(&self) -> Duration {
        let now = self.clock.now().steady;
        let model = self.state.wake_at().map(|at| at.saturating_sub(now));
        let frame = self.is_changed.then(|| self.until_frame());
        let pauses = [model, frame.filter(|_| self.screen.is_entered())];
        let pause = pauses.into_iter().flatten().min().unwrap_or(LOOK_EVERY);
        // A due time that cannot be met now must not keep the processor busy.
        pause.clamp(Duration::from_millis(1), LOOK_EVERY)
    }

    fn take(&mut self, message: Message) -> Result<Option<End>> {
        let event = match message {
            Message::Event(event) => event,
            Message::Streamed(event, bytes) => {
                self.gate.release(bytes);
                event
            }
            Message::InputEnded => return Ok(Some(End::Signal)),
            Message::Heard(Heard::End) => return Ok(Some(End::Signal)),
            Message::Heard(Heard::Suspend) => {
                self.screen.leave();
                job_control::stop();
                return Ok(None);
            }
            Message::Heard(Heard::Continue) => {
                self.screen.enter_again()?;
                self.is_changed = true;
                return Ok(None);
            }
        };
        let asks = self.state.update(event, self.clock.now());
        for ask in asks {
            match ask {
                Ask::Quit => return Ok(Some(End::User)),
                Ask::Suspend => job_control::ask_to_stop(),
                Ask::Repaint => self.screen.forget_drawn()?,
                ask => self.calls.begin(ask),
            }
        }
        Ok(None)
    }

    fn draw(&mut self) -> Result<()> {
        if !self.screen.is_entered() {
            return Ok(());
        }
        let size = self.screen.size()?;
        if size != self.state.size {
            let event = Event::Resize {
                width: size.width,
                height: size.height,
            };
            if self.take(Message::Event(event))?.is_some() {
                return Ok(());
            }
            self.state.take_changed();
        }
        self.screen.draw(&self.state)?;
        self.is_changed = false;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// Waits until the changes that the user asked for are accepted, or a signal comes.
    fn wait_for_changes(&mut self) {
        let end = Instant::now() + CHANGE_TIMEOUT;
        while self.calls.has_changes() {
            let left = end.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left) {
                Ok(Message::Heard(Heard::End)) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

/// Begins a thread.
fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let begun = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work);
    begun.map(drop).map_err(|error| {
        Error::from_io("no thread can be made", error).hint(towline_core::error::THREADS_HINT)
    })
}

fn send(sender: &Sender<Message>, event: Event) -> bool {
    sender.send(Message::Event(event)).is_ok()
}
