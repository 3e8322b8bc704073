//! The pipes of a running program: what it writes is kept up to a limit, handed on line by line, or both. Never lets a
//! program wait for us: output that is not wanted is read and dropped. Never cuts output that will be shown in the
//! middle of a secret.

use std::borrow::Cow;
use std::fmt;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

use crate::secrets::Secrets;

/// The limit of a line that is passed on, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Of what is to be shown so much more is read: only of a secret that is there in whole it can be known that it is one.
const BEYOND: usize = 16 << 10;
/// What a pipe holds by default on Linux.
const CHUNK: usize = 64 * 1024;

/// Gets each line of a stream as soon as it is complete, without its end.
pub type LineSink = Box<dyn FnMut(&str) + Send + Sync>;

/// The handling of one output stream.
#[derive(Default)]
pub struct Output {
    keep: usize,
    sink: Option<LineSink>,
}

impl Output {
    /// Read and forgotten.
    pub fn discarded() -> Self {
        Self::default()
    }

    /// The first `limit` bytes are kept.
    pub fn captured(limit: usize) -> Self {
        Self {
            keep: limit,
            sink: None,
        }
    }

    /// Handed to the sink line by line.
    pub fn lines(sink: impl FnMut(&str) + Send + Sync + 'static) -> Self {
        Self {
            keep: 0,
            sink: Some(Box::new(sink)),
        }
    }

    /// The first `limit` bytes are kept as well.
    #[must_use]
    pub fn and_captured(self, limit: usize) -> Self {
        Self { keep: limit, ..self }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("keep", &self.keep)
            .field("sink", &self.sink.is_some())
            .finish()
    }
}

/// The stored part of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    pub bytes: Vec<u8>,
    /// How many bytes came after the limit.
    pub dropped: u64,
}

impl Captured {
    /// As text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The same without what is beyond the limit, and then without secrets. A mask is about as long as what it hides, so
    /// that nothing from the end, where half a secret may be, comes before the limit by that.
    fn hiding(self, secrets: &Secrets, limit: usize) -> Self {
        let surplus = self.bytes.len().saturating_sub(limit);
        if surplus == 0 {
            return self;
        }
        let text = self.text();
        let mut bytes = match secrets.masked(&text) {
            Cow::Borrowed(_) => self.bytes,
            Cow::Owned(masked) => masked.into_bytes(),
        };
        bytes.truncate(bytes.len().saturating_sub(surplus));
        Self {
            bytes,
            dropped: self.dropped + surplus as u64,
        }
    }
}

/// Reads one stream to its end.
pub(super) struct Reader {
    source: pipe::Receiver,
    keep: usize,
    kept: Captured,
    lines: Option<Lines>,
}

impl Reader {
    pub(super) fn new(source: pipe::Receiver, output: Output) -> Self {
        let Output { keep, sink } = output;
        Self {
            source,
            keep,
            kept: Captured::default(),
            lines: sink.map(Lines::new),
        }
    }

    /// The same for output that will be shown: it ends with [`Self::finish_hiding`].
    pub(super) fn of_words(source: pipe::Receiver, output: Output) -> Self {
        let keep = match output.keep {
            0 => 0,
            limit => limit + BEYOND,
        };
        Self::new(source, Output { keep, ..output })
    }

    /// Returns at the end of the stream. A read error ends it, too: the writer is gone.
    pub(super) async fn drain(&mut self) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = self.source.read(&mut chunk).await {
            self.take(&chunk[..read]);
        }
        if let Some(lines) = &mut self.lines {
            lines.end();
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = self.keep.saturating_sub(self.kept.bytes.len()).min(bytes.len());
        self.kept.bytes.extend_from_slice(&bytes[..room]);
        self.kept.dropped += (bytes.len() - room) as u64;
        if let Some(lines) = &mut self.lines {
            lines.take(bytes);
        }
    }

    /// The stored output; a line without an end is passed on if the stream had to be given up.
    pub(super) fn finish(mut self) -> Captured {
        if let Some(lines) = &mut self.lines {
            lines.end();
        }
        self.kept
    }

    /// The stored output; if it had to be cut, without secrets.
    pub(super) fn finish_hiding(self, secrets: &Secrets) -> Captured {
        let limit = self.keep.saturating_sub(BEYOND);
        self.finish().hiding(secrets, limit)
    }
}

/// Cuts a stream into lines, however it was written.
struct Lines {
    sink: LineSink,
    /// The line so far, up to [`LONGEST_LINE`]: more cannot matter.
    line: Vec<u8>,
}

impl Lines {
    fn new(sink: LineSink) -> Self {
        Self { sink, line: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, complete) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LONGEST_LINE.saturating_sub(self.line.len()).min(text.len());
            self.line.extend_from_slice(&text[..room]);
            if complete {
                self.hand_on();
            }
        }
    }

    fn end(&mut self) {
        if !self.line.is_empty() {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        (self.sink)(&String::from_utf8_lossy(&self.line));
        self.line.clear();
    }
}

/// Writes the input and closes the pipe. A program need not read its input.
pub(super) async fn feed(sink: Option<pipe::Sender>, input: Option<Vec<u8>>) {
    if let (Some(mut sink), Some(input)) = (sink, input)
        && let Err(error) = sink.write_all(&input).await
    {
        tracing::debug!(%error, "the program did not read all of its input");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Feeds the pieces and returns the lines that came out.
    fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let mut lines = Lines::new(Box::new(move |line| sink.lock().unwrap().push(line.to_owned())));
        for piece in pieces {
            lines.take(piece);
        }
        lines.end();
        drop(lines);
        Arc::into_inner(seen).unwrap().into_inner().unwrap()
    }

    #[test]
    fn lines_are_lines_however_they_are_written() {
        let rows: &[(&[&[u8]], &[&str])] = &[
            (&[], &[]),
            (&[b"a\nb\n"], &["a", "b"]),
            (&[b"a", b"b\nc"], &["ab", "c"]),
            (&[b"\n\n"], &["", ""]),
            (&[b"caf\xc3", b"\xa9\n"], &["café"]),
            (&[b"bad \xff byte\n"], &["bad \u{fffd} byte"]),
        ];
        for (pieces, expected) in rows {
            assert_eq!(lines_of(pieces), *expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_secret_across_the_limit_is_not_shown_in_part() {
        let secrets = Secrets::default();
        secrets.learn(Arc::new(["correct-horse"].into_iter().collect()));
        let said = |text: &str, dropped| Captured {
            bytes: text.into(),
            dropped,
        };
        // Whatever the limit, and wherever reading ended.
        let text = "user: correct-horse, password: correct-horse";
        for end in "correct-horse".len()..=text.len() {
            for limit in 0..=end - "correct-horse".len() {
                let shown = said(&text[..end], 1).hiding(&secrets, limit);
                assert!(!shown.text().contains("corr"), "{limit} {end} {shown:?}");
            }
        }
        assert_eq!(said("abc", 0).hiding(&secrets, 2), said("ab", 1));
        assert_eq!(
            said("a correct-horse", 0).hiding(&secrets, 99),
            said("a correct-horse", 0)
        );
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_and_the_next_one_is_whole() {
        let text = "x".repeat(LONGEST_LINE * 2 + 5) + "\nnext\n";
        let lines = lines_of(&text.as_bytes().chunks(77_777).collect::<Vec<_>>());
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].len(), LONGEST_LINE);
        assert_eq!(lines[1], "next");
    }
}
