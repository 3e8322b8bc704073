//! The fields of a crontab, and the search for the next time that matches them.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::CrontabError;

/// The times of a crontab: by second, minute, hour, day of month, month and day of week.
#[derive(Clone, Copy)]
pub(super) struct Calendar {
    second: Field,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

/// The numbers that a field allows, as bits.
#[derive(Clone, Copy)]
struct Field {
    bits: u64,
    /// Whether the field has a star. That decides how day of month and day of week are combined.
    star: bool,
}

impl Field {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|shift| self.bits.checked_shr(shift).is_some_and(|bits| bits & 1 == 1))
    }

    /// Whether the field allows no number, as a field that consists of commas does.
    fn is_empty(self) -> bool {
        self.bits == 0
    }
}

/// The allowed values of a field.
struct Bounds {
    what: &'static str,
    lowest: u8,
    highest: u8,
    /// The names of the numbers, from the lowest on.
    names: &'static [&'static str],
}

const SECOND: Bounds = Bounds {
    what: "second",
    lowest: 0,
    highest: 59,
    names: &[],
};
const MINUTE: Bounds = Bounds {
    what: "minute",
    lowest: 0,
    highest: 59,
    names: &[],
};
const HOUR: Bounds = Bounds {
    what: "hour",
    lowest: 0,
    highest: 23,
    names: &[],
};
const DAY: Bounds = Bounds {
    what: "day of month",
    lowest: 1,
    highest: 31,
    names: &[],
};
const MONTH: Bounds = Bounds {
    what: "month",
    lowest: 1,
    highest: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAY: Bounds = Bounds {
    what: "day of week",
    lowest: 0,
    highest: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// The number of years in which a match is looked for.
const YEARS: i16 = 5;

impl Calendar {
    pub(super) fn parse(spec: &str) -> Result<Self, CrontabError> {
        let fields: Vec<&str> = spec.split_whitespace().collect();
        let (second, rest) = match fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (*second, [minute, hour, day, month, weekday]),
            _ => return Err(CrontabError::Fields { found: fields.len() }),
        };
        let [minute, hour, day, month, weekday] = rest;
        Ok(Self {
            second: field(second, &SECOND)?,
            minute: field(minute, &MINUTE)?,
            hour: field(hour, &HOUR)?,
            day: field(day, &DAY)?,
            month: field(month, &MONTH)?,
            weekday: field(weekday, &WEEKDAY)?,
        })
    }

    /// The first match strictly after a time.
    pub(super) fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.never_comes() {
            return None;
        }
        let second_after = Timestamp::from_second(after.as_second())
            .ok()?
            .checked_add(SignedDuration::from_secs(1));
        let mut at = second_after.ok()?.to_zoned(zone.clone());
        let last_year = at.year().saturating_add(YEARS);
        while at.year() <= last_year {
            let wait = match self.mismatch(&at) {
                None => return Some(at.timestamp()),
                Some(Mismatch::Month) => {
                    let next_month = at.date().last_of_month().tomorrow().ok()?;
                    at = next_month.to_zoned(zone.clone()).ok()?;
                    continue;
                }
                Some(Mismatch::Day) => {
                    at = at.date().tomorrow().ok()?.to_zoned(zone.clone()).ok()?;
                    continue;
                }
                Some(Mismatch::Hour) => 3600 - i64::from(at.minute()) * 60 - i64::from(at.second()),
                Some(Mismatch::Minute) => 60 - i64::from(at.second()),
                Some(Mismatch::Second) => 1,
            };
            at = advance(&at, SignedDuration::from_secs(wait))?;
        }
        None
    }

    /// Whether no date can ever match, so that the search would be in vain.
    fn never_comes(&self) -> bool {
        let Self {
            second,
            minute,
            hour,
            day,
            month,
            weekday,
        } = self;
        let no_day = if day.star || weekday.star {
            day.is_empty() || weekday.is_empty()
        } else {
            day.is_empty() && weekday.is_empty()
        };
        no_day || [second, minute, hour, month].into_iter().any(|field| field.is_empty())
    }

    /// The widest unit in which a time does not match.
    fn mismatch(&self, at: &Zoned) -> Option<Mismatch> {
        if !self.month.has(at.month()) {
            return Some(Mismatch::Month);
        }
        let day = self.day.has(at.day());
        let weekday = self.weekday.has(at.weekday().to_sunday_zero_offset());
        let day_matches = if self.day.star || self.weekday.star {
            day && weekday
        } else {
            day || weekday
        };
        if !day_matches {
            return Some(Mismatch::Day);
        }
        if !self.hour.has(at.hour()) {
            return Some(Mismatch::Hour);
        }
        if !self.minute.has(at.minute()) {
            return Some(Mismatch::Minute);
        }
        (!self.second.has(at.second())).then_some(Mismatch::Second)
    }
}

enum Mismatch {
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// Adds elapsed time, but stops at a change of the clocks, where the fields jump.
fn advance(at: &Zoned, wait: SignedDuration) -> Option<Zoned> {
    let target = at.timestamp().checked_add(wait).ok()?;
    let change = at
        .time_zone()
        .following(at.timestamp())
        .next()
        .map(|change| change.timestamp());
    let reached = change.filter(|change| *change < target).unwrap_or(target);
    Some(reached.to_zoned(at.time_zone().clone()))
}

fn field(text: &str, bounds: &Bounds) -> Result<Field, CrontabError> {
    let mut field = Field { bits: 0, star: false };
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let range = range(item, bounds)?;
        field.bits |= range.bits;
        field.star |= range.star;
    }
    Ok(field)
}

fn range(text: &str, bounds: &Bounds) -> Result<Field, CrontabError> {
    let shape = || CrontabError::Shape(text.to_owned());
    let (range, step) = match text.split_once('/') {
        Some((_, step)) if step.contains('/') => return Err(shape()),
        Some((range, step)) => (range, Some(number(step, bounds)?)),
        None => (text, None),
    };
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (low, Some(high)),
        None => (range, None),
    };
    let star = low == "*" || low == "?";
    let (first, last) = if star {
        (u32::from(bounds.lowest), u32::from(bounds.highest))
    } else {
        let first = number_or_name(low, bounds)?;
        match high {
            Some(high) if high.contains('-') => return Err(shape()),
            Some(high) => (first, number_or_name(high, bounds)?),
            // A number with a step is a range up to the highest number.
            None if step.is_some() => (first, u32::from(bounds.highest)),
            None => (first, first),
        }
    };
    if first < u32::from(bounds.lowest) || last > u32::from(bounds.highest) || first > last {
        let (lowest, highest) = (bounds.lowest, bounds.highest);
        return Err(CrontabError::Range {
            text: text.to_owned(),
            field: bounds.what,
            lowest,
            highest,
        });
    }
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(CrontabError::Step(text.to_owned()));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (first..=last).step_by(step).fold(0, |bits, number| bits | 1 << number);
    Ok(Field { bits, star })
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u32, CrontabError> {
    let name = bounds
        .names
        .iter()
        .zip(u32::from(bounds.lowest)..)
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    name.map_or_else(|| number(text, bounds), |(_, number)| Ok(number))
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, CrontabError> {
    text.parse().map_err(|_| CrontabError::Number {
        text: text.to_owned(),
        field: bounds.what,
    })
}
