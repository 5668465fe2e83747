//! A proxy before a service, without TLS, that breaks what passes as it is told and keeps a list of
//! it. What is not broken passes byte by byte, on connections that are kept. Signatures of Azure
//! hold, for they leave out the host; those of S3 sign it, which matters to servers that check.

use super::Account;
use super::fault::{Fault, Rule};
use super::http::{Head, Length, collect, relay};
use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A request that came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// With its query, less the signature.
    pub path: String,
    pub range: Option<String>,
    /// What it does, from its query: `blob` `block` `blocklist` `list` `container` `copy` `part` …
    pub kind: String,
    /// Bytes of the request's body that were read.
    pub body: u64,
    /// What the service answered, if it was asked and the answer was read.
    pub status: Option<u16>,
    /// What was done to it.
    pub fault: Option<Fault>,
}

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
    /// Every socket in use, to be shut at the end.
    sockets: Mutex<Vec<Weak<TcpStream>>>,
}

impl FaultProxy {
    /// Before the service at this address or URL.
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
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if of_thread.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                // A connection that breaks is what clients are tested with; nobody is told.
                std::thread::spawn(move || client.and_then(|client| shared.serve(client)));
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// The URL of a service behind us, by way of us.
    pub fn endpoint(&self, of: &str) -> String {
        of.replacen(
            &self.shared.upstream.to_string(),
            &self.address.to_string(),
            1,
        )
    }
    /// The account behind us, by way of us.
    pub fn account(&self, account: &Account) -> Account {
        Account {
            endpoint: self.endpoint(&account.endpoint),
            ..account.clone()
        }
    }

    /// From now on, after the rules already there: the first that strikes is the one.
    pub fn inject(&self, rule: Rule) {
        lock(&self.shared.rules).push(rule);
    }
    /// No faults from now on.
    pub fn heal(&self) {
        lock(&self.shared.rules).clear();
    }
    /// What came so far, in order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }
    /// Forgets what came so far.
    pub fn forget(&self) {
        lock(&self.shared.seen).clear();
    }
    /// How many requests of a method came whose path with query has this in it.
    pub fn count(&self, method: &str, path_has: &str) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.method == method && seen.path.contains(path_has))
            .count()
    }
    /// How many came, by method and kind: `PUT block`.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        tally(
            self.seen()
                .into_iter()
                .map(|seen| format!("{} {}", seen.method, seen.kind)),
        )
    }
    /// How often each path was asked with a method, of those that have this in it: how often was
    /// each block sent?
    pub fn times(&self, method: &str, path_has: &str) -> BTreeMap<String, usize> {
        tally(
            self.seen()
                .into_iter()
                .filter(|seen| seen.method == method && seen.path.contains(path_has))
                .map(|seen| seen.path),
        )
    }
    /// How many requests were hurt.
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

