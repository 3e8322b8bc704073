//! A case of a module's tests: what is given, which hook runs, and the expected results.
//!
//! A case with a mistake must never pass: an unknown field is a mistake, and a mistake names its field.

use std::collections::BTreeMap;
use std::path::PathBuf;

use addon_core::hook::config::WatchEvent;
use addon_core::object::patch::Operation;
use addon_core::values::patch::{Patch, PatchFile};
use helm_yaml::yaml::document::Document;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

/// A mistake in a case.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub(super) struct Mistake {
    /// The field, with dots between the keys that lead to it.
    pub(super) field: String,
    pub(super) problem: String,
}

impl Mistake {
    pub(super) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            problem: problem.into(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Case {
    /// The module's section of the `ConfigMap`.
    pub(super) config: Option<Value>,
    /// The global section of the `ConfigMap`.
    pub(super) global: Option<Value>,
    /// The results of earlier patches, laid over the module's values.
    pub(super) values: Map<String, Value>,
    /// The modules that are enabled beside this one.
    pub(super) enabled_modules: Vec<String>,
    /// The objects of the cluster.
    pub(super) objects: Vec<Value>,
    pub(super) hook: Option<String>,
    /// A stage, or the name of a binding.
    pub(super) on: Option<String>,
    /// The contexts, in place of those of a binding.
    pub(super) contexts: Option<Vec<Value>>,
    pub(super) event: Option<Event>,
    /// The request of the API server, for a binding that reviews one.
    pub(super) request: Option<Value>,
    pub(super) expect: Expect,
}

/// A change of an object.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) event: WatchEvent,
    pub(super) object: Value,
}

#[derive(Debug, Default)]
pub(super) struct Expect {
    /// A part of the module's effective values.
    pub(super) values: Option<Value>,
    /// A part of the module's section of the `ConfigMap`.
    pub(super) config: Option<Value>,
    pub(super) values_patch: Option<Patch>,
    pub(super) config_patch: Option<Patch>,
    /// Parts of objects of the cluster.
    pub(super) objects: Vec<Value>,
    pub(super) absent: Vec<Value>,
    /// Whether a hook runs, in spite of the conditions of its bindings.
    pub(super) runs: Option<bool>,
    pub(super) object_patches: Option<Vec<Operation>>,
    pub(super) metrics: Option<Vec<Value>>,
    /// Parts of rendered objects.
    pub(super) rendered: Option<Vec<Value>>,
    pub(super) not_rendered: Option<Vec<Value>>,
    pub(super) refused: Option<String>,
    pub(super) review: Option<Value>,
    /// The answer of the module's enabled script.
    pub(super) enabled: Option<bool>,
    pub(super) reason: Option<String>,
}

impl Expect {
    /// Whether the chart has to be rendered.
    pub(super) fn renders(&self) -> bool {
        self.rendered.is_some() || self.not_rendered.is_some()
    }
}

/// A case in its file.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: PathBuf,
    /// The line on which the case begins.
    pub(super) line: usize,
    /// The lines of its fields.
    pub(super) lines: BTreeMap<String, usize>,
    pub(super) name: String,
    /// The case, or the mistake in it.
    pub(super) case: Result<Case, Mistake>,
}

impl Written {
    /// The line of the field with a mistake.
    pub(super) fn line_of(&self, mistake: &Mistake) -> usize {
        let root = mistake.field.split(['.', '[']).next().unwrap_or_default();
        self.lines.get(root).copied().unwrap_or(self.line)
    }
}

/// Reads a document as a case. `fallback` is the name of the case if the document has none.
pub(super) fn read(file: PathBuf, document: &Document, fallback: String) -> Written {
    let name = document.value.get("name").and_then(Value::as_str);
    let keys = document.value.as_object().into_iter().flat_map(Map::keys);
    Written {
        file,
        line: document.line,
        lines: keys.map(|key| (key.clone(), document.line_of(key))).collect(),
        name: name.map_or(fallback, str::to_owned),
        case: Case::read(&document.value),
    }
}

impl Case {
    fn read(document: &Value) -> Result<Self, Mistake> {
        let Value::Object(fields) = document else {
            return Err(Mistake::new("case", "it should be a map"));
        };
        let mut case = Self::default();
        for (key, value) in fields {
            match key.as_str() {
                "name" => drop(text(key, value)?),
                "config" => case.config = Some(value.clone()),
                "global" => case.global = Some(Value::Object(map(key, value)?)),
                "values" => case.values = map(key, value)?,
                "enabledModules" => case.enabled_modules = typed(key, value)?,
                "objects" => case.objects = objects(key, value)?,
                "hook" => case.hook = Some(text(key, value)?),
                "on" => case.on = Some(text(key, value)?),
                "contexts" => case.contexts = Some(maps(key, value)?),
                "event" => case.event = Some(Event::read(key, value)?),
                "request" => case.request = Some(Value::Object(map(key, value)?)),
                "expect" => case.expect = Expect::read(&map(key, value)?)?,
                _ => return Err(Mistake::new(key, "there is no such field of a case")),
            }
        }
        if case.hook.is_none() && case.on.is_none() && fields.get("expect").is_none_or(is_empty) {
            return Err(Mistake::new("expect", "without a hook there has to be an expectation"));
        }
        case.check()?;
        Ok(case)
    }

