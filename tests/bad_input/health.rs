//! Modules whose objects do not work: the sentence about them, the modules that wait for them, and their recovery.

use testbed::wait::wait_until;

use super::api_server::{FORBIDDEN, behind_liar};
use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

const DOOR: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: door}\n\
                    spec: {type: LoadBalancer, selector: {app: door}, ports: [{port: 80}]}\n";
const GUEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guest}\ndata: {a: b}\n";
const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n\
                   spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, \
                   spec: {containers: [{name: web, image: 'registry.example/web:1'}]}}}\n";

/// The password of a module, which the status of another one's pod repeats.
const SECRET: &str = "not-for-your-eyes";

const FLAGS: &str = "goodEnabled: true\nvictimEnabled: true\ndoorEnabled: true\nguestEnabled: true\ncontentEnabled: true\n\
                     webEnabled: true\nruleEnabled: true\nclaimEnabled: true\nhookEnabled: true\n";

fn module(stage: &Stage, dir: &str, template: &str, description: Option<&str>) {
    stage.add_module(dir);
    stage.write("modules/values.yaml", FLAGS);
    stage.write(&format!("modules/{dir}/templates/a.yaml"), template);
    if let Some(description) = description {
        stage.write(&format!("modules/{dir}/module.yaml"), description);
    }
}

fn exists(stage: &Stage, object: &str) -> bool {
    !stage
        .kubectl(&format!("get {object} --ignore-not-found -o name"))
        .is_empty()
}

#[test]
fn a_module_waits_until_what_it_needs_is_healthy() {
    let stage = Stage::build("needs-health");
    module(&stage, "015-door", DOOR, None);
    module(&stage, "990-guest", GUEST, Some("dependsOn: [door]"));
    module(
        &stage,
        "016-content",
        &GUEST.replace("guest", "content"),
        Some("dependsOn: [{name: door, until: ready}]"),
    );
    let operator = stage.start();
    operator.wait_for_why(
        "door",
        &["state: Ready", "health: RollingOut", "Service door: ", "address"],
    );
    operator.wait_for_why(
        "guest",
        &["module 'door', which it needs, to be healthy: Service door: "],
    );
    let content = || Ok::<_, String>(exists(&stage, "configmap/content").then_some(()));
    wait_until(PATIENCE, "the module that is content with less", content).unwrap();
    assert!(!exists(&stage, "configmap/guest"));

    let address = r#"{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}"#;
    stage.kubectl(&format!(
        "patch service door --subresource=status --type=merge -p {address}"
    ));
    let guest = || Ok::<_, String>(exists(&stage, "configmap/guest").then_some(()));
    wait_until(PATIENCE, "the module that waited", guest).unwrap();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_why("door", &["health: Healthy"]);
    operator.stop();
    assert!(exists(&stage, "configmap/good") && exists(&stage, "configmap/victim"));
}

#[test]
fn the_sentence_names_object_and_cause_and_follows_them() {
    let stage = Stage::build("health");
    module(&stage, "015-web", WEB, Some("health: {timeout: 15s}"));
    stage.write(
        "modules/020-victim/values.yaml",
        &format!("victim: {{size: small, adminPassword: {SECRET}}}\n"),
    );
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {pods: '0'}}\n";
    stage.write("quota.yaml", quota);
    stage.kubectl(&format!("apply -f {}", stage.path("quota.yaml").display()));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_why("web", &["health: RollingOut", "Deployment web: ", "quota"]);
    operator.wait_for(&["Module is not healthy", "web", "quota"]);
    assert_says(
        &operator.wait_for_event("ModuleUnhealthy"),
        &["is not healthy: Deployment web: "],
    );
    let (_, metrics) = operator.get("/metrics");
    assert_says(&metrics, &["module_health{module=\"web\",state=\"Unhealthy\"} 1"]);
    assert_says(
        &metrics,
        &["object_unhealthy{kind=\"Deployment\",module=\"web\",name=\"web\","],
    );
    let (code, ready) = operator.get("/readyz?verbose");
    assert_eq!(code, 200, "health says nothing about readiness");
    assert_says(&ready, &["unhealthy: module web: Deployment web: "]);
    for command in ["module get web", "module tree web"] {
        let said = operator.ask(command);
        assert_says(&said, &["objects:", "  Deployment web  RollingOut: "]);
    }
    let said = operator.ask("module tree web");
    assert!(said.starts_with("objects:\n"), "{said}");

    stage.kubectl("delete resourcequota none");
    stage.kubectl("rollout restart deployment web");
    operator.wait_for_why("web", &["Deployment web: ", "web-"]);
    let pod = || {
        let pods = stage.kubectl("get pods -l app=web -o=jsonpath={.items[*].metadata.name}");
        Ok::<_, String>((!pods.is_empty()).then_some(pods))
    };
    let pods = wait_until(PATIENCE, "a pod", pod).unwrap();
    let waiting = format!(
        r#"{{"status":{{"containerStatuses":[{{"name":"web","image":"i","imageID":"i","ready":false,"restartCount":0,
        "state":{{"waiting":{{"reason":"CreateContainerConfigError","message":"no-key-{SECRET}"}}}}}}]}}}}"#
    );
    let waiting = waiting.replace(char::is_whitespace, "");
    for pod in pods.split_whitespace() {
        stage.kubectl(&format!(
            "patch pod {pod} --subresource=status --type=merge -p {waiting}"
        ));
    }
    operator.wait_for_why("web", &["Deployment web: ", "no-key-<masked>"]);
    let ready =
        r#"{"status":{"phase":"Running","containerStatuses":[],"conditions":[{"type":"Ready","status":"True"}]}}"#;
    for pod in pods.split_whitespace() {
        stage.kubectl(&format!("patch pod {pod} --subresource=status --type=merge -p {ready}"));
    }
    operator.wait_for_why("web", &["health: Healthy"]);
    assert_says(&operator.wait_for_event("ModuleHealthy"), &["is healthy again"]);
    operator.stop();
    assert!(exists(&stage, "configmap/good") && exists(&stage, "configmap/victim"));
}

