//! `package choose` by the program, against the real registry behind a guard that counts its requests.
#![expect(clippy::disallowed_methods, reason = "the program under test is a process")]
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::registry::guard::{Aim, Guard, Lock, Trouble};

use super::stage::{push, real, told};

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");
const LOGIN: &str = "Basic dXNlcjpvbGQ=";

/// Runs `package choose` without a home, so that no login of this machine is sent.
fn choose(args: &[&str], input: &str) -> Output {
    choose_beside(None, args, input)
}

/// Runs `package choose` as in a pod with an API server at this address.
fn choose_beside(server: Option<&str>, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["package", "choose"]).args(args).env_clear();
    command.envs(server.map(|server| ("KUBERNETES_SERVICE_HOST", server)));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn answer(args: &[&str]) -> Value {
    let output = choose(args, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refusal(args: &[&str]) -> String {
    let output = choose(args, "");
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn batch(packages: &Value, args: &[&str]) -> Vec<Value> {
    let output = choose(&[&["--batch", "-"][..], args].concat(), &packages.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn a_tag_a_mask_a_range_or_a_digest_names_one_version() {
    let guard = Guard::start_plain(real()).unwrap();
    let repository = format!("{}/choose/kinds", guard.address());
    let mut digests = Vec::new();
    for tag in ["v1.2.9", "1.2.10", "1.3.0-rc.1", "1.4", "stable"] {
        digests.push(push("choose/kinds", tag, tag).await.to_string());
    }
    for (version, tag, number, digest) in [
        ("stable", "stable", None, 4),
        ("1.4", "1.4", None, 3),
        ("v1.2.9", "v1.2.9", Some("1.2.9"), 0),
        ("1.2.*", "1.2.10", Some("1.2.10"), 1),
        ("v1.*.*", "1.2.10", Some("1.2.10"), 1),
        (">=1.2 <1.2.10", "v1.2.9", Some("1.2.9"), 0),
        ("~1.3.0-0", "1.3.0-rc.1", Some("1.3.0-rc.1"), 2),
        ("1.3.*-rc.*", "1.3.0-rc.1", Some("1.3.0-rc.1"), 2),
    ] {
        let mut wanted = json!({ "tag": tag, "digest": digests[digest] });
        if let Some(number) = number {
            wanted["version"] = number.into();
        }
        assert_eq!(answer(&[&repository, version]), wanted, "{version}");
    }
    assert_eq!(answer(&[&repository, &digests[2]]), json!({ "digest": digests[2] }));
    // A moved tag is a new digest.
    let moved = push("choose/kinds", "stable", "moved").await.to_string();
    assert_ne!(moved, digests[4]);
    assert_eq!(answer(&[&repository, "stable"])["digest"], moved);
    for (version, why) in [
        ("2.*.*", "none of the 5 tags of 127.0.0.1"),
        ("nightly", "it is not there"),
        (">=1.4<2", "a blank or a comma should stand before '<2'"),
    ] {
        let refused = refusal(&[&repository, version]);
        assert!(refused.contains(why), "{version}: {refused}");
    }
}

#[tokio::test]
async fn a_registry_that_answers_with_less_takes_nobody_down() {
    let guard = Guard::start_plain(real()).unwrap();
    let repository = format!("{}/choose/less", guard.address());
    let digest = push("choose/less", "1.2.0", "one").await.to_string();
    let gone = format!("sha256:{}", "a".repeat(64));
    let running = ["--running", "1.3.0", "--digest", &gone];
    let kept = answer(&[&[repository.as_str(), "1.*.*"][..], &running].concat());
    assert_eq!((&kept["tag"], &kept["digest"]), (&json!("1.3.0"), &json!(gone)));
    let why = kept["kept"].as_str().unwrap();
    assert!(
        why.ends_with("shows only 1.2.0 of '1.*.*' now, which is lower than 1.3.0"),
        "{why}"
    );
    // A person who writes another range asks for it.
    let asked = answer(&[&[repository.as_str(), "1.2.*"][..], &running].concat());
    assert_eq!(asked, json!({ "tag": "1.2.0", "version": "1.2.0", "digest": digest }));
}

/// Each connection is judged: to the registry, to the origin of a redirect, and to the issuer of tokens.
#[tokio::test]
async fn near_addresses_are_refused_unless_they_are_named() {
    const REFUSED: &str = "is not asked without permission";
    let (guard, other) = (Guard::start_plain(real()).unwrap(), Guard::start_plain(real()).unwrap());
    let [own, far] = [&guard, &other].map(|guard| guard.address().to_string());
    let by_name = format!("localhost:{}", guard.address().port());
    push("choose/near", "1.2.0", "one").await;
    let ask = |host: &str, near: &[&str]| -> Result<Value, String> {
        let repository = format!("{host}/choose/near");
        let mut args = vec![repository.as_str(), "1.2.0", "--only-outside"];
        args.extend(["--plain-http", &own, "--plain-http", &far]);
        args.extend(near.iter().flat_map(|host| ["--near", host]));
        let output = choose(&args, "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout).unwrap())
            .ok_or(said)
    };
    for (host, near) in [
        (&own, vec![]),
        (&by_name, vec![]),
        (&own, vec![far.as_str()]),
        (&by_name, vec!["localhost:1"]),
    ] {
        let said = ask(host, &near).unwrap_err();
        assert!(said.contains(REFUSED), "{host} {near:?}: {said}");
    }
    assert!(guard.seen().is_empty());
    for (host, near) in [
        (&own, [own.as_str()]),
        (&own, ["127.0.0.1"]),
        (&by_name, ["localhost"]),
        (&by_name, ["127.0.0.1"]),
    ] {
        assert_eq!(ask(host, &near).unwrap()["tag"], "1.2.0", "{host} {near:?}");
    }
    guard.impose(vec![Aim::at("/manifests/", Trouble::Refer(format!("http://{far}")))]);
    assert!(ask(&own, &[&own]).unwrap_err().contains(REFUSED));
    assert!(other.seen().is_empty());
    assert_eq!(ask(&own, &[&own, &far]).unwrap()["tag"], "1.2.0");
    guard.impose(Vec::new());
    guard.lock(Lock::Tokens {
        issuer: Some(format!("http://{far}")),
        login: None,
        refresh: None,
        life: 60,
    });
    other.seen();
    assert!(ask(&own, &[&own]).unwrap_err().contains(REFUSED));
    assert!(other.seen().is_empty());
    // This issuer knows nothing of the tokens that the registry wants, and is asked.
    assert!(!ask(&own, &[&own, &far]).unwrap_err().contains(REFUSED));
    assert!(!other.seen().is_empty());
}

#[test]
fn the_api_server_is_no_registry() {
    for (server, host) in [("192.0.2.1", "192.0.2.1:5000"), ("2001:db8::1", "[2001:db8::1]:443")] {
        let repository = format!("{host}/a");
        let output = choose_beside(Some(server), &[&repository, "1.0.0", "--only-outside"], "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("is not asked without permission"), "{said}");
    }
}

#[tokio::test]
async fn many_packages_of_one_repository_are_one_question() {
    let guard = Guard::start_plain(real()).unwrap();
    guard.lock(Lock::tokens(Some(LOGIN)));
    let address = guard.address();
    let digest = push("choose/many", "1.2.0", "one").await.to_string();
    push("choose/more", "1.2.0", "one").await;
    let login = json!({ "username": "user", "password": "old" });
    let followed = |id: usize, repository: &str| json!({ "id": id, "repository": format!("{address}/choose/{repository}"), "version": "1.*.*", "login": login });
    let all: Vec<Value> = (0..200)
        .map(|id| followed(id, if id % 2 == 0 { "many" } else { "more" }))
        .collect();
    let answers = batch(&json!(all), &["--per-second", "1000"]);
    assert_eq!(answers.len(), 200);
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], id);
        assert_eq!(
            (&answer["tag"], &answer["digest"]),
            (&json!("1.2.0"), &json!(digest)),
            "{answer}"
        );
    }
    // A challenge, a token, the tags and the digest of the tag for each repository.
    let seen = told(&guard.seen());
    assert!(seen.len() <= 8, "{seen:?}");
    // Another login has an answer of its own, and a wrong one harms no other package.
    let wrong = json!({ "id": "wrong", "repository": format!("{address}/choose/many"), "version": "1.*.*",
        "login": { "username": "user", "password": "wrong" } });
    let answers = batch(&json!([wrong, followed(1, "many")]), &[]);
    let denied = answers[0]["error"].as_str().unwrap();
    assert!(denied.contains("access is denied"), "{denied}");
    assert_eq!(answers[1]["digest"], json!(digest));
}

#[tokio::test]
async fn questions_are_spread_and_end_with_their_time() {
    let guard = Guard::start_plain(real()).unwrap();
    let address = guard.address();
    push("choose/slow", "1", "one").await;
    let followed =
        |id: usize| json!({ "id": id, "repository": format!("{address}/choose/slow"), "version": format!("{id}") });
    let all: Vec<Value> = (0..10).map(followed).collect();
    let begin = Instant::now();
    let answers = batch(&json!(all), &["--per-second", "4", "--within", "1"]);
    // The fourth question is asked three quarters of a second after the first.
    assert!(begin.elapsed() >= Duration::from_millis(750), "{:?}", begin.elapsed());
    let asked = guard.seen().len();
    assert!((2..=5).contains(&asked), "{asked}");
    let unasked = answers.iter().filter(|answer| answer["unasked"] == true).count();
    assert_eq!(unasked + asked, 10, "{answers:?}");
}

#[tokio::test]
async fn a_registry_that_is_out_of_reach_is_asked_once_and_harms_no_other() {
    let guard = Guard::start_plain(real()).unwrap();
    let pausing = Guard::start_plain(real()).unwrap();
    let digest = push("choose/near", "1", "one").await.to_string();
    pausing.impose(vec![Aim::at("/v2/", Trouble::Status(429, Some("7")))]);
    // A guard that is gone: nothing listens at its port.
    let nowhere = Guard::start_plain(real()).unwrap().address();
    let of = |address: &str| json!({ "repository": format!("{address}/choose/near"), "version": "1" });
    let mut all = vec![of(&guard.address().to_string())];
    all.extend((0..20).map(|_| of(&nowhere.to_string())));
    all.extend((0..20).map(|_| of(&pausing.address().to_string())));
    let answers = batch(&json!(all), &["--per-second", "2", "--within", "30"]);
    assert_eq!(answers[0]["digest"], json!(digest));
    for answer in &answers[1..21] {
        assert!(
            answer["error"].as_str().unwrap().contains("cannot get tag '1'"),
            "{answer}"
        );
    }
    for answer in &answers[21..] {
        assert!(answer["pauseSeconds"].as_u64().unwrap() <= 7, "{answer}");
    }
    assert_eq!(pausing.seen().len(), 1);
}

#[test]
fn a_mistake_in_a_batch_is_told_and_harms_no_other_package() {
    for (input, why) in [
        (
            "",
            "cannot understand the packages: write a JSON list of objects with repository and version",
        ),
        (
            r#"[{"repository": "a/b", "version": "1", "tag": "x"}]"#,
            "unknown field `tag`",
        ),
    ] {
        let output = choose(&["--batch", "-"], input);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(why), "{told}");
    }
    let packages = json!([
        { "id": "a", "repository": "registry.test/Shop", "version": "1" },
        { "id": "b", "repository": "registry.test/shop", "version": "stable || 1.x" },
        { "id": "c", "repository": "registry.test/shop", "version": "1", "running": { "digest": "sha256:1" } },
    ]);
    let answers = batch(&packages, &[]);
    let error = |place: usize| answers[place]["error"].as_str().unwrap().to_owned();
    assert!(
        error(0).starts_with("repository 'registry.test/Shop': "),
        "{}",
        error(0)
    );
    assert!(
        error(1).starts_with("version: 'stable || 1.x' is neither"),
        "{}",
        error(1)
    );
    assert!(error(2).starts_with("running.digest: "), "{}", error(2));
}
