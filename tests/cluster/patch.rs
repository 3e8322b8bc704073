//! The object patches of hooks, on a real API server.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

mod apply;
mod change;
mod create;
mod delete;
mod event;
mod finalizer;
mod status;

use std::convert::Infallible;
use std::path::PathBuf;

use addon_core::failure::{Class, Failure};
use addon_core::object::patch;
use fs_err as fs;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use objects::Patcher;
use releases::interception;
use serde_json::{Value, json};
use testbed::plane::User;
use testbed::wait::wait_until;
use tokio_util::sync::CancellationToken;

use super::hook_tools::meters;
use super::world::{PATIENCE, World};

/// A namespace in which the tests carry out patches.
pub(super) struct Stage {
    world: World,
    patcher: Patcher,
}

impl Stage {
    async fn new(prefix: &str) -> Self {
        let world = World::new(prefix).await;
        let patcher = patcher(world.tools.ground.cluster.clone());
        Self { world, patcher }
    }

    /// Replaces the client by one with another kubeconfig or server.
    async fn reached_by(&mut self, kubeconfig: PathBuf, server: Option<&str>) -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let address = Address {
            kube_config: vec![kubeconfig],
            server: server.map(str::to_owned),
            ..Address::default()
        };
        let cluster = Cluster::connect(&address, self.namespace(), Some(dir.path()), meters())
            .await
            .unwrap();
        self.patcher = patcher(cluster.clone());
        cluster
    }

    fn namespace(&self) -> &str {
        self.world.namespace.name()
    }

    /// Carries out the patches of a file; `NS` stands for the namespace.
    async fn apply(&self, text: &str) -> Result<(), Failure> {
        let operations = patch::parse(&text.replace("NS", self.namespace())).unwrap();
        self.patcher.apply(&operations, &CancellationToken::new()).await
    }

    /// An object as JSON; null if it does not exist.
    fn object(&self, object: &str) -> Value {
        let text = self
            .world
            .kubectl(&format!("get {object} --ignore-not-found --output=json"));
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn data(&self, name: &str) -> Value {
        self.object(&format!("configmap {name}"))["data"].clone()
    }

    /// Creates objects with kubectl.
    fn given(&self, manifests: &[Value]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        fs::write(file.path(), list.to_string()).unwrap();
        self.world
            .kubectl(&format!("create --filename={}", file.path().display()));
    }
}

