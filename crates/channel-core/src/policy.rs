//! The policy that people set: whether a version needs their approval, when it may be taken, and how long it may be on
//! trial.
//!
//! Must never accept an unknown field or a value without a meaning: the error names it and lists the valid ones.

use std::time::Duration;

use helm_yaml::yaml::{self, YamlError};
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::window::{Day, Minute, Window, Windows};

const MODE: &str = "mode";
const WINDOWS: &str = "windows";
const DELAY: &str = "delay";
const TRIAL_LIMIT: &str = "trialLimit";
const FIELDS: [&str; 4] = [MODE, WINDOWS, DELAY, TRIAL_LIMIT];
const DAYS: &str = "days";
const FROM: &str = "from";
const TO: &str = "to";
const ZONE: &str = "zone";
const WINDOW_FIELDS: [&str; 4] = [DAYS, FROM, TO, ZONE];

/// The default limit of a trial's time.
const DEFAULT_TRIAL_LIMIT: Duration = Duration::from_mins(15);
/// A shorter limit would not leave enough time to lead for a minute.
const SHORTEST_TRIAL: Duration = Duration::from_mins(2);
const LONGEST_TRIAL: Duration = Duration::from_hours(24);
const LONGEST_DELAY: Duration = Duration::from_hours(24 * 366);
/// The number of characters of a value that an error shows.
const SHOWN: usize = 60;

/// Whether a version needs the approval of a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// No version needs an approval.
    #[default]
    Auto,
    /// Only versions that change more than the patch level need an approval.
    Patch,
    /// Every version needs an approval.
    Manual,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Auto, Self::Patch, Self::Manual];

    /// The name of the mode as people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Patch => "patch",
            Self::Manual => "manual",
        }
    }
}

/// The settings of people about when and how a version is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The versions that need an approval.
    pub mode: Mode,
    /// The times of the week at which a version may be taken.
    pub windows: Windows,
    /// The time between the first sight of a version and its trial.
    pub delay: Duration,
    /// The limit of a trial's time.
    pub trial_limit: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            windows: Windows::default(),
            delay: Duration::ZERO,
            trial_limit: DEFAULT_TRIAL_LIMIT,
        }
    }
}

/// The error for a text that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// The text is not YAML.
    #[error("bad yaml: {0}")]
    Yaml(YamlError),
    /// A field is unknown.
    #[error("unknown field '{field}': known here are {known}")]
    Unknown {
        /// The field's path.
        field: String,
        /// The names of the fields that could be meant.
        known: String,
    },
    /// A required field is absent.
    #[error("'{field}' is missing: write {wanted}")]
    Missing {
        /// The field's path.
        field: String,
        /// The remedy.
        wanted: &'static str,
    },
    /// The value of a field is invalid.
    #[error("{field} is {value}: write {wanted}")]
    Value {
        /// The field's path in quotes.
        field: String,
        /// The invalid value as JSON.
        value: String,
        /// The remedy.
        wanted: &'static str,
    },
}

impl Policy {
    /// Reads the YAML of a policy. Absent fields have their defaults.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        Self::read(&yaml::only_v3(text).map_err(PolicyError::Yaml)?)
    }

    /// Reads a policy that is part of a document. Absent fields have their defaults.
    pub fn read(document: &Value) -> Result<Self, PolicyError> {
        let fields = map(
            "",
            document,
            "a map with the fields mode, windows, delay and trialLimit",
        )?;
        only("", fields, &FIELDS)?;
        let mut policy = Self::default();
        if let Some(value) = fields.get(MODE) {
            let word = value.as_str();
            let mode = Mode::ALL.into_iter().find(|mode| Some(mode.word()) == word);
            policy.mode = mode.ok_or_else(|| bad(MODE, value, "auto, patch or manual"))?;
        }
        if let Some(value) = fields.get(WINDOWS) {
            policy.windows = windows(value)?;
        }
        if let Some(value) = fields.get(DELAY) {
            let delay = duration(value).filter(|delay| *delay <= LONGEST_DELAY);
            policy.delay = delay.ok_or_else(|| bad(DELAY, value, "a time as 90m, 24h or 7d, at most 366d"))?;
        }
        if let Some(value) = fields.get(TRIAL_LIMIT) {
            let limit = duration(value).filter(|limit| (SHORTEST_TRIAL..=LONGEST_TRIAL).contains(limit));
            policy.trial_limit = limit.ok_or_else(|| bad(TRIAL_LIMIT, value, "a time as 15m or 1h, from 2m to 24h"))?;
        }
        Ok(policy)
    }
}

