//! Conditions decide whether an event makes a hook run. They judge the snapshots that the binding's `when` names.
//!
//! Must never hold back a run because a judgement failed: only a condition that is known to be false holds it back.

use gojq::filter::Filter;
use names::BindingName;
use serde_json::{Map, Value, json};

use super::config::{Condition, WatchEvent};
use super::context::Snapshots;
use crate::object::ObjectView;
use crate::object::json::Json;

/// The document that a condition judges: `snapshots` has a list for each binding, and a change has the fields that its binding
/// context has.
#[derive(Debug, Default)]
pub struct Evidence(Map<String, Value>);

impl Evidence {
    /// The evidence about a change of an object.
    pub fn of_change(event: WatchEvent, object: &ObjectView) -> Self {
        let mut fields = Map::new();
        fields.insert("watchEvent".to_owned(), json!(event));
        let parts = [("object", &object.object), ("filterResult", &object.filter_result)];
        for (key, part) in parts {
            if let Some(part) = part {
                fields.insert(key.to_owned(), part.to_value());
            }
        }
        Self(fields)
    }

    /// Adds a snapshot: the results of the filter, or whole objects if there is no filter. Null results are left out.
    #[must_use]
    pub fn with<'a>(mut self, binding: &BindingName, objects: impl IntoIterator<Item = &'a ObjectView>) -> Self {
        let shown = objects
            .into_iter()
            .filter_map(|object| object.filter_result.as_ref().or(object.object.as_ref()));
        let shown = shown.filter(|shown| shown.as_str() != "null").map(Json::to_value);
        let list = Value::Array(shown.collect());
        let snapshots = self.0.entry("snapshots").or_insert_with(|| json!({}));
        snapshots[binding.as_str()] = list;
        self
    }

    /// Whether a snapshot has an object.
    pub fn has_objects(&self) -> bool {
        let snapshots = self.0.get("snapshots").and_then(Value::as_object);
        let mut lists = snapshots.into_iter().flat_map(Map::values).filter_map(Value::as_array);
        lists.any(|list| !list.is_empty())
    }

    /// The document for a jq filter.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Whether the answer of a filter lets the hook run: an error does, `false` and `null` do not.
pub fn lets_run<E>(answer: &Result<Value, E>) -> bool {
    !matches!(answer, Ok(Value::Null | Value::Bool(false)))
}

impl Condition {
    /// Whether these snapshots fulfil the condition. A snapshot that is not there is unknown, and lets the hook run.
    pub fn is_met(&self, snapshots: &Snapshots) -> bool {
        let mut evidence = Evidence::default();
        for binding in &self.snapshots {
            let Some(objects) = snapshots.get(binding) else {
                return true;
            };
            evidence = evidence.with(binding, objects);
        }
        match &self.jq_filter {
            None => evidence.has_objects(),
            Some(text) => lets_run(&Filter::compile(text).and_then(|filter| filter.apply(&evidence.into_value()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(result: &Value) -> ObjectView {
        ObjectView {
            object: None,
            filter_result: Some(Json::from(result)),
        }
    }

    fn check(filter: Option<&str>, results: Option<&[Value]>, met: bool) {
        let rules: BindingName = BindingName::parse("rules").unwrap();
        let condition = Condition {
            snapshots: vec![rules.clone()],
            jq_filter: filter.map(str::to_owned),
        };
        let snapshots = results.map(|results| (rules, results.iter().map(view).collect()));
        let found = condition.is_met(&snapshots.into_iter().collect());
        assert_eq!(found, met, "{filter:?} {results:?}");
    }

    #[test]
    fn only_a_condition_that_is_known_to_be_false_holds_a_run_back() {
        let one = [json!({"a": 1})];
        check(None, Some(&[]), false);
        check(None, Some(&[Value::Null]), false);
        check(None, Some(&one), true);
        check(None, None, true);
        check(Some(".snapshots.rules[0].a == 1"), Some(&one), true);
        check(Some(".snapshots.rules[0].a"), Some(&[]), false);
        check(Some("empty"), Some(&one), false);
        check(Some("error(\"no\")"), Some(&one), true);
        check(Some("false"), None, true);
    }

    #[test]
    fn a_change_is_judged_with_its_own_fields() {
        let rules = BindingName::parse("rules").unwrap();
        let evidence = Evidence::of_change(WatchEvent::Deleted, &view(&json!({"name": "a"})));
        assert_eq!(
            evidence.with(&rules, &[view(&json!("x"))]).into_value(),
            json!({"watchEvent": "Deleted", "filterResult": {"name": "a"}, "snapshots": {"rules": ["x"]}})
        );
    }
}
