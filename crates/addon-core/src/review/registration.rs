//! The objects in the cluster that make the API server ask our webhooks.
//!
//! The fields that the API server would fill in are written, too, so that a found object can be compared with the
//! wanted one. Must never make a webhook without a CA: an API server that cannot verify us refuses the whole request.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::routes::{AdmissionKind, AdmissionRoute, EDITS, Routes};
use crate::hook::config::{FailurePolicy, LabelSelector, ReviewRule, SideEffects};

const PORT: u16 = 443;
/// The name of the webhook for edits of our ConfigMap. A person whose edit is refused sees this name.
const EDIT_WEBHOOK: &str = "config-map.addon-operator.internal";
/// The time that the API server waits for us at an edit of the ConfigMap.
const EDIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The error for a bundle without certificates.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the CA bundle of the webhooks holds no certificate")]
pub struct NoCa;

/// The certificates of the authorities that may have signed ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaBundle(String);

impl CaBundle {
    /// Accepts PEM text with at least one certificate.
    pub fn new(pem: impl Into<String>) -> Result<Self, NoCa> {
        let pem = pem.into();
        if pem.contains("-----BEGIN CERTIFICATE-----") {
            Ok(Self(pem))
        } else {
            Err(NoCa)
        }
    }

    /// The PEM text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The address at which the API server reaches one of our listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub service: String,
    /// The authority that signed the listener's certificate.
    pub ca: CaBundle,
}

impl Address {
    fn client_config(&self, path: &str) -> Value {
        json!({
            "caBundle": STANDARD.encode(self.ca.as_str()),
            "service": {"name": self.service, "namespace": self.namespace, "path": path, "port": PORT},
        })
    }
}

/// The `.webhooks` of our configuration of one kind, in the order of their paths; empty if no binding has this kind.
pub fn webhooks(routes: &Routes, kind: AdmissionKind, address: &Address) -> Vec<Value> {
    let wanted = routes.admissions().filter(|(_, route)| route.kind == kind);
    wanted.map(|(path, route)| webhook(&path, route, address)).collect()
}

fn webhook(path: &str, route: &AdmissionRoute, address: &Address) -> Value {
    let binding = &route.binding;
    let mut webhook = json!({
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": address.client_config(path),
        "failurePolicy": match binding.failure_policy {
            FailurePolicy::Ignore => "Ignore",
            FailurePolicy::Fail => "Fail",
        },
        "matchPolicy": "Equivalent",
        "name": binding.name.as_str(),
        "namespaceSelector": selector(binding.namespaces.as_ref()),
        "objectSelector": selector(binding.labels.as_ref()),
        "rules": binding.rules.iter().map(rule).collect::<Vec<_>>(),
        "sideEffects": match binding.side_effects {
            SideEffects::None => "None",
            SideEffects::NoneOnDryRun => "NoneOnDryRun",
        },
        "timeoutSeconds": binding.timeout_seconds,
    });
    if route.kind == AdmissionKind::Mutating {
        webhook["reinvocationPolicy"] = json!("Never");
    }
    if !binding.match_conditions.is_empty() {
        let conditions = binding.match_conditions.iter();
        let conditions =
            conditions.map(|condition| json!({"name": condition.name, "expression": condition.expression}));
        webhook["matchConditions"] = conditions.collect();
    }
    webhook
}

/// The `.webhooks` of the configuration for our own ConfigMap, which is in the namespace of our Service; empty if edits
/// are not to be reviewed. An edit does not wait long for us, and is not refused if we give no answer: the check only
/// helps the person who makes the edit, and an invalid value is not applied anyway.
pub fn edit_webhooks(routes: &Routes, address: &Address) -> Vec<Value> {
    let webhook = |name: &str| {
        json!({
            "admissionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": address.client_config(&format!("/{EDITS}")),
            "failurePolicy": "Ignore",
            "matchConditions": [{"name": "our-config-map", "expression": format!("request.name == '{name}'")}],
            "matchPolicy": "Equivalent",
            "name": EDIT_WEBHOOK,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": address.namespace}},
            "objectSelector": {},
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["configmaps"],
                "scope": "Namespaced",
            }],
            "sideEffects": "None",
            "timeoutSeconds": EDIT_TIMEOUT.as_secs(),
        })
    };
    routes.config_map().into_iter().map(webhook).collect()
}

fn rule(rule: &ReviewRule) -> Value {
    json!({
        "apiGroups": rule.api_groups,
        "apiVersions": rule.api_versions,
        "operations": rule.operations,
        "resources": rule.resources,
        "scope": rule.scope.as_deref().unwrap_or("*"),
    })
}

fn selector(labels: Option<&LabelSelector>) -> Value {
    let mut selector = Map::new();
    if let Some(labels) = labels {
        if !labels.match_labels.is_empty() {
            selector.insert("matchLabels".to_owned(), json!(labels.match_labels));
        }
        if !labels.match_expressions.is_empty() {
            let expressions = labels.match_expressions.iter().map(|requirement| {
                let mut expression = json!({"key": requirement.key, "operator": requirement.operator});
                if !requirement.values.is_empty() {
                    expression["values"] = json!(requirement.values);
                }
                expression
            });
            selector.insert("matchExpressions".to_owned(), expressions.collect());
        }
    }
    Value::Object(selector)
}

/// The wanted `.spec.conversion` of each `CustomResourceDefinition`.
pub fn conversions(routes: &Routes, address: &Address) -> BTreeMap<String, Value> {
    let wanted = routes.conversions().map(|crd| {
        let stanza = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": address.client_config(&format!("/{crd}")),
                "conversionReviewVersions": ["v1", "v1beta1"],
            },
        });
        (crd.to_owned(), stanza)
    });
    wanted.collect()
}
