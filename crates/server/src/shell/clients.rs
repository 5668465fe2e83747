//! Connections of clients (`tow` commands).

use super::{Message, log};
use std::os::unix::net::UnixListener as StdListener;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use towline_wire::daemon::{Hello, Refusal, RefusalKind, Reply, Request};
use towline_wire::frame::{self, FrameBuffer};

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

/// Whether runs of this daemon can have the priority and limits that a submission asks for.
pub(super) fn limits_are_possible(request: &Request) -> bool {
    match request {
        Request::Submit(submit) => {
            let wanted = submit.plan.resolved.limits.as_ref();
            submit.cluster.is_some() || wanted.is_none_or(towline_host::limits::can_give)
        }
        _ => true,
    }
}
