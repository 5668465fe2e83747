//! A port of loopback whose connections are relayed to another place.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use towline_core::transport::Forward;
use towline_core::{Error, Result};

/// The remote end of one connection.
pub(crate) struct RemoteEnd {
    pub(crate) from: Box<dyn Read + Send>,
    /// When it is dropped, the other side learns that nothing more comes.
    pub(crate) to: Box<dyn Write + Send>,
    /// Whether `from` ended because the connection was lost, not closed.
    pub(crate) is_cut: Box<dyn Fn() -> bool + Send>,
    /// Closes both directions.
    pub(crate) end: Box<dyn FnOnce() + Send>,
}

pub(crate) type Dial = Box<dyn Fn() -> Result<RemoteEnd> + Send + Sync>;
type Closer = (u64, Box<dyn FnOnce() + Send>);

/// Learns what happens on a relay's connections.
pub(crate) trait RelayObserver: Send + Sync {
    /// A program connected; the remote end is dialled next.
    fn connected(&self) {}
    /// Data came from the remote end.
    fn received(&self) {}
    /// The remote end could not be dialled, or the connection was lost.
    fn broken(&self) {}
}

struct NoObserver;
impl RelayObserver for NoObserver {}

/// Connections at once; any more are closed.
const MAX_CONNECTIONS: usize = 256;

/// When it is dropped, it takes no more connections and closes those it has.
pub(crate) struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    dial: Dial,
    observer: Arc<dyn RelayObserver>,
    is_over: AtomicBool,
    next_number: AtomicU64,
    open_count: AtomicUsize,
    closers: Mutex<Vec<Closer>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({})", self.port)
    }
}

impl Relay {
    /// Relays from any free port. Each connection dials anew, so that a remote end that was away is
    /// found again.
    pub(crate) fn start(dial: Dial) -> Result<Self> {
        let failed = |error: io::Error| Error::from_io("no port of loopback can be opened", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        Self::on(listener, dial, Arc::new(NoObserver)).map_err(failed)
    }

    /// Relays from a port that is open already.
    pub(crate) fn on(
        listener: TcpListener,
        dial: Dial,
        observer: Arc<dyn RelayObserver>,
    ) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let (next_number, open_count) = (AtomicU64::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared {
            dial,
            observer,
            is_over: AtomicBool::new(false),
            next_number,
            open_count,
            closers: Mutex::default(),
        });
        let own = shared.clone();
        std::thread::Builder::new().spawn(move || {
            for near in listener.incoming() {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(near) = near else {
                    // Perhaps we are out of descriptors: the next may succeed.
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                };
                if own.open_count.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                    own.open_count.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let shared = own.clone();
                let carried = std::thread::Builder::new().spawn(move || {
                    shared.carry(&near);
                    shared.open_count.fetch_sub(1, Ordering::SeqCst);
                });
                if carried.is_err() {
                    // The connection is closed, as one too many would be.
                    own.open_count.fetch_sub(1, Ordering::SeqCst);
                }
            }
        })?;
        Ok(Self { port, shared })
    }
}

impl Forward for Relay {
    fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for the next connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        for (_, end) in std::mem::take(&mut *self.shared.closers()) {
            end();
        }
    }
}

impl Shared {
    fn closers(&self) -> std::sync::MutexGuard<'_, Vec<Closer>> {
        self.closers.lock().expect("no panic while held")
    }

    fn carry(&self, near: &TcpStream) {
        let _ = near.set_nodelay(true);
        self.observer.connected();
        let (Ok(mut reading), Ok(mut writing), Ok(ending), Ok(mut far)) = (
            near.try_clone(),
            near.try_clone(),
            near.try_clone(),
            (self.dial)(),
        ) else {
            // To the local program this looks like a server that hangs up.
            let _ = near.shutdown(Shutdown::Both);
            return self.observer.broken();
        };
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let end = far.end;
        let end_both = move || {
            end();
            let _ = ending.shutdown(Shutdown::Both);
        };
        self.closers().push((number, Box::new(end_both)));
        if self.is_over.load(Ordering::SeqCst) {
            return self.end(number);
        }
        let Ok(upwards) = std::thread::Builder::new().spawn(move || {
            let _ = io::copy(&mut reading, &mut far.to);
        }) else {
            self.end(number);
            return self.observer.broken();
        };
        self.copy_back(&mut *far.from, &mut writing);
        if (far.is_cut)() {
            self.end(number);
            self.observer.broken();
        }
        // The remote end has sent all. It closes the other direction itself once it has left.
        let _ = writing.shutdown(Shutdown::Write);
        let _ = upwards.join();
        self.end(number);
    }

    fn copy_back(&self, from: &mut dyn Read, to: &mut TcpStream) {
        let mut piece = vec![0; 64 << 10];
        loop {
            match from.read(&mut piece) {
                Ok(count @ 1..) => {
                    self.observer.received();
                    if to.write_all(&piece[..count]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    fn end(&self, number: u64) {
        let mut closers = self.closers();
        let found = closers
            .iter()
            .position(|(each, _)| *each == number)
            .map(|at| closers.swap_remove(at));
        drop(closers);
        if let Some((_, end)) = found {
            end();
        }
    }
}
