//! Windows: times of the week at which a version may be taken.
//!
//! A window belongs to the day on which it begins. It ends on the next day if its end is not later than its beginning.
//! Its times are local times of its time zone. If a change of the clocks skips a time, it is moved to the moment of the
//! change. If a time comes twice, a window begins with the first and ends with the second. Must never ask a clock.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// The number of days in which an opening is looked for. More than a week is needed, because a country that changes sides
/// of the date line may skip a day.
const HORIZON: i64 = 15;
const MINUTES_OF_A_DAY: u16 = 24 * 60;

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Day {
    /// All days, in order.
    pub const ALL: [Self; 7] = [
        Self::Mon,
        Self::Tue,
        Self::Wed,
        Self::Thu,
        Self::Fri,
        Self::Sat,
        Self::Sun,
    ];

    /// Reads the first three letters of a day's name, or the whole name.
    pub fn parse(text: &str) -> Option<Self> {
        let names = [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        let text = text.to_ascii_lowercase();
        let at = names.iter().position(|name| *name == text || name[..3] == *text)?;
        Some(Self::ALL[at])
    }

    fn of(date: Date) -> Self {
        match date.weekday() {
            Weekday::Monday => Self::Mon,
            Weekday::Tuesday => Self::Tue,
            Weekday::Wednesday => Self::Wed,
            Weekday::Thursday => Self::Thu,
            Weekday::Friday => Self::Fri,
            Weekday::Saturday => Self::Sat,
            Weekday::Sunday => Self::Sun,
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mon => "Mon",
            Self::Tue => "Tue",
            Self::Wed => "Wed",
            Self::Thu => "Thu",
            Self::Fri => "Fri",
            Self::Sat => "Sat",
            Self::Sun => "Sun",
        })
    }
}

/// A time of day in minutes. `24:00`, the end of the day, is valid, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Minute(u16);

impl Minute {
    /// Reads `HH:MM`, up to `24:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (hours, minutes) = text.split_once(':')?;
        let two_digits = |text: &str| {
            let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u16>().ok())?
        };
        let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
        let minute = hours * 60 + minutes;
        (minutes < 60 && minute <= MINUTES_OF_A_DAY).then_some(Self(minute))
    }

    /// Whether this is the end of the day, which can only end a window.
    pub fn is_end_of_day(self) -> bool {
        self.0 == MINUTES_OF_A_DAY
    }

    /// The moment of this minute on the given day.
    fn on(self, date: Date) -> Option<DateTime> {
        let midnight = date.to_datetime(Time::midnight());
        midnight.checked_add(i64::from(self.0).minutes()).ok()
    }
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// A time of the week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The days on which the window begins.
    pub days: BTreeSet<Day>,
    /// The time of day at which the window begins.
    pub from: Minute,
    /// The time of day at which the window ends.
    pub to: Minute,
    /// The time zone of the window's begin and end.
    #[serde(with = "jiff::fmt::serde::tz::required")]
    pub zone: TimeZone,
}

/// The boundary of a window for which a moment is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Opening,
    Closing,
}

impl Window {
    /// The window that begins on that day, if there is one: its first moment and the first moment after it.
    fn on(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.contains(&Day::of(date)) {
            return None;
        }
        let last = if self.to > self.from {
            date
        } else {
            date.tomorrow().ok()?
        };
        let opening = self.moment(self.from.on(date)?, End::Opening)?;
        let closing = self.moment(self.to.on(last)?, End::Closing)?;
        (opening < closing).then_some((opening, closing))
    }

    /// The moment of a local time.
    fn moment(&self, shown: DateTime, end: End) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let offset = match (ambiguous.offset(), end) {
            (AmbiguousOffset::Unambiguous { offset }, _) => offset,
            (AmbiguousOffset::Fold { before, after: _ }, End::Opening) => before,
            (AmbiguousOffset::Fold { before: _, after }, End::Closing) => after,
            (AmbiguousOffset::Gap { before: _, after }, _) => {
                let shortly_before = after.to_timestamp(shown).ok()?;
                return Some(self.zone.following(shortly_before).next()?.timestamp());
            }
        };
        offset.to_timestamp(shown).ok()
    }

    /// The windows that begin on days around a moment.
    fn around(
        &self,
        at: Timestamp,
        days: std::ops::RangeInclusive<i64>,
    ) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let today = self.zone.to_datetime(at).date();
        days.filter_map(move |day| self.on(today.checked_add(day.days()).ok()?))
    }

    fn is_open(&self, at: Timestamp) -> bool {
        self.around(at, -2..=1)
            .any(|(opening, closing)| (opening..closing).contains(&at))
    }

    fn next_opening(&self, after: Timestamp) -> Option<Timestamp> {
        self.around(after, -1..=HORIZON)
            .map(|(opening, _)| opening)
            .filter(|opening| *opening > after)
            .min()
    }
}

/// All windows together. An empty list means that any time is good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Windows(pub Vec<Window>);

impl Windows {
    /// Whether a window is open at the given moment.
    pub fn are_open(&self, at: Timestamp) -> bool {
        self.0.is_empty() || self.0.iter().any(|window| window.is_open(at))
    }

    /// The first moment from `at` on at which a window is open: `at` itself if one is open then.
    pub fn next_opening(&self, at: Timestamp) -> Option<Timestamp> {
        if self.are_open(at) {
            return Some(at);
        }
        self.0.iter().filter_map(|window| window.next_opening(at)).min()
    }
}

#[cfg(test)]
mod tests;
