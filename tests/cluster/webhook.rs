//! The API server calls our hooks through a Service, with a certificate that it verifies.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addon_core::failure::Class;
use addon_core::hook::config::HookKind;
use addon_core::review::Ended;
use addon_core::review::routes::Routes;
use certificates::authority::renewed;
use certificates::files::Files;
use fs_err as fs;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use webhooks::configurations::ensure::Source;
use webhooks::configurations::kept;

use self::stage::{Hook, SECRET, Stage, request, wrote};
use super::world::World;

const DAY: SignedDuration = SignedDuration::from_hours(24);

const ADMISSION: &str = r#"
configVersion: v1
kubernetesValidating:
- name: valid.@NS@.example.com
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: "@NS@"}}}
  labelSelector: {matchExpressions: [{key: let-pass, operator: DoesNotExist}]}
  matchConditions: [{name: not-the-root, expression: "object.metadata.name != 'kube-root-ca.crt'"}]
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE], scope: Namespaced}]
kubernetesMutating:
- name: change.@NS@.example.com
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: "@NS@"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE]}]
"#;

/// A hook that denies objects named `bad`, and labels all others.
fn judge() -> Hook {
    Arc::new(|run| {
        match (
            run.context.binding().starts_with("valid"),
            request(run)["name"].as_str(),
        ) {
            (true, Some("bad")) => wrote(&json!({"allowed": false, "message": "this one is bad"})),
            (true, _) => wrote(&json!({"allowed": true, "warnings": ["seen"]})),
            (false, Some("failing")) => Ended::Failed,
            // [{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}]
            (false, _) => wrote(&json!({"allowed": true, "patch":
            "W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL21ldGFkYXRhL2xhYmVscyIsICJ2YWx1ZSI6IHsiYnkiOiAiaG9vayJ9fV0="})),
        }
    })
}

