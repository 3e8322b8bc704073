//! Crontabs in the dialect of hooks, and their next times.
//!
//! The dialect is that of the original: five or six fields, an optional zone before them, descriptors. The search for the
//! next time must end for every crontab.

mod calendar;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use calendar::Calendar;

use crate::duration::parse_duration;

/// The error for a text that is no crontab.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CrontabError {
    /// There are too few or too many fields.
    #[error("expected 5 or 6 fields, found {found}")]
    Fields {
        /// The number of fields.
        found: usize,
    },
    /// The word behind `@` is unknown.
    #[error(
        "unrecognized descriptor '{0}': known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and \
         @every with a duration"
    )]
    Descriptor(String),
    /// The period behind `@every` cannot be read.
    #[error("'{0}' is no duration such as 30s, 5m or 1h30m")]
    Duration(String),
    /// The zone does not exist.
    #[error("unknown time zone '{0}': zones have names such as Europe/Berlin")]
    Zone(String),
    /// The text should be a number or a name.
    #[error("'{text}' is no {field}")]
    Number {
        /// The text that is neither a number nor a name.
        text: String,
        /// The field.
        field: &'static str,
    },
    /// There are too many hyphens or slashes.
    #[error("'{0}' has too many hyphens or slashes")]
    Shape(String),
    /// The range exceeds the field's bounds, or is turned around.
    #[error("range '{text}' of {field} is not within {lowest}-{highest} or ends before it begins")]
    Range {
        /// The range.
        text: String,
        /// The field.
        field: &'static str,
        /// The lowest number of the field.
        lowest: u8,
        /// The highest number of the field.
        highest: u8,
    },
    /// The step is zero.
    #[error("step of '{0}' is zero")]
    Step(String),
}

/// A crontab. Two crontabs are equal if their texts are equal.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Crontab {
    text: Arc<str>,
    plan: Plan,
}

#[derive(Clone)]
enum Plan {
    /// Times of a calendar, in the given zone or in that of the machine.
    Calendar(Calendar, Option<TimeZone>),
    /// A period that begins when the crontab is first used.
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

    /// The first time strictly after the given one; `None` if there is none within five years.
    ///
    /// `zone` is used if the crontab names no zone. A local time that a change of the clocks skips does not come. A local
    /// time that comes twice is used twice.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.plan {
            Plan::Calendar(calendar, own) => calendar.next_after(after, own.as_ref().unwrap_or(zone)),
            Plan::Every(period) => Timestamp::from_second(after.as_second())
                .ok()?
                .checked_add(*period)
                .ok(),
        }
    }

    /// Whether the crontab counts elapsed time (`@every`), so that the wall clock does not matter.
    pub fn is_period(&self) -> bool {
        matches!(self.plan, Plan::Every(_))
    }

    /// The text of the crontab.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Reads the name of a zone; `None` is the zone of the machine.
fn zone(name: &str) -> Result<Option<TimeZone>, CrontabError> {
    match name {
        "Local" => Ok(None),
        "" => Ok(Some(TimeZone::UTC)),
        _ => TimeZone::get(name)
            .map(Some)
            .map_err(|_| CrontabError::Zone(name.to_owned())),
    }
}

/// Reads the period of `@every`: whole seconds, at least one.
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
