//! Errors as text for people: the chain of causes on one line, without repetitions, then the hints. Also the secrets
//! that no text may show.
//!
//! Must never decide what to do about an error, and never write to a stream by itself.
//!
//! Begin with `Chain` for a log field, and with `Report` for the end of a command.

pub mod apis;
pub mod secrets;

use std::any::Any;
use std::error::Error;
use std::fmt;

/// An error with all its causes: `cannot read the values: cannot open values.yaml: permission denied`.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            if let Some(kube::Error::Api(status)) = of_kube(error) {
                // kube prints the whole status twice; people need only its message.
                return write!(f, ": {}", status.message);
            }
            let text = error.to_string();
            // Some libraries repeat the text of their cause.
            if !said.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
            cause = error.source();
        }
        Ok(())
    }
}

fn of_kube<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a kube::Error> {
    let boxed = || error.downcast_ref::<Box<kube::Error>>().map(Box::as_ref);
    error.downcast_ref().or_else(boxed)
}

/// A number of things, as in `1 task` and `2 tasks`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// The message of a panic.
pub fn last_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

/// The text that a failed command prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    chain: String,
    hints: Vec<String>,
}

impl Report {
    pub fn new(error: &(dyn Error + '_)) -> Self {
        Self {
            chain: Chain(error).to_string(),
            hints: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_hints(mut self, hints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hints.extend(hints.into_iter().map(Into::into));
        self
    }

    /// The chain without hints, for a log field.
    pub fn chain(&self) -> &str {
        &self.chain
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.chain)?;
        for hint in &self.hints {
            writeln!(f, "hint: {hint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use thiserror::Error;

    use super::*;

    #[derive(Debug, Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    fn stack(texts: &[&'static str]) -> Layer {
        let mut layers = texts
            .iter()
            .rev()
            .fold(None, |source, text| Some(Box::new(Layer { text, source })));
        *layers.take().unwrap()
    }

    #[test]
    fn every_cause_is_said_once() {
        let rows: &[(&[&'static str], &str)] = &[
            (&["a"], "a"),
            (&["a", "b", "c"], "a: b: c"),
            (&["a: b", "b", "c"], "a: b: c"),
            (&["a: b: c", "b: c", "c"], "a: b: c"),
            (&["b", "b"], "b"),
        ];
        for (texts, expected) in rows {
            assert_eq!(Chain(&stack(texts)).to_string(), *expected);
        }
    }

    #[test]
    fn what_the_api_server_says_is_said_once() {
        #[derive(Debug, Error)]
        enum Layer {
            #[error("cannot a")]
            Plain(#[source] kube::Error),
            #[error("cannot b")]
            Boxed(#[source] Box<kube::Error>),
            #[error("cannot c")]
            Deep(#[source] Box<Self>),
        }
        let refused = || kube::Error::Api(kube::core::Status::failure("you may not", "Forbidden").boxed());
        let plain = Layer::Plain(refused());
        assert_eq!(Chain(&plain).to_string(), "cannot a: you may not");
        let deep = Layer::Deep(Box::new(Layer::Boxed(Box::new(refused()))));
        assert_eq!(Chain(&deep).to_string(), "cannot c: cannot b: you may not");
    }

    #[test]
    fn hints_follow_on_lines_of_their_own() {
        let report = Report::new(&stack(&["cannot start", "no such file"])).with_hints(["set HELM_BIN"]);
        assert_eq!(
            report.to_string(),
            "error: cannot start: no such file\nhint: set HELM_BIN\n"
        );
        assert_eq!(report.chain(), "cannot start: no such file");
    }
}
