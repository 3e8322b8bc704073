//! Crontabs: for any crontab the next time is found soon, lies in the future, and is the first that matches.

use std::time::{Duration, Instant};

use crontab::schedule::Crontab;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Far longer than a search takes, even in an unoptimised build on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// Line 1 is the crontab; line 2, if any, the time in seconds since 1970; line 3 the time zone of the machine.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let Ok(crontab) = Crontab::parse(lines.next().unwrap_or_default()) else {
        return;
    };
    assert_eq!(Crontab::parse(crontab.as_str()).as_ref(), Ok(&crontab));
    let seconds = lines.next().and_then(|line| line.parse().ok()).unwrap_or(1_700_000_000);
    let mut at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    let zone = lines
        .next()
        .and_then(|name| TimeZone::get(name).ok())
        .unwrap_or(TimeZone::UTC);
    let began = Instant::now();
    for _ in 0..5 {
        let Some(next) = crontab.next_after(at, &zone) else {
            break;
        };
        assert!(next > at, "{next} is not after {at}");
        first(&crontab, at, next, &zone);
        at = next;
    }
    assert!(began.elapsed() < SOON, "took {:?}", began.elapsed());
}

/// The next time is the same from any moment before it. `@every` is skipped, because its period counts from the moment
/// itself.
fn first(crontab: &Crontab, at: Timestamp, next: Timestamp, zone: &TimeZone) {
    if crontab.as_str().contains("@every ") {
        return;
    }
    assert_eq!(next.subsec_nanosecond(), 0);
    let (from, to) = (at.as_second(), next.as_second());
    for between in [from + (to - from) / 2, to - 1] {
        let between = Timestamp::from_second(between).expect("lies between two that exist");
        assert_eq!(crontab.next_after(between, zone), Some(next), "after {between}");
    }
}
