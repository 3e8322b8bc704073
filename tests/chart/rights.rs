//! An operator with exactly the rights of the chart, and modules with exactly the rights that `rbac generate` finds,
//! need no others and use almost all of them.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testbed::audit::Records;
use testbed::part::Part;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Running, SIDES, Stage, here, name_of};

/// A chart with everything that needs rights of its own: roles of both kinds, bindings to them and to others, a
/// resource of a CRD, objects in other namespaces, a helm hook.
const ROBOT: [(&str, &str); 8] = [
    ("Chart.yaml", "apiVersion: v2\nname: robot\nversion: 0.1.0\n"),
    ("values.yaml", "robot:\n  greeting: hello\n"),
    (
        "crds/mice.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mice.@NAMESPACE@.example.com}\n\
         spec:\n  group: @NAMESPACE@.example.com\n  scope: Namespaced\n  names: {kind: Mouse, plural: mice, singular: mouse}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    \
         schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n",
    ),
    (
        "templates/objects.yaml",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n---\n\
         apiVersion: @NAMESPACE@.example.com/v1\nkind: Mouse\nmetadata: {name: robot}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: robot}\ndata: {greeting: {{ .Values.robot.greeting | quote }}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Namespace }}-robot\", namespace: kube-public}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: robot-first, annotations: {helm.sh/hook: pre-upgrade}}\n\
         data: {peers: \"{{ len (lookup \"v1\" \"Node\" \"\" \"\") }} {{ len (lookup \"v1\" \"Service\" .Release.Namespace \"ao-addon-operator\") }}\"}\n",
    ),
    (
        "templates/roles.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: robot}\n\
         rules:\n- {apiGroups: [''], resources: [pods, pods/log], verbs: [get]}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{{ .Release.Namespace }}-robot\"}\n\
         rules:\n- {apiGroups: [''], resources: [nodes], verbs: [get]}\n- {nonResourceURLs: [/metrics], verbs: [get]}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: robot}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}\n\
         subjects: [{kind: ServiceAccount, name: robot, namespace: \"{{ .Release.Namespace }}\"}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: robot-view}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n\
         subjects: [{kind: ServiceAccount, name: robot, namespace: \"{{ .Release.Namespace }}\"}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: \"{{ .Release.Namespace }}-robot\"}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"{{ .Release.Namespace }}-robot\"}\n\
         subjects: [{kind: ServiceAccount, name: robot, namespace: \"{{ .Release.Namespace }}\"}]\n",
    ),
    (
        "hooks/watch.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then cat <<END\nconfigVersion: v1\nkubernetes:\n\
         - {name: nodes, apiVersion: v1, kind: Node, executeHookOnEvent: []}\n\
         - {name: one, apiVersion: v1, kind: ConfigMap, executeHookOnEvent: [], nameSelector: {matchNames: [some]}, \
         namespace: {nameSelector: {matchNames: [kube-system]}}}\n\
         - {name: mice, apiVersion: @NAMESPACE@.example.com/v1, kind: Mouse, executeHookOnEvent: [], \
         namespace: {nameSelector: {matchNames: [@NAMESPACE@]}}}\nEND\nfi\n",
    ),
    (
        "hooks/mark.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\": \"v1\", \"afterHelm\": 1}'; exit 0; fi\n\
         echo '{\"operation\": \"CreateOrUpdate\", \"object\": {\"apiVersion\": \"v1\", \"kind\": \"Secret\", \
         \"metadata\": {\"name\": \"marked\", \"namespace\": \"default\"}}}' >\"$KUBERNETES_PATCH_PATH\"\n",
    ),
    (
        // Rights that cannot be concluded from the hook's configuration.
        "module.yaml",
        "rights:\n- {apiGroups: [''], resources: [secrets], resourceNames: [marked], verbs: [get, patch, update], namespaces: [default]}\n\
         - {apiGroups: [''], resources: [secrets], verbs: [create], namespaces: [default]}\n",
    ),
];

/// A global hook. Its needs cannot be concluded from its configuration either.
const GLOBAL: [(&str, &str); 2] = [
    (
        "hooks/tell.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then cat <<END\nconfigVersion: v1\nonStartup: 1\nkubernetes:\n\
         - {name: accounts, apiVersion: v1, kind: ServiceAccount, executeHookOnEvent: [], \
         namespace: {nameSelector: {matchNames: [kube-public]}}}\nEND\nexit 0\nfi\n\
         echo '{\"operation\": \"CreateOrUpdate\", \"object\": {\"apiVersion\": \"v1\", \"kind\": \"Secret\", \
         \"metadata\": {\"name\": \"@NAMESPACE@-told\", \"namespace\": \"kube-public\"}}}' >\"$KUBERNETES_PATCH_PATH\"\n",
    ),
    (
        "rights.yaml",
        "rights:\n- {apiGroups: [''], resources: [secrets], resourceNames: [\"@NAMESPACE@-told\"], verbs: [get, patch, update], \
         namespaces: [kube-public]}\n- {apiGroups: [''], resources: [secrets], verbs: [create], namespaces: [kube-public]}\n",
    ),
];

