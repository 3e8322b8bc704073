//! The three-way merge of helm: the present object, the object of the deployed revision, and the object as it is rendered now.
//!
//! Fields that the revision had and the chart does not render any more go; fields that the chart renders are set; all other fields of
//! the present object stay. Must never ask the cluster.

use serde_json::{Map, Value};

/// Lists of built-in kinds whose items are merged, each with the key of its items. All other lists are replaced as a whole.
const MERGED: [(&str, &str); 14] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("imagePullSecrets", "name"),
    ("secrets", "name"),
    ("webhooks", "name"),
    ("resourceClaims", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
    ("ports", "containerPort"),
];
/// The key of a Service's ports.
const OF_SERVICES: &str = "port";

/// The present object after the change from `was` to `wanted`. Null stands for an object that the revision did not have.
pub(crate) fn merged(mut live: Value, was: &Value, wanted: &Value) -> Value {
    let lists = match (wanted["apiVersion"].as_str(), wanted["kind"].as_str()) {
        (Some("v1"), Some("Service")) => Lists::OfService,
        (Some(version), _) if is_built_in(version) => Lists::BuiltIn,
        _ => Lists::Whole,
    };
    merge(&mut live, was, wanted, lists);
    live
}

/// The treatment of lists in an object.
#[derive(Clone, Copy)]
enum Lists {
    BuiltIn,
    OfService,
    /// Helm does not know the kind, so that it replaces all lists.
    Whole,
}

impl Lists {
    fn key(self, field: &str) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::OfService if field == "ports" => Some(OF_SERVICES),
            Self::OfService | Self::BuiltIn => MERGED.iter().find(|(name, _)| *name == field).map(|(_, key)| *key),
        }
    }
}

fn is_built_in(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn merge(live: &mut Value, was: &Value, wanted: &Value, lists: Lists) {
    let (Value::Object(present), Value::Object(wanted)) = (&mut *live, wanted) else {
        *live = wanted.clone();
        return;
    };
    let nothing = Map::new();
    let was = was.as_object().unwrap_or(&nothing);
    for field in was.keys().filter(|field| !wanted.contains_key(*field)) {
        present.remove(field);
    }
    for (field, value) in wanted {
        let old = was.get(field).unwrap_or(&Value::Null);
        match (present.get_mut(field), value, lists.key(field)) {
            // Helm leaves out null, as the API server does.
            (_, Value::Null, _) => {}
            (Some(Value::Array(present)), Value::Array(items), Some(key)) => {
                merge_items(present, old, items, key, lists);
            }
            (Some(present @ Value::Object(_)), Value::Object(_), _) => merge(present, old, value, lists),
            (Some(present), value, _) => *present = value.clone(),
            (None, value, _) => drop(present.insert(field.clone(), value.clone())),
        }
    }
}

fn merge_items(present: &mut Vec<Value>, was: &Value, wanted: &[Value], key: &str, lists: Lists) {
    let has = |items: &[Value], own: &Value| items.iter().any(|item| item[key] == own[key]);
    let was = was.as_array().map_or(&[][..], Vec::as_slice);
    present.retain(|item| has(wanted, item) || !has(was, item));
    let others = present
        .iter()
        .filter(|item| !has(wanted, item))
        .cloned()
        .collect::<Vec<_>>();
    let mut items = Vec::new();
    for item in wanted {
        let live = present.iter().find(|present| present[key] == item[key]);
        let old = was.iter().find(|was| was[key] == item[key]).unwrap_or(&Value::Null);
        items.push(match live {
            Some(live) => {
                let mut live = live.clone();
                merge(&mut live, old, item, lists);
                live
            }
            None => item.clone(),
        });
    }
    items.extend(others);
    *present = items;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_rendered_no_more_goes_and_one_of_others_stays() {
        let live = json!({"data": {"mine": "1", "theirs": "2", "gone": "3"}});
        let was = json!({"data": {"mine": "0", "gone": "3"}});
        let wanted = json!({"data": {"mine": "4", "none": null}});
        assert_eq!(
            merged(live, &was, &wanted),
            json!({"data": {"mine": "4", "theirs": "2"}})
        );
    }

    #[test]
    fn items_with_a_name_are_merged_and_other_lists_are_replaced() {
        let pod = |containers: Value, args: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers, "args": args}});
        let live = pod(
            json!([{"name": "a", "image": "1", "default": true}, {"name": "old"}, {"name": "injected"}]),
            json!([1, 2]),
        );
        let was = pod(json!([{"name": "a", "image": "1"}, {"name": "old"}]), json!([1, 2]));
        let wanted = pod(json!([{"name": "new"}, {"name": "a", "image": "2"}]), json!([3]));
        let containers = json!([{"name": "new"}, {"name": "a", "image": "2", "default": true}, {"name": "injected"}]);
        assert_eq!(merged(live, &was, &wanted), pod(containers, json!([3])));
    }

    #[test]
    fn the_ports_of_a_service_are_told_apart_by_number() {
        let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}});
        let live = service(json!([{"name": "http", "port": 80, "targetPort": 80}]));
        let was = service(json!([{"name": "http", "port": 80}]));
        let wanted = service(json!([{"name": "http", "port": 81}]));
        assert_eq!(merged(live, &was, &wanted), wanted);
    }

    #[test]
    fn lists_of_custom_resources_are_replaced() {
        let custom = |env: Value| json!({"apiVersion": "example.com/v1", "kind": "X", "spec": {"env": env}});
        let live = custom(json!([{"name": "a"}, {"name": "theirs"}]));
        let wanted = custom(json!([{"name": "b"}]));
        assert_eq!(merged(live, &Value::Null, &wanted), wanted);
    }
}
