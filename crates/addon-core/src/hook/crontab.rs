//! Crontabs in the dialect that hooks are written in, and when they come next.
//!
//! The dialect is a contract of its own: five or six fields, a zone in front, descriptors. Must never loop without end,
//! for any crontab.

mod calendar;
mod duration;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use calendar::Calendar;

pub use duration::parse_duration;

/// A text that is no crontab.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CrontabError {
    /// Too few or too many fields.
    #[error("expected 5 or 6 fields, found {found}")]
    Fields {
        /// Fields found.
        found: usize,
    },
    /// An unknown word with an `@`.
    #[error(
        "unrecognized descriptor '{0}': known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and \
         @every with a duration"
    )]
    Descriptor(String),
    /// A period that cannot be read.
    #[error("'{0}' is no duration such as 30s, 5m or 1h30m")]
    Duration(String),
    /// A zone that does not exist.
    #[error("unknown time zone '{0}': zones have names such as Europe/Berlin")]
    Zone(String),
    /// Something that should be a number or a name.
    #[error("'{text}' is no {field}")]
    Number {
        /// The text.
        text: String,
        /// The field.
        field: &'static str,
    },
    /// Too many hyphens or slashes.
    #[error("'{0}' has too many hyphens or slashes")]
    Shape(String),
    /// A range outside of the field's or turned around.
    #[error("range '{text}' of {field} is not within {lowest}-{highest} or ends before it begins")]
    Range {
        /// The range.
        text: String,
        /// The field.
        field: &'static str,
        /// Lowest number of the field.
        lowest: u8,
        /// Highest number of the field.
        highest: u8,
    },
    /// A step of zero, which leads nowhere.
    #[error("step of '{0}' is zero")]
    Step(String),
}

/// A crontab. Two are equal if their texts are.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Crontab {
    text: Arc<str>,
    plan: Plan,
}

#[derive(Clone)]
enum Plan {
    /// Times of a calendar, in a zone of its own or in the one of the machine.
    Calendar(Calendar, Option<TimeZone>),
    /// A period that starts when the crontab is put to use.
    Every(Duration),
}

impl Crontab {
    /// Reads a crontab.
    pub fn parse(text: &str) -> Result<Self, CrontabError> {
        let (zone, spec) = match text.strip_prefix("TZ=") {
            Some(rest) => {
                let (name, spec) = rest.split_once(' ').unwrap_or((rest, ""));
                (zone(name)?, spec.trim())
            }
            None => (None, text),
        };
        let calendar = |spec| Calendar::parse(spec).map(|calendar| Plan::Calendar(calendar, zone.clone()));
        let plan = match spec {
            "@yearly" | "@annually" => calendar("0 0 1 1 *")?,
            "@monthly" => calendar("0 0 1 * *")?,
            "@weekly" => calendar("0 0 * * 0")?,
            "@daily" | "@midnight" => calendar("0 0 * * *")?,
            "@hourly" => calendar("0 * * * *")?,
            _ => match spec.strip_prefix("@every ") {
                Some(period) => Plan::Every(every(period)?),
                None if spec.starts_with('@') => return Err(CrontabError::Descriptor(spec.to_owned())),
                None => calendar(spec)?,
            },
        };
        Ok(Self {
            text: text.into(),
            plan,
        })
    }

    /// The first time strictly after the given one; nothing if there is none within five years.
    ///
    /// The zone is the machine's, for crontabs that name none. A time that a clock change leaves out does not come, and
    /// one that it repeats comes twice.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.plan {
            Plan::Calendar(calendar, own) => calendar.next_after(after, own.as_ref().unwrap_or(zone)),
            Plan::Every(period) => Timestamp::from_second(after.as_second())
                .ok()?
                .checked_add(*period)
                .ok(),
        }
    }

    /// It counts the time that passes, and does not ask which time it is.
    pub fn is_period(&self) -> bool {
        matches!(self.plan, Plan::Every(_))
    }

    /// The crontab as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Nothing is the zone of the machine.
fn zone(name: &str) -> Result<Option<TimeZone>, CrontabError> {
    match name {
        "Local" => Ok(None),
        "" => Ok(Some(TimeZone::UTC)),
        _ => TimeZone::get(name)
            .map(Some)
            .map_err(|_| CrontabError::Zone(name.to_owned())),
    }
}

/// Whole seconds, at least one.
fn every(text: &str) -> Result<Duration, CrontabError> {
    let period = parse_duration(text).ok_or_else(|| CrontabError::Duration(text.to_owned()))?;
    let seconds = u64::try_from(period.as_secs()).unwrap_or(0);
    Ok(Duration::from_secs(seconds.max(1)))
}

impl PartialEq for Crontab {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Crontab {}

impl PartialOrd for Crontab {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Crontab {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl fmt::Debug for Crontab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Crontab({:?})", self.text)
    }
}

impl fmt::Display for Crontab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Crontab {
    type Error = CrontabError;

    fn try_from(text: String) -> Result<Self, CrontabError> {
        Self::parse(&text)
    }
}

impl From<Crontab> for String {
    fn from(crontab: Crontab) -> Self {
        crontab.text.as_ref().into()
    }
}

#[cfg(test)]
mod tests;
