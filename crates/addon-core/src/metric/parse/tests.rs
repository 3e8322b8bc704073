use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Parsed {
    parse(text).unwrap()
}

/// The error with the chain of its sources.
fn refused(text: &str) -> String {
    let mut error: &dyn std::error::Error = &parse(text).unwrap_err();
    let mut report = error.to_string();
    while let Some(cause) = error.source() {
        report = report + ": " + &cause.to_string();
        error = cause;
    }
    report
}

fn finite(number: f64) -> Finite {
    Finite::try_from(number).unwrap()
}

fn sample(text: &str) -> Sample {
    match parsed(text).operations.remove(0).change {
        Change::Write { sample, .. } => sample,
        Change::Expire => panic!("{text} expires"),
    }
}

#[test]
fn every_action_is_read() {
    assert_eq!(
        sample(r#"{"name": "a", "action": "add", "value": 2}"#),
        Sample::Add(finite(2.0))
    );
    assert_eq!(
        sample(r#"{"name": "a", "action": "set", "value": -1.5e3}"#),
        Sample::Set(finite(-1500.0))
    );
    assert_eq!(sample(r#"{"name": "a", "add": 0.5}"#), Sample::Add(finite(0.5)));
    assert_eq!(sample(r#"{"name": "a", "set": 0}"#), Sample::Set(finite(0.0)));
    let observed = Sample::Observe {
        value: finite(3.0),
        buckets: Buckets::try_from(vec![finite(1.0), finite(5.0)]).unwrap(),
    };
    assert_eq!(
        sample(r#"{"name": "a", "action": "observe", "value": 3, "buckets": [1, 5]}"#),
        observed
    );
    let expire = parsed(r#"{"action": "expire", "group": "g"} {"action": "expire"}"#);
    let changes: Vec<_> = expire
        .operations
        .iter()
        .map(|op| (op.group.clone(), &op.change))
        .collect();
    assert_eq!(changes, [(Group::named("g"), &Change::Expire), (None, &Change::Expire)]);
}

#[test]
fn a_shortcut_counts_more_than_the_action() {
    assert_eq!(
        sample(r#"{"name": "a", "action": "observe", "value": 7, "set": 2}"#),
        Sample::Set(finite(2.0))
    );
}

#[test]
fn documents_need_nothing_between_them() {
    let found = parsed("{\"name\":\"a\",\"set\":1}{\"name\":\"b\",\"set\":1}\n\n {\"name\":\"c\",\n\"set\":1}");
    assert_eq!(found.operations.len(), 3);
    assert_eq!(parsed("").operations, []);
    assert_eq!(parsed(" \n\t\r\n").operations, []);
}

#[test]
fn null_is_absence_and_what_we_do_not_know_is_passed_over() {
    let found = parsed(
        r#"{"name": "a", "set": 1, "add": null, "group": "", "labels": {"x": null}, "buckets": null, "help": [1]}"#,
    );
    let Change::Write { name, labels, sample } = &found.operations[0].change else {
        panic!("it writes");
    };
    assert_eq!((name.as_str(), sample), ("a", &Sample::Set(finite(1.0))));
    assert_eq!(found.operations[0].group, None);
    assert_eq!(labels.values().collect::<Vec<_>>(), [""]);
}

#[test]
fn an_empty_list_of_buckets_stands_for_the_usual_ones() {
    let Sample::Observe { buckets, .. } = sample(r#"{"name": "a", "action": "observe", "value": 3, "buckets": []}"#)
    else {
        panic!("it observes");
    };
    assert_eq!(buckets.bounds().collect::<Vec<_>>(), super::super::DEFAULT_BUCKETS);
}

#[test]
fn what_is_of_no_use_is_dropped_and_told() {
    let found = parsed(
        r#"{"name": "a", "action": "multiply", "value": 1}
           {"name": "b", "value": 1}
           {"name": "c", "add": 1, "set": 2}
           {"name": "d", "add": -0.5}
           {}
           null
           {"name": "good", "action": "set", "value": 4}"#,
    );
    assert_eq!(found.operations.len(), 1);
    let told: Vec<String> = found.dropped.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 1: operation 1 on 'a' is dropped: 'multiply' is no action: one of add, set, observe and expire is needed",
            "line 2: operation 2 on 'b' is dropped: it has no action: one of add, set, observe and expire is needed",
            "line 3: operation 3 on 'c' is dropped: it has both 'add' and 'set'",
            "line 4: operation 4 on 'd' is dropped: a counter cannot grow by -0.5",
            "line 5: operation 5 is dropped: it has no action: one of add, set, observe and expire is needed",
            "line 6: operation 6 is dropped: it has no action: one of add, set, observe and expire is needed",
        ]
    );
}

#[test]
fn a_file_that_cannot_be_meant_is_refused_by_line_operation_and_field() {
    for (text, wanted) in [
        (
            "{\"name\": \"a\", \"set\": 1}\n\n{\"action\": \"add\", \"value\": 1}",
            "got bad metrics: line 3: operation 2: 'name' is required for 'add'",
        ),
        (
            r#"{"name": "", "set": 1}"#,
            "got bad metrics: line 1: operation 1 on '': 'name' is required for 'set'",
        ),
        (
            r#"{"name": "a", "action": "set"}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'value' is required for 'set'",
        ),
        (
            r#"{"name": "a", "action": "observe", "value": 1}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'buckets' is required for 'observe'",
        ),
        (
            r#"{"name": "a", "action": "observe", "buckets": [1]}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'value' is required for 'observe'",
        ),
        (
            r#"{"name": "a", "action": "observe", "value": 1, "buckets": [1, 3, 3]}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'buckets' cannot be used: bucket bounds must grow, but 3 follows 3",
        ),
        (
            r#"{"name": "a", "action": "observe", "value": 1, "buckets": [1, "3"]}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'buckets[1]' is a string, not a number",
        ),
        (
            r#"{"name": "a", "action": "observe", "value": 1, "buckets": [1], "labels": {"le": "x"}}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'labels' cannot be used: in a histogram 'le' stands for the bucket",
        ),
        (
            r#"{"name": "a", "set": "1"}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'set' is a string, not a number",
        ),
        (
            r#"{"name": 1, "set": 1}"#,
            "got bad metrics: line 1: operation 1: 'name' is a number, not a string",
        ),
        (
            r#"{"name": "a", "set": 1, "labels": {"x": 1}}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'labels.x' is a number, not a string",
        ),
        (
            r#"{"name": "a", "set": 1, "labels": ["x"]}"#,
            "got bad metrics: line 1: operation 1 on 'a': 'labels' is a list, not a map of strings",
        ),
        (
            "{\"name\": \"a\", \"set\": 1}\n[]",
            "got bad metrics: line 2: operation 2: it is a list, not an object",
        ),
        (
            "{\"name\": \"a\", \"set\": 1}\n{\"name\": \"b\" \"set\": 1}",
            "got bad metrics: expected `,` or `}` at line 2 column 14",
        ),
        (
            "{\"name\": \"a\",\n\"set\": 1",
            "got bad metrics: EOF while parsing an object at line 2 column 8",
        ),
        (
            "{\"name\": \"a\",\n\"set\": 1e999}",
            "got bad metrics: number out of range at line 2 column 12",
        ),
        ("name: a\nset: 1", "got bad metrics: expected ident at line 1 column 2"),
    ] {
        assert_eq!(refused(text), wanted);
    }
}

#[test]
fn a_name_that_no_page_can_show_drops_its_operation() {
    for (text, wanted) in [
        (
            r#"{"name": "a\u0000", "set": 1}"#,
            "'name' cannot be used: 'a\u{fffd}' is no metric name: it holds a NUL, which Prometheus cannot read",
        ),
        (
            r#"{"name": "a", "set": 1, "labels": {"": "x"}}"#,
            "'labels' cannot be used: a label name must not be empty",
        ),
        (
            r#"{"name": "a", "set": 1, "labels": {"__a": "x"}}"#,
            "'labels' cannot be used: '__a' is no label name: those that begin with two underscores belong to Prometheus",
        ),
    ] {
        let parsed = parse(&format!("{text} {{\"name\": \"stub-set-metric\", \"set\": 1}}")).unwrap();
        assert_eq!(parsed.operations.len(), 1, "{text}");
        let why: Vec<String> = parsed.dropped.iter().map(|dropped| dropped.why.to_string()).collect();
        assert_eq!(why, [wanted]);
    }
}

#[test]
fn a_deep_document_is_refused() {
    let deep = "{\"labels\":".repeat(100_000);
    assert!(refused(&deep).contains("recursion limit"));
}

proptest! {
    #[test]
    fn no_text_brings_it_down(text in r#"([{}\[\]:,"\\ \n]|name|set|add|value|"[a-z]{0,3}"|-?[0-9]{1,3}|null|\PC){0,40}"#) {
        let _ = parse(&text);
    }
}
