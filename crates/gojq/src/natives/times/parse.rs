//! `strptime`.

use super::calendar::{Moment, days_of};
use super::format::{DAYS, MONTHS};

/// What has been read so far; what a format does not name is the beginning of 1900.
struct Reading<'t> {
    rest: &'t str,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
    offset: i64,
    afternoon: Option<bool>,
    epoch: Option<i64>,
}

/// Reads a whole text; says what it stumbled over.
pub(super) fn read(text: &str, format: &str) -> Result<Moment, String> {
    let mut reading = Reading {
        rest: text,
        year: 1900,
        month: 1,
        day: 1,
        day_of_year: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanosecond: 0,
        offset: 0,
        afternoon: None,
        epoch: None,
    };
    reading.all(format, 0)?;
    if !reading.rest.is_empty() {
        return Err(format!("unparsed string {:?}", reading.rest));
    }
    reading.moment()
}

impl Reading<'_> {
    fn all(&mut self, format: &str, depth: u8) -> Result<(), String> {
        let mut chars = format.chars();
        while let Some(char) = chars.next() {
            if char == '%' {
                let directive = chars.next().ok_or("stray %")?;
                self.directive(directive, depth)
                    .ok_or_else(|| format!("cannot parse \"%{directive}\""))??;
            } else if char.is_ascii_whitespace() {
                self.rest = self.rest.trim_start();
            } else {
                self.rest = self
                    .rest
                    .strip_prefix(char)
                    .ok_or_else(|| format!("expected {char:?}"))?;
            }
        }
        Ok(())
    }

    /// At most so many digits.
    fn number(&mut self, most: usize, low: i64, high: i64) -> Option<i64> {
        let length = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = self.rest[..length]
            .parse()
            .ok()
            .filter(|number| (low..=high).contains(number))?;
        self.rest = &self.rest[length..];
        Some(number)
    }

    /// One of some names, or its first three letters.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        for (index, name) in names.iter().enumerate() {
            for length in [name.len(), 3] {
                if self
                    .rest
                    .get(..length)
                    .is_some_and(|head| head.eq_ignore_ascii_case(&name[..length]))
                {
                    self.rest = &self.rest[length..];
                    return i64::try_from(index).ok();
                }
            }
        }
        None
    }

    fn directive(&mut self, directive: char, depth: u8) -> Option<Result<(), String>> {
        let nested = |reading: &mut Self, format: &str| (depth < 2).then(|| reading.all(format, depth + 1));
        match directive {
            'Y' | 'G' => self.year = self.number(4, 0, 9999)?,
            'C' => self.year = self.number(2, 0, 99)? * 100 + self.year % 100,
            'y' | 'g' => {
                let year = self.number(2, 0, 99)?;
                self.year = if year < 69 { 2000 + year } else { 1900 + year };
            }
            'm' => self.month = self.number(2, 1, 12)?,
            'B' | 'b' | 'h' => self.month = self.name(&MONTHS)? + 1,
            'd' => self.day = self.number(2, 1, 31)?,
            'e' => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.day = self.number(2, 1, 31)?;
            }
            'j' => self.day_of_year = Some(self.number(3, 1, 366)?),
            'A' | 'a' => drop(self.name(&DAYS)?),
            'u' | 'w' => drop(self.number(1, 0, 7)?),
            'U' | 'V' | 'W' => drop(self.number(2, 0, 53)?),
            'H' => self.hour = self.number(2, 0, 24)?,
            'k' => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.hour = self.number(2, 0, 24)?;
            }
            'I' => self.hour = self.number(2, 1, 12)?,
            'l' => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.hour = self.number(2, 1, 12)?;
            }
            'p' | 'P' => self.afternoon = Some(self.half_of_day()?),
            'M' => self.minute = self.number(2, 0, 59)?,
            'S' => self.second = self.number(2, 0, 60)?,
            'f' => self.nanosecond = self.fraction()?,
            's' => self.epoch = Some(self.number(18, 0, i64::MAX)?),
            'z' => self.offset = self.zone_offset()?,
            'Z' => self.zone_name()?,
            'n' | 't' => self.rest = self.rest.trim_start(),
            '%' => self.rest = self.rest.strip_prefix('%')?,
            'c' => return nested(self, "%a %b %e %H:%M:%S %Y"),
            'v' => return nested(self, "%e-%b-%Y"),
            'D' | 'x' => return nested(self, "%m/%d/%y"),
            'F' => return nested(self, "%Y-%m-%d"),
            'T' | 'X' => return nested(self, "%H:%M:%S"),
            'R' => return nested(self, "%H:%M"),
            'r' => return nested(self, "%I:%M:%S %p"),
            '+' => return nested(self, "%a %b %e %H:%M:%S %Z %Y"),
            _ => return None,
        }
        Some(Ok(()))
    }

    fn half_of_day(&mut self) -> Option<bool> {
        let half = self.rest.get(..2)?;
        let afternoon = half.eq_ignore_ascii_case("pm");
        if !afternoon && !half.eq_ignore_ascii_case("am") {
            return None;
        }
        self.rest = &self.rest[2..];
        Some(afternoon)
    }

    fn fraction(&mut self) -> Option<i64> {
        let digits = self.rest.bytes().take(9).take_while(u8::is_ascii_digit).count();
        let number = self.number(9, 0, 999_999_999)?;
        Some(number * 10_i64.pow(u32::try_from(9 - digits).ok()?))
    }

    /// `Z`, `+hhmm` or `+hh:mm`, in seconds.
    fn zone_offset(&mut self) -> Option<i64> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Some(0);
        }
        let sign = if self.rest.starts_with('-') { -1 } else { 1 };
        self.rest = self.rest.strip_prefix(['+', '-'])?;
        let hours = self.number(2, 0, 24)?;
        self.rest = self.rest.strip_prefix(':').unwrap_or(self.rest);
        let minutes = self.number(2, 0, 59)?;
        Some(sign * (hours * 3600 + minutes * 60))
    }

    /// Only UTC has a name here.
    fn zone_name(&mut self) -> Option<()> {
        let length = self.rest.bytes().take_while(u8::is_ascii_uppercase).count();
        let name = &self.rest[..length];
        if !matches!(name, "UTC" | "GMT" | "Z") {
            return None;
        }
        self.rest = &self.rest[length..];
        Some(())
    }

    fn moment(&self) -> Result<Moment, String> {
        if let Some(epoch) = self.epoch {
            return Ok(Moment::from_whole(epoch, self.nanosecond));
        }
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let month = u32::try_from(self.month).map_err(|_| "no such month")?;
        let (next_year, next_month) = if month == 12 {
            (self.year + 1, 1)
        } else {
            (self.year, month + 1)
        };
        if self.day > days_of(next_year, next_month, 1) - days_of(self.year, month, 1) {
            return Err("day out of range".to_owned());
        }
        let first = match self.day_of_year {
            Some(day) => days_of(self.year, 1, 1) + day,
            None => days_of(self.year, month, 1) + self.day,
        };
        let seconds = (first - 1) * 86_400 + hour * 3600 + self.minute * 60 + self.second - self.offset;
        Ok(Moment::from_whole(seconds, self.nanosecond))
    }
}
