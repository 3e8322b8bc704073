//! Moments in a calendar without a first and a last year, in UTC.

use crate::number::whole;

/// A moment in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) year: i64,
    /// The month, from 1.
    pub(super) month: u32,
    /// The day of the month, from 1.
    pub(super) day: u32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) nanosecond: u32,
    days: i64,
}

/// The largest part of a date, so that no sum of parts overflows.
const FAR: f64 = 1e16;

/// The last year whose seconds fit into the integer.
const LAST_YEAR: i64 = 290_000_000_000;

const DAY: i64 = 86_400;

impl Moment {
    /// The moment this many seconds after 1970.
    pub(super) fn from_seconds(seconds: f64) -> Self {
        // Times beyond the end wrap in the original. No answer is right, so the end is used.
        let seconds = if seconds.is_nan() {
            0.0
        } else {
            seconds.clamp(-1e18, 1e18)
        };
        let fraction = (seconds - seconds.floor()) * 1e9;
        Self::from_whole(whole(seconds), whole(fraction))
    }

    pub(super) fn from_whole(seconds: i64, nanoseconds: i64) -> Self {
        let days = seconds.div_euclid(DAY);
        let rest = seconds.rem_euclid(DAY);
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            hour: narrow(rest / 3600),
            minute: narrow(rest / 60 % 60),
            second: narrow(rest % 60),
            nanosecond: narrow(nanoseconds),
            days,
        }
    }

    /// The moment of year, month from 0, day, hour, minute and second.
    pub(super) fn from_parts([year, month, day, hour, minute, second]: [f64; 6]) -> Self {
        let whole = |part: f64| whole(part.clamp(-FAR, FAR));
        let months = whole(month);
        let years = (whole(year) + months.div_euclid(12)).clamp(-LAST_YEAR, LAST_YEAR);
        let first = days_of(years, narrow(months.rem_euclid(12)) + 1, 1);
        let days = first.saturating_add(whole(day)).saturating_sub(1);
        let seconds = days
            .saturating_mul(DAY)
            .saturating_add(whole(hour).saturating_mul(3600))
            .saturating_add(whole(minute).saturating_mul(60))
            .saturating_add(whole(second));
        Self::from_whole(seconds, whole((second - second.floor()) * 1e9))
    }

    /// Whole seconds since 1970.
    pub(super) fn whole_seconds(&self) -> i64 {
        let of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        self.days.saturating_mul(DAY).saturating_add(of_day)
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of any useful time are exact")]
    pub(super) fn seconds(&self) -> f64 {
        self.whole_seconds() as f64 + f64::from(self.nanosecond) / 1e9
    }

    /// The weekday, from 0, which is Sunday.
    pub(super) fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub(super) fn day_of_year(&self) -> i64 {
        self.days - days_of(self.year, 1, 1) + 1
    }

    /// The year and the week of ISO 8601.
    pub(super) fn iso_week(&self) -> (i64, i64) {
        let weekday = (self.weekday() + 6) % 7;
        let thursday = self.days - weekday + 3;
        let (year, ..) = civil(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

/// Converts a part of a date or a time, which is always small.
fn narrow(part: i64) -> u32 {
    u32::try_from(part).unwrap_or(0)
}

/// The days since 1970 of a date. Years begin in March here, so that the leap day is the last day.
pub(super) fn days_of(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let month = i64::from((month + 9) % 12);
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date this many days after 1970.
fn civil(days: i64) -> (i64, u32, u32) {
    let days = days.saturating_add(719_468);
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let month = (5 * of_year + 2) / 153;
    let day = narrow(of_year - (153 * month + 2) / 5 + 1);
    let month = narrow(if month < 10 { month + 3 } else { month - 9 });
    (years + era * 400 + i64::from(month <= 2), month, day)
}
