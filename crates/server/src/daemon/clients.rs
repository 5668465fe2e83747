//! Connections of clients (`tow` commands).

use super::{Daemon, Message, Replies, log};
use std::os::unix::net::UnixListener as StdListener;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use towline_core::state::RunState;
use towline_core::{Error, RunId};
use towline_wire::daemon::{
    Hello, Observation, PROTOCOL, Refusal, RefusalKind, Reply, Request, Status,
};
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::version;

pub(super) async fn accept(listener: StdListener, inbox: UnboundedSender<Message>) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let Ok(listener) = UnixListener::from_std(listener) else {
        return;
    };
    let mut connection = 0;
    let mut spare = spare();
    loop {
        connection += 1;
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(
                connection,
                stream,
                inbox.clone(),
                None,
            ))),
            Err(error) => {
                log(&format!("cannot accept a connection: {error}"));
                // Closing the spare descriptor makes room for one connection at a time. Each client
                // is told why it cannot be served; a request to stop is still obeyed.
                drop(spare.take());
                match tokio::time::timeout(A_MOMENT, listener.accept()).await {
                    Ok(Ok((stream, _))) => drop(
                        tokio::time::timeout(
                            A_MOMENT,
                            converse(connection, stream, inbox.clone(), Some(error.to_string())),
                        )
                        .await,
                    ),
                    Ok(Err(_)) => tokio::time::sleep(A_MOMENT).await,
                    Err(_) => {}
                }
            }
        }
        if spare.is_none() {
            spare = self::spare();
        }
    }
}

/// How often the daemon sends a heartbeat to a waiting client.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a client that cannot be served may take to read the refusal.
const A_MOMENT: Duration = Duration::from_secs(1);

/// A file descriptor in reserve. It is closed when no other is left, so that one connection can be
/// accepted.
fn spare() -> Option<std::fs::File> {
    std::fs::File::open("/dev/null").ok()
}

