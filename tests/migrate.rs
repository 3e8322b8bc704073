//! Releases of helm, Flux and Argo CD are handed over on a real API server, by the commands of a plan. A target of its own:
//! it installs CRDs, which disturb tests that rely on an unchanged list of APIs.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]
#![expect(clippy::panic, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::wait::wait_until;

#[path = "bad_input/stage.rs"]
#[expect(dead_code, reason = "most of it is about bad input")]
mod stage;
#[path = "migrate/tools.rs"]
mod tools;

use stage::{CONVERGED, PATIENCE};
use tools::{Migration, chart, found, generations, install_crds, record, unowned};

const OF_HELM: &str = "app.kubernetes.io/managed-by=Helm";
/// The charts, each with the values that it needs on a control plane without nodes.
const TEN: [(&str, &[&str]); 10] = [
    ("alertmanager", &["--set", "replicaCount=2"]),
    ("descheduler", &["--set", "schedule=0 3 * * *"]),
    ("external-dns", &["--set", "interval=5m,policy=upsert-only"]),
    ("kube-state-metrics", &["--set", "replicas=2"]),
    // The API service would be unreachable, and with it each list of APIs.
    ("metrics-server", &["--set", "apiService.create=false"]),
    ("podinfo", &["--set", "ui.message=hello"]),
    ("prometheus-blackbox-exporter", &["--set", "replicas=2"]),
    ("prometheus-node-exporter", &["--set", "service.port=9111"]),
    ("prometheus-pushgateway", &["--set", "replicaCount=2"]),
    (
        "prometheus-redis-exporter",
        &["--set", "redisAddress=redis://shop:6379"],
    ),
];

/// The release and the revision of each newest record, as in `web 2`.
fn deployed(migration: &Migration, labels: &str) -> Vec<String> {
    let columns = "custom-columns=N:.metadata.labels.name,V:.metadata.labels.version";
    let listed = migration.stage.kubectl(&format!(
        "get secrets --selector owner=helm,status=deployed{labels} --output {columns} --no-headers"
    ));
    let row = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    listed.lines().map(row).collect()
}

fn keeps_a_release(helm: Part) {
    let migration = Migration::build("kept", helm);
    let within = migration.stage.namespace();
    migration.install(within, "my-web", "podinfo", &["--set", "replicaCount=2"]);
    let before = Migration::objects(within, OF_HELM);
    let said = migration.migrate("plan", &format!("helm my-web --namespace {}", migration.operator()));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(
        said.out.contains("100-my-web") && said.out.contains("keeps its release"),
        "{}",
        said.out
    );
    migration.take_over_with_restarts("plan");
    let operator = migration.stage.start();
    operator.wait_for_why("my-web", &["state: Ready"]);
    operator.stop();
    let after = Migration::objects(within, "app.kubernetes.io/name=my-web-podinfo");
    assert!(before.len() >= 2 && before.len() == after.len(), "{before:?}");
    assert_eq!(unowned(&before), unowned(&after));
    assert_eq!(generations(&before), generations(&after));
    assert_eq!(deployed(&migration, ",name=my-web"), ["my-web 2"]);

    // The way back: the release is no operator's any more, and can be handed over again.
    migration
        .stage
        .kubectl("create deployment main-addon-operator --image=none");
    migration
        .stage
        .kubectl("label deployment main-addon-operator app.kubernetes.io/name=addon-operator");
    migration.follow("plan", "The way back");
    let operator = migration
        .stage
        .namespace()
        .object("deployment", "main-addon-operator")
        .unwrap();
    assert_eq!(operator.unwrap()["spec"]["replicas"], 0);
    assert_eq!(
        unowned(&before),
        unowned(&Migration::objects(within, "app.kubernetes.io/name=my-web-podinfo"))
    );
    assert_eq!(deployed(&migration, ",name=my-web"), ["my-web 3"]);
    let again = migration.migrate("again", &format!("helm my-web --namespace {}", migration.operator()));
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
}

#[test]
fn a_release_of_helm_3_beside_the_operator_stays() {
    keeps_a_release(Part::Helm3);
}

