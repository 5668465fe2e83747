//! A proxy before a service, without TLS, that injects faults by rules and keeps a list of requests.
//! Everything else passes byte by byte, on connections that stay open. Signatures of Azure stay valid,
//! because they do not cover the host. Those of S3 do, which matters to servers that check them.

mod pair;
mod seen;

pub use seen::Seen;

use super::Account;
use super::fault::{Fault, Rule};
use super::http::Head;
use pair::{Pair, reset};
use seen::{kind, tally, without_parameters};
use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    stopped: AtomicBool,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<Seen>>,
    /// Every socket in use, to be shut down at the end.
    sockets: Mutex<Vec<Weak<TcpStream>>>,
}

impl FaultProxy {
    /// A proxy for the service at this address or URL.
    #[track_caller]
    pub fn before(upstream: &str) -> Self {
        let host = upstream
            .strip_prefix("http://")
            .unwrap_or(upstream)
            .split('/')
            .next()
            .unwrap_or_default();
        let upstream = host
            .parse()
            .unwrap_or_else(|error| panic!("`{host}`: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared {
            upstream,
            stopped: AtomicBool::new(false),
            rules: Mutex::default(),
            seen: Mutex::default(),
            sockets: Mutex::default(),
        };
        let shared = Arc::new(shared);
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                // Broken connections are expected here, so errors are ignored.
                std::thread::spawn(move || client.and_then(|client| shared.serve(client)));
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// The URL of a service, through the proxy.
    pub fn endpoint(&self, of: &str) -> String {
        of.replacen(
            &self.shared.upstream.to_string(),
            &self.address.to_string(),
            1,
        )
    }
    /// The account, through the proxy.
    pub fn account(&self, account: &Account) -> Account {
        Account {
            endpoint: self.endpoint(&account.endpoint),
            ..account.clone()
        }
    }

    /// Adds a rule after the present ones. The first rule that fits a request decides.
    pub fn inject(&self, rule: Rule) {
        lock(&self.shared.rules).push(rule);
    }
    /// Removes all rules.
    pub fn heal(&self) {
        lock(&self.shared.rules).clear();
    }
    /// The requests so far, in order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }
    /// Forgets the requests so far.
    pub fn forget(&self) {
        lock(&self.shared.seen).clear();
    }
    /// The number of requests of a method whose path with query contains `path_has`.
    pub fn count(&self, method: &str, path_has: &str) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.method == method && seen.path.contains(path_has))
            .count()
    }
    /// The number of requests by method and kind: `PUT block`.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        tally(
            self.seen()
                .into_iter()
                .map(|seen| format!("{} {}", seen.method, seen.kind)),
        )
    }
    /// How often each path that contains `path_has` was requested with a method: how often was each
    /// block sent?
    pub fn times(&self, method: &str, path_has: &str) -> BTreeMap<String, usize> {
        tally(
            self.seen()
                .into_iter()
                .filter(|seen| seen.method == method && seen.path.contains(path_has))
                .map(|seen| seen.path),
        )
    }
    /// The number of requests with a fault.
    pub fn faults(&self) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.fault.is_some())
            .count()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for socket in lock(&self.shared.sockets).iter().filter_map(Weak::upgrade) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let client = Arc::new(client);
        self.remember(&client);
        let mut requests = BufReader::new(&*client);
        let mut pair = Pair {
            shared: self,
            client: Arc::clone(&client),
            upstream: None,
        };
        let mut goes_on = Ok(true);
        while matches!(goes_on, Ok(true)) {
            goes_on = pair.exchange(&mut requests);
        }
        // A service that cannot be reached or breaks off looks the same through the proxy.
        if goes_on.is_err() {
            reset(&client);
        }
        goes_on.map(|_| ())
    }

    fn remember(&self, socket: &Arc<TcpStream>) {
        let mut sockets = lock(&self.sockets);
        sockets.retain(|known| known.strong_count() > 0);
        sockets.push(Arc::downgrade(socket));
        if self.stopped.load(Ordering::SeqCst) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Records a request; its number, and the fault to inject.
    fn admit(&self, head: &Head) -> (usize, Option<Fault>) {
        let (method, path) = (head.word(0), without_parameters(head.word(1), &["sig"]));
        let range = head.header("Range").or_else(|| head.header("x-ms-range"));
        // Equal for repetitions of a request and between test runs. Signatures contain times.
        let signing = [
            "sig", "sv", "ss", "sr", "srt", "sp", "st", "se", "spr", "skoid", "sktid", "skt",
            "ske", "sks", "skv",
        ];
        let same = format!(
            "{method} {} {}",
            without_parameters(&path, &signing),
            range.unwrap_or_default()
        );
        let fault = lock(&self.rules)
            .iter_mut()
            .find_map(|rule| rule.decide(method, &path, &same));
        let kind = kind(&path, head.header("x-ms-copy-source").is_some());
        let mut seen = lock(&self.seen);
        seen.push(Seen {
            method: method.to_owned(),
            path,
            range: range.map(str::to_owned),
            kind,
            body: 0,
            status: None,
            fault,
        });
        (seen.len() - 1, fault)
    }

    fn note(&self, number: usize, what: impl FnOnce(&mut Seen)) {
        if let Some(seen) = lock(&self.seen).get_mut(number) {
            what(seen);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