const PROBE: &str = "create configmap bad --dry-run=server";

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_judged_and_changed_by_hooks() {
    let stage = Stage::new("judged", Source::Own, ADMISSION, judge()).await;
    let name = stage.name().to_owned();
    assert_eq!(
        stage.ensure().await,
        [
            format!("validatingwebhookconfigurations '{name}' created"),
            format!("mutatingwebhookconfigurations '{name}' created"),
        ]
    );
    stage.wait_for(PROBE, "denied the request: this one is bad");
    stage.wait_for(
        "create configmap failing --dry-run=server",
        "denied the request: Hook failed",
    );
    assert_eq!(stage.say("create configmap good"), "configmap/good created\n");
    assert_eq!(
        stage.say("get configmap good -o=jsonpath={.metadata.labels}"),
        r#"{"by":"hook"}"#
    );
    assert_eq!(
        stage.ensure().await,
        [] as [&str; 0],
        "the configurations in the cluster are the wanted ones"
    );

    // Another program empties one configuration and deletes the other.
    let nothing = r#"{"webhooks":[]}"#;
    stage.say(&format!(
        "patch validatingwebhookconfiguration {name} --type=merge -p={nothing}"
    ));
    stage.say(&format!("delete mutatingwebhookconfiguration {name}"));
    assert_eq!(
        stage.ensure().await,
        [
            format!("validatingwebhookconfigurations '{name}' updated"),
            format!("mutatingwebhookconfigurations '{name}' created"),
        ]
    );
    stage.wait_for(PROBE, "denied the request: this one is bad");

    let gone = stage
        .webhooks
        .ensure(&Routes::default(), Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        gone.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            format!("validatingwebhookconfigurations '{name}' removed"),
            format!("mutatingwebhookconfigurations '{name}' removed"),
        ]
    );
    stage.wait_for(PROBE, "configmap/bad created (server dry run)");
    let gone = stage.webhooks.ensure(&Routes::default(), Timestamp::now()).await;
    assert_eq!(gone, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_made_is_filled_and_emptied_but_not_removed() {
    let mut stage = Stage::new("foreign", Source::Own, ADMISSION, judge()).await;
    let name = stage.name().to_owned();
    stage
        .world
        .kubectl(&format!("create clusterrole {name} --verb=get --resource=pods"));
    stage.webhooks.owner = Some(name.clone());
    stage.apply(
        &json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"theirs": "yes"}}, "webhooks": []}),
    );
    stage.ensure().await;
    stage.wait_for(PROBE, "denied the request: this one is bad");
    let owners = "-o=jsonpath={.metadata.ownerReferences[*].kind}";
    assert_eq!(
        stage.say(&format!("get validatingwebhookconfiguration {name} {owners}")),
        ""
    );
    assert_eq!(
        stage.say(&format!("get mutatingwebhookconfiguration {name} {owners}")),
        "ClusterRole"
    );
    // The configurations belong to the role and are deleted with it.
    stage.say(&format!("delete clusterrole {name}"));
    stage.wait_for(&format!("get mutatingwebhookconfiguration {name}"), "not found");

    let changes = stage
        .webhooks
        .ensure(&Routes::default(), Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!("validatingwebhookconfigurations '{name}' updated")]
    );
    let shown = stage.say(&format!(
        "get validatingwebhookconfiguration {name} -o=jsonpath={{.metadata.labels}}{{.webhooks}}"
    ));
    assert_eq!(shown, r#"{"theirs":"yes"}"#);
    let again = stage.webhooks.ensure(&Routes::default(), Timestamp::now()).await;
    assert_eq!(again, Ok(Vec::new()), "an empty one stays as it is");
    stage.say(&format!("delete validatingwebhookconfiguration {name}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_is_late_leaves_it_to_the_failure_policy() {
    let stage = Stage::new(
        "late",
        Source::Own,
        ADMISSION,
        Arc::new(|_| Ended::Late(HookKind::Global)),
    )
    .await;
    let name = stage.name().to_owned();
    stage.ensure().await;
    stage.wait_for(PROBE, "global hook 'hook.sh' has not answered in time");
    for kind in ["validating", "mutating"] {
        let ignore = r#"[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]"#;
        stage.say(&format!(
            "patch {kind}webhookconfiguration {name} --type=json -p={ignore}"
        ));
    }
    stage.wait_for(PROBE, "configmap/bad created (server dry run)");
    stage
        .webhooks
        .ensure(&Routes::default(), Timestamp::now())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_refused_does_not_keep_others_out() {
    let mut stage = Stage::new("refused", Source::Own, ADMISSION, judge()).await;
    let name = stage.name().to_owned();
    let other = r#"
- name: other.@NS@.example.com
  matchConditions: [{name: broken, expression: "no expression"}]
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [nothing], operations: [CREATE]}]
"#;
    let names = |stage: &Stage| {
        stage.say(&format!(
            "get validatingwebhookconfiguration {name} -o=jsonpath={{.webhooks[*].name}}"
        ))
    };
    let (good, valid) = (stage.routes.clone(), format!("valid.{name}.example.com"));
    let config = ADMISSION.replace(
        "kubernetesMutating:",
        &format!("{}kubernetesMutating:", other.trim_start()),
    );
    stage.routes = stage::routes(&config.replace("@NS@", &name));
    let refused = stage
        .webhooks
        .ensure(&stage.routes, Timestamp::now())
        .await
        .unwrap_err();
    assert_eq!(refused.class, Class::Refused);
    assert!(
        refused.report.contains("webhooks[0].matchConditions[0].expression"),
        "{refused}"
    );
    assert_eq!(names(&stage), valid);
    stage.wait_for(PROBE, "denied the request: this one is bad");

    // The API server refuses the new configuration; the earlier, valid one stays.
    stage.routes = stage::routes(&config.replace("@NS@", &name).replace("no expression", "true"));
    stage.ensure().await;
    assert_eq!(names(&stage), format!("other.{name}.example.com {valid}"));
    stage.routes = stage::routes(&config.replace("@NS@", &name));
    stage
        .webhooks
        .ensure(&stage.routes, Timestamp::now())
        .await
        .unwrap_err();
    assert_eq!(names(&stage), format!("other.{name}.example.com {valid}"));
    stage.routes = good;
    stage.ensure().await;
    assert_eq!(names(&stage), valid);
    stage
        .webhooks
        .ensure(&Routes::default(), Timestamp::now())
        .await
        .unwrap();
}

/// Repeats requests to the API server until the flag is down. Returns the number of correct answers, and all other
/// answers.
async fn asked_all_the_time(stage: &Stage, go_on: &AtomicBool) -> (usize, Vec<String>) {
    let (mut answered, mut other) = (0, Vec::new());
    while go_on.load(Ordering::Relaxed) {
        let said = tokio::task::block_in_place(|| stage.say(PROBE));
        if said.contains("denied the request: this one is bad") {
            answered += 1;
        } else {
            other.push(said);
        }
        tokio::task::yield_now().await;
    }
    (answered, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_authority_and_certificate_are_replaced() {
    let stage = Stage::new("rotated", Source::Own, ADMISSION, judge()).await;
    let now = Timestamp::now();
    // An authority near its end, with a certificate that has to be replaced now.
    let names = ["admission", "conversion"].map(|service| format!("{service}.{}.svc", stage.name()));
    for days in [620, 61] {
        let then = now - DAY * days;
        kept::webhook_certificates(&stage.world.tools.ground.cluster, SECRET, &names, then)
            .await
            .unwrap();
    }
    stage.ensure_at(now - DAY * 61).await;
    stage.wait_for(PROBE, "denied the request: this one is bad");
    let served = stage.webhooks.admission.tls.served().unwrap();
    let go_on = AtomicBool::new(true);
    let rotating = async {
        assert_eq!(
            stage.ensure_at(now).await.len(),
            2,
            "both configurations are told of the new authority"
        );
        assert_eq!(stage.ensure_at(now).await, [] as [&str; 0]);
        // Existing connections may go on with the old certificate. The probes after this are new connections and get
        // the new one.
        for _ in 0..5 {
            tokio::task::block_in_place(|| stage.say(PROBE));
        }
        go_on.store(false, Ordering::Relaxed);
    };
    let ((answered, other), ()) = tokio::join!(asked_all_the_time(&stage, &go_on), rotating);
    assert_eq!(other, [] as [&str; 0]);
    assert!(answered > 0);
    let new = stage.webhooks.admission.tls.served().unwrap();
    assert_ne!(new, served);
    assert_eq!((served.authorities().len(), new.authorities().len()), (1, 2));
    stage.webhooks.ensure(&Routes::default(), now).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_in_files_are_followed_when_they_change() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files {
        cert: dir.path().join("tls.crt"),
        key: dir.path().join("tls.key"),
        ca: dir.path().join("ca.crt"),
    };
    fs::write(&files.ca, "").unwrap();
    let stage = Stage::new("files", Source::of(files.clone()), ADMISSION, judge()).await;
    let ensure = async || stage.webhooks.ensure(&stage.routes, Timestamp::now()).await;
    let missing = ensure().await.unwrap_err();
    assert_eq!(missing.class, Class::Invalid);
    let path = files.cert.display();
    assert!(
        missing
            .report
            .starts_with(&format!("cannot read the webhooks' certificate {path}: ")),
        "{missing}"
    );
    assert!(
        stage
            .say(&format!("get validatingwebhookconfiguration {}", stage.name()))
            .contains("not found")
    );

    let put = |host: &str| {
        let stored = renewed(None, &[host.to_owned()], Timestamp::now()).unwrap().unwrap();
        fs::write(&files.cert, stored.cert).unwrap();
        fs::write(&files.key, stored.key).unwrap();
        fs::write(&files.ca, stored.ca).unwrap();
    };
    put("elsewhere.example.com");
    let wrong = ensure().await.unwrap_err();
    assert!(
        wrong.report.starts_with(&format!(
            "cannot verify our own webhooks as admission.{}.svc",
            stage.name()
        )),
        "{wrong}"
    );
    let host = format!("admission.{}.svc", stage.name());
    for _ in 0..2 {
        put(&host);
        ensure().await.unwrap();
        stage.wait_for(PROBE, "denied the request: this one is bad");
        assert_eq!(ensure().await, Ok(Vec::new()));
    }
    // A new key without its certificate must not be used.
    fs::write(&files.key, "half").unwrap();
    let half = ensure().await.unwrap_err();
    assert_eq!(
        half.report,
        format!(
            "cannot use {}: it holds no private key in PEM form",
            files.key.display()
        )
    );
    assert!(stage.say(PROBE).contains("denied the request: this one is bad"));
    stage
        .webhooks
        .ensure(&Routes::default(), Timestamp::now())
        .await
        .unwrap();
}

const CONVERSION: &str = r#"
configVersion: v1
kubernetesCustomResourceConversion:
- name: widgets
  crdName: widgets.@NS@.example.com
  conversions:
  - {fromVersion: v1alpha1, toVersion: v1beta1}
  - {fromVersion: v1beta1, toVersion: "@NS@.example.com/v1"}
"#;

/// A hook that appends to each object the version to which it is converted.
fn convert() -> Hook {
    Arc::new(|run| {
        let mut request = request(run);
        let desired = request["desiredAPIVersion"].as_str().unwrap().to_owned();
        let group = desired.split('/').next().unwrap().to_owned();
        let objects = request["objects"].as_array_mut().unwrap();
        for object in &mut *objects {
            if object["metadata"]["name"] == "refused" {
                return wrote(&json!({"failedMessage": "size is missing"}));
            }
            let next = match object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap() {
                "v1alpha1" => "v1beta1",
                _ => "v1",
            };
            let way = object["way"].as_str().unwrap_or_default().to_owned() + ">" + next;
            object["way"] = json!(way);
            object["apiVersion"] = json!(format!("{group}/{next}"));
        }
        wrote(&json!({"convertedObjects": objects}))
    })
}

fn definition(group: &str) -> Value {
    let version = |name: &str, storage| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [version("v1alpha1", false), version("v1beta1", false), version("v1", true)]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_converted_step_by_step() {
    let stage = Stage::new("converted", Source::Own, CONVERSION, convert()).await;
    let group = format!("{}.example.com", stage.name());
    let missing = stage
        .webhooks
        .ensure(&stage.routes, Timestamp::now())
        .await
        .unwrap_err();
    assert_eq!(missing.class, Class::Unavailable);
    assert_eq!(
        missing.report,
        format!("cannot convert 'widgets.{group}': its CustomResourceDefinition does not exist yet")
    );
    let widget =
        |name: &str| json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Widget", "metadata": {"name": name}});
    stage.apply(&definition(&group));
    stage.say(&format!(
        "wait --for=condition=Established crd/widgets.{group} --timeout=30s"
    ));
    assert_eq!(
        stage.ensure().await,
        [format!("customresourcedefinitions 'widgets.{group}' updated")]
    );
    assert_eq!(stage.ensure().await, [] as [&str; 0]);

    // The API server does not know the webhook yet: until then it stores objects unconverted.
    let applied = || {
        stage.say(&format!("delete widgets.v1.{group} one --ignore-not-found"));
        stage.apply(&widget("one"));
        let way = stage.say(&format!("get widgets.v1.{group} one -o=jsonpath={{.way}}"));
        Ok::<_, std::io::Error>((way == ">v1beta1>v1").then_some(()))
    };
    testbed::wait::wait_until(super::world::PATIENCE, "a converted widget", applied).unwrap();
    let refused = stage.apply(&widget("refused"));
    assert!(refused.contains("size is missing"), "{refused}");
    stage.say(&format!("delete crd widgets.{group} --wait=false"));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_serves_with_the_certificates_that_came_first() {
    let world = World::new("kept").await;
    let cluster = &world.tools.ground.cluster;
    let names = ["a.b.svc".to_owned()];
    let now = Timestamp::now();
    let found = join_all((0..4).map(|_| kept::webhook_certificates(cluster, SECRET, &names, now))).await;
    let first = found[0].clone().unwrap();
    for other in found {
        assert_eq!(other.unwrap(), first);
    }
    // A Secret of another program, without the key of the authority, is never overwritten.
    world.kubectl(
        "create secret generic theirs --from-literal=tls.crt=a --from-literal=tls.key=b --from-literal=ca.crt=c",
    );
    let theirs = kept::webhook_certificates(cluster, "theirs", &names, now)
        .await
        .unwrap();
    assert_eq!((theirs.cert.as_str(), theirs.ca_key), ("a", None));
    world.kubectl("create secret generic half --from-literal=tls.crt=a");
    let half = kept::webhook_certificates(cluster, "half", &names, now)
        .await
        .unwrap_err();
    assert_eq!(
        half.report,
        "cannot use the certificates in secrets 'half': it has no 'ca.crt'"
    );
    // A Secret that was created empty for the operator is filled.
    world.kubectl("create secret generic empty");
    let filled = kept::webhook_certificates(cluster, "empty", &names, now).await.unwrap();
    assert_eq!(
        kept::webhook_certificates(cluster, "empty", &names, now).await.unwrap(),
        filled
    );
    // A broken Secret of the operator's own is replaced.
    let broken = r#"{"stringData":{"tls.crt":"garbage"}}"#;
    world.kubectl(&format!("patch secret {SECRET} -p={broken}"));
    let mended = kept::webhook_certificates(cluster, SECRET, &names, now).await.unwrap();
    assert_eq!(mended.ca, first.ca);
    assert_ne!(mended.cert, first.cert);
}
