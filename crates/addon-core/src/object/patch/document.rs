//! Reads a document as an operation. Unknown keys are ignored.

use helm_yaml::yaml;
use helm_yaml::yaml::document::Document;
use serde_json::{Map, Value};

use super::word::{OperationName, glimpse};
use super::{
    ApiVersion, BadOperation, Change, Dependents, EventContents, Existing, FieldManager, Finalizer, JqFilter,
    JsonPatch, Manifest, MergePatch, Operation, Problem, Segment, Target, Terms, Weight, step,
};

pub(super) fn read(document: &Document) -> Result<Operation, BadOperation> {
    let fields = Fields::of(document)?;
    let operation = match fields.operation {
        OperationName::Create => fields.create(Existing::Refuse)?,
        OperationName::CreateIfNotExists => fields.create(Existing::Keep)?,
        OperationName::CreateOrUpdate => fields.create(Existing::Replace)?,
        OperationName::Apply => fields.apply()?,
        OperationName::Delete => fields.delete(Dependents::First)?,
        OperationName::DeleteInBackground => fields.delete(Dependents::Later)?,
        OperationName::DeleteNonCascading => fields.delete(Dependents::Stay)?,
        OperationName::MergePatch => fields.patch(Fields::merge_patch)?,
        OperationName::JsonPatch => fields.patch(Fields::json_patch)?,
        OperationName::JqPatch => fields.patch(Fields::jq_filter)?,
        OperationName::AddFinalizer => fields.finalizer(Change::Hold)?,
        OperationName::RemoveFinalizer => fields.finalizer(Change::Free)?,
        OperationName::Event => fields.event()?,
    };
    Ok(operation)
}

/// The keys of an operation.
struct Fields<'document> {
    operation: OperationName,
    document: &'document Document,
    keys: &'document Map<String, Value>,
}

impl<'document> Fields<'document> {
    fn of(document: &'document Document) -> Result<Self, BadOperation> {
        let bad = |field: &str, problem| BadOperation {
            operation: None,
            field: field.to_owned(),
            problem,
        };
        let keys = match &document.value {
            Value::Object(keys) => keys,
            other => return Err(bad("", wrong(A_MAP, other))),
        };
        let name = match keys.get("operation") {
            None | Some(Value::Null) => return Err(bad("operation", Problem::Missing)),
            Some(Value::String(name)) => name,
            Some(other) => return Err(bad("operation", wrong(A_STRING, other))),
        };
        let Some(operation) = OperationName::parse(name) else {
            return Err(bad("operation", Problem::Operation { found: glimpse(name) }));
        };
        Ok(Self {
            operation,
            document,
            keys,
        })
    }

    fn bad(&self, field: impl Into<String>, problem: impl Into<Problem>) -> BadOperation {
        BadOperation {
            operation: Some(self.operation),
            field: field.into(),
            problem: problem.into(),
        }
    }

    fn create(&self, existing: Existing) -> Result<Operation, BadOperation> {
        let object = self.object()?;
        Ok(Operation::Create { object, existing })
    }

    fn object(&self) -> Result<Manifest, BadOperation> {
        let object = self.map("object")?;
        Manifest::parse(object).map_err(|(field, problem)| self.bad(format!("object.{field}"), problem))
    }

    fn apply(&self) -> Result<Operation, BadOperation> {
        let object = self.object()?;
        // The API server makes no names for objects that are applied.
        if object.name().is_none() {
            return Err(self.bad("object.metadata.name", Problem::Missing));
        }
        let manager = self.said("fieldManager")?;
        let manager = manager.ok_or_else(|| self.bad("fieldManager", Problem::Missing))?;
        let found = glimpse(&manager);
        let manager =
            FieldManager::parse(&manager).ok_or_else(|| self.bad("fieldManager", Problem::FieldManager { found }))?;
        Ok(Operation::Apply {
            object,
            manager,
            force: self.flag("force")?,
            terms: self.terms()?,
        })
    }

