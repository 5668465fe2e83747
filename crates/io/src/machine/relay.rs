//! A port of loopback whose connections are carried to somewhere else.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use towline_core::transport::Forward;
use towline_core::{Error, Result};

/// The far end of one connection.
pub(crate) struct Far {
    pub(crate) from: Box<dyn Read + Send>,
    /// Dropped, it tells the other side that nothing more comes.
    pub(crate) to: Box<dyn Write + Send>,
    /// Whether what ended `from` was no hanging up, but a loss.
    pub(crate) is_cut: Box<dyn Fn() -> bool + Send>,
    /// Ends both ways.
    pub(crate) end: Box<dyn FnOnce() + Send>,
}

pub(crate) type Dial = Box<dyn Fn() -> Result<Far> + Send + Sync>;
type End = (u64, Box<dyn FnOnce() + Send>);

/// What happens on a relay's connections, for whoever wants to know.
pub(crate) trait Notices: Send + Sync {
    /// One came, and is about to be dialled.
    fn came(&self) {}
    /// Something was heard from the far side.
    fn heard(&self) {}
    /// One could not be dialled, or was cut off.
    fn broke(&self) {}
}

struct Nobody;
impl Notices for Nobody {}

/// Connections at once; any more are closed.
const MAX_CONNECTIONS: usize = 256;

/// Dropped, it takes no more connections and cuts those it has.
pub(crate) struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    dial: Dial,
    notices: Arc<dyn Notices>,
    is_over: AtomicBool,
    next: AtomicU64,
    many: AtomicUsize,
    ends: Mutex<Vec<End>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({})", self.port)
    }
}

impl Relay {
    /// On any port. Each connection is dialled when it comes, so that a far side that was away and
    /// came back is found again.
    pub(crate) fn start(dial: Dial) -> Result<Self> {
        let failed = |error: io::Error| {
            Error::refused("no port of loopback can be opened").source_error(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        Self::on(listener, dial, Arc::new(Nobody)).map_err(failed)
    }

    /// On a port that is ours already.
    pub(crate) fn on(
        listener: TcpListener,
        dial: Dial,
        notices: Arc<dyn Notices>,
    ) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let (next, many) = (AtomicU64::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared {
            dial,
            notices,
            is_over: AtomicBool::new(false),
            next,
            many,
            ends: Mutex::default(),
        });
        let own = shared.clone();
        std::thread::Builder::new().spawn(move || {
            for near in listener.incoming() {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(near) = near else {
                    // Out of descriptors, perhaps: the next may do better.
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                };
                if own.many.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                    own.many.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let shared = own.clone();
                let carried = std::thread::Builder::new().spawn(move || {
                    shared.carry(&near);
                    shared.many.fetch_sub(1, Ordering::SeqCst);
                });
                if carried.is_err() {
                    // Hung up on, as one too many.
                    own.many.fetch_sub(1, Ordering::SeqCst);
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
        // Whoever waits for a connection gets this one.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        for (_, end) in std::mem::take(&mut *self.shared.ends()) {
            end();
        }
    }
}

impl Shared {
    fn ends(&self) -> std::sync::MutexGuard<'_, Vec<End>> {
        self.ends.lock().expect("no panic while held")
    }

    fn carry(&self, near: &TcpStream) {
        let _ = near.set_nodelay(true);
        self.notices.came();
        let (Ok(mut reading), Ok(mut writing), Ok(ending), Ok(mut far)) = (
            near.try_clone(),
            near.try_clone(),
            near.try_clone(),
            (self.dial)(),
        ) else {
            // The program here learns of it as of any server that hangs up.
            let _ = near.shutdown(Shutdown::Both);
            return self.notices.broke();
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let end = far.end;
        let end_both = move || {
            end();
            let _ = ending.shutdown(Shutdown::Both);
        };
        self.ends().push((number, Box::new(end_both)));
        if self.is_over.load(Ordering::SeqCst) {
            return self.end(number);
        }
        let Ok(upwards) = std::thread::Builder::new().spawn(move || {
            let _ = io::copy(&mut reading, &mut far.to);
        }) else {
            self.end(number);
            return self.notices.broke();
        };
        self.bring(&mut *far.from, &mut writing);
        if (far.is_cut)() {
            self.end(number);
            self.notices.broke();
        }
        // The far side has said all. What still goes up is for nobody once it has left, and it says
        // so itself.
        let _ = writing.shutdown(Shutdown::Write);
        let _ = upwards.join();
        self.end(number);
    }

    fn bring(&self, from: &mut dyn Read, to: &mut TcpStream) {
        let mut piece = vec![0; 64 << 10];
        loop {
            match from.read(&mut piece) {
                Ok(count @ 1..) => {
                    self.notices.heard();
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
        let mut ends = self.ends();
        let found = ends
            .iter()
            .position(|(each, _)| *each == number)
            .map(|at| ends.swap_remove(at));
        drop(ends);
        if let Some((_, end)) = found {
            end();
        }
    }
}