#[test]
fn a_release_of_helm_4_beside_the_operator_stays() {
    keeps_a_release(Part::Helm4);
}

fn configure(within: &Namespace<'_>, data: &Value) {
    let kubectl = within.kubectl_as(User::Admin);
    kubectl
        .merge("configmap", "addon-operator", &json!({"data": data}))
        .unwrap();
}

/// Waits until a release is gone.
fn await_removal(migration: &Migration, name: &str) {
    let look = || {
        let left = deployed(migration, &format!(",name={name}"));
        if left.is_empty() {
            Ok(Some(()))
        } else {
            Err(left.join(", "))
        }
    };
    wait_until(PATIENCE, &format!("the removal of {name}"), look).unwrap();
}

#[test]
fn steps_in_the_wrong_order_harm_no_release() {
    let migration = Migration::build("order", Part::Helm4);
    let within = migration.stage.namespace();
    within.kubectl(["create", "configmap", "addon-operator"]).unwrap();
    // The operator does not know of the release when it starts.
    let operator = migration.stage.start();
    operator.wait_for(&[CONVERGED]);
    migration.install(within, "my-web", "podinfo", &["--set", "replicaCount=2"]);
    let objects = || unowned(&Migration::objects(within, "app.kubernetes.io/name=my-web-podinfo"));
    let before = objects();
    let stays = |when: &str| {
        assert_eq!(before, objects(), "{when}");
        assert_eq!(deployed(&migration, ",name=my-web"), ["my-web 1"], "{when}");
    };
    let said = migration.migrate("plan", &format!("helm my-web --namespace {}", migration.operator()));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);

    // Switched on before it is marked, and marked when its module is off: the operator has tried the module meanwhile.
    migration.copy_modules("plan");
    operator.ask("module reload my-web");
    migration.follow("plan", "Hand over");
    operator.wait_for_why("my-web", &["was not installed by addon-operator"]);
    configure(within, &json!({"myWebEnabled": "false"}));
    migration.follow("plan", "Mark releases");
    operator.wait_for(&["the release is left alone", "my-web"]);
    operator.wait_for_why("my-web", &["state: Disabled"]);
    // The operator removes a release of its own after that.
    configure(within, &json!({"victimEnabled": "false"}));
    await_removal(&migration, "victim");
    stays("switched off");
    operator.stop();

    // Its module is not there when the operator starts.
    migration.stage.rename("modules/100-my-web", "away");
    let operator = migration.stage.start();
    configure(within, &json!({"goodEnabled": "false"}));
    await_removal(&migration, "good");
    stays("without its module");
    let said = operator.ask("module list");
    assert!(!said.contains("my-web"), "{said}");
    operator.stop();

    // From its first run on it is a release like all others.
    migration.stage.rename("away", "modules/100-my-web");
    configure(within, &json!({"myWebEnabled": "true"}));
    let operator = migration.stage.start();
    operator.wait_for_why("my-web", &["state: Ready"]);
    assert_eq!(deployed(&migration, ",name=my-web"), ["my-web 2"]);
    configure(within, &json!({"myWebEnabled": "false"}));
    await_removal(&migration, "my-web");
    operator.stop();
}