const SETTLER: [(&str, &str); 3] = [
    ("values.yaml", "settler: {}\n"),
    (
        "hooks/add.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\": \"v1\", \"beforeHelm\": 1}'; exit 0; fi\n\
         echo '[{\"op\": \"add\", \"path\": \"/settler/added\", \"value\": true}]' >\"$CONFIG_VALUES_JSON_PATCH_PATH\"\n",
    ),
    (
        "hooks/settle.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then cat <<END\nconfigVersion: v1\nonStartup: 1\n\
         kubernetesValidating:\n- {name: pods.chart.example.com, failurePolicy: Ignore, \
         namespace: {labelSelector: {matchLabels: {never: there}}}, \
         rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}\n\
         kubernetesMutating:\n- {name: mutated.chart.example.com, failurePolicy: Ignore, \
         namespace: {labelSelector: {matchLabels: {never: there}}}, \
         rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}\nEND\nexit 0\nfi\n\
         echo '[{\"op\": \"add\", \"path\": \"/settler/seen\", \"value\": true}]' >\"$CONFIG_VALUES_JSON_PATCH_PATH\"\n",
    ),
];

fn build(prefix: &str, helm: Part) -> Stage {
    let stage = Stage::build(prefix, helm);
    stage.write("modules/values.yaml", "robotEnabled: true\nsettlerEnabled: true\n");
    for (file, text) in ROBOT {
        stage.write(&format!("modules/010-robot/{file}"), text);
    }
    for (file, text) in SETTLER {
        stage.write(&format!("modules/020-settler/{file}"), text);
    }
    for (file, text) in GLOBAL {
        stage.write(&format!("global-hooks/{file}"), text);
    }
    stage
}

/// The used rights as `group/resource verb`.
fn used(records: &Records) -> BTreeSet<(String, String, String)> {
    let asked = records.0.iter().map(|record| {
        let verb = record.verb.clone();
        (record.group.clone(), record.resource.clone(), verb)
    });
    asked.collect()
}

/// The rights that the chart's roles grant, in the same form, without those for modules.
fn granted(stage: &Stage) -> BTreeSet<(String, String, String)> {
    let role =
        |what: &str| -> Value { serde_json::from_str(&stage.kubectl(&format!("get {what} --output=json"))).unwrap() };
    let cluster = format!("clusterrole ao-addon-operator.{}", stage.namespace.name());
    let roles = [role("role ao-addon-operator"), role(&cluster)];
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().unwrap().iter();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in roles.iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        for resource in texts(&rule["resources"]) {
            let group = &texts(&rule["apiGroups"])[0];
            let verbs = texts(&rule["verbs"]).into_iter();
            granted.extend(verbs.map(|verb| (group.clone(), resource.clone(), verb)));
        }
    }
    granted
}

fn look<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    wait_until(PATIENCE, what, || Ok::<_, String>(look())).unwrap()
}

/// A module with a new CRD may need a second attempt, because the API server needs a moment to serve the kind.
fn installed(stage: &Stage) -> Option<String> {
    stage.namespace.kubectl(["get", "configmap", "robot"]).ok()
}

/// Waits until the only revision of the release is deployed: helm and the steps after it have ended.
fn released(stage: &Stage) -> Option<()> {
    let release = stage.kubectl("get secrets --selector=name=robot,owner=helm,status=deployed --output=name");
    (release.lines().count() == 1).then_some(())
}

