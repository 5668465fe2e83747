//! A port of loopback whose connections are carried to somewhere else.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use towline_core::transport::Forward;
use towline_core::{Error, Result};

/// The far end of one connection.
pub(super) struct Far {
    pub(super) from: Box<dyn Read + Send>,
    /// Dropped, it tells the other side that nothing more comes.
    pub(super) to: Box<dyn Write + Send>,
    /// Ends both ways.
    pub(super) end: Box<dyn FnOnce() + Send>,
}

type Dial = Box<dyn Fn() -> Result<Far> + Send + Sync>;
type End = (u64, Box<dyn FnOnce() + Send>);

/// Dropped, it takes no more connections and cuts those it has.
pub(super) struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    dial: Dial,
    is_over: AtomicBool,
    next: AtomicU64,
    ends: Mutex<Vec<End>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({})", self.port)
    }
}

impl Relay {
    /// Each connection is dialled when it comes, so that a far side that was away and came back is found again.
    pub(super) fn start(dial: Dial) -> Result<Self> {
        let failed = |error: io::Error| Error::refused("no port of loopback can be opened").source_error(error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let shared = Arc::new(Shared { dial, is_over: AtomicBool::new(false), next: AtomicU64::new(0), ends: Mutex::default() });
        let own = shared.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                if own.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Out of descriptors, perhaps: the next may do better.
                let Ok(near) = near else { continue };
                let shared = own.clone();
                std::thread::spawn(move || shared.carry(&near));
            }
        });
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
        let (Ok(mut reading), Ok(mut writing), Ok(ending), Ok(mut far)) = (near.try_clone(), near.try_clone(), near.try_clone(), (self.dial)()) else {
            // The program here learns of it as of any server that hangs up.
            let _ = near.shutdown(Shutdown::Both);
            return;
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
        let upwards = std::thread::spawn(move || {
            let _ = io::copy(&mut reading, &mut far.to);
        });
        let _ = io::copy(&mut far.from, &mut writing);
        // The far side has said all. What still goes up is for nobody once it has left, and it says so itself.
        let _ = writing.shutdown(Shutdown::Write);
        let _ = upwards.join();
        self.end(number);
    }

    fn end(&self, number: u64) {
        let mut ends = self.ends();
        let found = ends.iter().position(|(each, _)| *each == number).map(|at| ends.swap_remove(at));
        drop(ends);
        if let Some((_, end)) = found {
            end();
        }
    }
}
