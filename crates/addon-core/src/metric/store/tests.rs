use names::{HookName, ModuleName};

use super::super::{exposition, parse};
use super::*;

fn hook(name: &str) -> HookId {
    HookId {
        owner: Owner::Global,
        name: HookName::parse(name).unwrap(),
    }
}

fn of_module(module: &str, name: &str) -> HookId {
    HookId {
        owner: ModuleName::parse(module).unwrap().into(),
        name: HookName::parse(name).unwrap(),
    }
}

/// Writes a hook's file, and returns the texts of refused samples.
fn write(store: &mut Store, hook: &HookId, text: &str) -> Vec<String> {
    let operations = parse(text).unwrap().operations;
    store
        .apply(hook, operations)
        .lost
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The lines of series, without those of help and type.
fn shown(store: &Store) -> Vec<String> {
    let text = exposition::text(store);
    let series = text.lines().filter(|line| !line.starts_with('#'));
    series.map(str::to_owned).collect()
}

/// The lines of series after one hook has written these files.
fn after(files: &[&str]) -> Vec<String> {
    let mut store = Store::default();
    for file in files {
        assert_eq!(write(&mut store, &hook("m.sh"), file), [""; 0]);
    }
    shown(&store)
}

#[test]
fn what_has_no_group_lasts_and_accumulates() {
    let first = r#"{"name": "size", "set": 1, "labels": {"l": "a"}}
                   {"name": "size", "set": 2, "labels": {"l": "b"}}
                   {"name": "other", "set": 3}
                   {"name": "count_total", "add": 5}"#;
    let second = r#"{"name": "size", "set": 10, "labels": {"l": "a"}} {"name": "count_total", "add": 1.5}"#;
    assert_eq!(
        after(&[first, second]),
        [
            r#"count_total{hook="m.sh"} 6.5"#,
            r#"other{hook="m.sh"} 3"#,
            r#"size{hook="m.sh",l="a"} 10"#,
            r#"size{hook="m.sh",l="b"} 2"#,
        ]
    );
}

#[test]
fn each_run_begins_its_groups_anew() {
    let first = r#"{"name": "count_total", "group": "g", "add": 5, "labels": {"l": "a"}}
                   {"name": "count_total", "group": "g", "add": 5, "labels": {"l": "b"}}
                   {"name": "count_total", "group": "h", "add": 5, "labels": {"l": "c"}}
                   {"name": "old", "set": 1}"#;
    let second = r#"{"name": "count_total", "group": "g", "add": 0.25, "labels": {"l": "a"}}
                    {"name": "count_total", "group": "g", "add": 0.5, "labels": {"l": "a"}}"#;
    assert_eq!(
        after(&[first, second]),
        [
            r#"count_total{hook="m.sh",l="a"} 0.75"#,
            r#"count_total{hook="m.sh",l="c"} 5"#,
            r#"old{hook="m.sh"} 1"#,
        ],
        "the group that is not named stays, and so does what has none"
    );
    assert_eq!(after(&[first, ""]).len(), 4, "a run that writes nothing ends nothing");
}

#[test]
fn expire_ends_a_group_or_what_the_hook_wrote_without_one() {
    let written = r#"{"name": "a", "set": 1} {"name": "b", "group": "g", "set": 2}"#;
    assert_eq!(
        after(&[written, r#"{"action": "expire", "group": "g"}"#]),
        [r#"a{hook="m.sh"} 1"#]
    );
    assert_eq!(after(&[written, r#"{"action": "expire"}"#]), [r#"b{hook="m.sh"} 2"#]);
    assert_eq!(
        after(&[r#"{"name": "a", "set": 1, "group": "g"} {"action": "expire", "group": "g"}"#]),
        [r#"a{hook="m.sh"} 1"#],
        "what is written beside it comes after it"
    );
}

#[test]
fn hooks_share_groups_and_nothing_else() {
    let mut store = Store::default();
    write(
        &mut store,
        &hook("a.sh"),
        r#"{"name": "x", "group": "g", "set": 1} {"name": "y", "set": 1}"#,
    );
    write(
        &mut store,
        &hook("b.sh"),
        r#"{"action": "expire"} {"name": "y", "set": 2}"#,
    );
    assert_eq!(
        shown(&store),
        [r#"x{hook="a.sh"} 1"#, r#"y{hook="a.sh"} 1"#, r#"y{hook="b.sh"} 2"#]
    );
    write(&mut store, &hook("b.sh"), r#"{"action": "expire", "group": "g"}"#);
    assert_eq!(shown(&store), [r#"y{hook="a.sh"} 1"#, r#"y{hook="b.sh"} 2"#]);
}

#[test]
fn a_series_of_two_groups_belongs_to_the_last_one() {
    let both = r#"{"name": "x", "group": "g", "add": 1}
                  {"name": "x", "group": "h", "add": 2}"#;
    assert_eq!(after(&[both]), [r#"x{hook="m.sh"} 2"#]);
    assert_eq!(
        after(&[both, r#"{"action": "expire", "group": "g"}"#]),
        [r#"x{hook="m.sh"} 2"#]
    );
    assert_eq!(after(&[both, r#"{"action": "expire", "group": "h"}"#]), [""; 0]);
}

#[test]
fn whose_series_it_is_is_not_for_the_hook_to_say() {
    let mut store = Store::default();
    let claims = r#"{"name": "x", "set": 1, "labels": {"hook": "other", "module": "other"}}"#;
    write(&mut store, &of_module("one", "hooks/a.sh"), claims);
    write(&mut store, &hook("a.sh"), claims);
    assert_eq!(
        shown(&store),
        [
            r#"x{hook="a.sh",module="other"} 1"#,
            r#"x{hook="hooks/a.sh",module="one"} 1"#,
        ]
    );
}

#[test]
fn what_a_series_lacks_is_empty_and_empty_is_what_it_lacks() {
    assert_eq!(
        after(&[r#"{"name": "size", "set": 1, "labels": {"a": "1"}}
                   {"name": "size", "set": 2, "labels": {"a": "1", "b": "2"}}
                   {"name": "size", "set": 3}
                   {"name": "size", "set": 4, "labels": {"c": ""}}"#]),
        [
            r#"size{a="",b="",c="",hook="m.sh"} 4"#,
            r#"size{a="1",b="",c="",hook="m.sh"} 1"#,
            r#"size{a="1",b="2",c="",hook="m.sh"} 2"#,
        ]
    );
}

#[test]
fn a_histogram_keeps_its_first_buckets() {
    assert_eq!(
        after(&[
            r#"{"name": "s", "action": "observe", "value": 3, "buckets": [1, 5, 1000000]}"#,
            r#"{"name": "s", "action": "observe", "value": 5, "buckets": [2]}
               {"name": "s", "action": "observe", "value": 2e6, "buckets": [2]}"#
        ]),
        [
            r#"s_bucket{hook="m.sh",le="1"} 0"#,
            r#"s_bucket{hook="m.sh",le="5"} 2"#,
            r#"s_bucket{hook="m.sh",le="1e+06"} 2"#,
            r#"s_bucket{hook="m.sh",le="+Inf"} 3"#,
            r#"s_sum{hook="m.sh"} 2.000008e+06"#,
            r#"s_count{hook="m.sh"} 3"#,
        ]
    );
}

#[test]
fn a_metric_stays_what_it_is_while_it_has_a_series() {
    let mut store = Store::default();
    let lost = write(
        &mut store,
        &hook("m.sh"),
        r#"{"name": "a", "group": "g", "set": 1} {"name": "a", "add": 5} {"name": "a", "add": 5} {"name": "b", "set": 2}"#,
    );
    assert_eq!(
        lost,
        ["metric 'a' loses 2 of the samples of this run: it is a gauge, and a counter is wanted"]
    );
    assert_eq!(shown(&store), [r#"a{hook="m.sh"} 1"#, r#"b{hook="m.sh"} 2"#]);
    let lost = write(
        &mut store,
        &hook("m.sh"),
        r#"{"action": "expire", "group": "g"} {"name": "a", "add": 5}"#,
    );
    assert_eq!(lost, [""; 0]);
    assert!(exposition::text(&store).starts_with("# HELP a a\n# TYPE a counter\na{hook=\"m.sh\"} 5\n"));
}

#[test]
fn the_lines_of_a_histogram_are_nobody_elses() {
    let histogram = r#"{"name": "s", "action": "observe", "value": 3, "buckets": [1]}"#;
    let gauge = r#"{"name": "s_count", "set": 3}"#;
    let mut store = Store::default();
    assert_eq!(
        write(&mut store, &hook("m.sh"), &(histogram.to_owned() + gauge)),
        ["metric 's_count' loses 1 of the samples of this run: the name is taken by the histogram 's'"]
    );
    let mut store = Store::default();
    assert_eq!(
        write(&mut store, &hook("m.sh"), &(gauge.to_owned() + histogram)),
        [
            "metric 's' loses 1 of the samples of this run: a histogram needs the name 's_count', which is a metric of its own"
        ]
    );
}

#[test]
fn what_a_module_wrote_goes_with_it() {
    let mut store = Store::default();
    for hook in [of_module("one", "a.sh"), of_module("two", "a.sh"), hook("a.sh")] {
        write(
            &mut store,
            &hook,
            r#"{"name": "x", "set": 1} {"name": "y", "group": "g", "add": 1}"#,
        );
    }
    write(&mut store, &of_module("one", "b.sh"), r#"{"name": "z", "set": 1}"#);
    store.forget(&ModuleName::parse("one").unwrap().into());
    assert_eq!(
        shown(&store),
        [
            r#"x{hook="a.sh",module=""} 1"#,
            r#"x{hook="a.sh",module="two"} 1"#,
            r#"y{hook="a.sh",module=""} 1"#,
        ],
        "the group began anew with each hook"
    );
}

#[test]
fn endless_series_end_at_the_budget_of_their_hook() {
    let mut store = Store::default();
    let value = "v".repeat(1000);
    let one = |n: usize| format!("{{\"name\":\"x\",\"group\":\"g\",\"set\":{n},\"labels\":{{\"l\":\"{n}{value}\"}}}}");
    let endless: String = (0..20_000).map(one).collect();
    let lost = write(&mut store, &hook("endless.sh"), &endless);
    assert_eq!(lost.len(), 1);
    assert!(
        lost[0].ends_with("of the samples of this run: the series of this hook take 8 MiB already"),
        "{lost:?}"
    );
    let kept = shown(&store).len();
    assert!((5_000..10_000).contains(&kept), "{kept}");
    assert!(exposition::text(&store).len() < 2 * BUDGET);

    assert_eq!(
        write(&mut store, &hook("other.sh"), r#"{"name": "x", "set": 1}"#),
        [""; 0]
    );
    let again = format!(r#"{{"name": "y", "set": 1}} {{"name": "x", "set": 7, "labels": {{"l": "0{value}"}}}}"#);
    let lost = write(&mut store, &hook("endless.sh"), &again);
    assert_eq!(
        lost.len(),
        1,
        "what is there can still change, but not what is new: {lost:?}"
    );
    let lost = write(
        &mut store,
        &hook("endless.sh"),
        r#"{"name": "x", "group": "g", "set": 1}"#,
    );
    assert_eq!(lost, [""; 0], "the group made room");
}

#[test]
fn endless_labels_end_too() {
    let mut store = Store::default();
    let one = |n: usize| format!("{{\"name\":\"x\",\"group\":\"g\",\"set\":1,\"labels\":{{\"l{n}\":\"1\"}}}}");
    write(&mut store, &hook("stays.sh"), r#"{"name": "x", "set": 1}"#);
    for n in 0..200 {
        assert_eq!(
            write(&mut store, &hook("m.sh"), &one(n)),
            [""; 0],
            "labels that are gone count no more"
        );
    }
    let all: String = (0..200).map(one).collect();
    let lost = write(&mut store, &hook("m.sh"), &all);
    assert_eq!(
        lost,
        ["metric 'x' loses 137 of the samples of this run: its series have more than 64 labels altogether"]
    );
}

/// Writes a hook's file, and returns the texts of names that are reported as equal.
fn alike(store: &mut Store, text: &str) -> Vec<String> {
    let operations = parse(text).unwrap().operations;
    let applied = store.apply(&hook("m.sh"), operations);
    assert_eq!(applied.lost, []);
    applied.alike.iter().map(ToString::to_string).collect()
}

#[test]
fn names_that_become_one_are_told_once() {
    let mut store = Store::default();
    let written = r#"{"name": "a-b", "group": "g", "set": 1}
                     {"name": "a.b", "group": "g", "set": 2}
                     {"name": "a_b", "group": "g", "set": 3, "labels": {"l-m": "1", "l_m": "2", "c": "3"}}"#;
    let told = alike(&mut store, written);
    let names = told.iter().map(|told| told.split_once(" for a scraper").unwrap().0);
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "metrics 'a-b' and 'a.b' are both 'a_b'",
            "metrics 'a-b' and 'a_b' are both 'a_b'",
            "labels 'l_m' and 'l-m' of metric 'a_b' are both 'l_m'",
        ]
    );
    assert_eq!(alike(&mut store, written), [""; 0]);
    assert_eq!(alike(&mut store, r#"{"group": "g", "action": "expire"}"#), [""; 0]);
    assert_eq!(
        alike(&mut store, written),
        [""; 0],
        "they are known although they begin again"
    );
    assert_eq!(alike(&mut store, r#"{"group": "g", "action": "expire"}"#), [""; 0]);
    assert_eq!(
        alike(&mut store, r#"{"name": "a.b", "set": 2}"#),
        [""; 0],
        "what was alike is gone"
    );
    assert_eq!(alike(&mut store, r#"{"name": "a b", "set": 2}"#).len(), 1);
}

#[test]
fn lines_that_become_one_are_told() {
    let histogram = r#"{"name": "a-b", "action": "observe", "value": 1, "buckets": [1]}"#;
    let gauge = r#"{"name": "a_b_count", "set": 2}"#;
    for (first, second, names) in [
        (histogram, gauge, "'a-b' and 'a_b_count'"),
        (gauge, histogram, "'a_b_count' and 'a-b'"),
    ] {
        let mut store = Store::default();
        assert_eq!(alike(&mut store, first), [""; 0]);
        let told = alike(&mut store, second);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with(&format!(
                "lines of the metrics {names} are both 'a_b_count' for a scraper"
            )),
            "{told:?}"
        );
    }
}
