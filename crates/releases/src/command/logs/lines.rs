//! Lines of logs: those of containers as they are, and of the operator's records the output of a module's hooks.

use std::fmt::Write as _;

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
        let author = match word("hook") {
            Some(hook) => format!("hook {hook}"),
            // The fields of a large object are cut, and take this place.
            None => "hook".to_owned(),
        };
        Some((Some(author), with_fields(&record)))
    }
}

/// The message of a record with the fields of the hook's own object.
fn with_fields(record: &Value) -> String {
    let mut text = record["msg"].as_str().unwrap_or_default().to_owned();
    for (name, value) in record.as_object().into_iter().flatten() {
        let own = match name.strip_prefix("hook_") {
            Some(own) => own,
            None if name == "hook" && !value.is_string() => "fields",
            None => continue,
        };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(text, " {own}={value}");
    }
    text
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
        let object = r#"{"msg":"hook result","module":"web","hook":"hooks/tune.sh","output":"stdout","hook_count":3,"hook_of":"pods"}"#;
        let text = "hook result count=3 of=pods".to_owned();
        assert_eq!(
            filter.read(object),
            Some(("hook hooks/tune.sh".to_owned().into(), text))
        );
        let cut = r#"{"msg":"big","module":"web","hook":{"truncated":"{"},"output":"stdout"}"#;
        let text = r#"big fields={"truncated":"{"}"#.to_owned();
        assert_eq!(filter.read(cut), Some(("hook".to_owned().into(), text)));
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
