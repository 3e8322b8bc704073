use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::config::{ConfigVersion, HookKind};
use super::*;

fn read(context: &BindingContext, version: ConfigVersion, snapshots: &Snapshots) -> Value {
    let mut file = Vec::new();
    write_file(&mut file, std::slice::from_ref(context), version, snapshots).unwrap();
    let mut list: Vec<Value> = serde_json::from_slice(&file).unwrap();
    assert_eq!(list.len(), 1);
    list.remove(0)
}

fn config(text: &str) -> HookConfig {
    HookConfig::parse(text, HookKind::Module).unwrap()
}

fn name(text: &str) -> BindingName {
    BindingName::parse(text).unwrap()
}

fn told(binding: &str, group: Option<&str>, snapshots: &[&str]) -> Told {
    Told {
        binding: name(binding),
        group: group.map(str::to_owned),
        snapshots: snapshots.iter().map(|binding| name(binding)).collect(),
        when: None,
    }
}

fn pod() -> ObjectView {
    let object = json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}});
    ObjectView {
        object: Some(Json::from(&object)),
        filter_result: Some(Json::from(&Value::Null)),
    }
}

fn pod_name() -> ObjectName {
    ObjectName {
        namespace: "ns".to_owned(),
        name: "p".to_owned(),
        kind: "Pod".to_owned(),
    }
}

#[test]
fn contexts_have_the_shapes_that_hooks_know() {
    let plain = config("configVersion: v1\nonStartup: 1\nbeforeHelm: 1");
    let watching =
        config("configVersion: v1\nafterHelm: 1\nkubernetes: [{name: pods, kind: Pod}, {name: jobs, kind: Job}]");
    let snapshots = Snapshots::from([(name("pods"), vec![pod()])]);
    let event = |told, object| BindingContext::Event {
        told,
        event: WatchEvent::Modified,
        name: pod_name(),
        object,
    };
    let review = |told, ask| BindingContext::Review {
        told,
        ask,
        review: Json::from(&json!({"request": {}})),
    };
    let pod_value = json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}});
    let rows = [
        (
            BindingContext::stage(Stage::OnStartup, &watching),
            json!({"binding": "onStartup"}),
        ),
        (
            BindingContext::stage(Stage::BeforeHelm, &plain),
            json!({"binding": "beforeHelm", "snapshots": {}}),
        ),
        (
            BindingContext::stage(Stage::AfterHelm, &watching),
            json!({"binding": "afterHelm",
                "snapshots": {"pods": [{"object": pod_value, "filterResult": null}], "jobs": []}}),
        ),
        (
            BindingContext::Schedule(told("s", None, &[])),
            json!({"binding": "s", "type": "Schedule"}),
        ),
        (
            BindingContext::Schedule(told("s", None, &["jobs"])),
            json!({"binding": "s", "type": "Schedule", "snapshots": {"jobs": []}}),
        ),
        (
            BindingContext::Schedule(told("s", Some("g"), &["jobs"])),
            json!({"binding": "s", "type": "Group", "groupName": "g", "snapshots": {"jobs": []}}),
        ),
        (
            BindingContext::Synchronization(told("jobs", None, &[])),
            json!({"binding": "jobs", "type": "Synchronization", "objects": []}),
        ),
        (
            BindingContext::Synchronization(told("pods", Some("g"), &[])),
            json!({"binding": "pods", "type": "Group", "groupName": "g"}),
        ),
        (
            event(told("pods", None, &[]), pod()),
            json!({"binding": "pods", "type": "Event", "watchEvent": "Modified", "object": pod_value, "filterResult": null}),
        ),
        (
            event(
                told("pods", None, &[]),
                ObjectView {
                    filter_result: Some(Json::from(&json!(1))),
                    ..ObjectView::default()
                },
            ),
            json!({"binding": "pods", "type": "Event", "watchEvent": "Modified", "filterResult": 1}),
        ),
        (
            review(told("a.b.c", Some("g"), &["jobs"]), Ask::Mutating),
            json!({"binding": "a.b.c", "type": "Mutating", "review": {"request": {}}, "snapshots": {"jobs": []}}),
        ),
        (
            review(
                told("x", None, &[]),
                Ask::Conversion {
                    from: "v1".to_owned(),
                    to: "v2".to_owned(),
                },
            ),
            json!({"binding": "x", "type": "Conversion", "fromVersion": "v1", "toVersion": "v2", "review": {"request": {}}}),
        ),
    ];
    for (context, expected) in rows {
        assert_eq!(read(&context, ConfigVersion::V1, &snapshots), expected);
        let back: BindingContext = serde_json::from_value(serde_json::to_value(&context).unwrap()).unwrap();
        assert_eq!(back, context);
    }
}