#[test]
fn rules_in_cel_judge_the_objects_of_their_module() {
    let stage = Stage::build("rules");
    let template =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{state: bad}}\n");
    let rule = "health: {rules: [{apiVersion: v1, kind: ConfigMap, current: \"data.state == 'good'\", \
                failed: \"data.state == 'bad'\"}]}";
    module(&stage, "015-rule", &template("rule"), Some(rule));
    module(&stage, "016-content", &template("content"), None);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_why(
        "rule",
        &["health: Unhealthy", "ConfigMap rule: the rule `failed` holds"],
    );
    operator.wait_for_why("content", &["health: Healthy"]);
    let state = |state: &str| {
        let patch = format!("{{\"data\":{{\"state\":\"{state}\"}}}}");
        stage.kubectl(&format!("patch configmap rule --type=merge -p {patch}"));
    };
    state("other");
    operator.wait_for_why("rule", &["ConfigMap rule: its rule does not call it current yet"]);
    state("good");
    operator.wait_for_why("rule", &["health: Healthy"]);
    operator.stop();
}

/// A webhook whose Service is absent.
fn webhook(unique: &str) -> String {
    // No request is for this group, so the webhook stands in nobody's way.
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
         metadata: {{name: {unique}}}\nwebhooks:\n- name: a.example.org\n  sideEffects: None\n  failurePolicy: Ignore\n\
         \x20 admissionReviewVersions: [v1]\n  clientConfig: {{service: {{namespace: {unique}, name: hook}}}}\n\
         \x20 rules: [{{apiGroups: [nobody.example.org], apiVersions: [v1], operations: [CREATE], resources: [things]}}]\n"
    )
}

#[test]
fn claims_may_wait_for_a_pod_and_webhooks_may_not_wait_for_endpoints() {
    let stage = Stage::build("outside");
    let unique = stage.namespace().name();
    let class = format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {unique}}}\n\
         provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n"
    );
    let claim = format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: disk}}\n\
         spec: {{storageClassName: {unique}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Mi}}}}}}\n"
    );
    module(&stage, "015-claim", &(class + &claim), None);
    module(&stage, "016-hook", &webhook(unique), None);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let sentence = format!("ValidatingWebhookConfiguration {unique}: the Service {unique}/hook has no ready endpoint");
    operator.wait_for_why("hook", &["health: RollingOut", &sentence]);
    operator.wait_for_why("claim", &["health: Healthy"]);
    assert_eq!(stage.kubectl("get pvc disk -o=jsonpath={.status.phase}"), "Pending");
    stage.write(
        "endpoints.yaml",
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nports: []\n\
         metadata: {name: hook-1, labels: {kubernetes.io/service-name: hook}}\n\
         endpoints: [{addresses: [192.0.2.1], conditions: {ready: true}}]\n",
    );
    stage.kubectl(&format!("apply -f {}", stage.path("endpoints.yaml").display()));
    operator.wait_for_why("hook", &["health: Healthy"]);
    // Without an upgrade, too.
    stage.kubectl("delete endpointslice hook-1");
    operator.wait_for_why("hook", &[&sentence]);
    operator.stop();
    stage.kubectl(&format!("delete validatingwebhookconfiguration,storageclass {unique}"));
}

/// Forbids listing the endpoints of Services by their label.
fn forbids_endpoints(request: &str) -> Option<&'static str> {
    let is_of_service = request.starts_with("GET /apis/discovery.k8s.io/") && request.contains("service-name");
    is_of_service.then_some(FORBIDDEN)
}

#[test]
fn a_webhook_is_not_blamed_for_endpoints_that_the_account_may_not_see() {
    let (stage, proxy, _server) = behind_liar("unseen");
    proxy.lie(Some(forbids_endpoints));
    let unique = stage.namespace().name().to_owned();
    module(&stage, "016-hook", &webhook(&unique), None);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_why("hook", &["health: Healthy"]);
    operator.stop();
    stage.kubectl(&format!("delete validatingwebhookconfiguration {unique}"));
}
