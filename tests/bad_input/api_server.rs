//! An API server that is not there, disappears, or answers with nonsense.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::net::SocketAddr;

use fs_err as fs;
use serde_json::json;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

use super::proxy::{Lie, Proxy};
use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

/// A proxy that is still closed, and a stage whose operators reach the API server only through it.
pub(super) fn behind_proxy(prefix: &str) -> (Stage, Proxy) {
    let mut stage = Stage::build(prefix);
    let server = stage.namespace().plane().server().to_owned();
    let proxy = Proxy::closed(server.trim_start_matches("https://").parse().unwrap());
    let text = fs::read_to_string(stage.namespace().kubeconfig(User::Operator)).unwrap();
    assert!(text.contains(&server));
    let text = text.replace(&server, &format!("https://127.0.0.1:{}", proxy.port()));
    stage.write("kubeconfig", &text);
    let kubeconfig = stage.path("kubeconfig");
    stage.set("KUBECONFIG", kubeconfig);
    (stage, proxy)
}

#[test]
fn an_api_server_that_cannot_be_reached_at_the_start() {
    let (stage, proxy) = behind_proxy("unreachable");
    // An operator that may have rivals writes, reads and runs nothing before it is elected.
    let waits = ["waiting: to be elected leader", "waiting: the ConfigMap"];
    start_without_api_server(&stage, proxy, &[&waits]);
}

#[test]
fn an_api_server_that_cannot_be_reached_at_the_start_of_who_is_alone() {
    let (mut stage, proxy) = behind_proxy("unreachable-alone");
    stage.set("ADDON_OPERATOR_HA", "false");
    let waits = ["waiting: the ConfigMap", "waiting: read the state Secret"];
    // The operator tries several times and logs the failure once.
    start_without_api_server(&stage, proxy, &[&waits, &["failed 2 times"]]);
}

/// Starts an operator without an API server, checks what it waits for one after the other, and opens the proxy in the
/// end.
fn start_without_api_server(stage: &Stage, mut proxy: Proxy, waits: &[&[&str]]) {
    let operator = stage.start();
    let address = format!("https://127.0.0.1:{}", proxy.port());
    operator.wait_for_answer("/readyz", 500, &["cannot be reached", &address]);
    let told = operator.wait_for(&["API server cannot be reached", "\"level\":\"warn\""]);
    assert_says(
        &told,
        &[&address, "Connection refused", "\"hint\":\"is the API server at"],
    );
    assert_eq!(operator.get("/healthz").0, 200);
    for waits in waits {
        operator.wait_for_answer("/readyz?verbose", 500, waits);
    }
    proxy.open();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for(&["API server answers again"]);
    operator.wait_for_answer("/readyz", 200, &["Startup converge done"]);
    assert!(!operator.get("/readyz").1.contains("cannot be reached"));
    assert_one_word_per_change(&operator.said(), 1);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn an_api_server_that_goes_away_for_a_while() {
    let (stage, mut proxy) = behind_proxy("away");
    proxy.open();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    for (round, size) in [(1, "large"), (2, "huge")] {
        proxy.close();
        operator.wait_for_more(&["API server cannot be reached", "\"level\":\"warn\""], round);
        operator.wait_for_answer("/readyz", 200, &["cannot be reached"]);
        stage.configure(&json!({"victim": format!("size: {size}")}));
        proxy.open();
        operator.wait_for_more(&["API server answers again"], round);
        stage.wait_for_sizes(&format!("good:small victim:{size}"));
        // Helm's write to the release must be finished before the next absence.
        operator.wait_for_more(&["Module is ready", "\"module\":\"victim\""], round + 1);
        assert!(!operator.get("/readyz").1.contains("cannot be reached"));
    }
    assert_one_word_per_change(&operator.said(), 2);
    proxy.close();
    operator.wait_for_more(&["API server cannot be reached"], 3);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// The operator logs each absence once. The client library logs nothing about it.
#[track_caller]
fn assert_one_word_per_change(said: &str, absences: usize) {
    let count = |words: &[&str]| {
        said.lines()
            .filter(|line| words.iter().all(|word| line.contains(word)))
            .count()
    };
    assert_eq!(count(&["API server cannot be reached"]), absences, "{said}");
    assert_eq!(count(&["API server answers again"]), absences, "{said}");
    assert_eq!(count(&["\"logger\":\"kube"]), 0, "{said}");
    assert_eq!(count(&["\"level\":\"error\""]), 0, "{said}");
}

/// Runs a kubectl proxy, which speaks plain HTTP, so that the test's proxy in front of it can send false answers.
fn plain_server(stage: &Stage) -> (Bound, SocketAddr) {
    let plane = stage.namespace().plane();
    let log = stage.path("kubectl-proxy.log");
    let mut command = process::command(plane.program(Part::Kubectl));
    command
        .args(["proxy", "--port=0"])
        .env("KUBECONFIG", stage.namespace().kubeconfig(User::Operator));
    command.stdout(fs::File::create(&log).unwrap().into_parts().0);
    let bound = Bound::start(command, Bond::Group).unwrap();
    let address = || {
        let text = fs::read_to_string(&log).unwrap();
        Ok::<_, String>(text.trim().strip_prefix("Starting to serve on ").map(ToOwned::to_owned))
    };
    let address = wait_until(PATIENCE, "the address of kubectl proxy", address).unwrap();
    (bound, address.parse().unwrap())
}

/// The answer to a request that the account may not make.
pub(super) const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 83\r\n\r\n\
    {\"kind\":\"Status\",\"apiVersion\":\"v1\",\"reason\":\"Forbidden\",\"message\":\"no\",\"code\":403 }";

/// Whether a request lists or watches the ConfigMap. The functions below are false answers to such requests: invalid
/// ones, and ones that stop in the middle.
fn is_about_config(request: &str) -> bool {
    request.starts_with("GET ") && request.lines().next().is_some_and(|line| line.contains("/configmaps?"))
}

fn no_json(request: &str) -> Option<&'static str> {
    is_about_config(request)
        .then_some("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n<html/>")
}

fn half_a_list(request: &str) -> Option<&'static str> {
    let half = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n\
                {\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[";
    is_about_config(request).then_some(half)
}

fn another_kind(request: &str) -> Option<&'static str> {
    let nothing = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    is_about_config(request).then_some(nothing)
}

/// Answers every watch with an end before the first event.
fn nothing(request: &str) -> Option<&'static str> {
    let is_watch = is_about_config(request) && request.contains("watch=true");
    is_watch.then_some("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n")
}

fn unavailable(request: &str) -> Option<&'static str> {
    is_about_config(request).then_some("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nnope")
}

