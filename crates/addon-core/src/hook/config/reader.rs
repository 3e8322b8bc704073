//! The checks that both formats share. They run after the form of the fields was found valid.

use std::time::Duration;

use crontab::duration::parse_duration;
use crontab::schedule::Crontab;
use gojq::filter::Filter;
use names::{BindingName, QueueName};

use super::binding::{LabelRequirement, LabelSelector, Operator};
use super::fields::{Fields, Problems};
use super::{ConfigError, HookConfig};

/// Collects the values that have the right form and no meaning.
#[derive(Default)]
pub(super) struct Reader {
    problems: Vec<String>,
    /// The item that is being read, in the form for people.
    place: String,
}

impl Reader {
    /// Sets the item of a list that the next mistakes are about.
    pub(super) fn at_item(&mut self, list: &str, index: usize) -> &mut Self {
        self.place = format!("invalid {list} config [{index}]");
        self
    }

    /// Sets the key of the root that the next mistakes are about.
    pub(super) fn at_key(&mut self, key: &str) -> &mut Self {
        self.place = format!("invalid {key}");
        self
    }

    pub(super) fn note(&mut self, problem: &str) {
        self.problems.push(format!("{}: {problem}", self.place));
    }

    fn noted<T, E: std::fmt::Display>(&mut self, read: Result<T, E>, what: &str) -> Option<T> {
        read.map_err(|error| self.note(&format!("{what} is invalid: {error}")))
            .ok()
    }

    pub(super) fn name(&mut self, text: &str) -> Option<BindingName> {
        self.noted(BindingName::parse(text), "name")
    }

    pub(super) fn snapshot(&mut self, field: &str, text: &str) -> Option<BindingName> {
        self.noted(BindingName::parse(text), field)
    }

    pub(super) fn queue(&mut self, text: Option<&str>) -> Option<QueueName> {
        // An empty text counts as absent, so that the default is used.
        text.filter(|text| !text.is_empty()).map_or_else(
            || Some(QueueName::main()),
            |text| self.noted(QueueName::parse(text), "queue"),
        )
    }

    /// The jq filter, compiled as a check; `None` for an empty text.
    pub(super) fn jq_filter(&mut self, text: Option<&str>) -> Option<String> {
        let text = text.filter(|text| !text.is_empty())?;
        if let Err(error) = Filter::compile(text) {
            self.note(&format!("jqFilter: compile jqFilter: {error}"));
        }
        Some(text.to_owned())
    }

    /// The deadline of a run. Zero is a mistake, because every run would fail.
    pub(super) fn timeout(&mut self, fields: &mut Fields<'_>) -> Option<Duration> {
        let text = fields.text("timeout")?;
        let duration = parse_duration(text).and_then(|duration| Duration::try_from(duration).ok());
        let duration = duration.filter(|duration| !duration.is_zero());
        if duration.is_none() {
            self.note(&format!(
                "timeout is invalid: '{text}' should be a duration longer than 0s, such as 30s, 5m or 1h30m"
            ));
        }
        duration
    }

    pub(super) fn crontab(&mut self, text: &str) -> Option<Crontab> {
        self.noted(Crontab::parse(text), "crontab")
    }

    /// Notes values that the API server would refuse in every request.
    fn label(&mut self, selector: &str, key: &str, values: &[String]) {
        if !is_label_key(key) {
            self.note(&format!("{selector} is invalid: '{key}' cannot be the key of a label"));
        }
        for value in values.iter().filter(|value| !value.is_empty() && !is_word(value)) {
            self.note(&format!(
                "{selector} is invalid: '{value}' cannot be the value of label '{key}'"
            ));
        }
    }

    /// Returns the configuration if neither its form nor its meaning has a mistake.
    pub(super) fn finish(self, config: HookConfig, schema: Problems) -> Result<HookConfig, ConfigError> {
        let schema = schema.into_list();
        if !schema.is_empty() {
            return Err(ConfigError::Schema(schema));
        }
        if self.problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Meaning(self.problems))
        }
    }
}

/// Whether a text has the form `app` or `example.com/app`.
fn is_label_key(text: &str) -> bool {
    let (domain, word) = text
        .rsplit_once('/')
        .map_or((None, text), |(domain, word)| (Some(domain), word));
    domain.is_none_or(is_domain) && is_word(word)
}

/// Whether a text has only letters and digits, with certain signs between them.
fn is_word(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Whether a text is a DNS name in lower case.
pub(super) fn is_domain(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

/// The name of an item. An empty text counts as absent, so that the default is used.
pub(super) fn name_or<'v>(fields: &mut Fields<'v>, default: &'static str) -> &'v str {
    fields.text("name").filter(|name| !name.is_empty()).unwrap_or(default)
}

const OPERATORS: [(&str, Operator); 4] = [
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
];

/// Reads a selector by labels.
pub(super) fn selector(fields: &mut Fields<'_>, key: &'static str, reader: &mut Reader) -> Option<LabelSelector> {
    let mut selector = fields.object(key)?;
    selector.require_count(1);
    let match_labels = selector.text_map("matchLabels").unwrap_or_default();
    for (label, value) in &match_labels {
        reader.label(key, label, std::slice::from_ref(value));
    }
    let mut match_expressions = Vec::new();
    for mut fields in selector.objects("matchExpressions", 0) {
        let label = fields.required_text("key").to_owned();
        fields.require("operator");
        let operator = fields.word("operator", &OPERATORS);
        let values = fields.texts("values", 0).unwrap_or_default();
        fields.finish();
        let Some(operator) = operator else { continue };
        reader.label(key, &label, &values);
        match (operator, values.is_empty()) {
            (Operator::In | Operator::NotIn, true) => {
                reader.note(&format!("{key} is invalid: operator of '{label}' needs values"));
            }
            (Operator::Exists | Operator::DoesNotExist, false) => {
                reader.note(&format!("{key} is invalid: operator of '{label}' takes no values"));
            }
            _ => {}
        }
        match_expressions.push(LabelRequirement {
            key: label,
            operator,
            values,
        });
    }
    selector.finish();
    Some(LabelSelector {
        match_labels,
        match_expressions,
    })
}
