use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn range(text: &str) -> Range {
    Range::parse(text).unwrap()
}

fn tags(texts: &[&str]) -> BTreeSet<Tag> {
    texts.iter().map(|text| Tag::parse(text).unwrap()).collect()
}

#[test]
fn every_row_of_the_oracle_matches_as_recorded() {
    let mut wrong = Vec::new();
    for line in include_str!("../../tests/oracles/semver.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let constraint = row["constraint"].as_str().unwrap();
        let recorded = row["matches"].as_array().unwrap();
        let found = Range::parse(constraint);
        if recorded[0].as_str().unwrap().starts_with("ERR") {
            if found.is_ok() {
                wrong.push(format!("{constraint}: should be refused"));
            }
            continue;
        }
        let Ok(range) = found else {
            wrong.push(format!("{constraint}: {found:?}"));
            continue;
        };
        for (version, expected) in row["versions"].as_array().unwrap().iter().zip(recorded) {
            let version = version.as_str().unwrap();
            let said = match Version::parse(version) {
                Err(_) => "verr",
                Ok(version) if range.holds(&version) => "1",
                Ok(_) => "0",
            };
            if said != expected {
                wrong.push(format!("{constraint} and {version}: {said}, recorded is {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_highest_full_version_in_the_range_wins() {
    for (text, all, highest) in [
        (
            "1.4.x",
            &["1.4.9", "1.4.10", "1.5.0", "1.4.11-rc.1"][..],
            Some("1.4.10"),
        ),
        (">=1.4 <2", &["v1.9.0", "2.0.0", "1.4.2"], Some("v1.9.0")),
        (">=1.4.0-0", &["1.4.9", "1.5.0-rc.1"], Some("1.5.0-rc.1")),
        ("^1", &["1", "1.9", "latest", "20240101", "1.2.0"], Some("1.2.0")),
        ("*", &["20240101", "1.0.0"], Some("1.0.0")),
        ("1.4.x", &["v1.4.2", "1.4.2"], Some("1.4.2")),
        ("1.4.x", &["01.4.2", "1.4.2"], Some("01.4.2")),
        ("1.4.x", &["1.5.0", "latest"], None),
        ("1.4.x", &[], None),
    ] {
        let all = tags(all);
        let found = range(text).highest(&all).map(|(tag, _)| tag.as_str());
        assert_eq!(found, highest, "{text} of {all:?}");
        let backwards = range(text).highest(all.iter().rev()).map(|(tag, _)| tag.as_str());
        assert_eq!(backwards, highest, "{text} of {all:?}, backwards");
    }
}

#[test]
fn a_mask_takes_the_highest_version_that_fits() {
    let all = tags(&[
        "1.2.3",
        "v1.2.3",
        "v1.2.10",
        "1.3.0",
        "v1.4.0",
        "2.0.0",
        "1.2.11-rc.1",
        "1.2.11-rc.1.2",
        "1.2.12-beta.1",
        "1.2",
        "latest",
        "1.20.7",
    ]);
    for (text, highest) in [
        ("1.2.*", Some("v1.2.10")),
        ("v1.2.*", Some("v1.2.10")),
        ("1.2.x", Some("v1.2.10")),
        ("v1.*.*", Some("1.20.7")),
        ("1.*", Some("1.20.7")),
        ("*", Some("2.0.0")),
        ("*.*.*", Some("2.0.0")),
        ("1.*.0", Some("v1.4.0")),
        ("*.3.*", Some("1.3.0")),
        ("v1.x.3", Some("v1.2.3")),
        ("1.x.3", Some("1.2.3")),
        ("1.2.*-*", Some("1.2.12-beta.1")),
        ("1.2.*-rc.*", Some("1.2.11-rc.1.2")),
        ("1.2.*-rc.1.*", Some("1.2.11-rc.1.2")),
        ("1.2.*-*.1", Some("1.2.12-beta.1")),
        ("1.2.*-alpha.*", None),
        ("1.2.*-0", Some("1.2.12-beta.1")),
        ("3.*.*", None),
    ] {
        let mask = Range::parse_mask(text).unwrap();
        let found = mask.highest(&all).map(|(tag, _)| tag.as_str());
        assert_eq!(found, highest, "{text}");
    }
}

#[test]
fn of_two_tags_for_one_version_the_one_written_as_the_mask_wins() {
    let all = tags(&["1.4.2", "v1.4.2"]);
    for (text, highest) in [
        ("1.4.*", "1.4.2"),
        ("v1.4.*", "v1.4.2"),
        ("1.*.2", "1.4.2"),
        ("v1.*.2", "v1.4.2"),
    ] {
        let mask = Range::parse_mask(text).unwrap();
        assert_eq!(mask.highest(&all).map(|(tag, _)| tag.as_str()), Some(highest), "{text}");
    }
}

#[test]
fn a_bad_range_is_told_with_its_place() {
    let long = "1.4.x ".repeat(100);
    let many = vec!["1"; 33].join("||");
    for (text, told) in [
        ("", "'' is no range of versions: '' should begin with a rule, as 1.4.x"),
        (">=1.4 latest", "'latest' should begin with a rule"),
        ("1.4.x || ", "'' should begin with a rule"),
        (">=1.4<2", "a blank or a comma should stand before '<2'"),
        ("1.4.2.1", "a blank or a comma should stand before '.1'"),
        (">=1 - 2", "'>=1 - 2' should be two versions with ' - ' between them"),
        ("3 1 - 2", "'1 - 2' should be two versions"),
        ("1.4y", "should stand before 'y'"),
        (
            "1.4x",
            "'1.4x' should be a version, of which parts may be x or left out",
        ),
        ("99999999999999999999", "should be a version"),
        (&long, "longer than 512 characters"),
        (&many, "more than 32 parts"),
    ] {
        let told_now = Range::parse(text).unwrap_err().to_string();
        assert!(told_now.contains(told), "{text}: {told_now}");
    }
}

fn version() -> impl Strategy<Value = String> {
    ("[0-3]", "[0-3]", "[0-3]", "(|-rc\\.[0-2]|-[a-c])").prop_map(|(a, b, c, pre)| format!("{a}.{b}.{c}{pre}"))
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[0-9xX*v.|,<>=~!^ +a-é-]{0,30}") {
        let _ = Range::parse_mask(&text).map(|range| range.holds(&Version::parse("1.2.3-rc.1").unwrap()));
        let _ = Version::parse(&text);
    }

    #[test]
    fn short_forms_are_the_ranges_that_they_stand_for(a in 0_u64..4, b in 0_u64..4, c in 0_u64..4, version in version()) {
        let version = Version::parse(&version).unwrap();
        let caret = match (a, b, c) {
            (0, 0, c) => format!(">=0.0.{c} <0.0.{}", c + 1),
            (0, b, c) => format!(">=0.{b}.{c} <0.{}.0", b + 1),
            (a, b, c) => format!(">={a}.{b}.{c} <{}.0.0", a + 1),
        };
        // The original reads ~0.0.0 as any version.
        let tilde = match (a, b, c) {
            (0, 0, 0) => ">=0.0.0".to_owned(),
            (a, b, c) => format!(">={a}.{b}.{c} <{a}.{}.0", b + 1),
        };
        for (short, long) in [
            (format!("^{a}.{b}.{c}"), caret),
            (format!("~{a}.{b}.{c}"), tilde),
            (format!("{a}.{b}.x"), format!(">={a}.{b}.0 <{a}.{}.0", b + 1)),
            (format!("{a}.x"), format!(">={a}.0.0 <{}.0.0", a + 1)),
            (format!("{a}.{b}.{c} - {}", a + 1), format!(">={a}.{b}.{c} <{}.0.0", a + 2)),
            (format!(">{a}.{b}"), format!(">={a}.{}.0", b + 1)),
            (format!("<={a}.{b}"), format!("<{a}.{}.0", b + 1)),
        ] {
            prop_assert_eq!(range(&short).holds(&version), range(&long).holds(&version), "{} {} {}", short, long, version);
        }
    }

    #[test]
    fn what_wins_is_in_the_range_and_nothing_above_it_is(
        text in prop::sample::select(vec!["1.x", "^0.2", "~1.2", ">=1.1 <3", "1 - 2 || 0.0.x", ">=1.0.0-0", "!=1.2.x"]),
        texts in prop::collection::btree_set(version(), 0..12),
    ) {
        let all: BTreeSet<Tag> = texts.iter().map(|text| Tag::parse(text).unwrap()).collect();
        let range = range(text);
        let held: Vec<Version> =
            texts.iter().map(|text| Version::parse(text).unwrap()).filter(|version| range.holds(version)).collect();
        let highest = range.highest(&all).map(|(_, version)| version);
        prop_assert_eq!(highest, held.into_iter().max());
    }
}
