use std::collections::{BTreeMap, BTreeSet};

use names::{HookId, HookName, ModuleName, Owner};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::super::name::{Group, LabelName};
use super::super::{Applied, Buckets, Change, Finite, Kind, Operation, Sample, parse};
use super::*;

fn hook(module: Option<&str>, name: &str) -> HookId {
    HookId {
        owner: module.map_or(Owner::Global, |module| ModuleName::parse(module).unwrap().into()),
        name: HookName::parse(name).unwrap(),
    }
}

#[test]
fn all_kinds_are_shown_as_prometheus_reads_them() {
    let mut store = Store::default();
    let written = r#"
        {"name": "count_total", "action": "add", "value": 2, "labels": {"kind": "a"}}
        {"name": "count_total", "action": "add", "value": 3, "labels": {"kind": "b"}}
        {"name": "count_total", "action": "add", "value": 4, "labels": {"kind": "b"}}
        {"name": "size", "action": "set", "value": 1.5}
        {"name": "size_two", "action": "set", "value": -7, "labels": {"z": "quote \" slash \\ line\nbreak", "a": ""}}
        {"name": "seconds", "action": "observe", "value": 3, "buckets": [1, 5, 10]}"#;
    assert_eq!(
        store.apply(&hook(None, "sub/m.sh"), parse(written).unwrap().operations),
        Applied::default()
    );
    assert_eq!(
        text(&store),
        r#"# HELP count_total count_total
# TYPE count_total counter
count_total{hook="sub/m.sh",kind="a"} 2
count_total{hook="sub/m.sh",kind="b"} 7
# HELP seconds seconds
# TYPE seconds histogram
seconds_bucket{hook="sub/m.sh",le="1"} 0
seconds_bucket{hook="sub/m.sh",le="5"} 1
seconds_bucket{hook="sub/m.sh",le="10"} 1
seconds_bucket{hook="sub/m.sh",le="+Inf"} 1
seconds_sum{hook="sub/m.sh"} 3
seconds_count{hook="sub/m.sh"} 1
# HELP size size
# TYPE size gauge
size{hook="sub/m.sh"} 1.5
# HELP size_two size_two
# TYPE size_two gauge
size_two{a="",hook="sub/m.sh",z="quote \" slash \\ line\nbreak"} -7
"#
    );
    assert_eq!(text(&Store::default()), "");
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-7.25, "-7.25"),
        (0.1, "0.1"),
        (0.0001, "0.0001"),
        (0.000_012_5, "1.25e-05"),
        (100_000.0, "100000"),
        (999_999.5, "999999.5"),
        (1_000_000.0, "1e+06"),
        (123_456_789.0, "1.23456789e+08"),
        (-1e21, "-1e+21"),
        (1e-300, "1e-300"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
    ] {
        assert_eq!(number(value), text);
    }
}

/// A series as a scraper sees it: name and labels, without empty ones.
type Read = (String, BTreeMap<String, String>);

/// Parses the text strictly by the rules of the format. Panics at the first invalid line.
fn read(text: &str) -> BTreeMap<Read, f64> {
    let mut series = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut family: Option<(String, String)> = None;
    for line in text.lines() {
        if line.starts_with("# HELP ") {
            continue;
        }
        if let Some(comment) = line.strip_prefix("# TYPE ") {
            let (name, kind) = read_name(comment);
            assert!(seen.insert(name.clone()), "two metrics of one name: {name}");
            family = Some((name, kind.strip_prefix(' ').unwrap().to_owned()));
            continue;
        }
        let (name, rest) = match line.strip_prefix('{') {
            Some(inside) => read_name(inside),
            None => read_name(line),
        };
        let rest = rest.trim_start_matches(['{', ',']);
        let (stem, kind) = family.as_ref().expect("the type comes first");
        match kind.as_str() {
            "histogram" => assert!(
                ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|end| name == stem.clone() + end)
            ),
            _ => assert_eq!(&name, stem),
        }
        let (labels, value) = read_labels(rest);
        let value: f64 = value.strip_prefix("} ").unwrap().parse().unwrap();
        assert!(
            series.insert((name.clone(), labels), value).is_none(),
            "a series twice: {line}"
        );
    }
    series
}

/// Reads a name, in quotes or in the older syntax.
fn read_name(text: &str) -> (String, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        return read_quoted(quoted);
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let (name, rest) = text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()));
    assert!(name.starts_with(|c: char| !c.is_ascii_digit()), "no name: {text}");
    (name.to_owned(), rest)
}

/// The text up to the quote, and the rest behind it.
fn read_quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next().expect("the quote is closed") {
            '"' => return (value, chars.as_str()),
            '\\' => value.push(match chars.next().unwrap() {
                'n' => '\n',
                same @ ('\\' | '"') => same,
                other => panic!("no such escape: {other}"),
            }),
            plain => value.push(plain),
        }
    }
}

