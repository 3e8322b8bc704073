//! Webhook configurations of a chart that stand in the way of the operator itself: while the server of a webhook is
//! down, the API server refuses the writes by which helm and the operator would repair that server.
//!
//! Must never report a webhook whose selectors or conditions may leave the operator's objects out.

use std::fmt::Write as _;

use serde_json::Value;

/// The API group of webhook configurations.
const GROUP: &str = "admissionregistration.k8s.io/";
const KINDS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
/// The label of each namespace with its name, which the API server sets.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The kinds of objects that helm and the operator write in the operator's namespace, by API group and resource.
const OURS: [(&str, &str); 5] = [
    ("", "secrets"),
    ("", "configmaps"),
    ("", "events"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
];
/// The version of all kinds in `OURS`.
const VERSION: &str = "v1";
const WRITES: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "*"];

/// The answer to a question about labels that are known in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// The name of the webhook that the API server could not call, from its answer or from helm's text about it.
pub fn failed_webhook(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("failed calling webhook ")?;
    // Helm quotes the answer once more in its log.
    let (name, _) = rest.trim_start_matches('\\').strip_prefix('"')?.split_once('"')?;
    Some(name.trim_end_matches('\\')).filter(|name| !name.is_empty())
}

/// A warning for each webhook of the objects that surely intercepts the operator's writes. `namespace` is the
/// operator's namespace; `None` if it is unknown.
pub fn warnings(objects: &[Value], namespace: Option<&str>) -> Vec<String> {
    let told = webhooks(objects).filter_map(|(configuration, webhook)| warning(configuration, webhook, namespace));
    told.collect()
}

/// A configuration with a webhook that surely intercepts the operator's writes, and the Service of that webhook.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interceptor<'a> {
    /// The configuration, as the manifest has it.
    pub configuration: &'a Value,
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The name of the Service.
    pub service: &'a str,
}

/// The webhooks of the objects that surely intercept the operator's writes and that have a Service. `namespace` is the
/// operator's namespace.
pub fn interceptors<'a>(objects: &'a [Value], namespace: &str) -> Vec<Interceptor<'a>> {
    let found = webhooks(objects).filter_map(|(configuration, webhook)| {
        intercepted(configuration, webhook, Some(namespace))?;
        let service = &webhook["clientConfig"]["service"];
        Some(Interceptor {
            configuration,
            namespace: service["namespace"].as_str()?,
            service: service["name"].as_str()?,
        })
    });
    found.collect()
}

/// All webhooks of the objects, each with its configuration.
fn webhooks(objects: &[Value]) -> impl Iterator<Item = (&Value, &Value)> {
    let configurations = objects.iter().filter(|object| {
        let is_of_group = text(object, "apiVersion").starts_with(GROUP);
        is_of_group && KINDS.contains(&text(object, "kind"))
    });
    configurations.flat_map(|configuration| {
        list(configuration, "webhooks")
            .iter()
            .map(move |webhook| (configuration, webhook))
    })
}

/// The first rule by which a webhook surely intercepts the operator's writes, by its number, and the resources in it.
fn intercepted(configuration: &Value, webhook: &Value, namespace: Option<&str>) -> Option<(usize, Vec<&'static str>)> {
    // The first version of the API ignored failures by default.
    let usual = if text(configuration, "apiVersion") == "admissionregistration.k8s.io/v1" {
        "Fail"
    } else {
        "Ignore"
    };
    let policy = webhook["failurePolicy"].as_str().unwrap_or(usual);
    if policy != "Fail" || !list(webhook, "matchConditions").is_empty() {
        return None;
    }
    let known = namespace.map(|namespace| (NAME_LABEL, namespace));
    if selected(&webhook["namespaceSelector"], known) != Answer::Yes
        || selected(&webhook["objectSelector"], None) != Answer::Yes
    {
        return None;
    }
    let rules = list(webhook, "rules").iter().zip(1..);
    rules
        .map(|(rule, number)| (number, covered(rule)))
        .find(|(_, found)| !found.is_empty())
}

