//! The server half of HTTP/1.1, as much as a scripted mock needs: one request at a time on a kept connection.
//!
//! It listens on loopback only; a malformed request ends its connection and nothing else.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Instant;

use serde_json::Value;

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    pub at: Instant,
    pub method: String,
    pub path: String,
    /// What follows the `?`, as it came.
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    /// The token after `Bearer`.
    #[must_use]
    pub fn bearer(&self) -> Option<&str> {
        self.headers.get("authorization")?.strip_prefix("Bearer ")
    }

    /// What the request is authorised with: a bearer, or a key in a header of its own.
    #[must_use]
    pub fn credential(&self) -> Option<&str> {
        self.bearer().or_else(|| self.headers.get("x-api-key").map(String::as_str))
    }

    /// The body as JSON; null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A field of the body, JSON or form.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        if let Some(text) = self.json().get(name).and_then(Value::as_str) {
            return Some(text.to_owned());
        }
        pair(&String::from_utf8_lossy(&self.body), name)
    }

    /// A field of the query.
    #[must_use]
    pub fn query_field(&self, name: &str) -> Option<String> {
        pair(&self.query, name)
    }
}

fn pair(form: &str, name: &str) -> Option<String> {
    let found = form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(decode(found))
}

/// Undoes percent encoding.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 3;
            }
            (b'+', _) => {
                out.push(b' ');
                at += 1;
            }
            (other, _) => {
                out.push(*other);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A plain or an encrypted connection.
pub(super) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

pub(super) struct Wire {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// The next request, or nothing when the client has gone.
    pub(super) fn request(&mut self) -> io::Result<Option<Request>> {
        let Some(first) = self.line()? else { return Ok(None) };
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(invalid("no request line"));
        };
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line()?.ok_or_else(|| invalid("end inside the headers"))?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        if headers.get("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = self.body(&headers)?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        Ok(Some(Request { at: Instant::now(), method, path: path.to_owned(), query: query.to_owned(), headers, body }))
    }

    fn body(&mut self, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
        if let Some(length) = headers.get("content-length") {
            let length = length.parse().map_err(|_| invalid("a length that is no number"))?;
            return self.exactly(length);
        }
        let mut body = Vec::new();
        if headers.get("transfer-encoding").is_some_and(|kind| kind == "chunked") {
            loop {
                let line = self.line()?.ok_or_else(|| invalid("end inside a body"))?;
                let size = line.split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(size, 16).map_err(|_| invalid("a bad chunk"))?;
                body.extend(self.exactly(size)?);
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        }
        Ok(body)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            if !self.fill()? {
                return Err(invalid("end inside a body"));
            }
        }
        Ok(self.unread.drain(..length).collect())
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut more = [0; 16 * 1024];
        let length = self.stream.read(&mut more)?;
        self.unread.extend_from_slice(&more[..length]);
        Ok(length > 0)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// A whole JSON answer.
    pub(super) fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} Mock\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        self.send((head + &body).as_bytes())
    }

    pub(super) fn redirect(&mut self, to: &str) -> io::Result<()> {
        self.send(format!("HTTP/1.1 302 Mock\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").as_bytes())
    }

    pub(super) fn begin_events(&mut self) -> io::Result<()> {
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    }

    /// One server-sent event; its name is the data's `type`.
    pub(super) fn event(&mut self, data: &Value) -> io::Result<()> {
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = format!("event: {name}\ndata: {data}\n\n");
        self.send(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// An event without a name.
    pub(super) fn data(&mut self, data: &str) -> io::Result<()> {
        let text = format!("data: {data}\n\n");
        self.send(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    pub(super) fn end_events(&mut self) -> io::Result<()> {
        self.send(b"0\r\n\r\n")
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
