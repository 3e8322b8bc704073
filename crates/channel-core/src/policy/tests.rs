use proptest::prelude::*;

use super::*;

#[test]
fn a_policy_says_what_is_written_and_the_rest_by_default() {
    assert_eq!(Policy::parse("{}").unwrap(), Policy::default());
    assert_eq!(Policy::default().trial_limit, Duration::from_mins(15));
    let text = "mode: patch\nwindows:\n- {days: [Mon, friday], from: \"02:00\", to: \"05:00\", zone: Europe/Berlin}\n\
                - {from: 22:00, to: 24:00}\ndelay: 1d12h\ntrialLimit: 20m\n";
    let policy = Policy::parse(text).unwrap();
    assert_eq!(policy.mode, Mode::Patch);
    assert_eq!(policy.delay, Duration::from_hours(36));
    assert_eq!(policy.trial_limit, Duration::from_mins(20));
    let [first, second] = &policy.windows.0[..] else {
        panic!("{policy:?}")
    };
    assert_eq!(first.days, [Day::Mon, Day::Fri].into());
    assert_eq!(
        (first.from.to_string(), first.to.to_string()),
        ("02:00".into(), "05:00".into())
    );
    assert_eq!(first.zone.iana_name(), Some("Europe/Berlin"));
    assert_eq!((second.days.len(), second.zone.iana_name()), (7, Some("UTC")));
    assert!(second.to.is_end_of_day());
}

#[test]
fn a_bad_policy_is_told_with_field_value_and_what_to_write() {
    let window = |fields: &str| format!("windows: [{{{fields}}}]");
    for (text, told) in [
        (
            String::new(),
            "the policy is null: write a map with the fields mode, windows, delay and trialLimit",
        ),
        ("auto".into(), "the policy is \"auto\": write a map"),
        ("mode: [".into(), "bad yaml: line "),
        ("mode: auto\nmode: patch".into(), "bad yaml: line 2"),
        ("mode: never".into(), "'mode' is \"never\": write auto, patch or manual"),
        ("mode: Auto".into(), "'mode' is \"Auto\": write auto, patch or manual"),
        ("mode:".into(), "'mode' is null: write auto, patch or manual"),
        (
            "window: []".into(),
            "unknown field 'window': known here are mode, windows, delay, trialLimit",
        ),
        (
            "delay: 24".into(),
            "'delay' is 24: write a time as 90m, 24h or 7d, at most 366d",
        ),
        ("delay: -1h".into(), "'delay' is \"-1h\": write"),
        ("delay: 2mo".into(), "'delay' is \"2mo\": write"),
        ("delay: 400d".into(), "'delay' is \"400d\": write"),
        (
            "trialLimit: 1m".into(),
            "'trialLimit' is \"1m\": write a time as 15m or 1h, from 2m to 24h",
        ),
        ("trialLimit: 25h".into(), "'trialLimit' is \"25h\": write"),
        (
            "windows: {}".into(),
            "'windows' is {}: write a list of windows as {days: [Mon], ",
        ),
        (
            "windows: [x]".into(),
            "'windows[0]' is \"x\": write a map with the fields",
        ),
        (
            window("to: '05:00'"),
            "'windows[0].from' is missing: write a time of day in quotes, as \"02:00\"",
        ),
        (window("from: '02:00'"), "'windows[0].to' is missing: write"),
        (
            window("from: '2', to: '05:00'"),
            "'windows[0].from' is \"2\": write a time of day in quotes, as \"02:00\"",
        ),
        (
            window("from: '24:00', to: '05:00'"),
            "'windows[0].from' is \"24:00\": write",
        ),
        (
            window("from: '02:00', to: '02:00'"),
            "'windows[0].to' is \"02:00\": write another time than in from; a whole day is",
        ),
        (
            window("from: '02:00', to: '05:00', days: []"),
            "'windows[0].days' is []: write a list of Mon, Tue",
        ),
        (
            window("from: '02:00', to: '05:00', days: [Mon, Mittwoch]"),
            "'windows[0].days' is \"Mittwoch\": write a list of Mon, Tue",
        ),
        (
            window("from: '02:00', to: '05:00', zone: Berlin"),
            "'windows[0].zone' is \"Berlin\": write the name of a time zone, as Europe/Berlin or UTC",
        ),
        (
            window("from: '02:00', to: '05:00', day: Mon"),
            "unknown field 'windows[0].day': known here are days, from, to, zone",
        ),
    ] {
        let error = Policy::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(told), "{text}: {error}");
    }
    let long = Policy::parse(&format!("mode: {}", "ä".repeat(100)))
        .unwrap_err()
        .to_string();
    assert!(long.len() < 200 && long.contains('…'), "{long}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(mode|windows|delay|trialLimit|days|from|to): [\\[{]?[a-z0-9:\"', -]{0,20}[\\]}]?\n?") {
        let _ = Policy::parse(&text);
    }
}
