use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn window(days: &str, from: &str, to: &str, zone: &str) -> Window {
    Window {
        days: days.split_whitespace().map(|day| Day::parse(day).unwrap()).collect(),
        from: Minute::parse(from).unwrap(),
        to: Minute::parse(to).unwrap(),
        zone: TimeZone::get(zone).unwrap(),
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

const ALL: &str = "mon tue wed thu fri sat sun";

/// All times from one moment to another at which the windows open or close, found by a check of each minute.
fn changes(windows: &Windows, from: &str, to: &str) -> Vec<String> {
    let (mut now, end) = (at(from), at(to));
    let mut changes = Vec::new();
    let mut open = windows.are_open(now);
    while now < end {
        now += SignedDuration::from_mins(1);
        if windows.are_open(now) != open {
            open = !open;
            changes.push(format!("{}{now}", if open { "+" } else { "-" }));
        }
    }
    changes
}

#[test]
fn a_window_is_open_from_its_beginning_to_its_end() {
    // 2026-01-05 is a Monday.
    let rows = [
        (
            window("Mon", "02:00", "05:00", "Europe/Berlin"),
            vec!["+2026-01-05T01:00:00Z", "-2026-01-05T04:00:00Z"],
        ),
        (
            window("monday", "22:00", "04:00", "UTC"),
            vec!["+2026-01-05T22:00:00Z", "-2026-01-06T04:00:00Z"],
        ),
        (
            window("Sun", "22:00", "04:00", "America/New_York"),
            vec!["+2026-01-05T03:00:00Z", "-2026-01-05T09:00:00Z"],
        ),
        (
            window("Tue", "00:00", "24:00", "UTC"),
            vec!["+2026-01-06T00:00:00Z", "-2026-01-07T00:00:00Z"],
        ),
        (
            window("Mon Tue", "12:00", "11:59", "UTC"),
            vec![
                "+2026-01-05T12:00:00Z",
                "-2026-01-06T11:59:00Z",
                "+2026-01-06T12:00:00Z",
                "-2026-01-07T11:59:00Z",
            ],
        ),
    ];
    for (window, expected) in rows {
        let windows = Windows(vec![window]);
        let found = changes(&windows, "2026-01-05T00:00:00Z", "2026-01-07T12:00:00Z");
        assert_eq!(found, expected, "{windows:?}");
    }
}

#[test]
fn a_change_of_the_clocks_moves_the_ends_of_a_window() {
    // In Berlin the times from 2:00 to 3:00 do not exist on 2026-03-29 and come twice on 2026-10-25. Both days are Sundays.
    let (spring, autumn) = (
        ("2026-03-28T20:00:00Z", "2026-03-29T20:00:00Z"),
        ("2026-10-24T20:00:00Z", "2026-10-25T20:00:00Z"),
    );
    let rows = [
        (
            "01:30",
            "05:00",
            spring,
            vec!["+2026-03-29T00:30:00Z", "-2026-03-29T03:00:00Z"],
        ),
        (
            "02:30",
            "05:00",
            spring,
            vec!["+2026-03-29T01:00:00Z", "-2026-03-29T03:00:00Z"],
        ),
        (
            "01:00",
            "02:30",
            spring,
            vec!["+2026-03-29T00:00:00Z", "-2026-03-29T01:00:00Z"],
        ),
        ("02:10", "02:50", spring, vec![]),
        (
            "01:30",
            "05:00",
            autumn,
            vec!["+2026-10-24T23:30:00Z", "-2026-10-25T04:00:00Z"],
        ),
        (
            "02:30",
            "05:00",
            autumn,
            vec!["+2026-10-25T00:30:00Z", "-2026-10-25T04:00:00Z"],
        ),
        (
            "01:00",
            "02:30",
            autumn,
            vec!["+2026-10-24T23:00:00Z", "-2026-10-25T01:30:00Z"],
        ),
    ];
    for (from, to, (begin, end), expected) in rows {
        let windows = Windows(vec![window("Sun", from, to, "Europe/Berlin")]);
        assert_eq!(changes(&windows, begin, end), expected, "{from} to {to}");
    }
}

#[test]
fn a_window_that_the_clocks_leave_out_opens_a_week_later() {
    let windows = Windows(vec![window("Sun", "02:10", "02:50", "Europe/Berlin")]);
    assert_eq!(
        windows.next_opening(at("2026-03-28T12:00:00Z")),
        Some(at("2026-04-05T00:10:00Z"))
    );
    // Samoa skipped 2011-12-30, a Friday.
    let windows = Windows(vec![window("Fri", "10:00", "11:00", "Pacific/Apia")]);
    assert_eq!(
        windows.next_opening(at("2011-12-24T12:00:00Z")),
        Some(at("2012-01-05T20:00:00Z"))
    );
}

#[test]
fn without_windows_any_time_is_good() {
    let now = at("2026-01-05T00:00:00Z");
    assert!(Windows::default().are_open(now));
    assert_eq!(Windows::default().next_opening(now), Some(now));
}

#[test]
fn the_first_of_several_windows_counts() {
    let windows = Windows(vec![
        window("Wed", "02:00", "05:00", "UTC"),
        window("Tue", "23:00", "23:30", "Asia/Tokyo"),
    ]);
    let opening = windows.next_opening(at("2026-01-05T12:00:00Z"));
    assert_eq!(opening, Some(at("2026-01-06T14:00:00Z")));
    assert_eq!(
        windows.next_opening(at("2026-01-06T14:30:00Z")),
        Some(at("2026-01-07T02:00:00Z"))
    );
}

#[test]
fn times_of_day_and_days_are_read_strictly() {
    for text in [
        "2:00", "02:0", "02:60", "24:01", "25:00", "0200", "", "ab:cd", "+2:00", "02:00:00",
    ] {
        assert_eq!(Minute::parse(text), None, "{text}");
    }
    assert_eq!(Minute::parse("24:00").unwrap().to_string(), "24:00");
    assert_eq!(Minute::parse("07:05").unwrap().to_string(), "07:05");
    for (text, day) in [
        ("Mon", Some(Day::Mon)),
        ("sunday", Some(Day::Sun)),
        ("THU", Some(Day::Thu)),
        ("Mo", None),
        ("mond", None),
        ("", None),
    ] {
        assert_eq!(Day::parse(text), day, "{text}");
    }
}

#[test]
fn a_window_is_kept_with_its_zone() {
    let windows = Windows(vec![window(ALL, "22:00", "24:00", "Europe/Berlin")]);
    let text = serde_json::to_string(&windows).unwrap();
    assert!(text.contains("Europe/Berlin"), "{text}");
    assert_eq!(serde_json::from_str::<Windows>(&text).unwrap(), windows);
}

fn any_window() -> impl Strategy<Value = Window> {
    let days = prop::collection::btree_set(prop::sample::select(Day::ALL.to_vec()), 1..4);
    let zones = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Cairo",
        "Asia/Kathmandu",
    ]);
    (days, 0_u16..1440, 1_u16..=1440, zones)
        .prop_filter("a window has a length", |(_, from, to, _)| from != to)
        .prop_map(|(days, from, to, zone)| Window {
            days,
            from: Minute(from),
            to: Minute(to),
            zone: TimeZone::get(zone).unwrap(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_next_opening_is_open_and_nothing_before_it_is(
        windows in prop::collection::vec(any_window(), 1..3),
        // Minutes of 2026, among them all changes of its clocks.
        minutes in prop_oneof![0_i64..525_600, 121_000_i64..129_000, 427_000_i64..432_000],
    ) {
        let now = at("2026-01-01T00:00:00Z") + SignedDuration::from_mins(minutes);
        let windows = Windows(windows);
        let opening = windows.next_opening(now);
        prop_assert!(opening.is_some_and(|opening| opening >= now), "{opening:?}");
        let opening = opening.unwrap();
        prop_assert!(windows.are_open(opening), "{opening}");
        let mut before = now;
        while before < opening {
            prop_assert!(!windows.are_open(before), "{before} is before {opening}");
            prop_assert_eq!(windows.next_opening(before), Some(opening));
            before += SignedDuration::from_mins(17);
        }
        if now < opening {
            prop_assert!(!windows.are_open(opening - SignedDuration::from_secs(1)));
        }
    }
}