/// Reads one request, then sends replies until either side hangs up. If `short` says that we lack
/// the resources for a connection, only a request to stop is obeyed.
async fn converse(
    connection: u64,
    mut stream: UnixStream,
    inbox: UnboundedSender<Message>,
    short: Option<String>,
) {
    let mut buffer = FrameBuffer::default();
    let mut chunk = vec![0; 64 << 10];
    let hello: Hello = loop {
        match buffer.next_frame() {
            Ok(Some(hello)) => break hello,
            Ok(None) => {}
            Err(_) => return,
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(count) => buffer.push(&chunk[..count]),
        }
    };
    // The client sent this while the daemon was stopped (SIGSTOP), and has hung up since. Its user
    // was told that the submission did not happen.
    if matches!(hello.request, Request::Submit(_)) && has_hung_up(&stream) {
        return;
    }
    if let Some(why) = short.filter(|_| !matches!(hello.request, Request::Stop)) {
        let _ = stream.write_all(&frame::encode(&cannot_serve(&why))).await;
        return;
    }
    let mut signs =
        tokio::time::interval_at(Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
    let has_signs = hello.signs_of_life;
    let (replies, mut answers) = unbounded_channel();
    if inbox
        .send(Message::Asked {
            connection,
            hello: Box::new(hello),
            replies,
        })
        .is_err()
    {
        return;
    }
    loop {
        tokio::select! {
            answer = answers.recv() => match answer {
                Some(reply) => if stream.write_all(&frame::encode(&reply)).await.is_err() { break },
                None => break,
            },
            _ = signs.tick(), if has_signs => if stream.write_all(&frame::SIGN_OF_LIFE).await.is_err() { break },
            read = stream.read(&mut chunk) => if !matches!(read, Ok(count) if count > 0) { break },
        }
    }
    let _ = inbox.send(Message::HungUp { connection });
}

fn has_hung_up(stream: &UnixStream) -> bool {
    matches!(
        rustix::net::recv(
            stream,
            &mut [0; 1],
            rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT
        ),
        Ok((_, 0))
    )
}

fn cannot_serve(why: &str) -> Reply {
    let message = format!(
        "the daemon (process {}) cannot take another connection: {why}",
        std::process::id()
    );
    let hints = vec![
        "it has the limits of the shell that started it: run `tow daemon stop`, then submit from \
            a shell with a larger `ulimit -n`"
            .to_owned(),
        "runs go on without it".to_owned(),
    ];
    Reply::Refused(Refusal {
        kind: RefusalKind::Unreachable,
        refusal: None,
        message,
        hints,
    })
}

pub(super) fn refuse(replies: &Replies, kind: RefusalKind, message: impl Into<String>) {
    let _ = replies.send(Reply::Refused(Refusal {
        kind,
        refusal: None,
        message: message.into(),
        hints: Vec::new(),
    }));
}

pub(super) fn refuse_with(replies: &Replies, error: &towline_core::Error) {
    let _ = replies.send(Reply::Refused(towline_wire::daemon::Refusal::from(error)));
}

impl Daemon {
    pub(super) fn asked(&mut self, connection: u64, hello: Hello, replies: Replies) {
        self.connections += 1;
        if matches!(hello.request, Request::Stop) {
            let _ = replies.send(Reply::Stopping);
            return self.leave();
        }
        if version::is_older(version::version(), &hello.version) {
            refuse(
                &replies,
                RefusalKind::Leaving,
                format!(
                    "tow {} makes room for {}",
                    version::version(),
                    hello.version
                ),
            );
            return self.leave();
        }
        if hello.protocol != PROTOCOL {
            let message = format!(
                "this tow ({}) is too old to talk to the daemon ({})",
                hello.version,
                version::version()
            );
            return refuse_with(&replies, &Error::unsupported(message));
        }
        self.answer(connection, hello.request, replies);
    }

    /// Exits once the pending replies are sent.
    pub(super) fn leave(&self) {
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            let _ = inbox.send(Message::Leave);
        });
    }

    fn answer(&mut self, connection: u64, request: Request, replies: Replies) {
        match request {
            Request::Status => {
                let _ = replies.send(Reply::Status(self.status()));
            }
            Request::Stop => {}
            Request::Submit(submit) => self.submit(*submit, replies),
            Request::Cancel { runs } => self.cancel(runs, replies),
            Request::Watch { runs, logs } => self.watch(connection, runs, logs, replies),
            Request::Refresh { run } => self.ask_far(&run, None, replies, |replies| {
                super::far::Order::Look { replies }
            }),
            Request::BringLogs { run } => self.bring_logs(&run, replies),
            Request::Observe { runs } => self.observe(runs, replies),
            Request::Explain { run } => self.explain(&run, replies),
            Request::Facts { limits } => {
                self.set_limits(limits);
                self.facts(replies);
            }
            Request::Workspaces => self.workspaces_changed(&replies),
            Request::Forget { runs, told } => self.forget(runs, told, replies),
            Request::Tunnel { name } => self.tunnel(connection, &name, replies),
        }
    }

    fn status(&self) -> Status {
        Status {
            version: version::version().to_owned(),
            protocol: PROTOCOL,
            pid: std::process::id(),
            started: self.begun,
            queued: self.queue.waiting_count(),
            running: self.queue.holding_count(),
            runners: self.runners.count(),
            memory_bytes: towline_host::process::own_memory(),
            trouble: self.trouble(),
        }
    }

    /// Why the history cannot be written, or no run can be started, at present.
    fn trouble(&self) -> Option<String> {
        let unwritten = self.ledger.stalled().map(ToString::to_string);
        unwritten.or_else(|| {
            self.paused_starts
                .as_ref()
                .filter(|_| self.queue.waiting_count() > 0)
                .map(|paused| paused.why.clone())
        })
    }

    pub(super) fn hung_up(&mut self, connection: u64) {
        self.connections = self.connections.saturating_sub(1);
        self.unwatch(connection);
        self.tunnels.unlisten(connection);
    }

    fn observe(&mut self, runs: Vec<RunId>, replies: Replies) {
        self.read_states(runs, move |states| Message::Observed { replies, states });
    }

    /// States from the history, in the order asked for.
    fn read_states(
        &mut self,
        runs: Vec<RunId>,
        done: impl FnOnce(towline_core::Result<Vec<Option<RunState>>>) -> Message + 'static,
    ) {
        self.ledger.read(move |history| {
            let states = runs
                .iter()
                .map(|run| Ok(history.run(run)?.map(|record| record.state)))
                .collect();
            done(states)
        });
    }

    pub(super) fn observed(replies: &Replies, states: towline_core::Result<Vec<Option<RunState>>>) {
        match states {
            Ok(states) => {
                let observe = |state: Option<RunState>| match state {
                    Some(state) => Observation::Known {
                        native: state.phase.word().to_owned(),
                        state: Box::new(state),
                    },
                    None => Observation::Gone,
                };
                let _ = replies.send(Reply::Observed {
                    observations: states.into_iter().map(observe).collect(),
                });
            }
            Err(error) => refuse_with(replies, &error),
        }
    }
}
