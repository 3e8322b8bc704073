//! The chain of rules from one version to another, and the reply if it breaks.

use super::*;

#[test]
fn versions_match_with_and_without_their_group() {
    for (one, other, wanted) in [
        ("v1beta1", "v1beta1", true),
        ("a/v1beta1", "v1beta1", true),
        ("a/v1beta1", "a/v1beta1", true),
        ("v1beta1", "a/v1beta1", true),
        ("b/v1beta1", "a/v1beta1", false),
        ("v1", "v1beta1", false),
        ("a/v1", "v1beta1", false),
        ("a", "a/v1", false),
    ] {
        assert_eq!(matches(one, other), wanted, "{one} {other}");
        assert_eq!(matches(other, one), wanted, "{other} {one}");
    }
}

#[test]
fn the_way_is_the_shortest_then_the_most_exact_then_the_first() {
    let way = |rules: &[(&str, &str)], from: &str, to: &str| {
        let mut chain = Chain::default();
        for (number, (from, to)) in rules.iter().enumerate() {
            let (from_version, to_version) = ((*from).to_owned(), (*to).to_owned());
            chain.add(
                ConversionRule {
                    from_version,
                    to_version,
                },
                number,
            );
        }
        let path = chain.path(from, to);
        path.map(|steps| steps.iter().map(|(_, number)| *number).collect::<Vec<_>>())
    };
    let line = [("v1", "v2"), ("v2", "v3"), ("v3", "v4")];
    assert_eq!(way(&line, "g/v1", "g/v4"), Some(vec![0, 1, 2]));
    assert_eq!(way(&line, "g/v2", "g/v4"), Some(vec![1, 2]));
    assert_eq!(way(&line, "g/v4", "g/v1"), None);
    assert_eq!(way(&line, "g/v1", "g/v9"), None);
    // A version that only begins like another one does not match it.
    assert_eq!(
        way(&[("v1alpha1", "v1"), ("v1beta1", "v2")], "g/v1alpha1", "g/v2"),
        None
    );
    // Versions of different groups do not match.
    assert_eq!(way(&[("a/v1", "v2")], "b/v1", "b/v2"), None);
    assert_eq!(way(&[("v1", "a/v2"), ("b/v2", "v3")], "b/v1", "b/v3"), None);
    // A shorter chain comes before an earlier one.
    let shortcut = [("v1", "v2"), ("v2", "v3"), ("v1", "v3")];
    assert_eq!(way(&shortcut, "g/v1", "g/v3"), Some(vec![2]));
    // Of equal chains the one that was declared first is taken.
    let diamond = [("v1", "b"), ("v1", "a"), ("a", "v9"), ("b", "v9")];
    assert_eq!(way(&diamond, "g/v1", "g/v9"), Some(vec![0, 3]));
    // A chain with both ends spelled as in the request comes first, then one with the same end, then one with the same start.
    let spelled = [("v1", "v2"), ("g/v1", "v2"), ("v1", "g/v2"), ("g/v1", "g/v2")];
    assert_eq!(way(&spelled, "g/v1", "g/v2"), Some(vec![3]));
    assert_eq!(way(&spelled[..3], "g/v1", "g/v2"), Some(vec![2]));
    assert_eq!(way(&spelled[..2], "g/v1", "g/v2"), Some(vec![1]));
    // The search ends in spite of circles.
    assert_eq!(way(&[("v1", "v2"), ("v2", "v1"), ("v2", "v2")], "g/v1", "g/v3"), None);
    assert_eq!(way(&[("v1", "v1")], "g/v1", "g/v2"), None);
}

#[test]
fn a_pair_belongs_to_whoever_declared_it_first() {
    let routes = routes(&[
        ("one", converter(&[("v1", "v2")])),
        ("two", converter(&[("v1", "v2"), ("v2", "v3")])),
    ]);
    let (steps, answer) = convert(&routes, conversion("g/v3", &[("g/v1", "a")]));
    assert_eq!(steps, ["one v1->v2", "two v2->v3"]);
    assert_eq!(answer["response"]["result"]["status"], json!("Success"));
    assert_eq!(answer["response"]["convertedObjects"], json!([widget("g/v3", "a")]));
}