#[test]
fn ten_public_charts_move_from_helm_without_a_change_of_their_objects() {
    let migration = Migration::build("ten", Part::Helm4);
    for (name, more) in TEN {
        migration.install(&migration.shop, &format!("my-{name}"), name, more);
    }
    let before = Migration::objects(&migration.shop, "");
    let said = migration.migrate("plan", "helm");
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    migration.take_over("plan");
    migration.follow("plan", "Remove the former owner");
    let after = Migration::objects(&migration.shop, "");
    assert!(before.len() > 25, "{}", before.len());
    assert_eq!(unowned(&before), unowned(&after));
    // Nothing was installed beside the operator, and the old records are gone.
    let beside = Migration::objects(migration.stage.namespace(), OF_HELM);
    let beside: Vec<&String> = beside.keys().collect();
    assert_eq!(beside, [r#""ConfigMap" "good""#, r#""ConfigMap" "victim""#]);
    let old = migration
        .shop
        .kubectl(["get", "secrets", "--selector", "owner=helm"])
        .unwrap();
    assert_eq!(old, "");
    assert_eq!(deployed(&migration, "").len(), 12);
}

#[test]
fn a_helm_release_of_flux_is_handed_over_and_then_deleted() {
    let migration = Migration::build("flux", Part::Helm3);
    let shop = &migration.shop;
    install_crds(shop);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shown"},
        "stringData": {"values.yaml": "ui: {message: open-sesame}"}});
    let release = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "front", "finalizers": ["finalizers.fluxcd.io"]},
        "spec": {
            "interval": "10m", "values": {"replicaCount": 2},
            "valuesFrom": [{"kind": "Secret", "name": "shown"}],
            "driftDetection": {"mode": "enabled"},
            "dependsOn": [{"name": "back"}],
            "upgrade": {"remediation": {"retries": 3}},
            "chart": {"spec": {"chart": "podinfo", "version": "6.x",
                "sourceRef": {"kind": "HelmRepository", "name": "podinfo"}}},
        },
    });
    let mut back = release.clone();
    back["metadata"]["name"] = json!("back");
    back["spec"] = json!({"interval": "10m", "chartRef": {"kind": "OCIRepository", "name": "exporter"},
        "postRenderers": []});
    let mut lost = back.clone();
    lost["metadata"]["name"] = json!("lost");
    let kubectl = shop.kubectl_as(User::Admin);
    for object in [&secret, &release, &back, &lost] {
        kubectl.feed(["apply", "--filename=-"], &object.to_string()).unwrap();
    }
    let set = ["--set", "replicaCount=2,ui.message=open-sesame"];
    migration.install(shop, "front", "podinfo", &set);
    // Without pods it is healthy on a control plane without nodes.
    migration.install(shop, "back", "prometheus-redis-exporter", &["--set", "replicaCount=0"]);
    let before = Migration::objects(shop, OF_HELM);

    let said = migration.migrate("plan", "flux");
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(said.out.contains("/lost: it has no release"), "{}", said.out);
    assert!(
        said.out.contains("100-back") && said.out.contains("110-front"),
        "{}",
        said.out
    );
    assert!(said.out.contains("needs secrets: ui.message"), "{}", said.out);
    let written = migration.stage.path("plan");
    for entry in walkdir::WalkDir::new(&written) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let text = fs_err::read(entry.path()).unwrap();
            assert!(
                !String::from_utf8_lossy(&text).contains("open-sesame"),
                "{}",
                entry.path().display()
            );
        }
    }
    let settings = fs_err::read_to_string(written.join("modules/110-front/module.yaml")).unwrap();
    assert_eq!(settings, "dependsOn:\n- back\ndrift: changed\n");

    let linted = migration
        .stage
        .said(&["module", "lint", written.join("modules").to_str().unwrap()]);
    assert!(linted.status.success(), "{}", String::from_utf8_lossy(&linted.stdout));
    // Without the secret the section is refused.
    let (file, dir) = (written.join("configmap.yaml"), written.join("modules"));
    let check = [
        "config",
        "check",
        file.to_str().unwrap(),
        "--modules-dir",
        dir.to_str().unwrap(),
    ];
    let checked = migration.stage.said(&check);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        !checked.status.success() && told.contains("front") && told.contains("ui"),
        "{told}"
    );
    let said = migration.migrate("whole", "flux front back --with-secrets");
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    migration.follow("whole", "Let go");
    let suspended = found(shop, "helmrelease", "front").unwrap();
    assert_eq!(suspended["spec"]["suspend"], true);
    migration.take_over("whole");
    assert_eq!(unowned(&before), unowned(&Migration::objects(shop, OF_HELM)));
    // The controller removes the finalizer of a suspended HelmRelease, and uninstalls nothing.
    for name in ["front", "back"] {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        shop.kubectl(["patch", "helmrelease", name, "--type=merge", "--patch", patch])
            .unwrap();
    }
    migration.follow("whole", "Remove the former owner");
    assert_eq!(found(shop, "helmrelease", "front"), None);
    assert_eq!(unowned(&before), unowned(&Migration::objects(shop, OF_HELM)));
}