fn warning(configuration: &Value, webhook: &Value, namespace: Option<&str>) -> Option<String> {
    let (number, resources) = intercepted(configuration, webhook, namespace)?;
    let (kind, name) = (text(configuration, "kind"), text(&configuration["metadata"], "name"));
    let mut told = format!(
        "{kind} '{name}', webhook '{}', rule {number}: it judges {} in the operator's namespace, and while its server does \
         not answer, helm and the operator can write none; leave the namespace out: namespaceSelector with {NAME_LABEL} NotIn ",
        text(webhook, "name"),
        resources.join(", ")
    );
    let _ = match namespace {
        Some(namespace) => write!(told, "[{namespace}]"),
        None => write!(told, "[the operator's namespace]"),
    };
    Some(told)
}

/// The resources in `OURS` that a rule covers.
fn covered(rule: &Value) -> Vec<&'static str> {
    let names = |field, of: &[&str]| {
        list(rule, field)
            .iter()
            .filter_map(Value::as_str)
            .any(|name| of.contains(&name))
    };
    let is_about_writes = names("operations", &WRITES) && names("apiVersions", &[VERSION, "*"]);
    if !is_about_writes || rule["scope"] == "Cluster" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (group, resource) in OURS {
        if names("apiGroups", &[group, "*"])
            && names("resources", &[resource, "*", "*/*"])
            && !found.contains(&resource)
        {
            found.push(resource);
        }
    }
    found
}

/// Whether a selector selects an object of which only this label is known.
fn selected(selector: &Value, known: Option<(&str, &str)>) -> Answer {
    let empty = serde_json::Map::new();
    let labels = selector["matchLabels"].as_object().unwrap_or(&empty).iter();
    let equal = labels.map(|(key, value)| requirement(key, "In", &[value.as_str().unwrap_or_default()], known));
    let expressions = list(selector, "matchExpressions").iter().map(|expression| {
        let values: Vec<_> = list(expression, "values").iter().filter_map(Value::as_str).collect();
        requirement(text(expression, "key"), text(expression, "operator"), &values, known)
    });
    equal.chain(expressions).fold(Answer::Yes, |all, one| match (all, one) {
        (Answer::No, _) | (_, Answer::No) => Answer::No,
        (Answer::Yes, Answer::Yes) => Answer::Yes,
        (Answer::Unknown, _) | (_, Answer::Unknown) => Answer::Unknown,
    })
}

