//! One conversion: the hooks that have to run one after the other, and what they made of the objects.
//!
//! Every run is given all objects of the request. Must never hand on a list that has lost an object, or an object that
//! became another one: the API server would store it.

use std::collections::VecDeque;

use serde_json::Value;

use super::reply::{self, NoAnswer, Reply};
use super::request::ConversionRequest;
use super::response::{ConversionResponse, HookResponse};
use super::routes::{ConversionRoute, Step};
use super::{CONVERSION_TIMEOUT, Ended, Progress, Run};
use crate::hook::context::{Ask, BindingContext};
use crate::object::ObjectName;

/// A conversion under way.
#[derive(Debug, Clone)]
pub struct Conversion {
    crd: String,
    request: ConversionRequest,
    /// As the last hook left them.
    objects: Vec<Value>,
    /// Versions that were not looked at yet, in the order in which they were seen, with the ways from them.
    sources: VecDeque<(String, Vec<Step>)>,
    /// What is left of the way from the current one; the first step is running.
    steps: VecDeque<Step>,
}

impl Conversion {
    /// Looks for the ways from every version that occurs.
    pub(super) fn open(crd: &str, route: Option<&ConversionRoute>, request: ConversionRequest) -> (Self, Progress) {
        let mut sources: VecDeque<(String, Vec<Step>)> = VecDeque::new();
        for object in &request.objects {
            let version = version(object);
            if version == request.desired || sources.iter().any(|(known, _)| known == version) {
                continue;
            }
            let steps = route.and_then(|route| route.steps(version, &request.desired));
            sources.push_back((version.to_owned(), steps.unwrap_or_default()));
        }
        let mut conversion = Self {
            crd: crd.to_owned(),
            objects: request.objects.clone(),
            request,
            sources,
            steps: VecDeque::new(),
        };
        let progress = conversion.go_on();
        (conversion, progress)
    }

    /// Takes how the last hook run ended.
    pub(super) fn resume(&mut self, ended: Ended) -> Progress {
        let step = self.steps.pop_front();
        let desired = &self.request.desired;
        match (ended, step) {
            (
                Ended::Well(HookResponse {
                    conversion: Some(response),
                    ..
                }),
                _,
            ) => match self.take(response) {
                Ok(()) => self.go_on(),
                Err(message) => self.failed(&message),
            },
            (Ended::Well(_), _) => self.failed(&format!("handle ConversionReview: {}", reply::NO_RESPONSE)),
            (Ended::Failed, _) | (Ended::Late, None) => self.failed(&format!("Hook failed to convert to {desired}")),
            (Ended::Late, Some(step)) => {
                let late = NoAnswer::Late(step.hook);
                self.failed(&format!("Hook failed to convert to {desired}: {late}"))
            }
        }
    }

    fn go_on(&mut self) -> Progress {
        if self
            .objects
            .iter()
            .all(|object| version(object) == self.request.desired)
        {
            let objects = std::mem::take(&mut self.objects);
            return Progress::Answered(reply::converted(&self.request.head, objects));
        }
        while self.steps.is_empty() {
            let Some((source, steps)) = self.sources.pop_front() else {
                return self.failed(&self.no_success());
            };
            // A hook may have converted these along with others.
            if self.objects.iter().any(|object| version(object) == source) {
                self.steps = steps.into();
            }
        }
        match self.steps.front() {
            Some(step) => Progress::Run(Box::new(self.run(step))),
            None => self.failed(&self.no_success()),
        }
    }

    fn run(&self, step: &Step) -> Run {
        let context = BindingContext::Review {
            told: step.told.clone(),
            ask: Ask::Conversion {
                from: step.rule.from_version.clone(),
                to: step.rule.to_version.clone(),
            },
            review: self.request.review(&self.objects),
        };
        Run {
            hook: step.hook.clone(),
            context,
            timeout: CONVERSION_TIMEOUT,
        }
    }

    fn take(&mut self, response: ConversionResponse) -> Result<(), String> {
        let ConversionResponse { objects, failed } = response;
        if !failed.is_empty() {
            return Err(failed);
        }
        let (wanted, got) = (self.request.objects.len(), objects.len());
        if got == 0 {
            return Err(self.no_success());
        }
        if got != wanted {
            return Err(format!("hook returned {got} objects instead of {wanted}"));
        }
        for (place, (before, after)) in self.request.objects.iter().zip(&objects).enumerate() {
            changed(before, after).map_or(Ok(()), |field| {
                let object = ObjectName::of(before);
                Err(format!("hook changed {field} of object {place}, {object}"))
            })?;
        }
        self.objects = objects;
        Ok(())
    }

    fn no_success(&self) -> String {
        format!("Conversion {} to {} was not successful", self.crd, self.request.desired)
    }

    fn failed(&self, message: &str) -> Progress {
        Progress::Answered(failure(&self.request, message))
    }
}

fn failure(request: &ConversionRequest, message: &str) -> Reply {
    reply::not_converted(&request.head, message)
}

/// What a conversion must leave as it is, if it did not.
fn changed(before: &Value, after: &Value) -> Option<&'static str> {
    const KEPT: [(&str, &str); 4] = [
        ("/kind", "kind"),
        ("/metadata/name", "metadata.name"),
        ("/metadata/namespace", "metadata.namespace"),
        ("/metadata/uid", "metadata.uid"),
    ];
    let text = |object: &Value, pointer| {
        let found = object.pointer(pointer);
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    KEPT.iter()
        .find(|(pointer, _)| text(before, pointer) != text(after, pointer))
        .map(|(_, field)| *field)
}

fn version(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}