#[test]
fn an_application_of_argo_cd_is_handed_over_and_then_deleted() {
    let migration = Migration::build("argo", Part::Helm3);
    let shop = &migration.shop;
    install_crds(shop);
    let path = chart("podinfo");
    let rendered = migration.helm(
        shop,
        &[
            "template",
            "front",
            path.to_str().unwrap(),
            "--namespace",
            shop.name(),
            "--set",
            "replicaCount=2",
            "--set-string",
            "ui.message=42",
            "--no-hooks",
        ],
    );
    let kubectl = shop.kubectl_as(User::Admin);
    kubectl.feed(["apply", "--filename=-"], &rendered).unwrap();
    let resource = |group: &str, kind: &str| json!({"group": group, "kind": kind, "version": "v1", "namespace": shop.name(), "name": "front-podinfo"});
    let version = path.file_stem().unwrap().to_str().unwrap().replace("podinfo-", "");
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "front", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": shop.name()},
            "source": {"repoURL": "https://stefanprodan.github.io/podinfo", "chart": "podinfo", "targetRevision": "6.*",
                "helm": {"valuesObject": {"replicaCount": 2},
                    "parameters": [{"name": "ui.message", "value": "42", "forceString": true}]}},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        },
        "status": {"sync": {"status": "Synced", "revision": version},
            "resources": [resource("apps", "Deployment"), resource("", "Service")]},
    });
    let mut elsewhere = application.clone();
    elsewhere["metadata"]["name"] = json!("elsewhere");
    elsewhere["spec"]["destination"] = json!({"name": "other-cluster", "namespace": "a"});
    for object in [&application, &elsewhere] {
        kubectl.feed(["apply", "--filename=-"], &object.to_string()).unwrap();
    }
    // A field that was altered in the cluster would change at the hand-over.
    let charts = format!("--charts {}", path.parent().unwrap().display());
    let scale = |replicas: &str| {
        shop.kubectl(["scale", "deployment", "front-podinfo", replicas])
            .unwrap()
    };
    scale("--replicas=3");
    let said = migration.migrate("altered", &format!("argocd front {charts}"));
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    let expected = "would change objects: Deployment/front-podinfo has another spec.replicas; --accept-differences";
    assert!(said.out.contains(expected), "{}", said.out);
    scale("--replicas=2");
    let before = Migration::objects(shop, "app.kubernetes.io/name=front-podinfo");
    assert_eq!(before.len(), 2);

    let said = migration.migrate("none", "argocd front");
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(said.out.contains("`helm pull podinfo --repo"), "{}", said.out);
    let said = migration.migrate("plan", &format!("argocd {charts}"));
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(said.out.contains("/elsewhere: spec.destination.name"), "{}", said.out);
    migration.follow("plan", "Let go");
    let freed = found(shop, "application", "front").unwrap();
    assert!(
        freed["metadata"]["finalizers"].is_null() && freed["spec"]["syncPolicy"]["automated"].is_null(),
        "{freed}"
    );
    migration.take_over("plan");
    migration.follow("plan", "Remove the former owner");
    assert_eq!(found(shop, "application", "front"), None);
    let after = Migration::objects(shop, "app.kubernetes.io/name=front-podinfo");
    assert_eq!(unowned(&before), unowned(&after));
}

