//! Monitors: their selections, the changes that they report, and the watches that they share.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use addon_core::failure::Class;
use names::MonitorId;
use serde_json::{Value, json};
use testbed::plane::User;
use tokio_util::sync::CancellationToken;

use super::monitor_stage::{Stage, hook, until};

/// A binding for the `ConfigMap`s in the test's own namespace.
fn config_maps(more: Value) -> Value {
    let mut binding = json!({"kind": "ConfigMap", "namespace": {"nameSelector": {"matchNames": ["NS"]}},
        "fieldSelector": {"matchExpressions": [
            {"field": "metadata.name", "operator": "!=", "value": "kube-root-ca.crt"}]}});
    if let (Value::Object(binding), Value::Object(more)) = (&mut binding, more) {
        binding.extend(more);
    }
    binding
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_lists_watches_and_stops() {
    let mut stage = Stage::new("monitor").await;
    stage.put("a", "1");
    stage.put("b", "1");
    let ids = stage.start(1, json!([config_maps(json!({}))])).await.unwrap();
    assert_eq!(stage.shown(ids[0]), "a:1 b:1");
    assert_eq!(stage.read(ids[0]).seq, 0);
    stage.put("a", "2");
    stage.put("c", "1");
    stage.kubectl("delete configmap b");
    assert_eq!(stage.told(3).await, "1~a=a:2 1+c=c:1 1-b=b:1");
    assert_eq!(stage.shown(ids[0]), "a:2 c:1");
    assert_eq!(stage.read(ids[0]).seq, 3);
    let description = stage.monitors.describe(ids[0]).unwrap();
    assert_eq!(description.since_start.count, 2);
    assert_eq!(
        (description.since_start.added, description.since_start.modified),
        (3, 1),
        "objects of the first list count as added"
    );
    assert_eq!((description.since_start.deleted, description.since_run.deleted), (1, 1));
    stage.monitors.stop(&ids);
    assert_eq!(stage.monitors.watches(), 0);
    assert_eq!(stage.monitors.snapshot(&ids), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_of_watches_ends_after_all_of_them() {
    let stage = Stage::new("guard").await;
    let binding = json!([config_maps(json!({}))]);
    stage.start(1, binding.clone()).await.unwrap();
    let stop = CancellationToken::new();
    let mut guard = Box::pin(stage.monitors.guard(&stop));
    assert!(futures::poll!(&mut guard).is_pending());
    assert_eq!(stage.monitors.watches(), 1);
    stop.cancel();
    assert_eq!(guard.await, Ok(()));
    assert_eq!(stage.monitors.watches(), 0);
    let late = stage.start(2, binding).await.unwrap_err();
    assert_eq!(late.class, Class::Cancelled, "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_selector_selects() {
    let mut stage = Stage::new("select").await;
    for name in ["a", "b", "c"] {
        stage.put(name, "1");
    }
    stage.kubectl("label configmap a b tier=front");
    stage.kubectl("label configmap b color=red");
    let ids = stage
        .start(
            1,
            json!([
                // Objects by name, including names that do not exist.
                {"kind": "cm", "namespace": {"nameSelector": {"matchNames": ["NS", "NS-absent", "NS"]}},
                    "nameSelector": {"matchNames": ["c", "a", "z", "a"]}},
                config_maps(json!({"labelSelector": {"matchLabels": {"tier": "front"}}})),
                config_maps(json!({"labelSelector": {"matchLabels": {"tier": "front"}, "matchExpressions": [
                    {"key": "color", "operator": "NotIn", "values": ["red", "blue"]}]}})),
                {"apiVersion": "v1", "kind": "configmaps", "namespace": {"nameSelector": {"matchNames": ["NS"]}},
                    "fieldSelector": {"matchExpressions": [
                        {"field": "metadata.name", "operator": "Equals", "value": "b"}]}},
                // A kind without namespaces, and a kind in all namespaces.
                {"kind": "Namespace", "nameSelector": {"matchNames": ["NS"]}, "jqFilter": ".metadata.name"},
                {"kind": "ConfigMap", "nameSelector": {"matchNames": ["c"]}, "jqFilter": ".metadata.namespace"},
            ]),
        )
        .await
        .unwrap();
    let own = stage.namespace.name().to_owned();
    let shown: Vec<String> = ids.iter().map(|id| stage.shown(*id)).collect();
    assert_eq!(shown[..5], ["a:1 c:1", "a:1 b:1", "a:1", "b:1", own.as_str()]);
    assert!(shown[5].split(' ').any(|namespace| namespace == own), "{}", shown[5]);
    stage.monitors.stop(&ids[4..]);
    // An object that stops matching is reported as deleted, and one that begins to match as added.
    stage.kubectl("label configmap a tier-");
    let mut told: Vec<String> = Vec::new();
    for _ in 0..3 {
        told.push(stage.told(1).await);
    }
    told.sort();
    assert_eq!(told, ["1~a=a:1", "2-a=a:1", "3-a=a:1"]);
    stage.kubectl("label configmap c tier=front");
    let mut told: Vec<String> = Vec::new();
    for _ in 0..3 {
        told.push(stage.told(1).await);
    }
    told.sort();
    assert_eq!(told, ["1~c=c:1", "2+c=c:1", "3+c=c:1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_binding_looks_at_is_a_change() {
    let mut stage = Stage::new("filter").await;
    stage.put("a", "1");
    let ids = stage
        .start(
            1,
            json!([
                config_maps(json!({"jqFilter": ".data.x", "keepFullObjectsInMemory": false})),
                config_maps(json!({"jqFilter": ".data.x", "executeHookOnEvent": ["Deleted"]})),
                config_maps(json!({"keepFullObjectsInMemory": false, "executeHookOnEvent": []})),
            ]),
        )
        .await
        .unwrap();
    let first = stage.read(ids[1]);
    stage.kubectl("label configmap a noise=yes");
    stage.put("a", "2");
    assert_eq!(stage.told(1).await, "1~a=2", "a label is nothing to this filter");
    stage.until_shown(ids[1], "2");
    let second = stage.read(ids[1]);
    assert_eq!((first.seq, second.seq), (0, 1), "counted, and not told");
    let object = second.objects[0].object.as_ref().unwrap().to_value();
    assert_eq!(
        object.pointer("/metadata/labels/noise"),
        Some(&json!("yes")),
        "the whole object is kept up to date"
    );
    assert_eq!(object.pointer("/kind"), Some(&json!("ConfigMap")));
    assert_eq!(stage.read(ids[0]).objects[0].object, None);
    assert_eq!(
        stage.shown(ids[2]),
        "()",
        "no filter and no object leave nothing to show"
    );
    until("both changes of the third", || {
        let seq = stage.read(ids[2]).seq;
        if seq == 2 { Ok(()) } else { Err(seq.to_string()) }
    });
    stage.kubectl("delete configmap a");
    let mut told = [stage.told(1).await, stage.told(1).await];
    told.sort();
    assert_eq!(told, ["1-a=2", "2-a=2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_fails_drops_the_event_and_never_keeps_what_is_gone() {
    let mut stage = Stage::new("broken").await;
    stage.put("a", "1");
    let binding = json!([config_maps(
        json!({"jqFilter": ".data.x", "keepFullObjectsInMemory": false})
    )]);
    let ids = stage.start(1, binding.clone()).await.unwrap();
    stage.kubectl("patch configmap a --type=merge -p {\"data\":{\"x\":null,\"y\":\"1\"}}");
    // The failed filter has led to no report: the next report is about another object.
    stage.put("b", "1");
    assert_eq!(stage.told(1).await, "1+b=1");
    assert_eq!(stage.shown(ids[0]), "1 1", "the old state stays");
    let failure = stage.start(2, binding.clone()).await.unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    assert!(
        failure.report.contains("jqFilter of binding 'kubernetes'") && failure.report.ends_with("there is no /data/x"),
        "{failure}"
    );
    assert_eq!(stage.monitors.snapshot(&[MonitorId(2)]), [None]);
    stage.kubectl("delete configmap a");
    assert_eq!(stage.told(1).await, "1-a=1", "in the last state that could be told");
    assert_eq!(stage.shown(ids[0]), "1");
    stage.start(2, binding).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_panics_is_heard_of() {
    let mut stage = Stage::new("panic").await;
    let (sound, panicking) = (json!({"jqFilter": ".data.x"}), json!({"jqFilter": ".panic"}));
    let ids = stage
        .start(1, json!([config_maps(sound.clone()), config_maps(panicking)]))
        .await
        .unwrap();
    assert!(futures::poll!(Box::pin(stage.monitors.broken())).is_pending());
    stage.put("a", "1");
    let failure = stage.monitors.broken().await;
    assert_eq!(failure.class, Class::Defect);
    assert_eq!(failure.report, "a watch panicked: asked to");
    // Another hook can still watch the same objects.
    stage.monitors.stop(&ids);
    stage.start(3, json!([config_maps(sound)])).await.unwrap();
    stage.nothing_but("b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_secret_nothing_is_quoted() {
    let stage = Stage::new("secret").await;
    stage.kubectl("create secret generic s --from-literal=x=1");
    let namespace = json!({"nameSelector": {"matchNames": ["NS"]}});
    let binding = json!([{"kind": "Secret", "namespace": namespace, "jqFilter": ".data.y"}]);
    let failure = stage.start(1, binding).await.unwrap_err();
    assert!(failure.report.contains("Secret"), "{failure}");
    assert!(!failure.report.contains("/data/y"), "{failure}");
}

/// How often the operator has listed and watched our `ConfigMap`s so far; a watch counts when it has ended.
fn requests(stage: &Stage) -> BTreeMap<String, usize> {
    let audit = testbed::shared::plane().audit();
    let records = audit.since(audit.beginning()).unwrap().of(User::Operator);
    let mut counts = BTreeMap::new();
    for record in records.within(stage.namespace.name()).0 {
        *counts.entry(record.verb).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_selections_share_one_watch_and_objects_are_kept_once() {
    let mut stage = Stage::new("share").await;
    stage.put("a", "1");
    let equal = |filter: &str| config_maps(json!({"jqFilter": filter}));
    let ids = stage
        .start(
            1,
            json!([equal(".data.x"), equal(".metadata.name"), config_maps(json!({}))]),
        )
        .await
        .unwrap();
    assert_eq!(stage.monitors.watches(), 1);
    // Further monitors share the existing watch, without a request.
    let more = stage
        .start(
            10,
            json!([equal(".data"), config_maps(json!({"keepFullObjectsInMemory": false}))]),
        )
        .await
        .unwrap();
    assert_eq!(stage.monitors.watches(), 1);
    assert_eq!(stage.shown(more[0]), r#"{"x":"1"}"#);
    let object = |id| stage.read(id).objects[0].object.clone().unwrap();
    let first = object(ids[0]);
    for id in [ids[1], ids[2], more[0]] {
        assert!(object(id).is_shared_with(&first));
    }
    stage.put("a", "2");
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(stage.told(1).await);
    }
    told.sort();
    assert_eq!(
        told,
        ["10~a={\"x\":\"2\"}", "11~a=()", "1~a=2", "3~a=a:2"],
        "the monitor that filters by `.metadata.name` reports nothing"
    );
    stage.monitors.stop(&ids);
    stage.put("a", "3");
    assert_eq!(stage.monitors.watches(), 1, "the watch stays while a monitor uses it");
    stage.told(2).await;
    stage.monitors.stop(&more);
    assert_eq!(stage.monitors.watches(), 0);
    stage.monitors.shutdown().await;
    until("the end of the only watch", || {
        let counts = requests(&stage);
        let expected = BTreeMap::from([("watch".to_owned(), 1)]);
        if counts == expected {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_joins_where_nothing_is_kept_has_it_listed_again() {
    let mut stage = Stage::new("relist").await;
    stage.put("a", "1");
    let lean = |filter: &str| {
        json!([config_maps(
            json!({"jqFilter": filter, "keepFullObjectsInMemory": false})
        )])
    };
    let first = stage.start(1, lean(".data.x")).await.unwrap();
    let second = stage.start(2, lean(".metadata.name")).await.unwrap();
    assert_eq!(stage.monitors.watches(), 1);
    assert_eq!(
        (stage.shown(first[0]), stage.shown(second[0])),
        ("1".to_owned(), "a".to_owned())
    );
    stage.put("b", "1");
    let mut told = [stage.told(1).await, stage.told(1).await];
    told.sort();
    assert_eq!(told, ["1+b=1", "2+b=b"], "the listing was no news to the first");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_monitors_of_a_hook_start_or_none() {
    let stage = Stage::new("all").await;
    let failure = stage
        .start(
            1,
            json!([config_maps(json!({})), {"apiVersion": "example.com/v1", "kind": "Gadget"}]),
        )
        .await
        .unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    assert!(
        failure.report.ends_with(
            "Cannot get GroupVersionResource info for apiVersion 'example.com/v1' kind 'Gadget' from api-server. \
             Possibly CRD is not created before informers are started."
        ),
        "{failure}"
    );
    assert_eq!(stage.monitors.watches(), 0);
    assert_eq!(stage.monitors.snapshot(&[MonitorId(1), MonitorId(2)]), [None, None]);
    let failure = stage
        .start(
            1,
            json!([{"kind": "Node", "namespace": {"nameSelector": {"matchNames": ["NS"]}}}]),
        )
        .await
        .unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    assert_eq!(stage.monitors.watches(), 0);
    stage.monitors.shutdown().await;
}

// On one thread, so that the watch cannot have its first list when it is first seen.
#[tokio::test(flavor = "current_thread")]
async fn a_start_whose_caller_gives_up_leaves_no_watch() {
    let stage = Stage::new("given-up").await;
    let (hook, starts) = (hook(), stage.starts(1, &json!([config_maps(json!({}))])));
    let mut start = Box::pin(stage.monitors.start(&hook, starts));
    poll_fn(|context| {
        assert!(start.as_mut().poll(context).is_pending());
        if stage.monitors.watches() == 1 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    drop(start);
    assert_eq!(stage.monitors.watches(), 0);
    stage.monitors.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_come_and_go_by_their_labels() {
    let mut stage = Stage::new("moving").await;
    let label = stage.namespace.name().to_owned();
    let other = stage.namespace.plane().namespace("moving-other").unwrap();
    let put_other = |name: &str, x: &str| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": x}});
        let kubectl = other.kubectl_as(User::Admin);
        kubectl.apply(&object.to_string()).unwrap();
    };
    stage.kubectl(&format!("label namespace NS set={label}"));
    stage.put("a", "1");
    put_other("b", "1");
    let mut binding = config_maps(json!({"jqFilter": ".data.x"}));
    binding["namespace"] = json!({"labelSelector": {"matchLabels": {"set": label}},
        "nameSelector": {"matchNames": ["default"]}});
    let ids = stage.start(1, json!([binding])).await.unwrap();
    assert_eq!(stage.shown(ids[0]), "1", "labels win over names");
    // A namespace that begins to match adds its objects without reports. Later changes are reported.
    stage.kubectl(&format!("label namespace {} set={label}", other.name()));
    stage.until_shown(ids[0], "1 1");
    put_other("b", "2");
    assert_eq!(stage.told(1).await, "1~b=2");
    // A namespace that stops matching removes its objects without reports.
    stage.kubectl(&format!("label namespace {} set-", other.name()));
    stage.until_shown(ids[0], "1");
    put_other("b", "3");
    stage.nothing_but("c").await;
    assert_eq!(stage.read(ids[0]).seq, 2);
    // The namespace may match again.
    stage.kubectl(&format!("label namespace {} set={label}", other.name()));
    stage.until_shown(ids[0], "1 last 3");
    other.kubectl(["delete", "configmap", "b"]).unwrap();
    assert_eq!(stage.told(1).await, "1-b=3");
    assert_eq!(stage.monitors.watches(), 3);
    stage.monitors.shutdown().await;
    stage.monitors.stop(&ids);
    assert_eq!(stage.monitors.watches(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_never_older_than_what_was_told() {
    const CHANGES: usize = 600;
    let mut stage = Stage::new("fresh").await;
    stage.put("a", "0");
    let binding = config_maps(json!({"jqFilter": ".data.x", "keepFullObjectsInMemory": false}));
    let ids = stage.start(1, json!([binding])).await.unwrap();
    // More changes than the channel holds, while none is received: the watch waits and loses nothing.
    let writes = (1..=CHANGES).map(|x| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"x":"{x}"}}}}"#,
            name_of(x)
        )
    });
    let list = format!("[{}]", writes.collect::<Vec<_>>().join(","));
    let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":{list}}}"#);
    let kubectl = stage.namespace.kubectl_as(User::Admin);
    let writer = std::thread::spawn(move || kubectl.feed(["create", "-f", "-"], &list).unwrap());
    until("more changes than there is room for", || {
        let seq = stage.read(ids[0]).seq;
        if seq == 256 { Ok(()) } else { Err(seq.to_string()) }
    });
    for x in 1..=CHANGES {
        let change = stage.next().await;
        assert_eq!(change.seq, u64::try_from(x).unwrap());
        let reading = stage.read(ids[0]);
        assert!(reading.seq >= change.seq, "{} after {}", reading.seq, change.seq);
        let known = reading.objects.iter().filter_map(|view| view.filter_result.as_ref());
        assert!(
            known
                .into_iter()
                .any(|known| Some(known) == change.view.filter_result.as_ref()),
            "{change:?} was told before it was in the snapshot"
        );
    }
    writer.join().unwrap();
    assert_eq!(stage.read(ids[0]).objects.len(), CHANGES + 1);
}

fn name_of(x: usize) -> String {
    format!("m-{x}")
}