/// One client's connection, and ours to the service.
struct Pair<'shared> {
    shared: &'shared Shared,
    client: Arc<TcpStream>,
    upstream: Option<Arc<TcpStream>>,
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
        // When the service cannot be reached or breaks off, so do we.
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

    /// Writes a request down; its number, and what is to happen to it.
    fn admit(&self, head: &Head) -> (usize, Option<Fault>) {
        let (method, path) = (head.word(0), less(head.word(1), &["sig"]));
        let range = head.header("Range").or_else(|| head.header("x-ms-range"));
        // Alike for repetitions, and from one run to the next: signatures are made of times.
        let signing = [
            "sig", "sv", "ss", "sr", "srt", "sp", "st", "se", "spr", "skoid", "sktid", "skt",
            "ske", "sks", "skv",
        ];
        let same = format!(
            "{method} {} {}",
            less(&path, &signing),
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

impl Pair<'_> {
    /// One request and its answer; whether the connection is good for another.
    fn exchange(&mut self, requests: &mut BufReader<&TcpStream>) -> io::Result<bool> {
        let Some(mut head) = Head::read(requests)? else {
            return Ok(false);
        };
        let (number, fault) = self.shared.admit(&head);
        let length = head.request_length();
        if fault == Some(Fault::ResetBefore) {
            reset(&self.client);
            return Ok(false);
        }
        if head.is("Expect", "100-continue") {
            head.remove("Expect");
            (&*self.client).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if fault == Some(Fault::ResetWithin) {
            let half = if let Length::Bytes(bytes) = length {
                bytes / 2
            } else {
                0
            };
            let read = relay(Length::Bytes(half), requests, &mut io::sink())?;
            self.shared.note(number, |seen| seen.body = read);
            reset(&self.client);
            return Ok(false);
        }
        if let Some(Fault::Answer {
            status,
            retry_after_seconds,
        }) = fault
        {
            let read = relay(length, requests, &mut io::sink())?;
            self.shared.note(number, |seen| seen.body = read);
            (&*self.client).write_all(&refusal(status, retry_after_seconds, head.word(0)))?;
            return Ok(true);
        }
        let upstream = self.upstream()?;
        (&*upstream).write_all(&head.bytes())?;
        let read = relay(length, requests, &mut &*upstream)?;
        self.shared.note(number, |seen| seen.body = read);
        if fault == Some(Fault::ResetAfter) {
            reset(&self.client);
        }
        let mut answers = BufReader::new(&*upstream);
        let answer = loop {
            let answer = Head::read(&mut answers)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if !matches!(answer.status(), 100..=199) {
                break answer;
            }
        };
        self.shared
            .note(number, |seen| seen.status = Some(answer.status()));
        let length = answer.answer_length(head.word(0));
        let Some(fault) = fault else {
            (&*self.client).write_all(&answer.bytes())?;
            relay(length, &mut answers, &mut &*self.client)?;
            let ends = length == Length::UntilClose
                || answer.is("Connection", "close")
                || head.is("Connection", "close");
            return Ok(!ends);
        };
        let body = collect(length, &mut answers)?;
        self.hurt(fault, number, head.word(0), answer, body)
    }

    /// Gives an answer that is read to its end to the client, or what is left of it.
    fn hurt(
        &self,
        fault: Fault,
        number: usize,
        method: &str,
        mut answer: Head,
        mut body: Vec<u8>,
    ) -> io::Result<bool> {
        let mut client = &*self.client;
        answer.remove("Transfer-Encoding");
        let said: usize = answer
            .header("Content-Length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(body.len());
        let is_bare = method == "HEAD" || matches!(answer.status(), 204 | 304);
        if !is_bare {
            answer.set("Content-Length", &body.len().to_string());
        }
        match fault {
            Fault::ResetAfter => Ok(false),
            Fault::LostAnswer => {
                let _ = client.shutdown(Shutdown::Both);
                Ok(false)
            }
            Fault::Silence => {
                // Until the client gives up, or we do.
                let _ = io::copy(&mut client, &mut io::sink());
                Ok(false)
            }
            Fault::Trickle { piece, pause } => {
                client.write_all(&answer.bytes())?;
                for part in body.chunks(piece.max(1)) {
                    std::thread::sleep(pause);
                    client.write_all(part)?;
                }
                Ok(true)
            }
            Fault::Truncated if !body.is_empty() => {
                client.write_all(&answer.bytes())?;
                client.write_all(&body[..body.len() / 2])?;
                let _ = client.shutdown(Shutdown::Both);
                Ok(false)
            }
            Fault::Shortened if said > 0 => {
                answer.set("Content-Length", &(said / 2).to_string());
                body.truncate(said / 2);
                client.write_all(&answer.bytes())?;
                client.write_all(&body)?;
                Ok(true)
            }
            Fault::Flipped if !body.is_empty() => {
                let middle = body.len() / 2;
                body[middle] ^= 1;
                client.write_all(&answer.bytes())?;
                client.write_all(&body)?;
                Ok(true)
            }
            // There is no body to hurt.
            _ => {
                self.shared.note(number, |seen| seen.fault = None);
                client.write_all(&answer.bytes())?;
                client.write_all(&body)?;
                Ok(true)
            }
        }
    }

    /// The connection to the service; another one where the service has closed it meanwhile.
    fn upstream(&mut self) -> io::Result<Arc<TcpStream>> {
        if let Some(upstream) = &self.upstream {
            upstream.set_nonblocking(true)?;
            let still = upstream.peek(&mut [0]);
            upstream.set_nonblocking(false)?;
            if still.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return Ok(Arc::clone(upstream));
            }
        }
        let upstream = Arc::new(TcpStream::connect(self.shared.upstream)?);
        upstream.set_nodelay(true)?;
        self.shared.remember(&upstream);
        self.upstream = Some(Arc::clone(&upstream));
        Ok(upstream)
    }
}

/// Breaks the connection at once, so that the other side reads "reset by peer". To close the socket
/// would wait for all who hold it.
fn reset(socket: &TcpStream) {
    let _ = rustix::net::connect_unspec(socket);
}

fn refusal(status: u16, retry_after_seconds: Option<u32>, method: &str) -> Vec<u8> {
    let (reason, code) = match status {
        429 => ("Too Many Requests", "TooManyRequests"),
        503 => ("Service Unavailable", "ServerBusy"),
        500 => ("Internal Server Error", "InternalError"),
        _ => ("Refused", "Refused"),
    };
    let body = if method == "HEAD" {
        String::new()
    } else {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>By the \
                proxy.</Message></Error>"
        )
    };
    let wait = retry_after_seconds
        .map(|seconds| format!("Retry-After: {seconds}\r\n"))
        .unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\n{wait}x-ms-error-code: {code}\r\nContent-Type: \
            application/xml\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// A path without some parts of its query.
fn less(path: &str, names: &[&str]) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|part| !names.contains(&part.split('=').next().unwrap_or_default()))
        .collect();
    if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    }
}

fn kind(path: &str, copies: bool) -> String {
    let query: BTreeMap<&str, &str> = path
        .split_once('?')
        .map(|(_, query)| query)
        .unwrap_or_default()
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    let word = if copies {
        "copy"
    } else if let Some(what) = query.get("comp") {
        what
    } else if query.get("restype") == Some(&"container") {
        "container"
    } else if query.contains_key("partNumber") {
        "part"
    } else if query.contains_key("uploadId")
        || path.ends_with("?uploads")
        || path.ends_with("?uploads=")
    {
        "upload"
    } else if query.contains_key("list-type") {
        "list"
    } else {
        "blob"
    };
    word.to_owned()
}

fn tally(keys: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for key in keys {
        *tally.entry(key).or_default() += 1;
    }
    tally
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