#[test]
fn nothing_is_lacking_and_nothing_is_granted_in_vain() {
    for helm in [Part::Helm3, Part::Helm4] {
        let stage = build("rights", helm);
        let rights = stage.rights();
        let rights = format!("--values={}", rights.display());
        stage.chart("install", &[&rights, "--set=configMap.create=false"]);
        let pods = stage.pods();
        let beginning = stage.namespace.plane().audit().mark().unwrap();
        let operator = stage.start(&pods[0]);
        operator.wait_until_ready();
        look("the release", || installed(&stage));
        stage.kubectl(&format!(
            "get secret --namespace=kube-public {}-told",
            stage.namespace.name()
        ));

        // One hook has created the ConfigMap and another has added to it. Next: good and bad edits, and a release that
        // is upgraded, damaged and removed.
        let saved = stage.kubectl("get configmap addon-operator --output=jsonpath={.data.settler}");
        assert_eq!(saved.trim(), "added: true\nseen: true");
        let leader = stage.kubectl("get lease addon-operator-leader-election --output=jsonpath={.spec.holderIdentity}");
        assert!(leader.starts_with(name_of(&pods[0])), "{leader}");
        stage.patch("configmap addon-operator", &json!({"data": {"robot": "greeting: hi"}}));
        let greeting = || stage.kubectl("get configmap robot --output=jsonpath={.data.greeting}");
        look("the upgraded release", || (greeting() == "hi").then_some(()));
        refused_upgrade(&stage, &operator);
        let bad = [
            "patch",
            "configmap",
            "addon-operator",
            "--type=merge",
            "--patch={\"data\":{\"robotEnabled\":\"perhaps\"}}",
        ];
        let refused = stage.namespace.kubectl(bad).unwrap_err().to_string();
        assert!(refused.contains("robotEnabled"), "{refused}");
        stage.kubectl("delete configmap robot");
        look("the restored object", || installed(&stage));
        let configuration = format!("addon-operator-hooks.{}", stage.namespace.name());
        for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
            let timeout = "--output=jsonpath={.webhooks[0].timeoutSeconds}";
            let seconds = || stage.kubectl(&format!("get {kind} {configuration} {timeout}"));
            let before = seconds();
            let patch = json!([{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 29}]);
            let (name, patch) = (configuration.as_str(), format!("--patch={patch}"));
            stage
                .namespace
                .kubectl(["patch", kind, name, "--type=json", &patch])
                .unwrap();
            look("a webhook as it was", || (seconds() == before).then_some(()));
        }
        stage.patch(
            "configmap addon-operator",
            &json!({"data": {"robotEnabled": "false", "settlerEnabled": "false"}}),
        );
        look("the removed release", || {
            let left = stage.kubectl("get secrets --selector=name=robot,owner=helm --output=name");
            left.trim().is_empty().then_some(())
        });
        let get = format!("get mutatingwebhookconfiguration {configuration} --output=jsonpath={{.webhooks}}");
        look("no webhook without a hook", || {
            stage.kubectl(&get).is_empty().then_some(())
        });
        operator.stop();

        let all = stage.requests(beginning);
        let refused = all.clone().that(|record| record.code == 403);
        assert!(refused.is_empty(), "{helm}:\n{refused}");
        let used = used(&all);
        let idle: Vec<String> = granted(&stage)
            .difference(&used)
            .map(|(group, resource, verb)| format!("{group}/{resource} {verb}"))
            .collect();
        assert_eq!(idle, IDLE, "{helm}");
    }
}

/// An upgrade that a webhook without a server refuses. The operator reads whose webhook it is, and about its server.
fn refused_upgrade(stage: &Stage, operator: &Running) {
    let namespace = stage.namespace.name();
    let name = format!("dead.{namespace}.example.com");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "clientConfig": {"service": {"namespace": namespace, "name": "nobody"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {"app.kubernetes.io/managed-by": "Helm"}},
            "sideEffects": "None",
            "timeoutSeconds": 2,
            "admissionReviewVersions": ["v1"],
        }],
    });
    stage.write("dead.json", &configuration.to_string());
    stage.kubectl(&format!("create --filename={}", stage.path("dead.json").display()));
    let probe = ["annotate", "configmap", "robot", "probe=true", "--dry-run=server"];
    let is_refused = || stage.namespace.kubectl(probe).is_err().then_some(());
    look("the webhook to be called", is_refused);
    stage.patch("configmap addon-operator", &json!({"data": {"robot": "greeting: hey"}}));
    let told = format!(
        "MutatingWebhookConfiguration '{name}' of no release; its Service '{namespace}/nobody' has no endpoints"
    );
    look("the culprit", || operator.said().contains(&told).then_some(()));
    stage.kubectl(&format!("delete mutatingwebhookconfiguration {name}"));
    let greeting = || stage.kubectl("get configmap robot --output=jsonpath={.data.greeting}");
    look("the upgrade", || (greeting() == "hey").then_some(()));
}

/// Rights that are needed only in situations that this test does not create: a repeated Event; a leader in another pod
/// whose end is detected; Services with selectors; webhooks of modules; the object of a module that is gone; a person at the page. The
/// first apply of an object is recorded as a patch.
const IDLE: [&str; 15] = [
    "/endpoints create",
    "/endpoints get",
    "/endpoints patch",
    "/events list",
    "/pods get",
    "/pods watch",
    "addon-operator.io/modules create",
    "addon-operator.io/modules delete",
    "addon-operator.io/operators create",
    "discovery.k8s.io/endpointslices create",
    "discovery.k8s.io/endpointslices delete",
    "discovery.k8s.io/endpointslices patch",
    "discovery.k8s.io/endpointslices watch",
    "events.k8s.io/events get",
    "events.k8s.io/events patch",
];

