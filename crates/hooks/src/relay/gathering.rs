//! Joins several lines of output that are one JSON value. Never loses a line, even if it began like JSON and was none,
//! and never parses the same text again and again.

use serde_json::{Map, Value};
use settings::HookOutput;

/// A text that is still incomplete after this many bytes is not taken for JSON any more.
const LONGEST: usize = 1 << 20;
/// A text up to this length is parsed again with each line. A longer one is parsed only when its brackets close or it
/// has doubled.
const LITTLE: usize = 4096;

/// The lines that become one record.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Object(Map<String, Value>),
}

pub(super) struct Gathering {
    output: HookOutput,
    /// The lines of an incomplete value.
    begun: String,
    brackets: Brackets,
    /// The length of `begun` in bytes when it was last parsed.
    tried: usize,
}

impl Gathering {
    pub(super) fn new(output: HookOutput) -> Self {
        Self {
            output,
            begun: String::new(),
            brackets: Brackets::default(),
            tried: 0,
        }
    }

    /// Takes a line; returns the records that it completes.
    pub(super) fn line(&mut self, line: &str) -> Vec<Piece> {
        let line = line.trim();
        if line.is_empty() {
            return Vec::new();
        }
        if self.begun.is_empty() && !self.begins(line) {
            return vec![Piece::Text(line.to_owned())];
        }
        if !self.begun.is_empty() {
            self.begun.push('\n');
        }
        let last = self.begun.len();
        self.begun.push_str(line);
        self.brackets.follow(line);
        if !self.is_worth_a_try() {
            return Vec::new();
        }
        self.tried = self.begun.len();
        match serde_json::from_str(&self.begun) {
            Ok(Value::Object(object)) => {
                self.take();
                vec![Piece::Object(object)]
            }
            Ok(_) => vec![Piece::Text(self.take())],
            Err(error) if !error.is_eof() => self.give_up(last),
            Err(_) if self.begun.len() < LONGEST => Vec::new(),
            Err(_) => self.end(),
        }
    }

    /// Returns the rest after the last line.
    pub(super) fn end(&mut self) -> Vec<Piece> {
        self.take().lines().map(text).collect()
    }

    /// Whether a line may begin a value of several lines: an object, or any value if whole values are wanted. Other
    /// JSON values are on one line anyway.
    fn begins(&self, line: &str) -> bool {
        match self.output {
            HookOutput::Lines => line.starts_with('{'),
            HookOutput::Json => line.starts_with(['{', '[']),
        }
    }

    fn is_worth_a_try(&self) -> bool {
        let length = self.begun.len();
        self.brackets.are_closed() || length <= LITTLE || length >= LONGEST || length >= self.tried * 2
    }

    /// Handles a text that is no JSON after all. Its last line begins at `last` and may begin another value.
    fn give_up(&mut self, last: usize) -> Vec<Piece> {
        let given = self.take();
        let (before, line) = given.split_at(last);
        if before.is_empty() {
            return vec![text(line)];
        }
        let mut pieces: Vec<Piece> = before.lines().map(text).collect();
        pieces.extend(self.line(line));
        pieces
    }

    fn take(&mut self) -> String {
        self.brackets = Brackets::default();
        self.tried = 0;
        std::mem::take(&mut self.begun)
    }
}

fn text(line: &str) -> Piece {
    Piece::Text(line.to_owned())
}

/// The number of open brackets outside of texts.
#[derive(Default)]
struct Brackets {
    open: i64,
    in_text: bool,
}

impl Brackets {
    fn follow(&mut self, line: &str) {
        // A JSON text cannot continue on the next line.
        self.in_text = false;
        let mut escaped = false;
        for byte in line.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if self.in_text => escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'{' | b'[' if !self.in_text => self.open += 1,
                b'}' | b']' if !self.in_text => self.open -= 1,
                _ => {}
            }
        }
    }

    /// Whether no further line can complete or correct the value.
    fn are_closed(&self) -> bool {
        self.open <= 0 || self.in_text
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// The gathered records: texts as they are, objects by their `msg`.
    fn gathered(output: HookOutput, lines: &[&str]) -> Vec<String> {
        let mut gathering = Gathering::new(output);
        let mut pieces: Vec<Piece> = lines.iter().flat_map(|line| gathering.line(line)).collect();
        pieces.extend(gathering.end());
        let shown = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Object(object) => format!("object {}", object["msg"].as_str().unwrap()),
        };
        pieces.into_iter().map(shown).collect()
    }

    #[test]
    fn lines_become_texts_and_objects() {
        let rows: &[(&[&str], &[&str])] = &[
            (&["  hello ", "", "   "], &["hello"]),
            (&[r#"{"msg":"one"}"#, r#"{"msg":"two"}"#], &["object one", "object two"]),
            (&["{", r#"  "msg": "two""#, "", "}", "after"], &["object two", "after"]),
            (&["{foo", "bar"], &["{foo", "bar"]),
            (&["{", r#"{"msg":"whole"}"#], &["{", "object whole"]),
            (
                &[r#"{"msg": "cut"#, r#"off""#, "end"],
                &[r#"{"msg": "cut"#, r#"off""#, "end"],
            ),
            (&[r#"{"a": [1,"#], &[r#"{"a": [1,"#]),
            (&[r#"{"msg":"}{"#, r#"\"}"}"#], &[r#"{"msg":"}{"#, r#"\"}"}"#]),
            (&["[1]", "5", "[1,", "2]"], &["[1]", "5", "[1,", "2]"]),
        ];
        for (lines, expected) in rows {
            assert_eq!(gathered(HookOutput::Lines, lines), *expected, "{lines:?}");
        }
    }

    #[test]
    fn whole_values_are_gathered_if_wanted() {
        let rows: &[(&[&str], &[&str])] = &[
            (&["[1,", "2]", "after"], &["[1,\n2]", "after"]),
            (&["{", r#""msg": "object"}"#], &["object object"]),
            (&["\"open", "true", "-"], &["\"open", "true", "-"]),
            (&["[ERROR] no JSON", "next"], &["[ERROR] no JSON", "next"]),
        ];
        for (lines, expected) in rows {
            assert_eq!(gathered(HookOutput::Json, lines), *expected, "{lines:?}");
        }
    }

    #[test]
    fn a_large_document_is_read_a_few_times_and_a_larger_one_given_up() {
        let mut lines = vec![r#"{"msg":"large","items":["#];
        lines.resize(60_000, r#"{"name":"}"},"#);
        let begun = Instant::now();
        let given_up = gathered(HookOutput::Lines, &[&lines[..], &lines[..]].concat());
        assert_eq!(given_up.len(), 120_000, "no line is lost");
        lines.push("{}]}");
        assert_eq!(gathered(HookOutput::Lines, &lines), ["object large"]);
        // Parsing the whole text again with each line would take minutes.
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