#[test]
fn contexts_without_a_version_tell_names_only() {
    let event = BindingContext::Event {
        told: told("p", None, &[]),
        event: WatchEvent::Deleted,
        name: pod_name(),
        object: ObjectView::default(),
    };
    assert_eq!(
        read(&event, ConfigVersion::V0, &Snapshots::new()),
        json!({"binding": "p", "resourceEvent": "delete", "resourceNamespace": "ns", "resourceKind": "Pod", "resourceName": "p"}),
    );
    let schedule = BindingContext::Schedule(told("s", None, &[]));
    assert_eq!(
        read(&schedule, ConfigVersion::V0, &Snapshots::new()),
        json!({"binding": "s"})
    );
    let stage = BindingContext::stage(Stage::BeforeHelm, &config("beforeHelm: 1"));
    assert_eq!(
        read(&stage, ConfigVersion::V0, &Snapshots::new()),
        json!({"binding": "beforeHelm"})
    );
}

#[test]
fn the_file_is_one_line_and_escaped() {
    let contexts = [
        BindingContext::Schedule(told("a<b>&c", None, &[])),
        BindingContext::Synchronization(told("s", None, &[])),
    ];
    let view = ObjectView {
        object: None,
        filter_result: Some(Json::from(&json!({"z": "<\u{2028}>", "a": "\"&"}))),
    };
    let mut file = Vec::new();
    let snapshots = Snapshots::from([(name("s"), vec![view])]);
    write_file(&mut file, &contexts, ConfigVersion::V1, &snapshots).unwrap();
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "[{\"binding\":\"a\\u003cb\\u003e\\u0026c\",\"type\":\"Schedule\"},\
         {\"binding\":\"s\",\"objects\":[{\"filterResult\":{\"a\":\"\\\"\\u0026\",\"z\":\"\\u003c\\u2028\\u003e\"}}],\
         \"type\":\"Synchronization\"}]\n",
    );
}

#[test]
fn a_run_reads_the_snapshots_that_it_is_told() {
    let wanted = |context: BindingContext| context.wanted_snapshots().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        wanted(BindingContext::Synchronization(told("pods", None, &["jobs"]))),
        ["jobs", "pods"]
    );
    assert_eq!(wanted(BindingContext::Schedule(told("s", None, &["jobs"]))), ["jobs"]);
}

/// A schedule with a condition must not take the place of a change, which has none.
#[test]
fn a_condition_holds_back_nothing_but_its_own_schedule() {
    let schedule = |snapshot: &str| {
        let mut told = told("s", Some("g"), &["jobs"]);
        told.when = Some(Condition {
            snapshots: vec![name(snapshot)],
            jq_filter: None,
        });
        BindingContext::Schedule(told)
    };
    let event = BindingContext::Event {
        told: told("p", Some("g"), &[]),
        event: WatchEvent::Deleted,
        name: pod_name(),
        object: ObjectView::default(),
    };
    let rows = [
        (vec![schedule("jobs")], true),
        (vec![schedule("jobs"), schedule("jobs")], true),
        (vec![schedule("jobs"), schedule("pods")], false),
        (vec![event.clone(), schedule("jobs")], false),
        (vec![schedule("jobs"), event.clone()], false),
        (vec![event, schedule("jobs"), schedule("jobs")], false),
    ];
    for (contexts, has_condition) in rows {
        for kept in [combined(contexts.clone()), compacted(contexts.clone())] {
            assert_eq!(kept.len(), 1);
            assert_eq!(kept[0].condition().is_some(), has_condition, "{contexts:?}");
        }
    }
    let wanted: Vec<_> = schedule("pods").wanted_snapshots().map(ToString::to_string).collect();
    assert_eq!(wanted, ["jobs", "pods"]);
}

fn context() -> impl Strategy<Value = BindingContext> {
    let group = prop::sample::select(vec![None, Some("g"), Some("h")]);
    ("[a-c]", group).prop_map(|(binding, group)| BindingContext::Schedule(told(&binding, group, &[])))
}

proptest! {
    #[test]
    fn combining_drops_only_what_its_neighbour_tells(contexts in prop::collection::vec(context(), 0..12)) {
        let expected: Vec<_> = contexts
            .iter()
            .enumerate()
            .filter(|(at, context)| {
                let next = contexts.get(at + 1).and_then(BindingContext::group);
                context.group().is_none() || context.group() != next
            })
            .map(|(_, context)| context.clone())
            .collect();
        prop_assert_eq!(combined(contexts), expected);
    }

    #[test]
    fn compacting_keeps_the_ungrouped_and_one_of_each_group(contexts in prop::collection::vec(context(), 0..12)) {
        let ungrouped = |contexts: &[BindingContext]| -> Vec<BindingContext> {
            contexts.iter().filter(|context| context.group().is_none()).cloned().collect()
        };
        let kept = compacted(contexts.clone());
        prop_assert_eq!(ungrouped(&kept), ungrouped(&contexts));
        for group in ["g", "h"] {
            let last = contexts.iter().rfind(|context| context.group() == Some(group));
            let of_group: Vec<_> = kept.iter().filter(|context| context.group() == Some(group)).collect();
            prop_assert_eq!(of_group, last.into_iter().collect::<Vec<_>>());
        }
    }
}
