use std::collections::BTreeMap;

use jiff::ToSpan;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[test]
fn every_row_of_the_oracle_comes_at_the_recorded_times() {
    let starts = ["2026-03-07T23:59:58Z", "2026-10-24T22:10:00Z", "2028-02-28T12:00:00Z"];
    let mut wrong = BTreeMap::new();
    for line in include_str!("../../tests/oracles/cron.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let spec = row["spec"].as_str().unwrap();
        let found = Crontab::parse(spec).map(|crontab| {
            let mut times = Vec::new();
            for start in starts {
                let mut at: Timestamp = start.parse().unwrap();
                for _ in 0..6 {
                    let Some(next) = crontab.next_after(at, &TimeZone::UTC) else {
                        times.push("zero".to_owned());
                        break;
                    };
                    times.push(next.to_string());
                    at = next;
                }
            }
            times
        });
        let same = match (&found, &row["next"]) {
            (Err(_), Value::String(error)) => error.starts_with("ERR"),
            (Ok(times), Value::Array(recorded)) => times.iter().eq(recorded.iter().map(|time| time.as_str().unwrap())),
            _ => false,
        };
        if !same {
            wrong.insert(spec.to_owned(), format!("{found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nonsense_is_refused_with_its_place() {
    let rows = [
        ("*/0 * * * *", "step of '*/0' is zero"),
        (
            "61 * * * *",
            "range '61' of minute is not within 0-59 or ends before it begins",
        ),
        ("1/2/3 * * * *", "'1/2/3' has too many hyphens or slashes"),
        ("1-2-3 * * * *", "'1-2-3' has too many hyphens or slashes"),
        ("* * * *", "expected 5 or 6 fields, found 4"),
        ("", "expected 5 or 6 fields, found 0"),
        (
            "@reboot",
            "unrecognized descriptor '@reboot': known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly and @every with a duration",
        ),
        ("@every 5", "'5' is no duration such as 30s, 5m or 1h30m"),
        (
            "TZ=Nowhere/Land 0 0 * * *",
            "unknown time zone 'Nowhere/Land': zones have names such as Europe/Berlin",
        ),
        ("TZ=UTC", "expected 5 or 6 fields, found 0"),
        ("-1 * * * *", "'' is no minute"),
        ("0 0 * smarch *", "'smarch' is no month"),
    ];
    for (text, message) in rows {
        assert_eq!(Crontab::parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn what_never_comes_is_not_searched_for() {
    let next = |text: &str, from: &str| {
        let crontab = Crontab::parse(text).unwrap();
        crontab.next_after(from.parse().unwrap(), &TimeZone::UTC)
    };
    for text in [
        ", * * * * *",
        "30 , * * * *",
        "0 , * * *",
        "0 0 , * *",
        "0 0 1 , *",
        "0 0 , * ,",
        "0 0 * * ,",
    ] {
        assert_eq!(next(text, "2026-03-28T12:00:00Z"), None, "{text}");
    }
    let monday = next("0 0 , * mon", "2026-03-28T12:00:00Z").unwrap();
    assert_eq!(
        monday.to_string(),
        "2026-03-30T00:00:00Z",
        "either of the days is enough"
    );
    assert_eq!(next("0 0 1 1 *", "9999-06-01T00:00:00Z"), None, "time has an end");
}

#[test]
fn clock_changes_skip_and_repeat() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let daily = Crontab::parse("30 2 * * *").unwrap();
    let next = |from: &str| daily.next_after(from.parse().unwrap(), &zone).unwrap().to_string();
    assert_eq!(
        next("2026-03-28T12:00:00Z"),
        "2026-03-30T00:30:00Z",
        "half past two is left out on the 29th"
    );
    assert_eq!(next("2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z");
    assert_eq!(
        next("2026-10-25T00:30:00Z"),
        "2026-10-25T01:30:00Z",
        "and comes twice on the 25th"
    );
}

#[test]
fn equal_texts_are_one_crontab() {
    let crontab = Crontab::parse("0 0 * * *").unwrap();
    assert_eq!(serde_json::from_str::<Crontab>("\"0 0 * * *\"").unwrap(), crontab);
    assert!(serde_json::from_str::<Crontab>("\"0 0\"").is_err());
    assert_ne!(Crontab::parse("@daily").unwrap(), crontab);
}

/// The numbers that the fields of a crontab allow, found in the simplest way.
#[derive(Debug, Clone)]
struct Plain {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Option<Vec<i8>>,
    weekdays: Option<Vec<i8>>,
}

impl Plain {
    fn text(&self) -> String {
        let list = |numbers: &[i8]| numbers.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
        let or_star = |numbers: &Option<Vec<i8>>| numbers.as_ref().map_or("*".to_owned(), |numbers| list(numbers));
        let (minutes, hours) = (list(&self.minutes), list(&self.hours));
        format!(
            "{minutes} {hours} {} * {}",
            or_star(&self.days),
            or_star(&self.weekdays)
        )
    }

    fn admits(&self, at: &jiff::Zoned) -> bool {
        let day = self.days.as_ref().map(|days| days.contains(&at.day()));
        let weekday = self
            .weekdays
            .as_ref()
            .map(|days| days.contains(&at.weekday().to_sunday_zero_offset()));
        let date = match (day, weekday) {
            (Some(day), Some(weekday)) => day || weekday,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => true,
        };
        date && self.hours.contains(&at.hour()) && self.minutes.contains(&at.minute())
    }
}

fn plain() -> impl Strategy<Value = Plain> {
    let list = |low: i8, high: i8| prop::collection::vec(low..=high, 1..4);
    (
        list(0, 59),
        list(0, 23),
        prop::option::of(list(1, 31)),
        prop::option::of(list(0, 6)),
    )
        .prop_map(|(minutes, hours, days, weekdays)| Plain {
            minutes,
            hours,
            days,
            weekdays,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn next_times_equal_a_search_minute_by_minute(
        plain in plain(),
        start in 1_767_225_600_i64..1_830_297_600,
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    ) {
        let zone = TimeZone::get(zone).unwrap();
        let crontab = Crontab::parse(&plain.text()).unwrap();
        let start = Timestamp::from_second(start).unwrap();
        let end = start + 480.hours();

        let mut minute = Timestamp::from_second(start.as_second() / 60 * 60).unwrap();
        let mut searched = Vec::new();
        while minute <= end {
            if minute > start && plain.admits(&minute.to_zoned(zone.clone())) {
                searched.push(minute);
            }
            minute += 1.minute();
        }
        let found: Vec<_> = std::iter::successors(crontab.next_after(start, &zone), |at| crontab.next_after(*at, &zone))
            .take_while(|at| *at <= end)
            .collect();
        prop_assert_eq!(found, searched);
    }

    #[test]
    fn no_text_is_too_much(text in "[-0-9*/,@A-Za-z ?]{0,24}", at in any::<i32>()) {
        if let Ok(crontab) = Crontab::parse(&text) {
            let at = Timestamp::from_second(i64::from(at)).unwrap();
            if let Some(next) = crontab.next_after(at, &TimeZone::UTC) {
                prop_assert!(next > at);
            }
        }
    }
}
