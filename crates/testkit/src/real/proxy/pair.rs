//! One client's connection through a proxy: requests pass, answers pass or are broken.

use super::Shared;
use crate::real::fault::Fault;
use crate::real::http::{Head, Length, collect, relay};
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

/// One client's connection, and ours to the service.
pub(super) struct Pair<'shared> {
    pub(super) shared: &'shared Shared,
    pub(super) client: Arc<TcpStream>,
    pub(super) upstream: Option<Arc<TcpStream>>,
}

impl Pair<'_> {
    /// One request and its answer; whether the connection is good for another.
    pub(super) fn exchange(&mut self, requests: &mut BufReader<&TcpStream>) -> io::Result<bool> {
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
        self.break_answer(fault, number, head.word(0), answer, body)
    }

    /// Passes a complete answer to the client with the fault injected.
    fn break_answer(
        &self,
        fault: Fault,
        number: usize,
        method: &str,
        mut answer: Head,
        mut body: Vec<u8>,
    ) -> io::Result<bool> {
        let mut client = &*self.client;
        answer.remove("Transfer-Encoding");
        let length: usize = answer
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
                // Until the client closes, or the proxy is dropped.
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
            Fault::Shortened if length > 0 => {
                answer.set("Content-Length", &(length / 2).to_string());
                body.truncate(length / 2);
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
            // There is no body to break.
            _ => {
                self.shared.note(number, |seen| seen.fault = None);
                client.write_all(&answer.bytes())?;
                client.write_all(&body)?;
                Ok(true)
            }
        }
    }

    /// The connection to the service; a new one if the service has closed the last.
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

/// Breaks the connection at once, so that the other side reads "reset by peer". Closing the socket
/// would take effect only after all its holders have dropped it.
pub(super) fn reset(socket: &TcpStream) {
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
