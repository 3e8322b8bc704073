//! Clients other than the API server that send requests to the webhooks.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::io::Write as _;

use fs_err as fs;
use serde_json::json;
use testbed::process;

use super::stage::{CONVERGED, Stage};

/// A hook for conversions of a kind that does not exist, so that the conversion listener runs.
const CONVERTER: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then cat <<END\nconfigVersion: v1\n\
                         kubernetesCustomResourceConversion:\n- name: things\n  crdName: things.crowd.example.com\n  \
                         conversions: [{fromVersion: crowd.example.com/v1, toVersion: crowd.example.com/v2}]\nEND\nfi\n";
const CONVERSION: &str = "things.crowd.example.com";
/// The memory limit: the idle operator, the request bodies that may be held at once, and the overhead of a debug build.
const ROOM: usize = (64 + 192 + 128) << 20;

/// Starts curl, which posts a file and prints the status of the answer; `000` if the connection ended before.
fn post(url: &str, file: &str) -> std::process::Child {
    let mut command = process::command("curl");
    command.args(["--insecure", "--silent", "--output", "/dev/null", "--max-time", "60"]);
    command.args([
        "--write-out",
        "%{http_code}",
        "--request",
        "POST",
        "--upload-file",
        file,
    ]);
    command.args(["--header", "Content-Type: application/json", url]);
    command.stdout(std::process::Stdio::piped()).spawn().unwrap()
}

fn statuses(asking: Vec<std::process::Child>) -> Vec<String> {
    let said = asking
        .into_iter()
        .map(|asking| asking.wait_with_output().unwrap().stdout);
    said.map(|said| String::from_utf8(said).unwrap()).collect()
}

fn peak(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn a_crowd_of_large_bodies_takes_no_more_than_its_share() {
    let mut stage = Stage::build("crowd");
    stage.configure(&json!({}));
    stage.serve_webhooks();
    let conversion = stage.namespace().service_to_us("conversion").unwrap();
    stage.set("CONVERSION_WEBHOOK_SERVICE_NAME", "conversion");
    stage.set("CONVERSION_WEBHOOK_LISTEN_ADDRESS", conversion.ip().to_string());
    stage.set("CONVERSION_WEBHOOK_LISTEN_PORT", conversion.port().to_string());
    stage.write("global-hooks/convert.sh", CONVERTER);
    let admission = format!(
        "https://{}:{}/config-map",
        stage.variable("VALIDATING_WEBHOOK_LISTEN_ADDRESS"),
        stage.variable("VALIDATING_WEBHOOK_LISTEN_PORT")
    );
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();
    operator.wait_for(&["Webhooks listen", "ConversionReview"]);

    // Bodies of many small values, each of which takes far more memory parsed than as text.
    let body = |name: &str, size: usize| {
        let path = stage.path(name);
        let mut file = fs::File::create(&path).unwrap();
        let begin = r#"{"request":{"objects":[{}"#;
        file.write_all(begin.as_bytes()).unwrap();
        let more = ",{}".repeat((size - begin.len() - 3) / 3);
        file.write_all(more.as_bytes()).unwrap();
        file.write_all(b"]}}").unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (large, small) = (body("large", 64 << 20), body("small", 8 << 20));
    let conversions = format!("https://{conversion}/{CONVERSION}");
    let forged = format!("https://{conversion}/things.nobody.example.com");
    let mut asking = Vec::new();
    asking.extend((0..4).map(|_| post(&conversions, &large)));
    asking.extend((0..12).map(|_| post(&admission, &small)));
    let answers = statuses(asking);
    // Some requests are cut off while they are sent, and some are not sent in time.
    let refused = |status: &String| ["408", "413", "429", "000"].contains(&status.as_str());
    assert!(answers.iter().all(refused), "{answers:?}");
    let forged = statuses(vec![post(&forged, &large)]);
    assert!(["404", "000"].contains(&forged[0].as_str()), "{forged:?}");
    let peak = peak(operator.process());
    assert!(peak < ROOM, "{} MiB", peak >> 20);
    // The operator has renewed its lease while the requests came.
    assert_eq!(
        operator.records(&["Taking part in the election"]).len(),
        1,
        "it leads all the time"
    );
    let (_, metrics) = operator.get("/metrics");
    // It depends on the machine whether requests came at the same time, and whether a large one arrived completely
    // before it was refused.
    let is_crowded = answers.iter().any(|status| status == "429");
    for reason in is_crowded.then_some("no_room").into_iter().chain(["unknown_path"]) {
        let told = format!("reason=\"{reason}\"");
        assert!(metrics.contains(&told), "{reason}: {metrics}");
    }
    // A valid request is still answered.
    stage.wait_for_refusal();
    stage.write(
        "question",
        r#"{"request":{"uid":"1","desiredAPIVersion":"crowd.example.com/v2","objects":[]}}"#,
    );
    let question = stage.path("question");
    assert_eq!(statuses(vec![post(&conversions, question.to_str().unwrap())]), ["200"]);
}

#[test]
fn who_shows_no_certificate_is_not_heard_and_the_api_server_is() {
    let mut stage = Stage::build("callers");
    stage.configure(&json!({}));
    stage.serve_webhooks();
    stage.set(
        "VALIDATING_WEBHOOK_CLIENT_CA",
        stage.namespace().plane().caller_authority(),
    );
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();
    let admission = format!(
        "https://{}:{}/config-map",
        stage.variable("VALIDATING_WEBHOOK_LISTEN_ADDRESS"),
        stage.variable("VALIDATING_WEBHOOK_LISTEN_PORT")
    );
    stage.write(
        "forged",
        r#"{"request":{"uid":"1","operation":"DELETE","name":"addon-operator"}}"#,
    );
    let forged = stage.path("forged");
    assert_eq!(
        statuses(vec![post(&admission, forged.to_str().unwrap())]),
        ["000"],
        "no answer at all"
    );
    assert!(!operator.records(&["Got AdmissionReview request"]).is_empty());
}
