//! One HTTP request per connection to a WebDriver server on loopback, and its answer's `value`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// A driver that has not answered by then never will.
const ANSWER: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Client {
    port: u16,
}

impl Client {
    pub(super) fn new(port: u16) -> Self {
        Self { port }
    }

    pub(super) fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, &Value::Null)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, body)
    }

    pub(super) fn delete(&self, path: &str) -> Result<Value> {
        self.ask("DELETE", path, &Value::Null)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_read_timeout(Some(ANSWER))?;
        connection.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        read(&mut connection, &mut answer).with_context(|| format!("{method} {path}"))?;
        value(&answer).with_context(|| format!("{method} {path}"))
    }
}

/// Reads one answer; the server may keep the connection open after it.
fn read(connection: &mut TcpStream, answer: &mut Vec<u8>) -> Result<()> {
    let mut more = [0; 16 * 1024];
    loop {
        let length = connection.read(&mut more)?;
        answer.extend_from_slice(&more[..length]);
        if length == 0 || complete(answer) {
            return Ok(());
        }
    }
}

fn split(answer: &[u8]) -> Option<(String, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase(), &answer[end + 4..]))
}

fn complete(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(head, body)| {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        length.and_then(|length| length.trim().parse().ok()).is_some_and(|length: usize| body.len() >= length)
    })
}

fn value(answer: &[u8]) -> Result<Value> {
    let (head, body) = split(answer).context("no answer")?;
    let mut answer: Value = serde_json::from_slice(body).context("the answer is no JSON")?;
    let value = answer.get_mut("value").map(Value::take).unwrap_or_default();
    if !head.starts_with("http/1.1 200") {
        let empty = json!("");
        let text = |name: &str| value.get(name).unwrap_or(&empty).as_str().unwrap_or_default().to_owned();
        bail!("{}: {}", text("error"), text("message"));
    }
    Ok(value)
}

/// Undoes base 64, as screenshots come in.
pub(super) fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0_u32, 0_u32);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => bail!("{byte:#x} is no base 64 digit"),
        };
        word = word << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits & 0xff) as u8);
        }
    }
    Ok(out)
}
