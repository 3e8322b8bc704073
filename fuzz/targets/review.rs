//! Reviews: whatever the API server asks and a hook answers, the reply has the right form and allows nothing by itself.

use std::sync::LazyLock;

use addon_core::hook::config::{ConfigVersion, HookConfig, HookKind};
use addon_core::hook::context::{self, Snapshots};
use addon_core::name::{HookId, HookName, Owner};
use addon_core::review::reply::Reply;
use addon_core::review::request::{AdmissionRequest, ConversionRequest, ReviewRequest};
use addon_core::review::response::HookResponse;
use addon_core::review::routes::{Opened, Routes};
use addon_core::review::{Ended, Progress, Run};
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
/// Between the parts of a text: the body, then what each run leaves in both of its response files.
const NEXT: &str = "\n---\n";
/// Asked where the first part is no request, so that answers are looked at all the same.
const QUESTION: &str = r#"{"request": {"uid": "1", "desiredAPIVersion": "example.com/v1", "objects":
[{"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": "a"}}]}}"#;
/// More steps than there are rules to go from one version to another, for each of three versions.
const MOST_RUNS: usize = 10;

/// The body is asked for both kinds of reviews; runs that the text says nothing of fail.
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

/// All objects, each as it was but for its version, or a reason.
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

/// What the hook reads of its context.
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
