//! Upgrades that would change a field which the API server lets nobody change.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use addon_core::failure::Class;
use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::world::{CHART, PATIENCE, World, with_each_helm};

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {x: {{ .Values.one.x | quote }}}\n";
const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: c, image: i, args: [{{ .Values.one.x | quote }}]}]\n";
const BINDING: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Values.one.x | quote }}}\nsubjects: [{kind: ServiceAccount, name: default}]\n";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n  annotations: {addon-operator/replace: {{ .Values.one.replace | quote }}}\nspec:\n  replicas: 0\n  selector: {matchLabels: {x: {{ .Values.one.x }}}}\n  template:\n    metadata: {labels: {x: {{ .Values.one.x }}}}\n    spec: {containers: [{name: c, image: i}]}\n";
const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: p\n  annotations: {addon-operator/replace: \"true\"}\nspec:\n  storageClassName: {{ .Values.one.x }}\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Mi}}\n";

async fn world(prefix: &str, helm: Part, template: &str) -> World {
    let mut world = World::with(prefix, helm).await;
    let files = [
        ("Chart.yaml", CHART),
        ("templates/a.yaml", CONFIG_MAP),
        ("templates/b.yaml", template),
    ];
    world.module("one", &files).await;
    world
}

fn values(x: &str, replace: bool) -> Value {
    json!({"one": {"x": x, "replace": replace.to_string()}})
}

fn uid(world: &World, object: &str) -> String {
    world.kubectl(&format!("get {object} -o=jsonpath={{.metadata.uid}}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_costs_nothing_is_made_anew_and_all_else_stays() {
    with_each_helm(async |helm| {
        for (template, object, told) in [
            (JOB, "job/j", "Job/j (spec.template)"),
            (BINDING, "rolebinding/b", "RoleBinding/b (roleRef)"),
        ] {
            let world = world("anew", helm, template).await;
            world.sync(values("a", false)).await.unwrap();
            let (shown, before) = (uid(&world, "configmap/shown"), uid(&world, object));
            let synced = world.sync(values("b", false)).await.unwrap();
            assert_eq!(synced.replaced, [told]);
            assert_eq!(uid(&world, "configmap/shown"), shown);
            assert_ne!(uid(&world, object), before);
            assert_eq!(world.history(), "1:superseded 2:failed 3:deployed");
            assert_eq!(world.kubectl("get configmap/shown -o=jsonpath={.data.x}"), "b");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_marked_is_made_anew() {
    with_each_helm(async |helm| {
        let world = world("marked", helm, DEPLOYMENT).await;
        world.sync(values("a", true)).await.unwrap();
        let before = uid(&world, "deployment/d");
        let synced = world.sync(values("b", true)).await.unwrap();
        assert_eq!(synced.replaced, ["Deployment/d (spec.selector)"]);
        assert_ne!(uid(&world, "deployment/d"), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_module_lists_is_made_anew() {
    with_each_helm(async |helm| {
        let mut world = world("listed", helm, DEPLOYMENT).await;
        world.sync(values("a", false)).await.unwrap();
        let before = uid(&world, "deployment/d");
        world
            .module("one", &[("module.yaml", "replace: [Deployment/other]\n")])
            .await;
        assert_eq!(world.sync(values("b", false)).await.unwrap_err().class, Class::Blocked);
        // The list is an input of the upgrade, so an edit of it is no second try.
        world
            .module("one", &[("module.yaml", "replace: [Deployment/other, Deployment/d]\n")])
            .await;
        let synced = world.sync(values("b", false)).await.unwrap();
        assert_eq!(synced.replaced, ["Deployment/d (spec.selector)"]);
        assert_ne!(uid(&world, "deployment/d"), before);
    })
    .await;
}

/// Runs `module upgrade one` with these flags. Returns whether it succeeded, and its output.
fn upgrade(world: &World, flags: &[&str]) -> (bool, String) {
    let output = testbed::process::command(env!("CARGO_BIN_EXE_addon-operator"))
        .args(["module", "upgrade", "one", "--namespace", world.namespace.name()])
        .arg("--kube-config")
        .arg(world.namespace.kubeconfig(User::Operator))
        .args(flags)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), text.concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_names_is_made_anew_once() {
    with_each_helm(async |helm| {
        let world = world("named", helm, DEPLOYMENT).await;
        world.sync(values("a", false)).await.unwrap();
        let before = uid(&world, "deployment/d");
        assert_eq!(
            upgrade(&world, &[]),
            (true, "No upgrade of module 'one' is held\n".to_owned())
        );
        world.sync(values("b", false)).await.unwrap_err();
        let (is_good, text) = upgrade(&world, &[]);
        assert!(
            is_good && text.contains("spec.selector of Deployment/d") && text.contains("one --replace Deployment/d`"),
            "{text}"
        );
        for (flags, expected) in [
            (&["--replace", "Deployment/x"][..], "Deployment/d, which is not among"),
            (&["--replace", "PersistentVolumeClaim/d"], "is never replaced"),
            (&["--confirm"], "held for a field"),
        ] {
            let (is_good, text) = upgrade(&world, flags);
            assert!(!is_good && text.contains(expected), "{text}");
        }
        assert_eq!(world.sync(values("b", false)).await.unwrap_err().class, Class::Blocked);
        assert_eq!(uid(&world, "deployment/d"), before);

        let (is_good, text) = upgrade(&world, &["--replace", "job/x", "--replace", "deployment/d"]);
        assert!(is_good, "{text}");
        let synced = world.sync(values("b", false)).await.unwrap();
        assert_eq!(synced.replaced, ["Deployment/d (spec.selector)"]);
        let after = uid(&world, "deployment/d");
        assert_ne!(after, before);
        // The permission was for one upgrade.
        assert_eq!(world.sync(values("c", false)).await.unwrap_err().class, Class::Blocked);
        assert_eq!(uid(&world, "deployment/d"), after);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_upgrade_is_held_without_a_second_try_until_its_object_goes() {
    with_each_helm(async |helm| {
        let mut world = world("in-the-way", helm, DEPLOYMENT).await;
        world.sync(values("a", false)).await.unwrap();
        let before = uid(&world, "deployment/d");
        for _ in 0..2 {
            let failure = world.sync(values("b", false)).await.unwrap_err();
            assert_eq!(failure.class, Class::Blocked);
            assert!(
                failure.report.contains("change spec.selector of Deployment/d,"),
                "{failure}"
            );
            assert!(
                failure
                    .hints
                    .iter()
                    .any(|hint| hint.contains("`kubectl delete deployment d`")),
                "{:?}",
                failure.hints
            );
        }
        assert_eq!(world.history(), "1:deployed 2:failed");
        assert_eq!(uid(&world, "deployment/d"), before);
        // The note of the refusal outlives the process.
        world.restart().await;
        assert_eq!(world.sync(values("b", false)).await.unwrap_err().class, Class::Blocked);
        assert_eq!(world.history(), "1:deployed 2:failed");
        // Another upgrade is no longer that one.
        world.sync(values("a", false)).await.unwrap();
        world.sync(values("b", false)).await.unwrap_err();
        world.kubectl("delete deployment d");
        world.sync(values("b", false)).await.unwrap();
        assert_ne!(uid(&world, "deployment/d"), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_data_is_never_deleted_whatever_its_mark() {
    with_each_helm(async |helm| {
        let world = world("data", helm, CLAIM).await;
        world.sync(values("a", true)).await.unwrap();
        let before = uid(&world, "pvc/p");
        let failure = world.sync(values("b", true)).await.unwrap_err();
        assert_eq!(failure.class, Class::Blocked, "{failure}");
        assert!(failure.report.contains("PersistentVolumeClaim/p"), "{failure}");
        assert!(
            !failure.hints.iter().any(|hint| hint.contains("kubectl delete")),
            "{:?}",
            failure.hints
        );
        assert_eq!(uid(&world, "pvc/p"), before);
    })
    .await;
}

const STATEFUL_SET: &str = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: s\n  annotations: {addon-operator/replace: \"true\"}\nspec:\n  serviceName: {{ .Values.one.x }}\n  selector: {matchLabels: {app: s}}\n  template:\n    metadata: {labels: {app: s}}\n    spec: {containers: [{name: c, image: i}]}\n";

#[tokio::test(flavor = "multi_thread")]
async fn pods_stay_and_are_taken_over_by_what_is_made_anew() {
    with_each_helm(async |helm| {
        let world = world("pods", helm, STATEFUL_SET).await;
        world.sync(values("a", false)).await.unwrap();
        let owner = |world: &World| {
            let owner = world.namespace.kubectl([
                "get",
                "pod/s-0",
                "-o=jsonpath={.metadata.uid} {.metadata.ownerReferences[0].uid}",
            ]);
            owner.map_err(|error| format!("{error:#}"))
        };
        let owned_by_present = |world: &World| {
            let present = uid(world, "statefulset/s");
            let seen = owner(world)?;
            let (pod, by) = seen.split_once(' ').ok_or_else(|| seen.clone())?;
            Ok::<_, String>((by == present).then(|| (pod.to_owned(), present)))
        };
        let (pod, before) = wait_until(PATIENCE, "the set has its pod", || owned_by_present(&world)).unwrap();
        let synced = world.sync(values("b", false)).await.unwrap();
        assert_eq!(synced.replaced, ["StatefulSet/s (spec.serviceName)"]);
        let (still, now) = wait_until(PATIENCE, "the new set has the pod", || owned_by_present(&world)).unwrap();
        assert_eq!(still, pod, "the pod was never deleted");
        assert_ne!(now, before);
    })
    .await;
}
