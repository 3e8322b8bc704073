//! The pipes of a running program: its output is kept up to a limit, passed on line by line, or both. A program must
//! never wait for the operator: unwanted output is read and dropped. Output that will be shown must never be cut in the
//! middle of a secret.

use std::borrow::Cow;
use std::fmt;

use report::secrets::Secrets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::task::yield_now;

/// The longest line that is passed on, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// How many more bytes are read of output that will be shown, because a secret can be recognised only as a whole.
const BEYOND: usize = 16 << 10;
/// How much is read before other tasks have their turn.
pub(super) const CHUNK: usize = 8 << 10;

/// Receives each complete line of a stream, without its end.
pub type LineSink = Box<dyn FnMut(&str) + Send + Sync>;

/// The handling of an output stream.
#[derive(Default)]
pub struct Output {
    keep: usize,
    sink: Option<LineSink>,
}

impl Output {
    /// The output is read and dropped.
    pub fn discarded() -> Self {
        Self::default()
    }

    /// Keeps the first `limit` bytes of the output.
    pub fn captured(limit: usize) -> Self {
        Self {
            keep: limit,
            sink: None,
        }
    }

    /// The output is passed to the sink line by line.
    pub fn lines(sink: impl FnMut(&str) + Send + Sync + 'static) -> Self {
        Self {
            keep: 0,
            sink: Some(Box::new(sink)),
        }
    }

    /// Keeps the first `limit` bytes of the output, too.
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

/// The kept part of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    pub bytes: Vec<u8>,
    /// The number of bytes after the limit, which were dropped.
    pub dropped: u64,
}

impl Captured {
    /// The text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The text with masked secrets, without as many bytes at the end as exceed the limit. These bytes may have half a
    /// secret. A mask may be shorter than its secret; then the cut is before the limit.
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

    /// A reader for output that will be shown; it ends with [`Self::finish_hiding`].
    pub(super) fn of_words(source: pipe::Receiver, output: Output) -> Self {
        let keep = match output.keep {
            0 => 0,
            limit => limit + BEYOND,
        };
        Self::new(source, Output { keep, ..output })
    }

    /// Reads to the end of the stream. A read error also ends it, because the writer is gone.
    ///
    /// Between two reads other tasks run. The runtime alone would let them wait for 128 reads, because it counts reads
    /// and not the work that their lines make; a program that never stops talking would hold up answers and probes.
    pub(super) async fn drain(&mut self) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = self.source.read(&mut chunk).await {
            self.take(&chunk[..read]);
            yield_now().await;
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

    /// The kept output. An incomplete last line is passed on if reading was given up.
    pub(super) fn finish(mut self) -> Captured {
        if let Some(lines) = &mut self.lines {
            lines.end();
        }
        self.kept
    }

    /// The kept output, cut and with masked secrets.
    pub(super) fn finish_hiding(self, secrets: &Secrets) -> Captured {
        let limit = self.keep.saturating_sub(BEYOND);
        self.finish().hiding(secrets, limit)
    }
}

/// Splits a stream into lines, whatever the pieces are.
struct Lines {
    sink: LineSink,
    /// The line so far, up to [`LONGEST_LINE`]; the rest is dropped.
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

/// Writes the input and closes the pipe. The program need not read it.
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

    /// The lines that result from these pieces.
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
        // No part of the secret may remain for any limit, and any end of reading.
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
