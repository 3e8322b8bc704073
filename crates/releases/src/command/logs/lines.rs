//! Lines of logs: those of containers as they are, and of the operator's records the output of a module's hooks.

use names::ModuleName;
use serde_json::Value;

/// A line and the place that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) place: String,
    pub(super) text: String,
}

/// The wanted lines of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filter {
    All,
    /// The output of a module's hooks among the operator's records.
    HooksOf(ModuleName),
}

impl Filter {
    pub(super) fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// The text of a wanted line, with its author if that is not the container.
    pub(super) fn read(&self, line: &str) -> Option<(Option<String>, String)> {
        let Self::HooksOf(module) = self else {
            return Some((None, line.to_owned()));
        };
        let record: Value = serde_json::from_str(line).ok()?;
        let word = |name: &str| record[name].as_str();
        if word("module") != Some(module.as_str()) || word("output").is_none() {
            return None;
        }
        let author = format!("hook {}", word("hook").unwrap_or_default());
        Some((Some(author), word("msg").unwrap_or_default().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_operators_records_the_output_of_the_modules_hooks_is_shown() {
        let filter = Filter::HooksOf(ModuleName::parse("web").unwrap());
        let output = r#"{"msg":"tuned","module":"web","hook":"hooks/tune.sh","output":"stdout"}"#;
        let expected = (Some("hook hooks/tune.sh".to_owned()), "tuned".to_owned());
        assert_eq!(filter.read(output), Some(expected));
        for other in [
            r#"{"msg":"tuned","module":"other","hook":"hooks/tune.sh","output":"stdout"}"#,
            r#"{"msg":"Execute hook","module":"web","hook":"hooks/tune.sh"}"#,
            "tuned",
        ] {
            assert_eq!(filter.read(other), None, "{other}");
        }
        assert_eq!(Filter::All.read("a line"), Some((None, "a line".to_owned())));
    }
}
