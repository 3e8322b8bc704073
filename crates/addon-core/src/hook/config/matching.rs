//! The selection of objects by a binding, decided without an API server.
//!
//! In a cluster the API server selects the objects. This file applies the same rule to objects that come from no API
//! server, as in tests of modules. Must never be used to narrow the answer of an API server.

use serde_json::Value;

use super::binding::{
    FieldRequirement, KubernetesBinding, LabelRequirement, LabelSelector, NamespaceSelector, Operator,
};

impl KubernetesBinding {
    /// Whether the binding selects an object of its kind. `namespace` finds the Namespace object of a name.
    pub fn selects<'a>(&self, object: &Value, namespace: impl Fn(&str) -> Option<&'a Value>) -> bool {
        let name = text_at(object, "metadata.name");
        (self.names.is_empty() || self.names.contains(&name))
            && self.labels.as_ref().is_none_or(|labels| labels.selects(object))
            && self.fields.iter().all(|field| field.selects(object))
            && self
                .namespaces
                .as_ref()
                .is_none_or(|selector| selector.selects(&text_at(object, "metadata.namespace"), namespace))
    }
}

impl NamespaceSelector {
    fn selects<'a>(&self, name: &str, namespace: impl Fn(&str) -> Option<&'a Value>) -> bool {
        match &self.labels {
            Some(labels) => namespace(name).is_some_and(|found| labels.selects(found)),
            None => self.names.is_empty() || self.names.iter().any(|wanted| wanted == name),
        }
    }
}

impl LabelSelector {
    /// Whether the selector selects an object by its labels.
    pub fn selects(&self, object: &Value) -> bool {
        let label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        let equal = |(key, value): (&String, &String)| label(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self
                .match_expressions
                .iter()
                .all(|wanted| wanted.is_met(label(&wanted.key)))
    }
}

impl LabelRequirement {
    fn is_met(&self, found: Option<&str>) -> bool {
        let is_listed = |found: &str| self.values.iter().any(|value| value == found);
        match self.operator {
            Operator::In => found.is_some_and(is_listed),
            Operator::NotIn => !found.is_some_and(is_listed),
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
        }
    }
}

impl FieldRequirement {
    fn selects(&self, object: &Value) -> bool {
        (text_at(object, &self.field) == self.value) == self.equals
    }
}

/// The text of a field as selectors compare it; empty for an absent one.
fn text_at(object: &Value, field: &str) -> String {
    let found = field.split('.').try_fold(object, |value, key| value.get(key));
    match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::config::{HookConfig, HookKind};

    fn binding(more: &str) -> KubernetesBinding {
        let text = format!("configVersion: v1\nkubernetes: [{{name: pods, kind: Pod, {more}}}]");
        HookConfig::parse(&text, HookKind::Module).unwrap().kubernetes.remove(0)
    }

    #[test]
    fn objects_are_selected_as_by_an_api_server() {
        let pod = json!({
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "tier": "1"}},
            "spec": {"nodeName": "a"}, "status": {"phase": "Running"},
        });
        let shop = json!({"metadata": {"name": "shop", "labels": {"team": "sales"}}});
        let rows = [
            ("nameSelector: {matchNames: [web, db]}", true),
            ("nameSelector: {matchNames: [db]}", false),
            ("labelSelector: {matchLabels: {app: web}}", true),
            ("labelSelector: {matchLabels: {app: web, tier: '2'}}", false),
            (
                "labelSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}",
                true,
            ),
            (
                "labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}",
                false,
            ),
            (
                "labelSelector: {matchExpressions: [{key: zone, operator: NotIn, values: [web]}]}",
                true,
            ),
            (
                "labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}",
                true,
            ),
            (
                "labelSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}",
                false,
            ),
            (
                "fieldSelector: {matchExpressions: [{field: status.phase, operator: Equals, value: Running}]}",
                true,
            ),
            (
                "fieldSelector: {matchExpressions: [{field: spec.nodeName, operator: NotEquals, value: a}]}",
                false,
            ),
            (
                "fieldSelector: {matchExpressions: [{field: spec.nothing, operator: Equals, value: ''}]}",
                true,
            ),
            ("namespace: {nameSelector: {matchNames: [shop]}}", true),
            ("namespace: {nameSelector: {matchNames: [other]}}", false),
            ("namespace: {labelSelector: {matchLabels: {team: sales}}}", true),
            ("namespace: {labelSelector: {matchLabels: {team: support}}}", false),
        ];
        for (more, expected) in rows {
            let known = |name: &str| (name == "shop").then_some(&shop);
            assert_eq!(binding(more).selects(&pod, known), expected, "{more}");
        }
        let unknown = binding("namespace: {labelSelector: {matchExpressions: [{key: x, operator: DoesNotExist}]}}");
        assert!(
            !unknown.selects(&pod, |_| None),
            "a namespace that does not exist has no labels"
        );
    }
}
