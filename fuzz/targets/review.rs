//! Reviews: for any request of the API server and any answer of a hook, the reply is well-formed, and nothing is
//! allowed unless a hook allowed it.

use std::sync::LazyLock;

use addon_core::hook::config::{ConfigVersion, HookConfig, HookKind};
use addon_core::hook::context::{self, Snapshots};
use addon_core::review::reply::Reply;
use addon_core::review::request::{AdmissionRequest, ConversionRequest, ReviewRequest};
use addon_core::review::response::HookResponse;
use addon_core::review::routes::{Opened, Routes};
use addon_core::review::{Ended, Progress, Run};
use names::{HookId, HookName, Owner};
use serde_json::Value;

const HOOK: &str = r#"
configVersion: v1
kubernetesMutating:
- name: maps.example.com
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: ["*"]}]
kubernetesCustomResourceConversion:
- name: widgets
  crdName: widgets.example.com
  conversions:
  - {fromVersion: v1alpha1, toVersion: example.com/v1beta1}
  - {fromVersion: example.com/v1beta1, toVersion: example.com/v1}
  - {fromVersion: example.com/v1, toVersion: v1beta1}
"#;
const ADMISSION: &str = "/hooks/maps-example-com";
const CONVERSION: &str = "/widgets.example.com";
/// Separates the parts of a text: first the request's body, then for each run the text of both response files.
const NEXT: &str = "\n---\n";
/// The request that is used when the first part is none, so that the answers are tested anyway.
const QUESTION: &str = r#"{"request": {"uid": "1", "desiredAPIVersion": "example.com/v1", "objects":
[{"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": "a"}}]}}"#;
/// More runs than three objects need to pass all conversion rules one by one.
const MOST_RUNS: usize = 10;

/// The body is tried as an admission and as a conversion request. A run for which the text has no part fails.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split(NEXT);
    let body = parts.next().unwrap_or_default();
    let answers: Vec<&str> = parts.collect();
    let admission = AdmissionRequest::parse(body.as_bytes()).or_else(|_| AdmissionRequest::parse(QUESTION.as_bytes()));
    let admission = admission.expect("the question is one");
    let conversion = ConversionRequest::parse(body.as_bytes());
    let conversion = conversion
        .or_else(|_| ConversionRequest::parse(QUESTION.as_bytes()))
        .expect("the question is one");
    admitted(&admission, &answers);
    converted(&conversion, &answers);
}

static ROUTES: LazyLock<Routes> = LazyLock::new(|| {
    let config = HookConfig::parse(HOOK, HookKind::Global).expect("a configuration");
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").expect("a name"),
    };
    Routes::of([(&hook, &config)]).0
});

fn admitted(request: &AdmissionRequest, answers: &[&str]) {
    let Opened::Running(mut review, run) = ROUTES.open(ADMISSION, ReviewRequest::Admission(request.clone())) else {
        panic!("the path has a hook");
    };
    assert!(told(&run)["review"]["request"]["uid"].is_string());
    let ended = answers.first().map_or(Ended::Failed, |text| ended(text, ""));
    let said = ended.clone();
    let Progress::Answered(Reply::Review(reply)) = review.resume(ended) else {
        panic!("a hook that has run is the end of the review");
    };
    let reply = reply.to_value();
    let response = &reply["response"];
    assert_eq!(response["uid"], request.head.uid);
    assert_eq!(
        reply.get("apiVersion").and_then(Value::as_str),
        request.head.api_version.as_deref()
    );
    let allowed = matches!(&said, Ended::Well(said) if said.admission.as_ref().is_some_and(|said| said.allowed));
    assert_eq!(response["allowed"], allowed);
    assert_eq!(response.get("patch").is_some(), response.get("patchType").is_some());
    assert!(allowed || response.get("patch").is_none() && response["status"]["code"].is_u64());
}

fn converted(request: &ConversionRequest, answers: &[&str]) {
    let mut answers = answers.iter();
    let mut opened = ROUTES.open(CONVERSION, ReviewRequest::Conversion(request.clone()));
    for _ in 0..MOST_RUNS {
        let (mut review, run) = match opened {
            Opened::Answered(reply) => return objects(request, &reply),
            Opened::Running(review, run) => (review, run),
            Opened::Edit(_) => unreachable!("nobody asks about edits"),
        };
        assert!(told(&run)["review"]["request"]["objects"].is_array());
        let ended = answers.next().map_or(Ended::Failed, |text| ended("", text));
        opened = match review.resume(ended) {
            Progress::Answered(reply) => Opened::Answered(reply),
            Progress::Run(run) => Opened::Running(review, run),
        };
    }
    panic!("hooks run without end");
}

/// The reply has all objects, changed in nothing except the version, or a reason for the failure.
fn objects(request: &ConversionRequest, reply: &Reply) {
    let Reply::Review(reply) = reply else {
        panic!("a conversion is answered");
    };
    let reply = reply.to_value();
    let response = &reply["response"];
    assert_eq!(response["uid"], request.head.uid);
    if response["result"]["status"] != "Success" {
        assert!(response["convertedObjects"].is_null());
        assert!(
            response["result"]["message"]
                .as_str()
                .is_some_and(|why| !why.is_empty())
        );
        return;
    }
    let after = response["convertedObjects"].as_array().expect("a list of objects");
    assert_eq!(after.len(), request.objects.len());
    for (before, after) in request.objects.iter().zip(after) {
        assert_eq!(after["apiVersion"].as_str().unwrap_or_default(), request.desired);
        for field in ["/metadata/name", "/metadata/namespace", "/metadata/uid"] {
            let text = |object: &Value| {
                object
                    .pointer(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            assert_eq!(text(before), text(after));
        }
    }
}

/// The binding context as the hook reads it.
fn told(run: &Run) -> Value {
    let mut file = Vec::new();
    let contexts = std::slice::from_ref(&run.context);
    context::write_file(&mut file, contexts, ConfigVersion::V1, &Snapshots::new()).expect("memory can be written");
    let mut contexts: Value = serde_json::from_slice(&file).expect("hooks can read their file");
    contexts[0].take()
}

fn ended(admission: &str, conversion: &str) -> Ended {
    match HookResponse::parse(admission, conversion) {
        Ok(response) => {
            let kept = serde_json::to_string(&response).expect("a response can be kept");
            assert_eq!(
                serde_json::from_str::<HookResponse>(&kept).ok().as_ref(),
                Some(&response)
            );
            assert!(
                response
                    .admission
                    .as_ref()
                    .is_none_or(|response| !response.dump().is_empty())
            );
            Ended::Well(response)
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.starts_with("got bad ") && told.contains(" response: "), "{told}");
            Ended::Failed
        }
    }
}