fn patcher(cluster: Cluster) -> Patcher {
    Patcher::new(cluster.clone(), Kinds::new(cluster), jq)
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Programs that stand in for jq: only the few that these tests use.
fn jq(program: &str, object: &Value) -> Result<Vec<Value>, Failure> {
    let mut made = object.clone();
    match program.split_once(' ').unwrap_or((program, "")) {
        (".", "") => {}
        (".,.", "") => return Ok(vec![made.clone(), made]),
        ("empty", "") => return Ok(Vec::new()),
        ("error", text) => return Err(Failure::new(Class::HookFailed, text)),
        ("set", text) => {
            let (pointer, value) = text.split_once(' ').unwrap();
            set(&mut made, pointer, serde_json::from_str(value).unwrap());
        }
        ("meanwhile", times) => {
            interfere(object, times.parse().unwrap());
            set(&mut made, "/data/by", json!("us"));
        }
        // The same object with a number written in another form.
        ("float", pointer) => {
            interfere(object, u32::MAX);
            let whole = object.pointer(pointer).and_then(Value::as_f64).unwrap();
            set(&mut made, pointer, json!(whole));
        }
        other => unreachable!("nobody wrote {other:?}"),
    }
    Ok(vec![made])
}

/// Another program writes to the object this many times while the filter runs.
fn interfere(object: &Value, times: u32) {
    let metadata = &object["metadata"];
    let seen: u32 = metadata["annotations"]["seen"].as_str().unwrap_or("0").parse().unwrap();
    if seen == times {
        return;
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let kind = format!("{}.{version}.{group}", text(&object["kind"]));
    let annotation = format!("seen={}", seen + 1);
    let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
    let arguments = [
        "annotate",
        &kind,
        &name,
        &annotation,
        "--overwrite",
        "--namespace",
        &namespace,
    ];
    testbed::shared::plane().kubectl(arguments).unwrap();
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for key in pointer.split('/').skip(1) {
        place = &mut place[key];
    }
    *place = value;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_follow_each_other_and_a_failure_stops_none() {
    let stage = Stage::new("patch-order").await;
    let failure = stage
        .apply(
            r#"{"operation": "Create", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "NS"}}}
               {"operation": "MergePatch", "kind": "cm", "namespace": "NS", "name": "a", "mergePatch": {"data": {"step": "1"}}}
               {"operation": "MergePatch", "kind": "cm", "namespace": "NS", "name": "none", "mergePatch": {"data": {"step": "1"}}}
               {"operation": "MergePatch", "kind": "cm", "namespace": "NS", "name": "a", "mergePatch": {"data": {"step": "2"}}}
               {"operation": "Create", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "NS"}}}"#,
        )
        .await
        .unwrap_err();
    assert_eq!(stage.data("a"), json!({"step": "2"}));
    let expected = format!(
        "Filter object cm/{ns}/none: MergePatch: cannot patch configmaps 'none' in namespace '{ns}': \
         configmaps \"none\" not found; \
         Create object v1/ConfigMap/{ns}/a: cannot create configmaps 'a' in namespace '{ns}': \
         configmaps \"a\" already exists",
        ns = stage.namespace()
    );
    assert_eq!((failure.class, failure.report), (Class::Refused, expected));
    assert_eq!(
        failure.hints,
        [
            "with 'ignoreMissingObject: true' an object that is not there is no failure",
            "CreateOrUpdate replaces an object that is there, and CreateIfNotExists leaves it as it is",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_tells_nothing_is_explained() {
    let stage = Stage::new("patch-hints").await;
    let create = "operation: Create\nobject: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS}}";
    stage.apply(create).await.unwrap();
    let unfit =
        "operation: JSONPatch\nkind: ConfigMap\nnamespace: NS\nname: a\njsonPatch: [{op: remove, path: /data/x}]";
    let failure = stage.apply(unfit).await.unwrap_err();
    let unfit = "a step of the patch does not fit the object: its path is not there, or its test failed";
    assert_eq!(failure.hints, [unfit], "{failure}");
    let failure = stage.apply(&create.replace("NS", "patch-nowhere")).await.unwrap_err();
    assert_eq!(
        failure.hints,
        ["create the namespace 'patch-nowhere' first"],
        "{failure}"
    );
    let quota = ["create", "quota", "none", "--hard=count/configmaps=0"];
    stage.world.namespace.kubectl(quota).unwrap();
    let counts = || {
        !stage
            .world
            .kubectl("get quota none --output=jsonpath={.status.hard}")
            .is_empty()
    };
    let look = || Ok::<_, Infallible>(counts().then_some(()));
    wait_until(PATIENCE, "the quota to count", look).unwrap();
    let failure = stage.apply(&create.replace("name: a", "name: b")).await.unwrap_err();
    assert!(failure.hints[0].starts_with("raise the quota"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_request_to_stop_no_operation_begins() {
    let stage = Stage::new("patch-stop").await;
    let create = r#"{"operation": "Create", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "NS"}}}"#;
    let operations = patch::parse(&create.replace("NS", stage.namespace())).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let failure = stage.patcher.apply(&operations, &cancel).await.unwrap_err();
    assert_eq!(
        (failure.class, &*failure.report),
        (Class::Cancelled, "stopped after 0 of 1 object patches")
    );
    assert_eq!(stage.object("configmap a"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_nobody_serves_is_named_and_so_is_what_was_to_be_done() {
    let stage = Stage::new("patch-kind").await;
    let delete = "operation: DeleteInBackground\napiVersion: example.com/v1\nkind: Gadget\nname: a\nnamespace: NS";
    let failure = stage.apply(delete).await.unwrap_err();
    let ns = stage.namespace();
    assert!(
        failure.report.starts_with(&format!(
            "Delete object example.com/v1/Gadget/{ns}/a: DeleteInBackground: Cannot get GroupVersionResource info"
        )),
        "{failure}"
    );
    assert_eq!(failure.class, Class::Refused);
    assert!(failure.hints[0].contains("CRD"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_where_no_object_can_be_is_said_before_anything_is_asked() {
    let stage = Stage::new("patch-place").await;
    let nowhere = "operation: Create\nobject: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    let failure = stage.apply(nowhere).await.unwrap_err();
    assert_eq!(
        failure.report,
        "Create object v1/ConfigMap/a: objects of kind ConfigMap live in namespaces, and none is named"
    );
    let inside =
        "operation: MergePatch\nkind: Namespace\nnamespace: NS\nname: NS\nmergePatch: {metadata: {labels: {a: b}}}\n";
    let failure = stage.apply(inside).await.unwrap_err();
    assert_eq!(failure.class, Class::HookFailed);
    assert!(failure.report.contains("live in no namespace"), "{failure}");
    // A kind that does not exist cannot have objects, so its deletion succeeds.
    stage
        .apply(&format!("{inside}ignoreMissingObject: true"))
        .await
        .unwrap();
    stage
        .apply("operation: Delete\nkind: Namespace\nnamespace: NS\nname: NS")
        .await
        .unwrap();
    stage
        .apply("operation: Delete\nkind: ConfigMap\nname: kube-root-ca.crt")
        .await
        .unwrap();
    assert_eq!(
        stage.object("configmap kube-root-ca.crt")["metadata"]["deletionTimestamp"],
        Value::Null
    );
    let namespace = stage.object(&format!("namespace {}", stage.namespace()));
    assert_eq!(namespace["status"]["phase"], "Active");
    assert_eq!(namespace["metadata"]["labels"]["a"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_a_matter_of_time() {
    let mut stage = Stage::new("patch-gone").await;
    let kubeconfig = stage.world.namespace.kubeconfig(User::Operator);
    // Port 1 is reserved, and connections to it are refused.
    stage.reached_by(kubeconfig, Some("https://127.0.0.1:1")).await;
    let failure = stage
        .apply("operation: Delete\nkind: cm\nnamespace: NS\nname: a")
        .await
        .unwrap_err();
    assert_eq!(failure.class, Class::Unavailable);
    let start = format!("Delete object cm/{}/a: ", stage.namespace());
    assert!(failure.report.starts_with(&start), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_may_not_do_is_told_with_the_right_that_it_needs() {
    let mut stage = Stage::new("patch-right").await;
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    fs::copy(stage.world.namespace.kubeconfig(User::Operator), &kubeconfig).unwrap();
    let token = stage.world.kubectl("create token default");
    let file = kubeconfig.display();
    stage.world.kubectl(&format!(
        "config --kubeconfig={file} set-credentials nobody --token={}",
        token.trim()
    ));
    stage.world.kubectl(&format!(
        "config --kubeconfig={file} set-context --current --user=nobody"
    ));
    let cluster = stage.reached_by(kubeconfig.clone(), None).await;
    let text = "operation: MergePatch\nkind: cm\nnamespace: NS\nname: a\nmergePatch: {data: {a: b}}\nignoreMissingObject: true";
    let failure = stage.apply(text).await.unwrap_err();
    assert_eq!(failure.class, Class::Refused, "{failure}");
    assert!(failure.report.contains("is forbidden"), "{failure}");
    let hint = format!(
        "allow the verb 'patch' on 'configmaps' in namespace '{}' to",
        stage.namespace()
    );
    assert!(failure.hints[0].starts_with(&hint), "{failure:?}");
    // Without the right to list configurations the webhook is named all the same.
    let told = interception::remedies(&cluster, r#"failed calling webhook "w.example.com": EOF"#).await;
    let expected = "webhook 'w.example.com' did not answer: is its server up, and does the API server reach it?";
    assert_eq!(told, [expected]);
}