#[test]
fn an_uninstallation_leaves_releases_and_takes_webhooks() {
    let stage = build("gone", Part::Helm3);
    let rights = stage.rights();
    stage.chart("install", &[&format!("--values={}", rights.display())]);
    let operator = stage.start(&stage.pods()[0]);
    operator.wait_until_ready();
    look("the release", || released(&stage));
    let of_ours = || -> Vec<String> {
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let names = stage.kubectl(&format!("get {kinds} --output=name"));
        let own = format!(".{}", stage.namespace.name());
        names
            .lines()
            .filter(|name| name.ends_with(&own))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(of_ours().len(), 3);
    let edits = format!("addon-operator-config.{}", stage.namespace.name());
    let get = format!("get validatingwebhookconfiguration {edits} --output=jsonpath={{.webhooks[*].name}}");
    look("the webhook about edits", || {
        (!stage.kubectl(&get).is_empty()).then_some(())
    });

    // The operator runs on for a moment, without any right.
    stage.chart("uninstall", &[]);
    look("no webhook configuration", || of_ours().is_empty().then_some(()));
    operator.stop();
    assert!(of_ours().is_empty(), "{:?}", of_ours());
    assert_eq!(
        stage.kubectl("get configmap robot --output=jsonpath={.data.greeting}"),
        "hello"
    );
    assert_eq!(released(&stage), Some(()));
    stage.kubectl("get configmap addon-operator");
}

/// Sets the status of the pods as a kubelet would, except readiness: the first converge may need the operator's own
/// webhooks.
fn run(stage: &Stage, pods: &[Value]) {
    for (pod, address) in pods.iter().zip(["10.9.0.1", "10.9.0.2"]) {
        let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
        stage.patch(&format!("pod {} --subresource=status", name_of(pod)), &status);
    }
}

fn lead_to(stage: &Stage, pods: &[&Value]) {
    let names: Vec<&str> = pods.iter().map(|pod| name_of(pod)).collect();
    for side in SIDES {
        look(&format!("the Service for {side} at {names:?}"), || {
            (stage.led_to(side) == names).then_some(())
        });
    }
}

/// The addresses in the `Endpoints` objects, which API servers before 1.33 read.
fn endpoints(stage: &Stage) -> Vec<String> {
    let show = "--output=jsonpath={.subsets[*].addresses[*].ip}";
    let get = |side: &str| stage.kubectl(&format!("get endpoints ao-addon-operator-{side}-svc {show}"));
    SIDES.map(get).into()
}

#[test]
fn the_services_of_webhooks_lead_to_the_leader() {
    let stage = build("services", Part::Helm3);
    let rights = stage.rights();
    stage.chart("install", &[&format!("--values={}", rights.display())]);
    let beginning = stage.namespace.plane().audit().mark().unwrap();
    let pods = stage.pods();
    run(&stage, &pods);
    lead_to(&stage, &[]);
    let leader = stage.start_unreached(&pods[0]);
    lead_to(&stage, &[&pods[0]]);
    let here = here().to_string();
    assert_eq!(endpoints(&stage), [here.clone(), here]);
    let standby = stage.start_unreached(&pods[1]);
    leader.wait_until_ready();
    lead_to(&stage, &[&pods[0]]);
    leader.kill();
    // The next leader takes over the `EndpointSlices`.
    lead_to(&stage, &[&pods[1]]);
    standby.stop();
    lead_to(&stage, &[]);
    assert_eq!(endpoints(&stage), ["", ""]);
    let refused = stage.requests(beginning).that(|record| record.code == 403);
    assert!(refused.is_empty(), "{refused}");
    // The slices belong to the Services and are deleted with them.
    stage.chart("uninstall", &[]);
    let left = "get endpointslices --output=name";
    look("no slice", || stage.kubectl(left).is_empty().then_some(()));
}

/// In older charts the Services selected the pod with the leader's label.
#[test]
fn an_older_leader_is_reached_until_another_one_leads() {
    for helm in [Part::Helm3, Part::Helm4] {
        let stage = build("older", helm);
        stage.write_older_chart();
        stage.chart_in(&stage.path("older"), "install", &[]);
        let pods = stage.pods();
        run(&stage, &pods);
        stage.kubectl(&format!("label pod {} addon-operator/leader=true", name_of(&pods[1])));
        lead_to(&stage, &[&pods[1]]);
        stage.chart("upgrade", &[]);
        let selector = "get service ao-addon-operator-validating-svc --output=jsonpath={.spec.selector}";
        assert_eq!(stage.kubectl(selector), "", "{helm}");
        lead_to(&stage, &[&pods[1]]);
        let leader = stage.start_unreached(&pods[0]);
        lead_to(&stage, &[&pods[0]]);
        let here = here().to_string();
        look("the older objects, too", || {
            (endpoints(&stage) == [here.as_str(), &here]).then_some(())
        });
        leader.stop();
        lead_to(&stage, &[]);
    }
}
