//! As much of HTTP/1.1 as a proxy and a plain client need. Heads are kept unchanged.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// First line and headers of a request or an answer. Each byte is one char, so nothing is lost.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub first: String,
    pub headers: Vec<(String, String)>,
}

/// The framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Chunked,
    UntilClose,
}

impl Head {
    /// None if the other side has closed before a first byte.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(first) = line(reader)? else {
            return Ok(None);
        };
        let mut headers = Vec::new();
        loop {
            let text = line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            match text.split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None if text.is_empty() => return Ok(Some(Self { first, headers })),
                None => return Err(io::Error::new(io::ErrorKind::InvalidData, text)),
            }
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.first);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        text.chars()
            .map(|char| u8::try_from(char).unwrap_or(b'?'))
            .collect()
    }

    pub(super) fn word(&self, number: usize) -> &str {
        self.first.split(' ').nth(number).unwrap_or_default()
    }
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
    pub(super) fn remove(&mut self, name: &str) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }
    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.header(name)
            .is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    pub(super) fn status(&self) -> u16 {
        self.word(1).parse().unwrap_or_default()
    }
    pub(super) fn request_length(&self) -> Length {
        self.declared().unwrap_or(Length::Bytes(0))
    }
    /// The body of an answer to `method`.
    pub(super) fn answer_length(&self, method: &str) -> Length {
        let bare = method == "HEAD" || matches!(self.status(), 100..=199 | 204 | 304);
        if bare {
            Length::Bytes(0)
        } else {
            self.declared().unwrap_or(Length::UntilClose)
        }
    }
    fn declared(&self) -> Option<Length> {
        let chunked = self
            .is("Transfer-Encoding", "chunked")
            .then_some(Length::Chunked);
        chunked.or_else(|| {
            self.header("Content-Length")?
                .parse()
                .ok()
                .map(Length::Bytes)
        })
    }
}

/// Forwards a body with its framing; returns the number of its bytes.
pub(super) fn relay(
    length: Length,
    from: &mut impl BufRead,
    to: &mut impl Write,
) -> io::Result<u64> {
    match length {
        Length::Bytes(many) => exactly(many, from, to),
        Length::UntilClose => io::copy(from, to),
        Length::Chunked => {
            let mut total = 0;
            loop {
                let size = chunk(from)?;
                write!(to, "{size:x}\r\n")?;
                total += exactly(size, from, to)?;
                if size == 0 {
                    while let Some(trailer) = line(from)?.filter(|trailer| !trailer.is_empty()) {
                        write!(to, "{trailer}\r\n")?;
                    }
                    to.write_all(b"\r\n")?;
                    return Ok(total);
                }
                line(from)?;
                to.write_all(b"\r\n")?;
            }
        }
    }
}

/// A body without its framing.
pub(super) fn collect(length: Length, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if length != Length::Chunked {
        relay(length, from, &mut body)?;
        return Ok(body);
    }
    loop {
        let size = chunk(from)?;
        exactly(size, from, &mut body)?;
        while line(from)?.is_some_and(|text| size == 0 && !text.is_empty()) {}
        if size == 0 {
            return Ok(body);
        }
    }
}

/// A complete answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// One request on a connection of its own, without TLS.
pub fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    Connection::open(url)?.request(method, url, headers, body)
}

/// A connection for many requests, one after another.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(url: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(parts_of(url)?.0)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    pub fn request(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let (host, path) = parts_of(url)?;
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.stream.get_mut().write_all(body)?;
        let head = Head::read(&mut self.stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let body = collect(head.answer_length(method), &mut self.stream)?;
        Ok(Answer {
            status: head.status(),
            headers: head.headers,
            body,
        })
    }
}

/// Host with port, and path with query.
fn parts_of(url: &str) -> io::Result<(&str, &str)> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not http"))?;
    Ok(rest.find('/').map_or((rest, "/"), |at| rest.split_at(at)))
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(
        bytes
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>()
            .trim_end_matches(['\r', '\n'])
            .to_owned(),
    ))
}

fn chunk(reader: &mut impl BufRead) -> io::Result<u64> {
    let text = line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let size = text.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(size, 16).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn exactly(many: u64, from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    let moved = io::copy(&mut from.take(many), to)?;
    if moved == many {
        Ok(moved)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_by_their_frame() {
        let chunked = b"4;x=y\r\nabcd\r\n3\r\nefg\r\n0\r\nTrailer: t\r\n\r\nNEXT".as_slice();
        let mut from = chunked;
        assert_eq!(collect(Length::Chunked, &mut from).unwrap(), b"abcdefg");
        assert_eq!(from, b"NEXT");
        let (mut from, mut to) = (chunked, Vec::new());
        assert_eq!(relay(Length::Chunked, &mut from, &mut to).unwrap(), 7);
        assert_eq!(to, b"4\r\nabcd\r\n3\r\nefg\r\n0\r\nTrailer: t\r\n\r\n");
        assert_eq!(from, b"NEXT");
        assert!(collect(Length::Bytes(9), &mut b"short".as_slice()).is_err());
        assert_eq!(
            collect(Length::UntilClose, &mut b"all".as_slice()).unwrap(),
            b"all"
        );
    }

    #[test]
    fn heads_lose_no_byte() {
        let bytes = b"GET /a%20b HTTP/1.1\r\nHost: x\r\nX-Odd: \xff\xfe\r\n\r\n";
        let head = Head::read(&mut bytes.as_slice()).unwrap().unwrap();
        assert_eq!(head.bytes(), bytes);
        assert!(Head::read(&mut b"".as_slice()).unwrap().is_none());
        assert!(Head::read(&mut b"GET / HTTP/1.1\r\nHo".as_slice()).is_err());
    }
}
