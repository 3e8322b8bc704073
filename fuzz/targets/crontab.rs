//! Crontabs: whatever one says, its next time is found soon, lies ahead, and is the first.

use std::time::{Duration, Instant};

use addon_core::hook::crontab::Crontab;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Far longer than a search takes, even in a slow build on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// The first line is the crontab; the second, if any, the time as seconds since 1970; the third the zone of the machine.
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

/// From anywhere between the two the next time is the same; a period counts from where it begins.
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
