//! Releases whose stored revision names kinds that the API server no longer serves. Helm alone can neither upgrade nor
//! remove them.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use addon_core::operator::event::Reworked;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::world::{CHART, PATIENCE, World, with_each_helm};

/// A world with a module whose chart has a ConfigMap, and a Widget in the version of the value `one.widget`.
struct Scene {
    world: World,
    group: String,
}

impl Scene {
    async fn new(prefix: &str, helm: Part) -> Self {
        let mut world = World::with(prefix, helm).await;
        let group = format!("{}.example.com", world.namespace.name());
        let template = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shown}}\ndata: {{x: {{{{ .Values.one.x | quote }}}}}}\n\
             {{{{- with .Values.one.widget }}}}\n---\napiVersion: {group}/{{{{ . }}}}\nkind: Widget\nmetadata: {{name: w}}\n{{{{- end }}}}\n"
        );
        world
            .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", &template)])
            .await;
        let scene = Self { world, group };
        scene.serve(&["v1beta1", "v1"]);
        scene
    }

    fn crd(&self) -> String {
        format!("widgets.{}", self.group)
    }

    /// Serves the Widget in these versions, and waits until the API server does.
    fn serve(&self, served: &[&str]) {
        let version = |name: &str| {
            json!({
                "name": name,
                "served": served.contains(&name),
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })
        };
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd()},
            "spec": {
                "group": self.group,
                "names": {"kind": "Widget", "plural": "widgets"},
                "scope": "Namespaced",
                "versions": [version("v1beta1"), version("v1")],
            },
        });
        apply(&self.world, &crd).unwrap();
        for name in ["v1beta1", "v1"] {
            self.wait_for_list(name, served.contains(&name));
        }
    }

    fn wait_for_list(&self, version: &str, is_served: bool) {
        let claim = format!("{version} of {} is served: {is_served}", self.group);
        wait_until(PATIENCE, &claim, || {
            let listed = self.list(version);
            (listed.contains("\"Widget\"") == is_served)
                .then_some(Some(()))
                .ok_or(listed)
        })
        .unwrap();
    }

    /// The API server's list of the group's kinds in a version, or its error.
    fn list(&self, version: &str) -> String {
        let path = format!("/apis/{}/{version}", self.group);
        let listed = self.world.namespace.kubectl(["get", "--raw", &path]);
        listed.unwrap_or_else(|error| format!("{error:#}"))
    }

    async fn drop_crd(&self) {
        self.world.kubectl(&format!("delete crd {}", self.crd()));
        self.wait_for_list("v1", false);
        self.wait_until_gone("v1").await;
    }

    /// Waits until the operator knows that a version is gone, which it believes after 15 seconds.
    async fn wait_until_gone(&self, version: &str) {
        let (begun, version) = (Instant::now(), format!("{}/{version}", self.group));
        let cluster = &self.world.tools.ground.cluster;
        while cluster.apis().await.unwrap().names.contains(&version) {
            assert!(begun.elapsed() < PATIENCE, "{version} stays");
            cluster.forget_apis();
        }
    }

    fn uid(&self, object: &str) -> String {
        self.world
            .kubectl(&format!("get {object} -o=jsonpath={{.metadata.uid}}"))
    }

    /// The stored contents of a revision.
    fn record(&self, secret: &str) -> String {
        self.world
            .kubectl(&format!("get secret {secret} -o=jsonpath={{.data.release}}"))
    }

    fn is_clean(&self) {
        assert_eq!(self.world.history(), "");
        assert_eq!(
            self.world.kubectl("get configmap -l heritage=addon-operator -o=name"),
            ""
        );
    }
}

/// How long a group may be missing before it counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(20);