    fn delete(&self, dependents: Dependents) -> Result<Operation, BadOperation> {
        let target = self.target()?;
        Ok(Operation::Delete { target, dependents })
    }

    fn patch(&self, change: impl FnOnce(&Self) -> Result<Change, BadOperation>) -> Result<Operation, BadOperation> {
        let target = self.target()?;
        let change = change(self)?;
        let terms = self.terms()?;
        Ok(Operation::Patch { target, change, terms })
    }

    fn terms(&self) -> Result<Terms, BadOperation> {
        let subresource = self.said("subresource")?.map(|text| {
            // Hooks write the subresource with or without a slash before it.
            let name = text.strip_prefix('/').unwrap_or(&text).to_owned();
            self.segment("subresource", &name)
        });
        Ok(Terms {
            subresource: subresource.transpose()?,
            ignore_missing: self.flag("ignoreMissingObject")?,
            ignore_hook_error: self.flag("ignoreHookError")?,
        })
    }

    fn target(&self) -> Result<Target, BadOperation> {
        let needed = |key| match self.text(key)? {
            Some(text) => self.segment(key, &text),
            None => Err(self.bad(key, Problem::Missing)),
        };
        let api_version = self.said("apiVersion")?.map(|text| {
            let found = glimpse(&text);
            ApiVersion::parse(&text).ok_or_else(|| self.bad("apiVersion", Problem::ApiVersion { found }))
        });
        let namespace = self.said("namespace")?.map(|text| self.segment("namespace", &text));
        Ok(Target {
            api_version: api_version.transpose()?,
            kind: needed("kind")?,
            namespace: namespace.transpose()?,
            name: needed("name")?,
        })
    }

    fn merge_patch(&self) -> Result<Change, BadOperation> {
        let keys = self.map("mergePatch")?;
        let patch = MergePatch::new(keys).ok_or_else(|| self.bad("mergePatch", Problem::Empty))?;
        Ok(Change::Merge(patch))
    }

    fn json_patch(&self) -> Result<Change, BadOperation> {
        let items = match self.structure("jsonPatch")? {
            Value::Array(items) => items,
            other => return Err(self.bad("jsonPatch", wrong("a list of steps", &other))),
        };
        let steps: Result<Vec<_>, _> = items
            .iter()
            .enumerate()
            .map(|(at, item)| {
                step::read(item).map_err(|(field, problem)| self.bad(format!("jsonPatch[{at}]{field}"), problem))
            })
            .collect();
        let patch = JsonPatch::new(steps?).ok_or_else(|| self.bad("jsonPatch", Problem::Empty))?;
        Ok(Change::Json(patch))
    }

    fn jq_filter(&self) -> Result<Change, BadOperation> {
        let text = match self.keys.get("jqFilter") {
            None | Some(Value::Null) => return Err(self.bad("jqFilter", Problem::Missing)),
            Some(Value::String(text)) => text,
            Some(other) => return Err(self.bad("jqFilter", wrong(A_STRING, other))),
        };
        let filter = JqFilter::new(text).ok_or_else(|| self.bad("jqFilter", Problem::Empty))?;
        Ok(Change::Jq(filter))
    }

    fn finalizer(&self, change: impl FnOnce(Finalizer) -> Change) -> Result<Operation, BadOperation> {
        let target = self.target()?;
        let text = self.needed("finalizer")?;
        let found = glimpse(&text);
        let finalizer = Finalizer::parse(&text).ok_or_else(|| self.bad("finalizer", Problem::Finalizer { found }))?;
        let terms = Terms {
            ignore_missing: self.flag("ignoreMissingObject")?,
            ..Terms::default()
        };
        Ok(Operation::Patch {
            target,
            change: change(finalizer),
            terms,
        })
    }