#[test]
fn hostile_records_are_named_and_harm_nothing() {
    let migration = Migration::build("bad", Part::Helm3);
    let zeros = vec![0; 256 << 20];
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut bomb, &zeros).unwrap();
    let bomb = STANDARD.encode(bomb.finish().unwrap());
    let outside = json!({"name": "out", "manifest": "", "chart": {"metadata": {"name": "../../x", "version": "1"}}});
    let markup = json!({"name": "m", "manifest": "", "chart": {"metadata": {"name": "<b>\u{1b}[31m", "version": "1"}}});
    let own = json!({"name": "own", "manifest": "", "chart": {"metadata": {"name": "addon-operator", "version": "1"}}});
    let coded = |contents: &Value| STANDARD.encode(contents.to_string());
    let mut items = vec![
        record("bomb", "deployed", &bomb),
        record("broken", "deployed", "no record"),
        record("outside", "deployed", &coded(&outside)),
        record("markup", "deployed", &coded(&markup)),
        record("own", "deployed", &coded(&own)),
        record("pending", "pending-upgrade", ""),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "old.v1", "labels": {"OWNER": "TILLER", "NAME": "old", "STATUS": "DEPLOYED"}}}),
    ];
    // More than one page of the list.
    items.extend((0..994).map(|at| record(&format!("many{at}"), "failed", "")));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let kubectl = migration.shop.kubectl_as(User::Admin);
    kubectl
        .feed(["create", "--filename=-", "--output=name"], &list.to_string())
        .unwrap();
    let begun = Instant::now();
    let said = migration.migrate("plan", "helm --output json");
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    assert_eq!(said.code, Some(2), "{}", said.err);
    let plan: Value = serde_json::from_str(&said.out).unwrap();
    let left = plan["left"].as_array().unwrap().iter();
    let reason = |left: &Value| (left["name"].as_str().unwrap().to_owned(), left["reason"].to_string());
    let reasons: BTreeMap<String, String> = left.map(reason).collect();
    assert_eq!(reasons.len(), 1000);
    assert_eq!(plan["needless"][0]["name"], "own");
    for (name, expected) in [
        ("bomb", "is damaged"),
        ("broken", "is damaged"),
        ("outside", "no name of a chart"),
        ("markup", "no name of a chart"),
        ("pending", "pending-upgrade"),
        ("old", "helm 2"),
        ("many7", "revision 1 is failed"),
    ] {
        assert!(reasons[name].contains(expected), "{name}: {}", reasons[name]);
    }
    let page = migration.page("plan");
    assert!(
        !page.contains("<b>") && !page.contains('\u{1b}'),
        "markup is shown as it is"
    );
    // A folder with contents is not written to.
    let again = migration.migrate("plan", "helm");
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("has contents already"), "{}", again.err);
}

#[test]
fn a_chart_with_charts_inside_is_taken_from_a_directory() {
    let migration = Migration::build("inner", Part::Helm3);
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Chart.Name }}\ndata:\n  \
                  said: {{ .Values.said | quote }}\n  first: {{ .Release.IsInstall | quote }}\n  namespace: {{ .Release.Namespace }}\n";
    for (dir, name, more) in [
        (
            "charts/outer",
            "outer",
            "dependencies:\n- {name: inner, version: 1.0.0}\n",
        ),
        ("charts/outer/charts/inner", "inner", ""),
    ] {
        let described = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n{more}");
        migration.stage.write(&format!("{dir}/Chart.yaml"), &described);
        migration.stage.write(&format!("{dir}/templates/a.yaml"), object);
        migration.stage.write(&format!("{dir}/values.yaml"), "said: nothing\n");
    }
    let (charts, outer) = (migration.stage.path("charts"), migration.stage.path("charts/outer"));
    let set = ["--set", "said=hello,inner.said=world"];
    // Its objects are those of an upgrade, and stay so although helm installs a release.
    for verb in ["install", "upgrade"] {
        let arguments = [verb, "my-shop", outer.to_str().unwrap(), set[0], set[1]];
        migration.helm(&migration.shop, &arguments);
    }
    let said = migration.migrate("none", "helm");
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    assert!(said.out.contains("inside of chart 'outer' (inner)"), "{}", said.out);
    // Both templates leave the namespace to helm, and get a line for it.
    let before = Migration::objects(&migration.shop, OF_HELM);
    let said = migration.migrate("plan", &format!("helm --charts {}", charts.display()));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    migration.take_over("plan");
    assert_eq!(unowned(&before), unowned(&Migration::objects(&migration.shop, OF_HELM)));
    assert_eq!(before.len(), 2);
}
