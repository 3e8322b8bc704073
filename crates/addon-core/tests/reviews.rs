//! Every document under `tests/corpus/reviews` has the outcome that stands beside it.
//!
//! `UPDATE=1` writes the outcomes anew.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use addon_core::hook::config::{ConfigVersion, HookConfig, HookKind};
use addon_core::hook::context::{self, Snapshots};
use addon_core::hook::in_text::HookInText;
use addon_core::review::reply::Reply;
use addon_core::review::request::{AdmissionRequest, ConversionRequest, ReviewRequest};
use addon_core::review::response::HookResponse;
use addon_core::review::routes::{Opened, Routes};
use addon_core::review::{Ended, Progress, Run};
use names::{HookId, HookName, Owner};
use serde_json::{Value, json};

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
"#;
const ADMISSION: &str = "/hooks/maps-example-com";
const CONVERSION: &str = "/widgets.example.com";

fn routes() -> Routes {
    let config = HookConfig::parse(HOOK, HookKind::Global).unwrap();
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").unwrap(),
    };
    Routes::of([(&hook, &config)]).0
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpus/reviews")
        .join(kind)
}

#[expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]
fn check(kind: &str, outcome: impl Fn(&[u8]) -> String) {
    let mut paths: Vec<_> = folder(kind)
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    assert!(paths.len() >= 10, "{kind} has its documents");
    let mut wrong = String::new();
    for path in paths {
        let now = outcome(&std::fs::read(&path).unwrap());
        let file = path.with_extension("outcome");
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(&file, &now).unwrap();
        }
        let wanted = std::fs::read_to_string(&file).unwrap_or_default();
        if now != wanted {
            writeln!(wrong, "{}:\n{now}", path.display()).unwrap();
        }
    }
    assert_eq!(wrong, "", "outcomes differ; UPDATE=1 writes them anew");
}

/// A document as people read it.
fn shown(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap() + "\n"
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Review(review) => shown(&review.to_value()),
        Reply::NoAnswer(why) => format!("no answer: {why}\n"),
    }
}

fn told(run: &Run) -> Value {
    let mut file = Vec::new();
    let contexts = std::slice::from_ref(&run.context);
    context::write_file(&mut file, contexts, ConfigVersion::V1, &Snapshots::new()).unwrap();
    serde_json::from_slice::<Value>(&file).unwrap()[0].take()
}

/// A good hook's answer.
fn converted(context: &Value) -> Ended {
    let last = |version: &Value| {
        version
            .as_str()
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    let mut objects = context["review"]["request"]["objects"].clone();
    for object in objects.as_array_mut().unwrap() {
        if last(&object["apiVersion"]) == last(&context["fromVersion"]) {
            object["apiVersion"] = context["toVersion"].clone();
        }
    }
    Ended::Well(HookResponse::parse("", &json!({"convertedObjects": objects}).to_string()).unwrap())
}

#[test]
fn admission_requests() {
    check("admission-requests", |body| match AdmissionRequest::parse(body) {
        Err(error) => format!("refused: {error}\n"),
        Ok(request) => match routes().open(ADMISSION, ReviewRequest::Admission(request)) {
            Opened::Running(_, run) => format!(
                "{} is told {}",
                HookInText::of(&run.hook, HookKind::Global),
                shown(&told(&run))
            ),
            Opened::Answered(answer) => reply(&answer),
            Opened::Edit(_) => unreachable!("nobody asks about edits"),
        },
    });
}

#[test]
fn admission_responses() {
    let request = AdmissionRequest::parse(br#"{"request": {"uid": "1"}}"#).unwrap();
    check("admission-responses", |body| {
        let response = match HookResponse::parse(&String::from_utf8_lossy(body), "") {
            Ok(response) => Ended::Well(response),
            Err(error) => return format!("the run fails: {error}\n"),
        };
        let Opened::Running(mut review, _) = routes().open(ADMISSION, ReviewRequest::Admission(request.clone())) else {
            return "answered without a run\n".to_owned();
        };
        match review.resume(response) {
            Progress::Answered(answer) => reply(&answer),
            Progress::Run(run) => format!("another run of {}\n", HookInText::of(&run.hook, HookKind::Global)),
        }
    });
}

#[test]
fn conversion_requests() {
    check("conversion-requests", |body| {
        let request = match ConversionRequest::parse(body) {
            Ok(request) => request,
            Err(error) => return format!("refused: {error}\n"),
        };
        let (mut review, mut run) = match routes().open(CONVERSION, ReviewRequest::Conversion(request)) {
            Opened::Running(review, run) => (review, run),
            Opened::Answered(answer) => return reply(&answer),
            Opened::Edit(_) => unreachable!("nobody asks about edits"),
        };
        let mut steps = String::new();
        loop {
            let context = told(&run);
            writeln!(
                steps,
                "{} is told {}",
                HookInText::of(&run.hook, HookKind::Global),
                shown(&context).trim_end()
            )
            .unwrap();
            match review.resume(converted(&context)) {
                Progress::Run(next) => run = next,
                Progress::Answered(answer) => return steps + &reply(&answer),
            }
        }
    });
}

#[test]
fn conversion_responses() {
    let object = |name: &str| json!({"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": name, "namespace": "ns", "uid": name}});
    let body = json!({"request": {"uid": "1", "desiredAPIVersion": "example.com/v1beta1", "objects": [object("a"), object("b")]}});
    let request = ConversionRequest::parse(body.to_string().as_bytes()).unwrap();
    check("conversion-responses", |body| {
        let response = match HookResponse::parse("", &String::from_utf8_lossy(body)) {
            Ok(response) => Ended::Well(response),
            Err(error) => return format!("the run fails: {error}\n"),
        };
        let Opened::Running(mut review, _) = routes().open(CONVERSION, ReviewRequest::Conversion(request.clone()))
        else {
            return "answered without a run\n".to_owned();
        };
        match review.resume(response) {
            Progress::Answered(answer) => reply(&answer),
            Progress::Run(run) => format!("another run of {}\n", HookInText::of(&run.hook, HookKind::Global)),
        }
    });
}
