//! One conversion: the hooks that run one after another, and the objects that they convert.
//!
//! Every run gets all objects of the request. Must never pass on a list that lacks an object or has another object in its
//! place: the API server would store it.

use std::collections::VecDeque;

use serde_json::Value;

use super::reply::{self, NoAnswer};
use super::request::{ConversionRequest, Head, conversion_review};
use super::response::{ConversionResponse, HookResponse};
use super::routes::{ConversionRoute, HookRule};
use super::{CONVERSION_TIMEOUT, Ended, Progress, Run};
use crate::hook::context::{Ask, BindingContext};
use crate::object::ObjectName;

/// A running conversion.
#[derive(Debug, Clone)]
pub struct Conversion {
    crd: String,
    head: Head,
    desired: String,
    /// The parts of the original objects that must not change.
    kept: Vec<Kept>,
    /// The objects as the last hook left them.
    objects: Vec<Value>,
    /// The source versions that are still to be converted, in the order in which they were seen, with the rules that lead
    /// from them.
    sources: VecDeque<(String, Vec<HookRule>)>,
    /// The remaining rules for the current source version. The first is running.
    steps: VecDeque<HookRule>,
}

impl Conversion {
    /// Begins a conversion: finds the rules for every version of the objects.
    pub(super) fn open(crd: &str, route: Option<&ConversionRoute>, request: ConversionRequest) -> (Self, Progress) {
        let ConversionRequest { head, desired, objects } = request;
        let mut sources: VecDeque<(String, Vec<HookRule>)> = VecDeque::new();
        for object in &objects {
            let version = version(object);
            if version == desired || sources.iter().any(|(known, _)| known == version) {
                continue;
            }
            let steps = route.and_then(|route| route.steps(version, &desired));
            sources.push_back((version.to_owned(), steps.unwrap_or_default()));
        }
        let mut conversion = Self {
            crd: crd.to_owned(),
            head,
            desired,
            kept: objects.iter().map(Kept::of).collect(),
            objects,
            sources,
            steps: VecDeque::new(),
        };
        let progress = conversion.go_on();
        (conversion, progress)
    }

    /// Takes the end of a hook's run.
    pub(super) fn resume(&mut self, ended: Ended) -> Progress {
        let step = self.steps.pop_front();
        let desired = &self.desired;
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
            (Ended::Failed, _) | (Ended::Late(_), None) => self.failed(&format!("Hook failed to convert to {desired}")),
            (Ended::Late(kind), Some(step)) => {
                let late = NoAnswer::Late(step.hook, kind);
                self.failed(&format!("Hook failed to convert to {desired}: {late}"))
            }
        }
    }

    fn go_on(&mut self) -> Progress {
        if self.objects.iter().all(|object| version(object) == self.desired) {
            let objects = std::mem::take(&mut self.objects);
            return Progress::Answered(reply::converted(&self.head, objects));
        }
        while self.steps.is_empty() {
            let Some((source, steps)) = self.sources.pop_front() else {
                return self.failed(&self.no_success());
            };
            // A hook may have converted objects of this version together with others.
            if self.objects.iter().any(|object| version(object) == source) {
                self.steps = steps.into();
            }
        }
        match self.steps.front() {
            Some(step) => Progress::Run(Box::new(self.run(step))),
            None => self.failed(&self.no_success()),
        }
    }

    fn run(&self, step: &HookRule) -> Run {
        let context = BindingContext::Review {
            told: step.told.clone(),
            ask: Ask::Conversion {
                from: step.rule.from_version.clone(),
                to: step.rule.to_version.clone(),
            },
            review: conversion_review(&self.head, &self.desired, &self.objects),
        };
        Run {
            hook: step.hook.clone(),
            context,
            timeout: CONVERSION_TIMEOUT,
            limit: step.limit,
        }
    }

    fn take(&mut self, response: ConversionResponse) -> Result<(), String> {
        let ConversionResponse { objects, failed } = response;
        if !failed.is_empty() {
            return Err(failed);
        }
        let (wanted, got) = (self.kept.len(), objects.len());
        if got == 0 {
            return Err(self.no_success());
        }
        if got != wanted {
            return Err(format!("hook returned {got} objects instead of {wanted}"));
        }
        for (place, (kept, after)) in self.kept.iter().zip(&objects).enumerate() {
            if let Some(field) = kept.changed_in(after) {
                return Err(format!("hook changed {field} of object {place}, {}", kept.name));
            }
        }
        self.objects = objects;
        Ok(())
    }

    fn no_success(&self) -> String {
        format!("Conversion {} to {} was not successful", self.crd, self.desired)
    }

    fn failed(&self, message: &str) -> Progress {
        Progress::Answered(reply::not_converted(&self.head, message))
    }
}

/// The parts of an object that a conversion must not change.
#[derive(Debug, Clone)]
struct Kept {
    name: ObjectName,
    uid: String,
}

impl Kept {
    fn of(object: &Value) -> Self {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
        Self {
            name: ObjectName::of(object),
            uid: uid.unwrap_or_default().to_owned(),
        }
    }

    fn changed_in(&self, object: &Value) -> Option<&'static str> {
        let (Self { name, uid }, now) = (self, Self::of(object));
        let fields = [
            (name.kind == now.name.kind, "kind"),
            (name.name == now.name.name, "metadata.name"),
            (name.namespace == now.name.namespace, "metadata.namespace"),
            (*uid == now.uid, "metadata.uid"),
        ];
        fields.into_iter().find(|(same, _)| !same).map(|(_, field)| field)
    }
}

fn version(object: &Value) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}