    fn event(&self) -> Result<Operation, BadOperation> {
        let target = self.target()?;
        let weight = match self.said("type")? {
            None => Weight::Normal,
            Some(text) => {
                let found = glimpse(&text);
                Weight::parse(&text).ok_or_else(|| self.bad("type", Problem::Weight { found }))?
            }
        };
        let reason = self.needed("reason")?;
        let found = glimpse(&reason);
        let contents = EventContents::new(weight, &reason, &self.needed("message")?, self.said("uid")?)
            .ok_or_else(|| self.bad("reason", Problem::Reason { found }))?;
        Ok(Operation::Event { target, contents })
    }

    /// A text that the operation requires.
    fn needed(&self, key: &'static str) -> Result<String, BadOperation> {
        match self.text(key)? {
            None => Err(self.bad(key, Problem::Missing)),
            Some(text) if text.is_empty() => Err(self.bad(key, Problem::Empty)),
            Some(text) => Ok(text),
        }
    }

    /// A map that is not empty. The document may have it as a map or as a YAML string.
    fn map(&self, key: &'static str) -> Result<Map<String, Value>, BadOperation> {
        match self.structure(key)? {
            Value::Object(map) if map.is_empty() => Err(self.bad(key, Problem::Empty)),
            Value::Object(map) => Ok(map),
            other => Err(self.bad(key, wrong(A_MAP, &other))),
        }
    }

    /// The value of a key. If the value is a string, the string is parsed as YAML.
    fn structure(&self, key: &'static str) -> Result<Value, BadOperation> {
        let text = match self.keys.get(key) {
            None | Some(Value::Null) => return Err(self.bad(key, Problem::Missing)),
            Some(Value::String(text)) => text,
            Some(value) => return Ok(value.clone()),
        };
        let mut documents = yaml::documents_v2(text).map_err(|error| self.bad(key, Problem::Text(error)))?;
        documents.retain(|document| !document.is_null());
        match documents.len() {
            0 => Err(self.bad(key, Problem::Empty)),
            1 => Ok(documents.remove(0)),
            documents => Err(self.bad(key, Problem::Several { documents })),
        }
    }

    /// A text. Other scalars count as texts, too, because a name may consist of digits.
    fn text(&self, key: &'static str) -> Result<Option<String>, BadOperation> {
        let value = self.keys.get(key).unwrap_or(&Value::Null);
        let written = self.document.text_of(key).map(str::to_owned);
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(written.unwrap_or_else(|| text.clone()))),
            Value::Bool(_) | Value::Number(_) => Ok(Some(written.unwrap_or_else(|| value.to_string()))),
            Value::Array(_) | Value::Object(_) => Err(self.bad(key, wrong(A_STRING, value))),
        }
    }

    /// A text; `None` if it is absent or empty.
    fn said(&self, key: &'static str) -> Result<Option<String>, BadOperation> {
        Ok(self.text(key)?.filter(|text| !text.is_empty()))
    }

    fn segment(&self, key: &'static str, text: &str) -> Result<Segment, BadOperation> {
        Segment::parse(text).map_err(|error| self.bad(key, error))
    }

    /// A boolean. The words of YAML 1.1 for booleans are accepted, too.
    fn flag(&self, key: &'static str) -> Result<bool, BadOperation> {
        match self.keys.get(key).unwrap_or(&Value::Null) {
            Value::Null => Ok(false),
            Value::Bool(truth) => Ok(*truth),
            value => match value.as_str() {
                Some("y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON") => Ok(true),
                Some("n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF") => Ok(false),
                _ => Err(self.bad(key, wrong("true or false", value))),
            },
        }
    }
}

pub(super) const A_MAP: &str = "a map";
pub(super) const A_STRING: &str = "a string";

/// The error for a value of the wrong type.
pub(super) fn wrong(wanted: &'static str, value: &Value) -> Problem {
    let found = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => A_STRING,
        Value::Array(_) => "a list",
        Value::Object(_) => A_MAP,
    };
    Problem::Type { wanted, found }
}