fn read_labels(mut rest: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    while !rest.starts_with('}') {
        let label = rest.trim_start_matches(',');
        let (name, behind) = read_name(label);
        assert!(label.starts_with('"') || !name.contains(':'), "a colon: {label}");
        let (value, behind) = read_quoted(behind.strip_prefix("=\"").unwrap());
        let before = labels.insert(name, value);
        assert_eq!(before, None, "a label twice");
        rest = behind;
    }
    labels.retain(|_, value| !value.is_empty());
    (labels, rest)
}

/// The page after a hook wrote this file.
fn page_of(file: &str, escaping: Escaping) -> String {
    let mut store = Store::default();
    store.apply(&hook(None, "h.sh"), parse(file).unwrap().operations);
    page(&store, escaping, |value| Cow::Borrowed(value))
}

/// Compares with recorded pages of the original's store and Prometheus' library. If a recorded page cannot be parsed,
/// `unreadable` says why; our page must be parseable.
#[test]
fn pages_are_those_of_prometheus_library() {
    for line in include_str!("../../../tests/oracles/metric_pages.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| row[field].as_str();
        let escaping = Escaping::named(text("escaping").unwrap()).unwrap();
        let page = page_of(text("file").unwrap(), escaping);
        let same = text("unreadable").is_none();
        assert_eq!(Some(page.as_str()) == text("page"), same, "{row}\n{page}");
        read(&page);
    }
}

#[test]
fn metrics_that_become_one_share_a_place() {
    let gauges = r#"{"name": "a-b", "set": 1, "labels": {"l": "x"}} {"name": "a.b", "set": 2, "labels": {"l": "y"}}
                    {"name": "a_b", "set": 3, "labels": {"l": "x"}} {"name": "a b", "add": 4, "labels": {"l": "z"}}"#;
    assert_eq!(
        page_of(gauges, Escaping::Underscores),
        "# HELP a_b a_b\n# TYPE a_b gauge\na_b{hook=\"h.sh\",l=\"x\"} 3\na_b{hook=\"h.sh\",l=\"y\"} 2\n",
        "the name that needs no escaping comes first, and another kind is left out"
    );
    assert_eq!(page_of(gauges, Escaping::AllowUtf8).matches("# TYPE").count(), 4);
    let histogram =
        r#"{"name": "a-b", "action": "observe", "value": 1, "buckets": [1]} {"name": "a_b_count", "set": 2}"#;
    assert_eq!(
        page_of(histogram, Escaping::Underscores),
        "# HELP a_b_count a_b_count\n# TYPE a_b_count gauge\na_b_count{hook=\"h.sh\"} 2\n",
        "the lines of the histogram would have that name"
    );
}

#[test]
fn labels_that_become_one_have_the_first_value() {
    let labels = r#"{"name": "a", "set": 1, "labels": {"плод": "apple", "вещь": ""}}
                    {"name": "a", "set": 2, "labels": {"плод": "", "вещь": "book"}}
                    {"name": "a", "set": 3, "labels": {"плод": "apple", "вещь": "book"}}"#;
    let shown = read(&page_of(labels, Escaping::Underscores));
    let values = shown
        .iter()
        .map(|((_, labels), value)| (labels["____"].as_str(), *value));
    assert_eq!(
        values.collect::<Vec<_>>(),
        [("apple", 1.0), ("book", 2.0)],
        "the third would be the second once more"
    );
    assert_eq!(read(&page_of(labels, Escaping::AllowUtf8)).len(), 3);
}

prop_compose! {
    fn finite()(number in prop_oneof![-1e3..1e3, any::<f64>(), Just(f64::MAX)]) -> Finite {
        Finite::try_from(number).unwrap_or(Finite::try_from(0.0).unwrap())
    }
}

