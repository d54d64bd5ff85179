use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::ReadBuf;

use super::*;

/// A pipe that gives its bytes in pieces of the sizes asked for, and then ends.
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    piece: usize,
}

impl AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let end = (self.at + self.piece).min(self.bytes.len()).min(self.at + into.remaining());
        into.put_slice(&self.bytes[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

async fn lines_of(bytes: &[u8], piece: usize, longest: usize) -> Vec<String> {
    let (_keep, give_up) = oneshot::channel();
    let mut lines = read_lines(Pieces { bytes: bytes.to_vec(), at: 0, piece }, longest, give_up);
    let mut seen = Vec::new();
    while let Some(line) = lines.recv().await {
        seen.push(match line {
            Line::Whole { bytes, ended, .. } => {
                format!("{}{}", String::from_utf8_lossy(&bytes), if ended { "" } else { " (no end)" })
            }
            Line::Oversized { bytes } => format!("{bytes} too long"),
            Line::Closed { error } => format!("closed {}", error.is_some()),
        });
    }
    seen
}

#[tokio::test]
async fn lines_are_the_same_however_the_pipe_cuts_them() {
    let bytes = b"one\n\ntwo \xff\xfe\nlast";
    let expected = lines_of(bytes, usize::MAX >> 1, 1000).await;
    assert_eq!(expected, ["one", "", "two \u{fffd}\u{fffd}", "last (no end)", "closed false"]);
    for piece in 1..bytes.len() {
        assert_eq!(lines_of(bytes, piece, 1000).await, expected, "pieces of {piece}");
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_counted_and_what_follows_is_read() {
    for piece in [1, 7, 64, 4096] {
        let mut bytes = vec![b'x'; 5000];
        bytes.extend(b"\nnext\n");
        bytes.extend(vec![b'y'; 5001]);
        let lines = lines_of(&bytes, piece, 100).await;
        assert_eq!(lines, ["5000 too long", "next", "5001 too long", "closed false"], "pieces of {piece}");
    }
}

#[tokio::test]
async fn unread_lines_wait_in_the_pipe_and_not_in_memory() {
    let (_keep, give_up) = oneshot::channel();
    let pipe = Pieces { bytes: b"line\n".repeat(100_000), at: 0, piece: 4096 };
    let mut lines = read_lines(pipe, 1000, give_up);
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(lines.len() <= 64, "{} lines are held", lines.len());
    let mut count = 0;
    while let Some(line) = lines.recv().await {
        count += u32::from(matches!(line, Line::Whole { .. }));
    }
    assert_eq!(count, 100_000);
}

#[tokio::test]
async fn a_reader_that_is_told_to_give_up_hands_over_what_it_has() {
    let (mut write, read) = tokio::io::duplex(1000);
    let (give_up, told) = oneshot::channel();
    let mut lines = read_lines(read, 1000, told);
    write.write_all(b"half a li").await.expect("the pipe takes it");
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    drop(give_up);
    assert!(matches!(lines.recv().await, Some(Line::Whole { bytes, ended: false, .. }) if bytes.as_ref() == b"half a li"));
    assert!(matches!(lines.recv().await, Some(Line::Closed { error: None })));
}

#[test]
fn standard_error_keeps_the_last_lines_and_no_key() {
    let last = LastLines::default();
    for line in 0..30 {
        last.push(format!("line {line}").as_bytes());
    }
    last.push(b"key=sk-proj-0123456789abcdef rejected");
    last.push(b"Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln is not valid");
    last.push(&vec![b'z'; 10_000]);
    let lines = last.to_vec();
    assert_eq!(lines.len(), 20);
    assert_eq!(lines[0], "line 13");
    assert_eq!(lines[17], "[struck out] rejected");
    assert_eq!(lines[18], "Bearer [struck out] is not valid");
    assert_eq!(lines[19].len(), 500);
}