#[test]
fn several_source_versions_are_converted_in_the_order_in_which_they_are_seen() {
    let rules = [("g/v1beta1", "g/v1"), ("g/v1alpha1", "g/v1")];
    let routes = routes(&[("one", converter(&rules))]);
    let request = conversion(
        "g/v1",
        &[
            ("g/v1alpha1", "a"),
            ("g/v1beta1", "b"),
            ("g/v1", "c"),
            ("g/v1alpha1", "d"),
        ],
    );
    let (steps, answer) = convert(&routes, request);
    assert_eq!(steps, ["one g/v1alpha1->g/v1", "one g/v1beta1->g/v1"]);
    let names = answer["response"]["convertedObjects"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn a_version_that_an_earlier_way_has_converted_needs_no_run() {
    let routes = routes(&[("one", converter(&[("g/v1", "g/v2"), ("g/v2", "g/v3")]))]);
    let request = conversion("g/v3", &[("g/v1", "a"), ("g/v2", "b")]);
    assert_eq!(convert(&routes, request).0, ["one g/v1->g/v2", "one g/v2->g/v3"]);
}

#[test]
fn every_step_is_told_the_last_version_and_its_own() {
    let routes = routes(&[("one", converter(&[("v1", "v2"), ("v2", "v3")]))]);
    let (mut review, run) = running(routes.open("/widgets.example.com", conversion("g/v3", &[("g/v1", "a")])));
    let Progress::Run(second) = review.resume(converted_by(&run).1) else {
        unreachable!()
    };
    let context = told(&second);
    let request = &context["review"]["request"];
    assert_eq!(
        (&context["fromVersion"], &context["toVersion"]),
        (&json!("v2"), &json!("v3"))
    );
    assert_eq!(request["desiredAPIVersion"], json!("g/v3"));
    assert_eq!(request["objects"], json!([widget("g/v2", "a")]));
    assert_eq!((&request["uid"], second.timeout.as_secs()), (&json!("1"), 30));
}

#[test]
fn a_conversion_with_nothing_to_do_succeeds() {
    let empty = Routes::default();
    for objects in [&[("g/v1", "a")][..], &[]] {
        let (steps, answer) = convert(&empty, conversion("g/v1", objects));
        assert_eq!(
            (steps, &answer["response"]["result"]["status"]),
            (vec![], &json!("Success"))
        );
    }
}

#[test]
fn every_failure_of_a_conversion_has_its_message() {
    let routes = routes(&[("one", converter(&[("g/v1", "g/v2")]))]);
    let two = [("g/v1", "a"), ("g/v1", "b")];
    let objects = |objects: &[Value]| wrote("", &json!({"convertedObjects": objects}).to_string());
    let mut other_kind = widget("g/v2", "a");
    other_kind["kind"] = json!("Gadget");
    let unsuccessful = "Conversion widgets.example.com to g/v2 was not successful";
    let rows = [
        (Ended::Failed, "Hook failed to convert to g/v2"),
        (
            Ended::Late(HookKind::Global),
            "Hook failed to convert to g/v2: global hook 'one' has not answered in time",
        ),
        (wrote("{}", ""), "handle ConversionReview: hook task prop error"),
        (wrote("", "{}"), unsuccessful),
        (wrote("", r#"{"failedMessage": "size is missing"}"#), "size is missing"),
        (objects(&[widget("g/v1", "a"), widget("g/v2", "b")]), unsuccessful),
        (objects(&[widget("g/v2", "a")]), "hook returned 1 objects instead of 2"),
        (
            objects(&[widget("g/v2", "b"), widget("g/v2", "a")]),
            "hook changed metadata.name of object 0, Widget ns/a",
        ),
        (
            objects(&[other_kind, widget("g/v2", "b")]),
            "hook changed kind of object 0, Widget ns/a",
        ),
    ];
    for (ended, wanted) in rows {
        assert!(routes.converts_at("/widgets.example.com"));
        let (mut review, _) = running(routes.open("/widgets.example.com", conversion("g/v2", &two)));
        let answer = answered(review.resume(ended.clone()));
        assert_eq!(
            answer["response"],
            json!({"uid": "1", "convertedObjects": null,
                "result": {"status": "Failure", "message": wanted, "metadata": {}}}),
            "{ended:?}"
        );
    }
    for (path, request, wanted) in [
        (
            "/widgets.example.com",
            conversion("g/v9", &two),
            "Conversion widgets.example.com to g/v9 was not successful",
        ),
        (
            "/others.example.com",
            conversion("g/v2", &two),
            "Conversion others.example.com to g/v2 was not successful",
        ),
    ] {
        let Opened::Answered(reply) = routes.open(path, request) else {
            unreachable!()
        };
        assert_eq!(body(&reply)["response"]["result"]["message"], json!(wanted));
    }
}
