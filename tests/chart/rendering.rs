//! The manifests that the chart renders, and the values that it refuses.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use helm_yaml::yaml;
use serde_json::{Value, json};
use testbed::plane::User;

use super::tool::{HELMS, chart, complaint, helm, objects, printed, rendered, root};

/// The API group of resources that come with the Prometheus operator.
const OF_OTHERS: &str = "monitoring.coreos.com/v1";

/// The files with values. Each has its expected rendering beside it.
fn value_sets() -> Vec<(String, PathBuf)> {
    let dir = root().join("tests/chart/values");
    let files = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut sets: Vec<_> = files
        .map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), file))
        .collect();
    sets.sort();
    assert!(sets.len() > 2);
    sets
}

#[test]
fn the_chart_renders_to_what_is_written_down() {
    for (name, values) in value_sets() {
        let values = format!("--values={}", values.display());
        let [three, four] = HELMS.map(|helm| rendered(helm, &[&values]));
        // Helm 4 sorts more kinds than helm 3, so the order is not compared.
        let unordered = |text: &str| objects(text).iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(unordered(&three), unordered(&four), "{name}: helm 3 and helm 4 differ");
        let golden = root().join(format!("tests/chart/rendered/{name}.yaml"));
        if std::env::var_os("UPDATE").is_some() {
            fs_err::write(&golden, &three).unwrap();
        }
        let written = fs_err::read_to_string(&golden).unwrap_or_default();
        for (number, (is, was)) in three.lines().zip(written.lines()).enumerate() {
            assert_eq!(is, was, "{}:{} (UPDATE=1 renews it)", golden.display(), number + 1);
        }
        assert_eq!(
            three.lines().count(),
            written.lines().count(),
            "{name} (UPDATE=1 renews it)"
        );
    }
}

#[test]
fn an_api_server_takes_all_of_it() {
    let namespace = testbed::shared::plane().namespace("rendered").unwrap();
    for (name, values) in value_sets() {
        let values = format!("--values={}", values.display());
        let in_ours =
            rendered(HELMS[0], &[&values]).replace("namespace: addons", &format!("namespace: {}", namespace.name()));
        let known = objects(&in_ours)
            .into_iter()
            .filter(|object| object["apiVersion"] != OF_OTHERS)
            .map(|object| object.to_string())
            .collect::<Vec<_>>();
        let strictly = ["apply", "--dry-run=server", "--validate=strict", "--filename=-"];
        let kubectl = namespace.kubectl_as(User::Admin);
        let said = kubectl.feed(strictly, &known.join("\n---\n")).unwrap();
        assert_eq!(said.lines().count(), known.len(), "{name}: {said}");
    }
}

#[test]
fn helm_finds_nothing_to_complain_of() {
    for part in HELMS {
        for (_, values) in value_sets() {
            let values = format!("--values={}", values.display());
            let chart = chart();
            printed(helm(part, None, ["lint", "--strict", chart.to_str().unwrap(), &values]));
        }
    }
}

