//! Parses moments as `strptime` does: jiff reads the directives, but the set of directives and the defaults for missing
//! parts are gojq's.

use jiff::civil::date;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;

use super::calendar::{Moment, days_of};

/// The spellings of an offset. gojq reads all of them by `%z`, jiff each by its own directive.
const OFFSETS: [&str; 3] = ["%z", "%:z", "Z"];

/// The names of time zones that do not depend on the machine.
const ZONES: [&str; 2] = ["UTC", "GMT"];

/// Directives that mean the same in jiff and in gojq.
const SHARED: &str = "YGCygmBbhdejAauwUVWHkIlpPMSfsnt%DFTR";

/// Reads a whole text. The error is a phrase about the first place that does not match.
pub(super) fn read(text: &str, format: &str) -> Result<Moment, String> {
    let mut refused = None;
    for (offset, zone) in OFFSETS.iter().flat_map(|offset| ZONES.map(|zone| (*offset, zone))) {
        let format = spelled_out(format, offset, zone)?;
        match BrokenDownTime::parse(format, text) {
            Ok(parts) => return Ok(moment(&parts)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(String::new, |error| error.to_string()))
}

/// Translates a format to jiff's directives.
fn spelled_out(format: &str, offset: &str, zone: &str) -> Result<String, String> {
    let mut out = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        match chars.next().ok_or("stray %")? {
            'c' => out.push_str("%a %b %e %H:%M:%S %Y"),
            '+' => out.extend(["%a %b %e %H:%M:%S ", zone, " %Y"]),
            'v' => out.push_str("%e-%b-%Y"),
            'x' => out.push_str("%m/%d/%y"),
            'X' => out.push_str("%H:%M:%S"),
            'r' => out.push_str("%I:%M:%S %p"),
            'z' => out.push_str(offset),
            'Z' => out.push_str(zone),
            shared if SHARED.contains(shared) => out.extend(['%', shared]),
            unknown => return Err(format!("cannot parse \"%{unknown}\"")),
        }
    }
    Ok(out)
}

/// The moment of the parts. Without a date it is the first of January 1900. Days beyond the end of a month carry over.
fn moment(parts: &BrokenDownTime) -> Moment {
    if let Some(timestamp) = parts.timestamp() {
        return Moment::from_whole(timestamp.as_second(), i64::from(timestamp.subsec_nanosecond()));
    }
    let or = |part: Option<i8>, missing: u32| part.and_then(|part| u32::try_from(part).ok()).unwrap_or(missing);
    let year = parts.year().map_or(1900, i64::from);
    let days = match (parts.to_date(), parts.day_of_year()) {
        (Ok(found), _) => i64::from((found - date(1970, 1, 1)).get_days()),
        (Err(_), Some(day)) => days_of(year, 1, 1) + i64::from(day) - 1,
        (Err(_), None) => days_of(year, or(parts.month(), 1), or(parts.day(), 1)),
    };
    let of_day = or(parts.hour(), 0) * 3600 + or(parts.minute(), 0) * 60 + or(parts.second(), 0);
    let offset = parts.offset().map_or(0, Offset::seconds);
    Moment::from_whole(
        days * 86_400 + i64::from(of_day) - i64::from(offset),
        i64::from(parts.subsec_nanosecond().unwrap_or(0)),
    )
}