fn windows(value: &Value) -> Result<Windows, PolicyError> {
    let wanted = "a list of windows as {days: [Mon], from: \"02:00\", to: \"05:00\", zone: Europe/Berlin}";
    let items = value.as_array().ok_or_else(|| bad(WINDOWS, value, wanted))?;
    let numbered = items.iter().enumerate();
    let windows = numbered.map(|(at, item)| window(&format!("{WINDOWS}[{at}]"), item));
    windows.collect::<Result<_, _>>().map(Windows)
}

fn window(path: &str, value: &Value) -> Result<Window, PolicyError> {
    let fields = map(path, value, "a map with the fields days, from, to and zone")?;
    only(path, fields, &WINDOW_FIELDS)?;
    let place = |field: &str| below(path, field);
    let minute = |field, wanted| {
        let value = fields.get(field).ok_or_else(|| PolicyError::Missing {
            field: place(field),
            wanted,
        })?;
        let minute = value.as_str().and_then(Minute::parse);
        let read = minute.filter(|minute| field == TO || !minute.is_end_of_day());
        read.ok_or_else(|| bad(&place(field), value, wanted))
    };
    let from = minute(FROM, "a time of day in quotes, as \"02:00\"")?;
    let to = minute(TO, "a time of day in quotes, as \"05:00\", up to \"24:00\"")?;
    if from == to {
        let wanted = "another time than in from; a whole day is from \"00:00\" to \"24:00\"";
        return Err(bad(&place(TO), &fields[TO], wanted));
    }
    let days = match fields.get(DAYS) {
        None => Day::ALL.into_iter().collect(),
        Some(value) => {
            let wanted = "a list of Mon, Tue, Wed, Thu, Fri, Sat, Sun; without it all days are meant";
            let items = value.as_array().filter(|items| !items.is_empty());
            let items = items.ok_or_else(|| bad(&place(DAYS), value, wanted))?;
            let day = |item: &Value| {
                let day = item.as_str().and_then(Day::parse);
                day.ok_or_else(|| bad(&place(DAYS), item, wanted))
            };
            items.iter().map(day).collect::<Result<_, _>>()?
        }
    };
    let zone = match fields.get(ZONE) {
        None => TimeZone::UTC,
        Some(value) => {
            let zone = value.as_str().and_then(|name| TimeZone::get(name).ok());
            zone.ok_or_else(|| bad(&place(ZONE), value, "the name of a time zone, as Europe/Berlin or UTC"))?
        }
    };
    Ok(Window { days, from, to, zone })
}

/// Reads a duration in days, hours, minutes and seconds.
fn duration(value: &Value) -> Option<Duration> {
    let span: Span = value.as_str()?.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}

fn map<'v>(path: &str, value: &'v Value, wanted: &'static str) -> Result<&'v Map<String, Value>, PolicyError> {
    value.as_object().ok_or_else(|| bad(path, value, wanted))
}

fn only(path: &str, fields: &Map<String, Value>, known: &[&str]) -> Result<(), PolicyError> {
    let unknown = fields.keys().find(|field| !known.contains(&field.as_str()));
    match unknown {
        Some(field) => Err(PolicyError::Unknown {
            field: below(path, field),
            known: known.join(", "),
        }),
        None => Ok(()),
    }
}

fn bad(field: &str, value: &Value, wanted: &'static str) -> PolicyError {
    let field = match field {
        "" => "the policy".to_owned(),
        field => format!("'{field}'"),
    };
    let mut shown = value.to_string();
    if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(end);
        shown.push('…');
    }
    PolicyError::Value {
        field,
        value: shown,
        wanted,
    }
}

fn below(path: &str, field: &str) -> String {
    match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    }
}

#[cfg(test)]
mod tests;