    /// Refuses fields that would have no effect.
    fn check(&self) -> Result<(), Mistake> {
        let runs = self.hook.is_some() || self.on.is_some();
        let needs_hook = [
            ("contexts", self.contexts.is_some() && self.hook.is_none()),
            ("event", self.event.is_some() && !runs),
            ("request", self.request.is_some() && !runs),
            ("expect.valuesPatch", self.expect.values_patch.is_some() && !runs),
            ("expect.configPatch", self.expect.config_patch.is_some() && !runs),
            ("expect.runs", self.expect.runs.is_some() && !runs),
            ("expect.objectPatches", self.expect.object_patches.is_some() && !runs),
            ("expect.metrics", self.expect.metrics.is_some() && !runs),
            ("expect.objects", !self.expect.objects.is_empty() && !runs),
            ("expect.absent", !self.expect.absent.is_empty() && !runs),
            ("expect.review", self.expect.review.is_some() && !runs),
        ];
        if let Some((field, _)) = needs_hook.iter().find(|(_, is_idle)| *is_idle) {
            return Err(Mistake::new(field, "it needs a hook: the field 'hook' names it"));
        }
        if self.contexts.is_some() {
            let idle = [
                ("on", self.on.is_some()),
                ("event", self.event.is_some()),
                ("request", self.request.is_some()),
            ];
            if let Some((field, _)) = idle.iter().find(|(_, is_given)| *is_given) {
                return Err(Mistake::new(field, "it has no effect beside 'contexts'"));
            }
        }
        if self.expect.reason.is_some() && self.expect.enabled != Some(false) {
            return Err(Mistake::new("expect.reason", "it needs 'enabled: false' beside it"));
        }
        Ok(())
    }

    /// Refuses fields that have no effect on global hooks.
    pub(super) fn check_for_global_hooks(&self) -> Result<(), Mistake> {
        let idle = [
            (
                "global",
                self.global.is_some(),
                "the field 'config' is the global section",
            ),
            (
                "enabledModules",
                !self.enabled_modules.is_empty(),
                "global hooks are not told which modules are on",
            ),
        ];
        match idle.iter().find(|(_, is_given, _)| *is_given) {
            None => Ok(()),
            Some((field, _, why)) => Err(Mistake::new(
                field,
                format!("it has no effect in a case of global hooks: {why}"),
            )),
        }
    }
}

impl Event {
    fn read(field: &str, value: &Value) -> Result<Self, Mistake> {
        let fields = map(field, value)?;
        let (mut event, mut object) = (None, None);
        for (key, value) in &fields {
            let field = format!("{field}.{key}");
            match key.as_str() {
                "type" => event = Some(typed(&field, value)?),
                "object" => object = Some(Value::Object(map(&field, value)?)),
                _ => return Err(Mistake::new(&field, "there is no such field of an event")),
            }
        }
        Ok(Self {
            event: event.ok_or_else(|| Mistake::new(&format!("{field}.type"), "it is missing"))?,
            object: object.ok_or_else(|| Mistake::new(&format!("{field}.object"), "it is missing"))?,
        })
    }
}

impl Expect {
    fn read(fields: &Map<String, Value>) -> Result<Self, Mistake> {
        let mut expect = Self::default();
        for (key, value) in fields {
            let field = &format!("expect.{key}");
            match key.as_str() {
                "values" => expect.values = Some(value.clone()),
                "config" => expect.config = Some(value.clone()),
                "valuesPatch" => expect.values_patch = Some(patch(field, value, PatchFile::Values)?),
                "configPatch" => expect.config_patch = Some(patch(field, value, PatchFile::Config)?),
                "objects" => expect.objects = objects(field, value)?,
                "absent" => expect.absent = objects(field, value)?,
                "runs" => expect.runs = Some(typed(field, value)?),
                "objectPatches" => expect.object_patches = Some(typed(field, value)?),
                "metrics" => expect.metrics = Some(maps(field, value)?),
                "rendered" => expect.rendered = Some(objects(field, value)?),
                "notRendered" => expect.not_rendered = Some(objects(field, value)?),
                "refused" => expect.refused = Some(text(field, value)?),
                "review" => expect.review = Some(Value::Object(map(field, value)?)),
                "enabled" => expect.enabled = Some(typed(field, value)?),
                "reason" => expect.reason = Some(text(field, value)?),
                _ => return Err(Mistake::new(field, "there is no such expectation")),
            }
        }
        Ok(expect)
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

fn typed<T: DeserializeOwned>(field: &str, value: &Value) -> Result<T, Mistake> {
    serde_json::from_value(value.clone()).map_err(|error| Mistake::new(field, error.to_string()))
}

fn text(field: &str, value: &Value) -> Result<String, Mistake> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(Mistake::new(field, "it should be a text")),
    }
}

fn map(field: &str, value: &Value) -> Result<Map<String, Value>, Mistake> {
    match value {
        Value::Object(map) => Ok(map.clone()),
        _ => Err(Mistake::new(field, "it should be a map")),
    }
}

fn maps(field: &str, value: &Value) -> Result<Vec<Value>, Mistake> {
    match value {
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(items.clone()),
        _ => Err(Mistake::new(field, "it should be a list of maps")),
    }
}

/// A list of objects, or of parts of objects; each needs a kind.
fn objects(field: &str, value: &Value) -> Result<Vec<Value>, Mistake> {
    let objects = maps(field, value)?;
    match objects.iter().position(|object| !object["kind"].is_string()) {
        Some(place) => Err(Mistake::new(&format!("{field}[{place}]"), "it has no kind")),
        None => Ok(objects),
    }
}

fn patch(field: &str, value: &Value, file: PatchFile) -> Result<Patch, Mistake> {
    let operations = maps(field, value)?;
    Patch::parse(&Value::Array(operations).to_string(), file).map_err(|error| {
        let problem = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        Mistake::new(field, problem)
    })
}