/// The name of helm's Secret with the first revision.
const FIRST: &str = "sh.helm.release.v1.one.v1";

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_a_kind_that_is_gone_is_upgraded_and_removed() {
    with_each_helm(async |helm| {
        let scene = Scene::new("gone", helm).await;
        let world = &scene.world;
        world.sync(json!({"one": {"x": "a", "widget": "v1"}})).await.unwrap();
        let (uid, record) = (scene.uid("configmap/shown"), scene.record(FIRST));
        scene.drop_crd().await;
        let synced = world.sync(json!({"one": {"x": "b", "widget": null}})).await.unwrap();
        assert_eq!(
            synced.amended,
            [format!("Widget/w of {}/v1 (no longer served)", scene.group)]
        );
        assert_eq!(world.history(), "1:superseded 2:deployed");
        assert_eq!(scene.uid("configmap/shown"), uid, "no object is made anew");
        assert_eq!(
            scene.record(&format!("{FIRST}.before")),
            record,
            "the record of before is kept"
        );
        let by_hand = world.helm_by_hand(&["get", "manifest", "one", "--revision", "1"]);
        assert!(by_hand.contains("shown") && !by_hand.contains("Widget"), "{by_hand}");
        assert_eq!(world.delete().await.unwrap(), Reworked::default());
        scene.is_clean();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_with_a_kind_that_is_gone_is_removed() {
    with_each_helm(async |helm| {
        let scene = Scene::new("gone-removal", helm).await;
        scene
            .world
            .sync(json!({"one": {"x": "a", "widget": "v1"}}))
            .await
            .unwrap();
        scene.drop_crd().await;
        assert_eq!(scene.world.delete().await.unwrap().amended.len(), 1);
        scene.is_clean();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_version_is_gone_lives_on_under_another() {
    with_each_helm(async |helm| {
        let scene = Scene::new("gone-version", helm).await;
        let world = &scene.world;
        let values = |widget: &str| json!({"one": {"x": "a", "widget": widget}});
        world.sync(values("v1beta1")).await.unwrap();
        let widget = format!("widgets.{}/w", scene.group);
        let uid = scene.uid(&widget);
        scene.serve(&["v1"]);
        scene.wait_until_gone("v1beta1").await;
        let synced = world.sync(values("v1")).await.unwrap();
        let told = format!("Widget/w of {group}/v1beta1 (now {group}/v1)", group = scene.group);
        assert_eq!(synced.amended, [told], "{synced:?} {}", world.history());
        assert_eq!(scene.uid(&widget), uid);
        // The first revision is amended, too, before it is removed with its objects.
        world.delete().await.unwrap();
        scene.is_clean();
        assert_eq!(world.kubectl(&format!("get widgets.{} -o=name", scene.group)), "");
    })
    .await;
}

/// Helm takes 404 for a deleted object, and a list of served APIs may be some seconds old.
#[tokio::test(flavor = "multi_thread")]
async fn no_object_is_left_behind_whose_version_went_a_moment_ago() {
    with_each_helm(async |helm| {
        let scene = Scene::new("just-gone", helm).await;
        let world = &scene.world;
        world
            .sync(json!({"one": {"x": "a", "widget": "v1beta1"}}))
            .await
            .unwrap();
        world.tools.ground.cluster.apis().await.unwrap();
        scene.serve(&["v1"]);
        let removal = world.delete().await.map(drop);
        let upgrade = world.sync(json!({"one": {"x": "b"}})).await.map(drop);
        for refused in [removal, upgrade] {
            let refused = refused.unwrap_err();
            assert!(refused.report.contains("ceased to serve a moment ago"), "{refused}");
        }
        scene.wait_until_gone("v1beta1").await;
        world.delete().await.unwrap();
        scene.is_clean();
        assert_eq!(world.kubectl(&format!("get widgets.{} -o=name", scene.group)), "");
    })
    .await;
}

/// A cluster upgrade that drops a version of a kind of Kubernetes' own cannot be had here: the record names one of the past.
#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_kubernetes_has_moved_is_found_in_its_new_group() {
    with_each_helm(async |helm| {
        let mut world = World::with("moved", helm).await;
        let ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec:\n  defaultBackend:\n    service: {name: s, port: {number: {{ .Values.one.x }}}}\n";
        world.module("one", &[("Chart.yaml", CHART), ("templates/i.yaml", ingress)]).await;
        world.sync(json!({"one": {"x": 80}})).await.unwrap();
        let uid = world.kubectl("get ingress/i -o=jsonpath={.metadata.uid}");
        edit_record(&world, |record| {
            let manifest = record["manifest"].as_str().unwrap();
            record["manifest"] = manifest.replace("networking.k8s.io/v1", "extensions/v1beta1").into();
        });
        let synced = world.sync(json!({"one": {"x": 81}})).await.unwrap();
        assert_eq!(synced.amended, ["Ingress/i of extensions/v1beta1 (now networking.k8s.io/v1)"]);
        assert_eq!(world.kubectl("get ingress/i -o=jsonpath={.metadata.uid}"), uid);
        world.delete().await.unwrap();
        assert_eq!(world.kubectl("get ingress -o=name"), "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_whose_api_server_is_down_counts_as_served() {
    let scene = Scene::new("down", Part::Helm3).await;
    let world = &scene.world;
    world.sync(json!({"one": {"x": "a", "widget": "v1"}})).await.unwrap();
    world.kubectl(&format!("delete crd {}", scene.crd()));
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": format!("v1.{}", scene.group)},
        "spec": {
            "group": scene.group,
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 10,
            "insecureSkipTLSVerify": true,
            "service": {"namespace": world.namespace.name(), "name": "nobody"},
        },
    });
    wait_until(PATIENCE, "the group has a server that does not answer", || {
        apply(world, &service)?;
        let listed = scene.list("v1");
        listed
            .to_lowercase()
            .contains("unavailable")
            .then_some(Some(()))
            .ok_or(listed)
    })
    .unwrap();
    let is_recorded = || {
        let manifest = world.helm_by_hand(&["get", "manifest", "one", "--revision", "1"]);
        manifest.contains("kind: Widget")
    };
    let begun = Instant::now();
    while begun.elapsed() < GONE_AFTER {
        world.tools.ground.cluster.forget_apis();
        let values = json!({"one": {"x": "b", "widget": null}});
        world.sync(values).await.unwrap_err();
        assert!(is_recorded());
    }
    world.delete().await.unwrap_err();
    assert!(is_recorded());
    world.kubectl(&format!("delete apiservice v1.{}", scene.group));
    scene.wait_until_gone("v1").await;
    assert_eq!(world.delete().await.unwrap().amended.len(), 1);
    scene.is_clean();
}

fn apply(world: &World, object: &Value) -> Result<String, String> {
    let admin = world.namespace.kubectl_as(User::Admin);
    let applied = admin.feed(["apply", "--filename=-"], &object.to_string());
    applied.map_err(|error| format!("{error:#}"))
}

/// Changes the contents of the first revision.
fn edit_record(world: &World, edit: impl FnOnce(&mut Value)) {
    let stored = world.kubectl(&format!("get secret {FIRST} -o=jsonpath={{.data.release}}"));
    let packed = STANDARD.decode(STANDARD.decode(stored).unwrap()).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    edit(&mut record);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(record.to_string().as_bytes()).unwrap();
    let stored = STANDARD.encode(STANDARD.encode(gzip.finish().unwrap()));
    let patch = json!({"data": {"release": stored}}).to_string();
    world
        .namespace
        .kubectl(["patch", "secret", FIRST, "--type=merge", "--patch", &patch])
        .unwrap();
}