#[test]
fn values_that_cannot_be_meant_are_refused_by_their_path() {
    let rows = [
        ("replicas=two", "/replicas"),
        ("replicas=-1", "/replicas"),
        ("replica=2", "replica"),
        ("image.repository=host/name:tag", "/image/repository"),
        ("image.digest=latest", "/image/digest"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("channel.enable=true", "/channel"),
        ("channel.enabled=yes", "/channel/enabled"),
        (
            "channel.registries={https://registry.example.com}",
            "/channel/registries/0",
        ),
        (
            "channel.mirrors.quay\\.io={https://mirror.example.com}",
            "/channel/mirrors/quay.io/0",
        ),
        ("channel.registries={team}", "/channel/registries/0"),
        ("channel.plainHttp={registry.example.com/team}", "/channel/plainHttp/0"),
        ("channel.notifyTokenSecret.key=a/b", "/channel/notifyTokenSecret/key"),
        ("verification.keys={release.pub}", "/verification/keys/0"),
        ("configMap.name=Capital", "/configMap/name"),
        ("configMap.sections.fooEnabled=true", "/configMap/sections/fooEnabled"),
        ("modules.drift=yes", "/modules/drift"),
        ("log.level=loud", "/log/level"),
        (
            "rbac.moduleRules.cluster[0].resources={pods}",
            "/rbac/moduleRules/cluster/0",
        ),
        ("rbac.moduleRules.release[0].verb=get", "/rbac/moduleRules/release/0"),
        (
            "rbac.moduleRules.namespaces[0].name=Capital",
            "/rbac/moduleRules/namespaces/0",
        ),
        ("resources.limits.memory=much", "/resources/limits/memory"),
        ("resources.limit.memory=1Gi", "/resources"),
        ("terminationGracePeriodSeconds=10", "/terminationGracePeriodSeconds"),
        ("env[0].value=x", "/env/0"),
        ("envFrom[0].secretRef.key=x", "/envFrom/0/secretRef"),
        ("initContainers[0].image=x", "/initContainers/0"),
        ("hostNetwork=node", "/hostNetwork"),
        ("strategy.type=Slowly", "/strategy/type"),
        (
            "strategy.rollingUpdate.maxSurge=many",
            "/strategy/rollingUpdate/maxSurge",
        ),
        (
            "topologySpreadConstraints[0].topologyKey=zone",
            "/topologySpreadConstraints/0",
        ),
        (
            "monitoring.serviceMonitor.interval=often",
            "/monitoring/serviceMonitor/interval",
        ),
        (
            "monitoring.serviceMonitor.interval=5m",
            "/monitoring/serviceMonitor/interval",
        ),
        ("networkPolicy.metricsFrom=all", "/networkPolicy/metricsFrom"),
    ];
    for part in HELMS {
        for (value, path) in rows {
            let chart = chart();
            let said = complaint(&helm(
                part,
                None,
                [
                    "template",
                    "ao",
                    chart.to_str().unwrap(),
                    "--kube-version=1.33.0",
                    "--set",
                    value,
                ],
            ));
            assert!(said.contains(path), "{part}, {value}: {said}");
        }
    }
}

#[test]
fn nobody_installs_an_image_that_nobody_has_pushed() {
    for part in HELMS {
        let chart = chart();
        let template = ["template", "ao", chart.to_str().unwrap(), "--kube-version=1.33.0"];
        let said = complaint(&helm(part, None, template));
        assert!(said.contains("image.repository is not set"), "{part}: {said}");
    }
}

/// The spec and metadata of the operator's pod with these values.
fn pod(values: &[&str]) -> (Value, Value) {
    let values: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    let all = objects(&rendered(
        HELMS[0],
        &values.iter().map(String::as_str).collect::<Vec<_>>(),
    ));
    let deployment = all.into_iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = deployment["spec"]["template"]["spec"].clone();
    (deployment["spec"]["strategy"].clone(), pod)
}

#[test]
fn what_is_taken_away_leaves_no_key_without_a_value() {
    let (_, pod) = pod(&["resources=null", "podSecurityContext=null"]);
    let (pod, container) = (pod.as_object().unwrap(), pod["containers"][0].as_object().unwrap());
    assert!(!pod.contains_key("securityContext") && !container.contains_key("resources"));
    let without = |fields: &serde_json::Map<String, Value>| fields.values().any(Value::is_null);
    assert!(!without(pod) && !without(container));
}

#[test]
fn pods_of_one_node_make_room_for_each_other() {
    let (strategy, _) = pod(&["strategy.type=Recreate"]);
    assert_eq!(
        strategy,
        json!({"type": "Recreate"}),
        "an API server refuses other fields beside this type"
    );
    let (strategy, pod) = pod(&[
        "hostNetwork=true",
        "strategy.rollingUpdate.maxSurge=0",
        "strategy.rollingUpdate.maxUnavailable=50%",
    ]);
    assert_eq!(
        strategy["rollingUpdate"],
        json!({"maxSurge": 0, "maxUnavailable": "50%"})
    );
    assert_eq!(
        (&pod["hostNetwork"], &pod["dnsPolicy"]),
        (&json!(true), &json!("ClusterFirstWithHostNet"))
    );
}

/// Helm refuses values that do not exist.
#[test]
fn the_installation_page_sets_values_that_exist() {
    let page = fs_err::read_to_string(root().join("docs/start/install.md")).unwrap();
    let set: Vec<&str> = page
        .split_whitespace()
        .skip_while(|word| *word != "--set")
        .filter(|word| word.contains('=') && word.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter(|word| {
            ["image.", "channel.", "monitoring.", "webhooks.", "hostNetwork"]
                .iter()
                .any(|part| word.starts_with(part))
        })
        .collect();
    assert!(set.len() > 4, "{set:?}");
    // The page cuts the digest out of a pushed reference with a shell expansion.
    let digest = format!("sha256:{}", "0".repeat(64));
    let filled = |word: &str| {
        word.replace("${image%@*}", "a.example/b")
            .replace("${image#*@}", &digest)
    };
    let set: Vec<String> = set.iter().map(|word| format!("--set={}", filled(word))).collect();
    let all = rendered(HELMS[1], &set.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        all.contains(&format!("image: \"a.example/b:stable@{digest}\"")),
        "{all}"
    );
    for values in ["rbac:", "configMap:"] {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), block(&page, values)).unwrap();
        rendered(HELMS[1], &[&format!("--values={}", file.path().display())]);
    }
}

