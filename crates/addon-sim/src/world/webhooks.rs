//! The API server's side of reviews: the published webhooks, the questions, and the answers of hooks.

use std::collections::BTreeMap;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::hook::context::{Ask, BindingContext};
use addon_core::hook::output::{HookOutput, Written};
use addon_core::operator::effect::{HookRun, Job};
use addon_core::operator::event::{HookRan, Usage};
use addon_core::review::request::{AdmissionRequest, ConversionRequest, ReviewRequest};
use addon_core::review::response::{AdmissionResponse, ConversionResponse, HookResponse};
use addon_core::review::routes::Routes;
use serde_json::{Value, json};

use super::{World, owner_name};
use crate::dice::Dice;
use crate::setup::version_text;

/// The published webhooks, and those that were published before.
#[derive(Debug, Clone, Default)]
pub struct Webhooks {
    /// The current routes.
    pub published: Arc<Routes>,
    before: Arc<Routes>,
    /// Whether the published webhooks were written, and their watch has not reported the write yet.
    touched: bool,
}

/// A question that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Admission at this path.
    Admission(String),
    /// Conversion of objects of this CustomResourceDefinition.
    Conversion(String),
}

impl Webhooks {
    /// Publishes the operator's routes.
    pub(super) fn publish(&mut self, routes: &Arc<Routes>) {
        if *self.published != **routes {
            self.before = std::mem::replace(&mut self.published, Arc::clone(routes));
            self.touched = true;
        }
    }

    /// Removes all webhooks. An API server that has not noticed the removal still asks.
    pub(super) fn take_away(&mut self) {
        self.publish(&Arc::default());
    }

    /// Whether the published webhooks were written since the last call.
    pub fn was_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// All questions that an API server may ask, whether it knows the last publication or not.
    fn questions(&self) -> Vec<Question> {
        let mut questions = Vec::new();
        for routes in [&self.published, &self.before] {
            questions.extend(routes.admissions().map(|(path, _)| Question::Admission(path)));
            let definitions = routes.conversions().map(str::to_owned);
            questions.extend(definitions.map(Question::Conversion));
        }
        questions.sort();
        questions.dedup();
        questions
    }

    /// The question with this index. If there are no questions, a question at an unknown path.
    pub fn question(&self, which: u64) -> Question {
        let questions = self.questions();
        let index = usize::try_from(which % (questions.len() as u64).max(1)).unwrap_or_default();
        let nobody = Question::Admission("/hooks/nobody".to_owned());
        questions.into_iter().nth(index).unwrap_or(nobody)
    }
}

impl Question {
    /// The path of the request.
    pub fn path(&self) -> String {
        match self {
            Self::Admission(path) => path.clone(),
            Self::Conversion(definition) => format!("/{definition}"),
        }
    }

    /// The request with this number as its uid.
    pub fn request(&self, number: u64, dice: &mut Dice) -> ReviewRequest {
        let review = |request: Value| json!({"apiVersion": "v1", "kind": "Review", "request": request}).to_string();
        match self {
            Self::Admission(_) => {
                let body = review(json!({"uid": number.to_string()}));
                let request = AdmissionRequest::parse(body.as_bytes());
                ReviewRequest::Admission(request.expect("simulated requests are sound"))
            }
            Self::Conversion(_) => {
                let mut version = || version_text(u8::try_from(dice.between(1, 4)).unwrap_or(1));
                let desired = version();
                let objects: Vec<Value> = ["a", "b"].map(|name| object(name, &version())).into();
                let body = review(json!({
                    "uid": number.to_string(), "desiredAPIVersion": desired, "objects": objects,
                }));
                let request = ConversionRequest::parse(body.as_bytes());
                ReviewRequest::Conversion(request.expect("simulated requests are sound"))
            }
        }
    }
}

fn object(name: &str, version: &str) -> Value {
    json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": name, "uid": name}, "by": []})
}

/// The question and the review of a run, if it is for the API server.
pub fn asked_of(run: &HookRun) -> Option<(Ask, Value)> {
    run.contexts.iter().find_map(|context| match context {
        BindingContext::Review { ask, review, .. } => Some((ask.clone(), review.to_value())),
        _ => None,
    })
}

/// The number of the review that a job is for.
pub fn review_of(job: &Job) -> Option<u64> {
    match job {
        Job::RunHook(run, _) => {
            let (_, review) = asked_of(run)?;
            review["request"]["uid"].as_str()?.parse().ok()
        }
        _ => None,
    }
}

impl World {
    /// The answer of a hook, which names the hook.
    pub(super) fn finish_review(&mut self, run: &HookRun, ask: Ask, review: &Value) -> Result<HookRan, Failure> {
        let (owner, hook) = (owner_name(&run.hook.owner), run.hook.name.as_str());
        let name = format!("{owner}/{hook}");
        self.fault(&format!("hook/{name}"), Class::HookFailed)?;
        let Some(spec) = self.hooks(&owner).iter().find(|spec| spec.name == hook) else {
            return Err(Failure::new(Class::HookFailed, "no such file"));
        };
        let meddles =
            (spec.webhooks.iter()).any(|webhook| webhook.asks.key() == run.labels.cause.key() && webhook.meddles);
        let response = match ask {
            Ask::Validating | Ask::Mutating => HookResponse {
                admission: Some(AdmissionResponse {
                    allowed: true,
                    warnings: vec![name],
                    ..AdmissionResponse::default()
                }),
                conversion: None,
            },
            Ask::Conversion { from, to } => HookResponse {
                admission: None,
                conversion: Some(ConversionResponse {
                    objects: converted(review, &from, &to, &name),
                    failed: String::new(),
                }),
            },
        };
        let patch = json!([{"op": "add", "path": "/global/meddled", "value": 1}]).to_string();
        let written = Written {
            values_patch: if meddles { &patch } else { "" },
            config_patch: "",
        };
        let output = HookOutput::parse(written);
        Ok(HookRan {
            output: output.map_err(|error| Failure::new(Class::HookFailed, error.to_string()))?,
            usage: Usage::default(),
            response: Box::new(response),
            read: BTreeMap::new(),
            wrote: Vec::new(),
        })
    }
}

fn converted(review: &Value, from: &str, to: &str, by: &str) -> Vec<Value> {
    let objects = review["request"]["objects"].as_array().cloned().unwrap_or_default();
    let convert = |mut object: Value| {
        if object["apiVersion"] == from {
            object["apiVersion"] = json!(to);
            if let Some(hooks) = object["by"].as_array_mut() {
                hooks.push(json!(by));
            }
        }
        object
    };
    objects.into_iter().map(convert).collect()
}
