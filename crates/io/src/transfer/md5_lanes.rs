//! MD5 of blocks that are sent: several are hashed together, because that takes little longer than
//! one.

use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot};
use towline_md5::{LANES, md5_of};

/// Up to this many messages are hashed faster one after the other.
const MAX_SEQUENTIAL_MESSAGES: usize = 2;

/// A message of at most this size is hashed at once, without a batch.
const SMALL_MESSAGE_BYTES: usize = 64 << 10;

/// A batch of this many messages is hashed without further waiting.
const BATCH_MESSAGES: usize = 5;
/// A smaller batch waits for more messages only while this many uploads keep the network busy.
const BUSY_UPLOADS: usize = 3;
/// A smaller batch waits at most this long for more messages.
const BATCH_TIMEOUT: Duration = Duration::from_millis(25);

/// Messages that wait to be hashed in one batch, and the turns to hash a batch.
struct Batcher {
    messages: Mutex<Vec<Message>>,
    enough: Notify,
    turns: Semaphore,
    sending: AtomicUsize,
}

type Message = (Bytes, oneshot::Sender<[u8; 16]>);

impl Batcher {
    fn add(&self, message: Message) -> usize {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(message);
        messages.len()
    }

    fn next_batch(&self) -> Vec<Message> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let many = messages.len().min(LANES);
        messages.drain(..many).collect()
    }
}

/// The one batcher of the process.
static BATCHER: LazyLock<Batcher> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Batcher {
        messages: Mutex::default(),
        enough: Notify::new(),
        turns: Semaphore::new((cores / 4).max(1)),
        sending: AtomicUsize::new(0),
    }
});

/// Counts one upload in progress, until it is dropped.
pub(crate) struct SendingGuard;

impl SendingGuard {
    pub(crate) fn begin() -> Self {
        BATCHER.sending.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for SendingGuard {
    fn drop(&mut self) {
        BATCHER.sending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The hash of one message. It is computed together with others that wait for theirs.
pub(crate) async fn md5_batched(message: Bytes) -> [u8; 16] {
    if message.len() <= SMALL_MESSAGE_BYTES {
        return super::hash::md5(&message);
    }
    let batcher: &Batcher = &BATCHER;
    let (send, mut receive) = oneshot::channel();
    let alone = message.clone();
    if batcher.add((message, send)) >= BATCH_MESSAGES {
        batcher.enough.notify_waiters();
    } else if batcher.sending.load(Ordering::Relaxed) >= BUSY_UPLOADS {
        let _ = tokio::time::timeout(BATCH_TIMEOUT, batcher.enough.notified()).await;
    }
    let Ok(turn) = batcher.turns.acquire().await else {
        return super::hash::md5(&alone);
    };
    // The oldest messages come first, so ours may be in a later batch.
    loop {
        if let Ok(hash) = receive.try_recv() {
            return hash;
        }
        let taken = batcher.next_batch();
        if taken.is_empty() {
            break;
        }
        let _ = tokio::task::spawn_blocking(move || hash_all(taken)).await;
    }
    drop(turn);
    receive.await.unwrap_or_else(|_| super::hash::md5(&alone))
}

fn hash_all(messages: Vec<Message>) {
    let hashes = if messages.len() <= MAX_SEQUENTIAL_MESSAGES {
        messages
            .iter()
            .map(|(message, _)| super::hash::md5(message))
            .collect()
    } else {
        md5_of(
            &messages
                .iter()
                .map(|(message, _)| &message[..])
                .collect::<Vec<_>>(),
        )
    };
    for ((_, send), hash) in messages.into_iter().zip(hashes) {
        let _ = send.send(hash);
    }
}