/// The code block of a page that begins with this text.
fn block<'a>(page: &'a str, begin: &str) -> &'a str {
    let block = page.split("```yaml\n").find(|block| block.starts_with(begin)).unwrap();
    block.split("```").next().unwrap()
}

/// The rights are shown before the command that grants them.
#[test]
fn the_installation_page_shows_the_widest_right_of_the_shipped_modules_and_how_to_switch_them_on() {
    let page = fs_err::read_to_string(root().join("docs/start/install.md")).unwrap();
    let before = page.split("\nhelm install").next().unwrap();
    let shipped = fs_err::read_to_string(chart().with_file_name("shipped-modules.yaml")).unwrap();
    let one = |text: &str| yaml::documents_v2(text).unwrap().remove(0);
    let first = |rights: &Value| {
        let rules = &rights["rbac"]["moduleRules"]["cluster"];
        [rules[0].clone(), rules[1].clone(), rules[2].clone()]
    };
    let shown = first(&one(block(before, "rbac:")));
    assert_eq!(shown, first(&one(&shipped)));
    assert_eq!(shown[1]["resources"], json!(["secrets"]));
    let sections = one(block(before, "configMap:"))["configMap"]["sections"].clone();
    let flags = [
        "sysctlTunerEnabled",
        "registrySecretCopierEnabled",
        "sysctlAuditEnabled",
        "copyratorEnabled",
        "aerospikeEnabled",
        "bundlesEnabled",
    ];
    let on = sections.as_object().unwrap();
    assert!(
        !on.is_empty()
            && on
                .iter()
                .all(|(flag, on)| flags.contains(&flag.as_str()) && on == "true"),
        "{sections}"
    );
}

#[test]
fn a_certificate_as_the_page_has_it_is_for_the_services() {
    let page = fs_err::read_to_string(root().join("docs/start/install.md")).unwrap();
    let certificate = yaml::documents_v2(block(&page, "apiVersion: cert-manager.io"))
        .unwrap()
        .remove(0);
    let named = "--set=fullnameOverride=addon-operator";
    let services = objects(&rendered(HELMS[0], &[named]));
    let services = services.iter().filter(|object| object["kind"] == "Service");
    let asked = services.filter(|service| service["spec"]["ports"][0]["port"] == 443);
    let names: Vec<String> = asked
        .map(|service| format!("{}.addon-operator.svc", service["metadata"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!(certificate["spec"]["dnsNames"], json!(names));
    assert_eq!(names.len(), 2);
}

#[test]
fn the_chart_is_of_this_version() {
    let about = fs_err::read_to_string(chart().join("Chart.yaml")).unwrap();
    let about = yaml::documents_v2(&about).unwrap().remove(0);
    assert_eq!(about["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
}

/// Pods meet the `restricted` standard, and roles grant nothing by wildcard.
#[test]
fn pods_are_restricted_and_roles_name_what_they_grant() {
    for (name, values) in value_sets() {
        let values = format!("--values={}", values.display());
        for object in objects(&rendered(HELMS[0], &[&values])) {
            if object["kind"] == "Deployment" {
                let pod = &object["spec"]["template"]["spec"];
                assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
                assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
                let container = &pod["containers"][0]["securityContext"];
                assert_eq!(container["readOnlyRootFilesystem"], true);
                assert_eq!(container["allowPrivilegeEscalation"], false);
                assert_eq!(container["capabilities"], serde_json::json!({"drop": ["ALL"]}));
            }
            let rules = object["rules"].as_array().cloned().unwrap_or_default();
            let is_open = |rule: &Value| rule.to_string().contains('*');
            assert!(!rules.iter().any(is_open), "{name}: {rules:?}");
        }
    }
}
