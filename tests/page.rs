//! The page of a real operator on a real API server: it tells the state of modules, hides secrets, and knows who may look.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use testbed::plane::User;
use testbed::wait::wait_until;

#[path = "bad_input/stage.rs"]
#[expect(dead_code, reason = "most of it is about bad input")]
mod stage;

use stage::{CONVERGED, PATIENCE, Stage, assert_says};

/// A stage whose operator serves the page, with the address of the page.
fn build(prefix: &str) -> (Stage, String) {
    let mut stage = Stage::build(prefix);
    let address = format!("127.0.0.1:{}", stage.namespace().port().unwrap());
    stage.set("ADDON_OPERATOR_PAGE_LISTEN", address.clone());
    (stage, address)
}

/// The status and the body of a view, asked with additional headers.
fn try_ask(address: &str, path: &str, headers: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status.zip(body).ok_or_else(|| io::Error::other(answer))
}

fn ask(address: &str, path: &str, headers: &str) -> (u16, String) {
    try_ask(address, path, headers).unwrap()
}

/// Waits until a view contains these texts, and returns it.
fn view(address: &str, path: &str, texts: &[&str]) -> String {
    wait_until(PATIENCE, &format!("{path} to show {texts:?}"), || {
        let (status, body) = try_ask(address, path, "").map_err(|error| error.to_string())?;
        let fits = status == 200 && texts.iter().all(|text| body.contains(text));
        if fits {
            Ok(Some(body))
        } else {
            Err(format!("{status} {body}"))
        }
    })
    .unwrap()
}

#[test]
fn the_page_tells_the_state_of_modules_without_their_secrets() {
    let (stage, address) = build("page");
    stage.configure(&json!({"victim": "size: large\npassword: open-sesame"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let overview = view(
        &address,
        "/",
        &[
            "data-key=\"victim\"",
            "data-key=\"good\"",
            "<b>2</b> <span>Ready</span>",
        ],
    );
    let module = view(
        &address,
        "/modules/victim",
        &["<bdi>ConfigMap</bdi>", "hooks/hook.sh", "deployed"],
    );
    assert_says(
        &module,
        &[
            "&lt;masked&gt;",
            "&quot;large&quot;",
            "<td>ConfigMap</td>",
            "exit code 0",
        ],
    );
    let graph = view(&address, "/graph/victim", &["victim: Ready"]);
    let state = view(
        &address,
        "/operator",
        &[
            "none runs",
            "MiB",
            "Last converges",
            "Operator-Startup",
            "<th scope=\"row\">helm</th><td class=\"number\">0 of ",
            " a second in the last minute",
        ],
    );
    for html in [overview, module, graph, state] {
        assert!(!html.contains("open-sesame"), "{html}");
    }
    stage.configure(&json!({"victim": "size: huge\npassword: open-sesame"}));
    let compared = view(
        &address,
        "/modules/victim/revisions/1/2",
        &["data.size", "&quot;huge&quot;"],
    );
    let events = view(
        &address,
        "/modules/victim/events",
        &["ConfigMap/addon-operator", "module &#x27;victim&#x27;"],
    );
    for html in [compared, events] {
        assert!(!html.contains("open-sesame"), "{html}");
    }
    let (status, body) = ask(&address, "/modules/victim/revisions/1/9", "");
    assert_eq!(status, 502, "{body}");
    assert_says(&body, &["has no record of revision 9"]);
    let (status, body) = ask(&address, "/modules/absent", "");
    assert_eq!(status, 404, "{body}");

    // A failure is on top, without the secret in its text.
    let broken = "{{ fail (printf \"no entry with %s\" .Values.victim.password) }}\n";
    stage.write("modules/020-victim/templates/b.yaml", broken);
    operator.stop();
    let operator = stage.start();
    let overview = view(
        &address,
        "/",
        &["<b>1</b> <span>Needs attention</span>", "no entry with"],
    );
    assert!(!overview.contains("open-sesame"), "{overview}");
    operator.stop();
}

#[test]
fn an_edit_is_news_and_another_host_is_refused() {
    let (stage, address) = build("page-news");
    stage.configure(&json!({"victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    view(&address, "/modules/victim", &["&quot;large&quot;"]);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut word = |number: u32| lines.any(|line| line == format!("data: {number}"));
    assert!(word(1));
    stage.configure(&json!({"victim": "size: huge"}));
    assert!(word(2));
    view(&address, "/modules/victim", &["&quot;huge&quot;"]);
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_says(
        &answer,
        &["421 Misdirected Request", "content-security-policy: default-src 'none'"],
    );
    // An open stream does not hold up the end.
    operator.stop();
}

#[test]
fn outside_of_loopback_the_api_server_says_who_may_look() {
    let (mut stage, address) = build("page-outside");
    stage.set("ADDON_OPERATOR_PAGE_REVIEW", "true");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.kubectl("create serviceaccount looker");
    let token = stage.kubectl("create token looker");
    let shown = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(ask(&address, "/", "").0, 401);
    assert_eq!(ask(&address, "/", "Authorization: Bearer stolen\r\n").0, 401);
    let (status, body) = ask(&address, "/", &shown);
    assert_eq!(status, 403, "{body}");
    let namespace = stage.namespace().name();
    // The kind need not be served for the right to count.
    let rules = json!([{"apiGroups": ["addon-operator.io"], "resources": ["modules"], "verbs": ["get"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "looker"}, "rules": rules});
    let kubectl = stage.namespace().kubectl_as(User::Admin);
    kubectl.apply(&role.to_string()).unwrap();
    stage.kubectl(&format!(
        "create rolebinding looker --role=looker --serviceaccount={namespace}:looker"
    ));
    wait_until(PATIENCE, "the right to count", || {
        let (status, body) = ask(&address, "/", &shown);
        if status == 200 {
            Ok(Some(()))
        } else {
            Err(format!("{status} {body}"))
        }
    })
    .unwrap();
    operator.stop();
}