fn requirement(key: &str, operator: &str, values: &[&str], known: Option<(&str, &str)>) -> Answer {
    let Some((_, value)) = known.filter(|(label, _)| *label == key) else {
        return Answer::Unknown;
    };
    let is_met = match operator {
        "In" => values.contains(&value),
        "NotIn" => !values.contains(&value),
        "Exists" => true,
        "DoesNotExist" => false,
        _ => return Answer::Unknown,
    };
    if is_met { Answer::Yes } else { Answer::No }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A configuration with one webhook, which also has these fields.
    fn configuration(api_version: &str, more: &Value) -> Value {
        let mut webhook = json!({"name": "w.example.com", "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "rules": [
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]},
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps", "secrets"]},
        ]});
        for (field, value) in more.as_object().unwrap() {
            webhook[field] = value.clone();
        }
        json!({"apiVersion": api_version, "kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [webhook]})
    }

    fn is_told(more: &Value, namespace: Option<&str>) -> bool {
        let objects = [configuration("admissionregistration.k8s.io/v1", more)];
        !warnings(&objects, namespace).is_empty()
    }

    #[test]
    fn a_webhook_that_could_not_be_called_is_found_in_a_text() {
        for (text, expected) in [
            (
                r#"Internal error occurred: failed calling webhook "d.example.com": failed to call webhook: Post "https://a.b.svc:443/": no endpoints"#,
                Some("d.example.com"),
            ),
            (
                r#"level=ERROR error="failed calling webhook \"d.example.com\": failed" other="x""#,
                Some("d.example.com"),
            ),
            (r#"a: failed calling webhook "cut"#, None),
            (r#"failed calling webhook "": x"#, None),
            ("failed calling webhook d.example.com", None),
            (r#"admission webhook "d.example.com" denied the request"#, None),
        ] {
            assert_eq!(failed_webhook(text), expected, "{text}");
        }
    }

    #[test]
    fn webhook_rule_and_remedy_are_named() {
        let objects = [
            json!({"kind": "ConfigMap"}),
            configuration("admissionregistration.k8s.io/v1", &json!({})),
        ];
        assert_eq!(
            warnings(&objects, Some("ns")),
            [
                "MutatingWebhookConfiguration 'c', webhook 'w.example.com', rule 2: it judges secrets, configmaps in the \
                 operator's namespace, and while its server does not answer, helm and the operator can write none; leave the \
                 namespace out: namespaceSelector with kubernetes.io/metadata.name NotIn [ns]"
            ]
        );
        let old = configuration("admissionregistration.k8s.io/v1beta1", &json!({}));
        assert_eq!(warnings(&[old], Some("ns")), Vec::<String>::new());
        assert!(is_told(&json!({}), None));
        assert!(!is_told(&json!({"failurePolicy": "Ignore"}), None));
    }

    #[test]
    fn an_interceptor_has_its_service_and_one_without_a_service_is_left_out() {
        let v1 = "admissionregistration.k8s.io/v1";
        let objects = [
            configuration(v1, &json!({})),
            configuration(v1, &json!({"failurePolicy": "Ignore"})),
            configuration(v1, &json!({"clientConfig": {"url": "https://a"}})),
        ];
        let expected = Interceptor {
            configuration: &objects[0],
            namespace: "n",
            service: "s",
        };
        assert_eq!(interceptors(&objects, "ns"), [expected]);
    }

    #[test]
    fn rules_about_other_objects_are_not_told() {
        for (groups, resources, operations, scope, expected) in [
            (json!(["*"]), json!(["*/*"]), json!(["*"]), "*", true),
            (json!([""]), json!(["*"]), json!(["CREATE"]), "Namespaced", true),
            (
                json!(["coordination.k8s.io"]),
                json!(["leases"]),
                json!(["UPDATE"]),
                "*",
                true,
            ),
            (
                json!(["events.k8s.io"]),
                json!(["events"]),
                json!(["CREATE"]),
                "*",
                true,
            ),
            (json!([""]), json!(["pods", "secrets/x"]), json!(["*"]), "*", false),
            (json!(["apps"]), json!(["*"]), json!(["*"]), "*", false),
            (json!(["*"]), json!(["*"]), json!(["CONNECT"]), "*", false),
            (json!(["*"]), json!(["*"]), json!(["*"]), "Cluster", false),
        ] {
            let rule = json!({"apiGroups": groups, "apiVersions": ["*"], "operations": operations, "resources": resources, "scope": scope});
            assert_eq!(is_told(&json!({"rules": [rule]}), Some("ns")), expected, "{rule}");
        }
    }

    #[test]
    fn webhooks_that_leave_the_namespace_out_or_may_do_so_are_not_told() {
        let name = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": operator, "values": values}]});
        let by_name = |selector: Value, namespace| is_told(&json!({"namespaceSelector": selector}), namespace);
        let ours = Some("ns");
        for (selector, expected) in [
            (json!({}), true),
            (Value::Null, true),
            (name("NotIn", json!(["ns"])), false),
            (name("NotIn", json!(["kube-system"])), true),
            (name("In", json!(["kube-system"])), false),
            (name("In", json!(["ns", "b"])), true),
            (name("Exists", json!([])), true),
            (name("DoesNotExist", json!([])), false),
            (json!({"matchLabels": {"kubernetes.io/metadata.name": "other"}}), false),
            (json!({"matchLabels": {"kubernetes.io/metadata.name": "ns"}}), true),
            (json!({"matchLabels": {"inject": "enabled"}}), false),
            (
                json!({"matchLabels": {"kubernetes.io/metadata.name": "ns", "inject": "enabled"}}),
                false,
            ),
        ] {
            assert_eq!(by_name(selector.clone(), ours), expected, "{selector}");
        }
        // If the namespace is unknown, each selector may leave it out.
        assert!(!by_name(name("NotIn", json!(["kube-system"])), None));
        let labels = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
        assert!(!is_told(&json!({"objectSelector": labels}), ours));
        assert!(!is_told(
            &json!({"matchConditions": [{"name": "a", "expression": "true"}]}),
            ours
        ));
    }
}