prop_compose! {
    fn bounds()(mut bounds in vec(finite(), 0..4)) -> Buckets {
        bounds.sort_by(|a, b| a.get().total_cmp(&b.get()));
        bounds.dedup();
        Buckets::try_from(bounds).unwrap()
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![
        finite().prop_map(|by| Sample::Add(Finite::try_from(by.get().abs()).unwrap())),
        finite().prop_map(Sample::Set),
        (finite(), bounds()).prop_map(|(value, buckets)| Sample::Observe { value, buckets }),
    ]
}

/// Operations on few names and labels, so that they often meet.
fn operation() -> impl Strategy<Value = Operation> {
    let name = prop_oneof!["[ab]", "[ab]_(sum|count|bucket)", "[ab][-.](sum|count)", "[ab] [-ж_]"];
    let label = prop_oneof![
        Just("x"),
        Just("y"),
        Just("hook"),
        Just("module"),
        Just("x-y"),
        Just("x_y"),
        Just("x:y"),
        Just("ж")
    ];
    let value = prop_oneof![Just(String::new()), "[ab]", "[\\PC\"\\\\\n}{,=]{0,4}"];
    let write = (name, vec((label, value), 0..3), sample()).prop_map(|(name, labels, sample)| Change::Write {
        name: MetricName::parse(&name).unwrap(),
        labels: labels
            .into_iter()
            .map(|(name, value)| (LabelName::parse(name).unwrap(), value))
            .collect(),
        sample,
    });
    let change = prop_oneof![8 => write, 1 => Just(Change::Expire)];
    (option::of("[gh]"), change).prop_map(|(group, change)| Operation {
        group: group.as_deref().and_then(Group::named),
        change,
    })
}

/// An operation on a metric whose name is no line of a histogram.
fn plain_operation() -> impl Strategy<Value = Operation> {
    operation().prop_map(|mut operation| {
        if let Change::Write { name, .. } = &mut operation.change {
            *name = MetricName::parse(&name.as_str()[..1]).unwrap();
        }
        operation
    })
}

/// The series of one hook: metric, labels, group, and the samples since the group began.
#[derive(Default)]
struct Model(Vec<Modelled>);

type Modelled = (MetricName, BTreeMap<String, String>, Option<Group>, Vec<Sample>);

impl Model {
    /// The number of lost samples.
    fn apply(&mut self, operations: &[Operation]) -> usize {
        for operation in operations {
            if operation.group.is_some() || operation.change == Change::Expire {
                self.0.retain(|(_, _, group, _)| *group != operation.group);
            }
        }
        let mut lost = 0;
        for Operation { group, change } in operations {
            let Change::Write { name, labels, sample } = change else {
                continue;
            };
            let mut labels: BTreeMap<_, _> = labels
                .iter()
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect();
            labels.insert("hook".to_owned(), "a".to_owned());
            labels.retain(|_, value| !value.is_empty());
            if self
                .0
                .iter()
                .any(|series| series.0 == *name && series.3[0].kind() != sample.kind())
            {
                lost += 1;
                continue;
            }
            match self.0.iter_mut().find(|series| series.0 == *name && series.1 == labels) {
                Some(series) if series.2 == *group => series.3.push(sample.clone()),
                Some(series) => (series.2, series.3) = (group.clone(), vec![sample.clone()]),
                None => self.0.push((name.clone(), labels, group.clone(), vec![sample.clone()])),
            }
        }
        lost
    }

    fn shown(&self) -> BTreeMap<Read, f64> {
        let mut shown = BTreeMap::new();
        for (name, labels, _, samples) in &self.0 {
            let mut show = |suffix, value| shown.insert((format!("{name}{suffix}"), labels.clone()), value);
            let (mut sum, mut count) = (0.0, 0.0);
            for sample in samples {
                count += 1.0;
                match sample {
                    Sample::Add(value) | Sample::Observe { value, .. } => sum += value.get(),
                    Sample::Set(value) => sum = value.get(),
                }
            }
            if samples[0].kind() == Kind::Histogram {
                show("_sum", sum);
                show("_count", count);
            } else {
                show("", sum);
            }
        }
        shown
    }
}

fn runs() -> impl Strategy<Value = Vec<(HookId, Vec<Operation>)>> {
    let hook = prop_oneof![Just(hook(None, "a")), Just(hook(None, "b")), Just(hook(Some("a"), "a")),];
    vec((hook, vec(operation(), 0..8)), 0..8)
}

proptest! {
    #[test]
    fn whatever_hooks_write_prometheus_can_read(runs in runs()) {
        let mut store = Store::default();
        for (hook, operations) in &runs {
            store.apply(hook, operations.clone());
            for escaping in Escaping::ALL {
                let shown = page(&store, escaping, |value| Cow::Borrowed(value));
                for ((_, labels), _) in read(&shown) {
                    prop_assert!(labels.contains_key("hook"));
                }
            }
        }
        store.forget(&Owner::Global);
        for ((_, labels), _) in read(&text(&store)) {
            prop_assert_eq!(labels.get("module").map(String::as_str), Some("a"));
        }
        store.forget(&ModuleName::parse("a").unwrap().into());
        prop_assert_eq!(text(&store), "");
    }

    /// Compares the store with the simplest implementation: a list of series that is searched from end to end.
    #[test]
    fn every_sample_is_shown_or_told_as_lost(runs in vec(vec(plain_operation(), 0..10), 0..6)) {
        let hook = hook(None, "a");
        let mut store = Store::default();
        let mut model = Model::default();
        for operations in &runs {
            let applied = store.apply(&hook, operations.clone());
            let lost: usize = applied.lost.iter().map(|lost| lost.samples).sum();
            prop_assert_eq!(lost, model.apply(operations));
            let mut shown = read(&page(&store, Escaping::AllowUtf8, |value| Cow::Borrowed(value)));
            shown.retain(|(name, _), _| !name.ends_with("_bucket"));
            prop_assert_eq!(shown, model.shown());
        }
    }

    #[test]
    fn a_number_is_read_back_as_it_was(value in any::<f64>()) {
        prop_assume!(!value.is_nan());
        prop_assert_eq!(number(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
}
