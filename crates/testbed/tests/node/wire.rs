//! The connections between pods, the API server and the machine: which are possible, and which must not be.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use serde_json::{Value, json};
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, create, once, phase, said, stage};

const ASK: &str = "A=/var/run/secrets/kubernetes.io/serviceaccount; \
    curl -sS --cacert $A/ca.crt -H \"Authorization: Bearer $(cat $A/token)\" \
    https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT";

#[test]
fn a_pod_is_its_service_account_to_the_api_server() {
    if testbed::shared::has_no_node() {
        return;
    }
    let namespace = stage().plane.namespace("account").unwrap();
    let review = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let script = format!("{ASK}{path} -H 'Content-Type: application/json' -d '{review}'");
    let said = said(&namespace, "seen", &script, &json!({}), &json!({}));
    let answer: Value = serde_json::from_str(&said).unwrap();
    let who = &answer["status"]["userInfo"];
    assert_eq!(
        who["username"],
        format!("system:serviceaccount:{}:default", namespace.name())
    );
    assert_eq!(who["extra"]["authentication.kubernetes.io/pod-name"], json!(["seen"]));
}

#[test]
fn a_pod_has_an_address_of_its_own_and_no_way_out() {
    if testbed::shared::has_no_node() {
        return;
    }
    let namespace = stage().plane.namespace("address").unwrap();
    create(
        &namespace,
        "server",
        "",
        &json!({ "args": ["inhabitant 8080"] }),
        &json!({}),
    );
    let server = once(&namespace, "server", "to be ready", |pod| {
        pod["status"]["containerStatuses"][0]["ready"] == true && pod["status"]["podIP"].is_string()
    });
    let address = server["status"]["podIP"].as_str().unwrap();
    // An address of the range for documentation, an address of the machine, and a port that listens on the machine's
    // loopback.
    let port = stage().plane.server().rsplit_once(':').unwrap().1;
    let script = format!(
        "curl -s http://{address}:8080/etc/hostname; \
         for there in 192.0.2.1:80 127.0.0.1:{port}; do curl -s -m 2 http://$there && echo reached $there; done; \
         grep -c : /proc/net/dev"
    );
    let said = said(&namespace, "client", &script, &json!({}), &json!({}));
    assert_eq!(said, "server\n2\n", "loopback and one more");
    // The owner of the control plane reaches the pod too.
    let mut stream = stage()
        .plane
        .connect(format!("{address}:8080").parse().unwrap())
        .unwrap();
    write!(stream, "GET /etc/hostname HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("server\n"), "{answer}");
}

#[test]
fn a_service_leads_to_the_pods_that_are_ready() {
    if testbed::shared::has_no_node() {
        return;
    }
    let namespace = stage().plane.namespace("service").unwrap();
    namespace
        .kubectl(["create", "service", "clusterip", "web", "--tcp=80:8080"])
        .unwrap();
    let selector = r#"{"spec":{"selector":{"app":null,"tier":"web"}}}"#;
    namespace
        .kubectl(["patch", "service", "web", "--patch", selector])
        .unwrap();
    let ready = json!({ "httpGet": { "port": 8080, "path": "/etc/hostname" }, "periodSeconds": 1 });
    let never = json!({ "httpGet": { "port": 8080, "path": "/none" }, "periodSeconds": 1 });
    for (name, probe) in [("one", &ready), ("two", &ready), ("never", &never)] {
        create(
            &namespace,
            name,
            "",
            &json!({ "args": ["inhabitant 8080"], "readinessProbe": probe }),
            &json!({}),
        );
        namespace.kubectl(["label", "pod", name, "tier=web"]).unwrap();
    }
    for name in ["one", "two"] {
        let pod = once(&namespace, name, "to be ready", |pod| {
            pod["status"]["containerStatuses"][0]["ready"] == true
        });
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let ready = conditions
            .iter()
            .find(|condition| condition["type"] == "Ready")
            .unwrap();
        assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &Value::Null));
    }
    let address = namespace
        .kubectl(["get", "service", "web", "--output=jsonpath={.spec.clusterIP}"])
        .unwrap();
    let script = format!(
        "until curl -s http://{address}/etc/hostname | grep -q one; do sleep 0.1; done; \
         until curl -s http://{address}/etc/hostname | grep -q two; do sleep 0.1; done; \
         for i in 1 2 3 4 5 6; do curl -s http://{address}/etc/hostname; done"
    );
    let said = said(&namespace, "client", &script, &json!({}), &json!({}));
    assert_eq!(
        said.lines().filter(|line| matches!(*line, "one" | "two")).count(),
        6,
        "{said}"
    );
}

#[test]
fn the_api_server_asks_a_webhook_through_its_service() {
    if testbed::shared::has_no_node() {
        return;
    }
    let namespace = stage().plane.namespace("webhook").unwrap();
    let name = format!("hook.{}.svc", namespace.name());
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([name]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    fs_err::write(file("tls.crt"), cert.pem()).unwrap();
    fs_err::write(file("tls.key"), signing_key.serialize_pem()).unwrap();
    let (crt, key) = (
        format!("--cert={}", file("tls.crt")),
        format!("--key={}", file("tls.key")),
    );
    namespace
        .kubectl(["create", "secret", "tls", "pair", &crt, &key])
        .unwrap();
    let more = json!({
        "args": ["inhabitant 9443 /pair"], "volumeMounts": [{ "name": "pair", "mountPath": "/pair" }],
        "ports": [{ "containerPort": 9443 }],
        "readinessProbe": { "httpGet": { "port": 9443, "scheme": "HTTPS", "path": "/etc/hostname" }, "periodSeconds": 1 },
    });
    let pod = json!({ "volumes": [{ "name": "pair", "secret": { "secretName": "pair" } }] });
    create(&namespace, "hook", "", &more, &pod);
    namespace
        .kubectl(["expose", "pod", "hook", "--port=443", "--target-port=9443"])
        .unwrap();
    let bundle = base64::engine::general_purpose::STANDARD.encode(cert.pem());
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": namespace.name() },
        "webhooks": [{
            "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "caBundle": bundle, "service": { "namespace": namespace.name(), "name": "hook" } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }],
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace.name() } },
        }],
    });
    let admin = namespace.kubectl_as(User::Admin);
    admin.feed(["create", "-f", "-"], &configuration.to_string()).unwrap();
    wait_until(PATIENCE, "a refusal of the webhook", || {
        let refused = namespace.kubectl(["create", "configmap", "any", "--dry-run=server"]);
        let said = refused.unwrap_or_else(|error| error.to_string());
        if said.contains("refused in the pod") {
            Ok(Some(()))
        } else {
            Err(said)
        }
    })
    .unwrap();
    namespace
        .kubectl(["delete", "validatingwebhookconfiguration", namespace.name()])
        .unwrap();
    assert_eq!(phase(&once(&namespace, "hook", "to be told of", |_| true)), "Running");
}