fn no_lease(request: &str) -> Option<&'static str> {
    let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 96\r\n\r\n\
                   {\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no leases for you\",\"code\":403} ";
    let is_about_leases = request.lines().next().is_some_and(|line| line.contains("/leases"));
    is_about_leases.then_some(refusal)
}

#[test]
fn a_lease_that_is_refused() {
    let (stage, proxy, _server) = behind_liar("no-lease");
    proxy.lie(Some(no_lease));
    let operator = stage.start();
    let told = operator.wait_for(&["The lease cannot be read or written"]);
    let hint = "allow the verb 'get' on 'leases.coordination.k8s.io' in namespace";
    assert_says(&told, &["no leases for you", hint]);
    operator.wait_for_answer("/readyz", 500, &["no leader is elected", "no leases for you"]);
    proxy.lie(None);
    operator.wait_for(&[CONVERGED]);
    assert_eq!(operator.records(&["The lease cannot be read or written"]).len(), 1);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// An open proxy that can send false answers to the operators of that stage, and the kubectl proxy behind it.
pub(super) fn behind_liar(prefix: &str) -> (Stage, Proxy, Bound) {
    let mut stage = Stage::build(prefix);
    let (server, address) = plain_server(&stage);
    let mut proxy = Proxy::closed(address);
    proxy.open();
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, users: [{{name: a, user: {{}}}}], \
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{}'}}}}], \
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]}}",
        proxy.port()
    );
    stage.write("kubeconfig", &kubeconfig);
    let kubeconfig = stage.path("kubeconfig");
    stage.set("KUBECONFIG", kubeconfig);
    (stage, proxy, server)
}

#[test]
fn a_config_map_that_is_answered_with_garbage_and_halves() {
    let (stage, mut proxy, _server) = behind_liar("lies");
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.configure(&json!({"victimEnabled": "true", "victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.sizes(), "good:small victim:large");
    let lies: [Lie; 5] = [no_json, half_a_list, another_kind, nothing, unavailable];
    for (round, lie) in lies.into_iter().enumerate() {
        proxy.lie(Some(lie));
        // Closing ends the watch, so that it begins anew.
        proxy.close();
        proxy.open();
        operator.wait_for_more(&["cannot watch the ConfigMap"], round + 1);
        proxy.lie(None);
        operator.wait_for_more(&["watching the ConfigMap again"], round + 1);
    }
    stage.configure(&json!({"victimEnabled": "true", "victim": "size: huge"}));
    stage.wait_for_sizes("good:small victim:huge");
    assert!(operator.records(&["ConfigMap is not found"]).is_empty());
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// An answer from an old cache of the API server, which contains no release yet.
fn old_cache(request: &str) -> Option<&'static str> {
    let line = request.lines().next()?;
    let asks_the_cache = line.contains("/secrets?") && line.contains("name%3D") && line.contains("resourceVersion=0");
    asks_the_cache.then_some(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 91\r\n\r\n\
         {\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{},\"items\":[]}",
    )
}

#[test]
fn a_cache_that_has_not_seen_the_releases_yet() {
    let (stage, proxy, _server) = behind_liar("old-cache");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    proxy.lie(Some(old_cache));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert!(operator.records(&["upgrading the release"]).is_empty());
    operator.stop();
    let revisions = stage.kubectl("get secrets -l owner=helm -o name");
    assert_eq!(revisions.lines().count(), 2, "{revisions}");
}
