//! A failed request: what was attempted, why it failed, and its class. Must never contain the content of a Secret.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use kube::core::Status;
use report::Chain;
use thiserror::Error;

/// The cause that the API server names if a namespace is being deleted.
pub const NAMESPACE_ENDS: &str = "NamespaceTerminating";

/// The owner of the rights of the operator's requests, for people.
const OPERATOR: &str = "the operator's service account";

/// A request to the API server, for error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The verb as RBAC spells it.
    pub verb: &'static str,
    /// The resource as RBAC spells it.
    pub resource: String,
    /// The object's name; empty for none.
    pub name: String,
    /// The namespace; `None` for a cluster-wide kind.
    pub namespace: Option<String>,
    /// The server's address.
    pub server: String,
    /// The service account of the request, if it was not the operator's own.
    pub account: Option<Arc<str>>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.name.is_empty() {
            write!(f, " '{}'", self.name)?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace '{namespace}'")?;
        }
        Ok(())
    }
}

/// Why a request failed.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The server refused the request, or could not be reached.
    #[error("cannot {attempt}")]
    Failed { attempt: Attempt, source: Box<kube::Error> },
    /// The server accepted the connection and did not answer.
    #[error("cannot {attempt}: no answer from {} within {waited:?}", attempt.server)]
    Silent { attempt: Attempt, waited: Duration },
    /// The API server's answer is not valid.
    #[error("cannot use the answer to {attempt}: {problem}")]
    Unusable { attempt: Attempt, problem: String },
    /// A record of helm is damaged.
    #[error("record '{}' of helm is damaged: {problem}", attempt.name)]
    Damaged { attempt: Attempt, problem: String },
}

impl RequestError {
    /// The request that failed.
    pub fn attempt(&self) -> &Attempt {
        match self {
            Self::Failed { attempt, .. }
            | Self::Silent { attempt, .. }
            | Self::Unusable { attempt, .. }
            | Self::Damaged { attempt, .. } => attempt,
        }
    }

    /// The server's answer, if it is an error.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Failed { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::Silent { .. } | Self::Unusable { .. } | Self::Damaged { .. } => None,
        }
    }

    /// The HTTP status, if the server answered with an error.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// Whether the server names a cause of this kind.
    pub fn has_cause(&self, kind: &str) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == kind))
    }

    /// Whether the server answered "not found".
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the account has no right to the request.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Whether a test in a JSON patch failed, or the patched object would be invalid.
    pub fn is_failed_test(&self) -> bool {
        self.code() == Some(422)
    }

    /// Whether another writer was faster.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the server cannot be reached.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Failed { source, .. } => {
                let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
                while let Some(error) = cause {
                    if let Some(client) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
                        return client.is_connect();
                    }
                    cause = error.source();
                }
                false
            }
            Self::Unusable { .. } | Self::Damaged { .. } => false,
        }
    }

    fn class(&self) -> Class {
        match self {
            Self::Silent { .. } => Class::Unavailable,
            Self::Unusable { .. } => Class::Invalid,
            Self::Damaged { .. } => Class::Damaged,
            Self::Failed { .. } => match self.code() {
                Some(429) | None => Class::Unavailable,
                Some(code) if code >= 500 => Class::Unavailable,
                Some(_) => Class::Refused,
            },
        }
    }

    /// The step that a person can take, if there is one. `account` is the owner of the rights of this request, unless a
    /// service account was named for it.
    pub fn hint(&self, account: &str) -> Option<String> {
        let attempt = self.attempt();
        match self.code() {
            // RBAC cannot limit the right to create to one name, so the roles grant it only where necessary.
            Some(403) if attempt.verb == "create" && attempt.resource.ends_with("webhookconfigurations") => {
                Some(format!(
                    "'{}' is made by the chart that installs the operator: upgrade that release once more, or create an empty one",
                    attempt.name
                ))
            }
            Some(403) => self.hint_of_refusal(account),
            Some(404) if attempt.resource != "namespaces" => {
                let details = self.status()?.details.as_ref()?;
                (details.kind == "namespaces").then(|| format!("create the namespace '{}' first", details.name))
            }
            Some(401) => Some(format!(
                "{} does not accept our credentials: did they expire?",
                attempt.server
            )),
            None if self.class() == Class::Unavailable => Some(format!(
                "is the API server at {} up, and is that its address?",
                attempt.server
            )),
            Some(_) | None => None,
        }
    }

    /// The hint for a refusal, which the rights, a quota, the end of a namespace or a policy can cause.
    fn hint_of_refusal(&self, account: &str) -> Option<String> {
        let attempt = self.attempt();
        let message = &self.status()?.message;
        let namespace = attempt.namespace.as_deref().unwrap_or_default();
        if message.contains("exceeded quota") {
            return Some(format!(
                "raise the quota, or delete objects that count: `kubectl describe resourcequotas --namespace {namespace}`"
            ));
        }
        if self.has_cause(NAMESPACE_ENDS) {
            return Some(format!(
                "namespace '{namespace}' is being deleted: wait until it is gone, and create it again"
            ));
        }
        let account = attempt.account.as_ref().map_or_else(
            || account.to_owned(),
            |account| format!("the service account '{account}'"),
        );
        let resource = &attempt.resource;
        if message.contains("attempting to grant RBAC permissions") {
            return Some(format!(
                "give {account} these rights, too: an account can grant only rights that it has"
            ));
        }
        // A webhook, a quota or a policy gives its own reason. A proxy in front of the API server may give none.
        let has_reason = message.contains(" is forbidden: ") && !message.contains(" cannot ");
        let is_of_rights = !has_reason && !message.contains("denied the request");
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!(" in namespace '{namespace}'")
        };
        is_of_rights.then(|| format!("allow the verb '{}' on '{resource}'{place} to {account}", attempt.verb))
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self::from(&error)
    }
}

impl From<&RequestError> for Failure {
    fn from(error: &RequestError) -> Self {
        let failure = Self::new(error.class(), Chain(error).to_string());
        match error.hint(OPERATOR) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn failed(code: u16, message: &str) -> Failure {
        answered(code, message, &json!({}))
    }

    fn answered(code: u16, message: &str, details: &Value) -> Failure {
        let status = Status {
            code,
            message: message.to_owned(),
            details: Some(serde_json::from_value(details.clone()).unwrap()),
            ..Status::default()
        };
        let attempt = Attempt {
            verb: "get",
            resource: "configmaps".to_owned(),
            name: "x".to_owned(),
            namespace: Some("ns".to_owned()),
            server: "https://10.0.0.1".to_owned(),
            account: None,
        };
        Failure::from(RequestError::Failed {
            attempt,
            source: Box::new(kube::Error::Api(Box::new(status))),
        })
    }

    #[test]
    fn the_class_tells_who_has_to_act() {
        for (code, class) in [
            (400, Class::Refused),
            (401, Class::Refused),
            (403, Class::Refused),
            (409, Class::Refused),
            (422, Class::Refused),
            (429, Class::Unavailable),
            (500, Class::Unavailable),
            (503, Class::Unavailable),
        ] {
            assert_eq!(failed(code, "no").class, class, "{code}");
        }
    }

    #[test]
    fn the_report_names_the_attempt_and_the_cause_once() {
        let failure = failed(403, "user cannot get it");
        assert_eq!(
            failure.report,
            "cannot get configmaps 'x' in namespace 'ns': user cannot get it"
        );
        assert_eq!(
            failure.hints,
            ["allow the verb 'get' on 'configmaps' in namespace 'ns' to the operator's service account"]
        );
    }

    #[test]
    fn a_refusal_has_the_hint_for_its_reason() {
        for (message, expected) in [
            (
                "configmaps \"x\" is forbidden: exceeded quota: all, requested: count/configmaps=1",
                Some("raise the quota, or delete objects that count: `kubectl describe resourcequotas --namespace ns`"),
            ),
            (
                "roles \"x\" is forbidden: user \"a\" (groups=[\"b\"]) is attempting to grant RBAC permissions not currently held",
                Some(
                    "give the operator's service account these rights, too: an account can grant only rights that it has",
                ),
            ),
            ("admission webhook \"w\" denied the request: you cannot get it", None),
            (
                "no",
                Some("allow the verb 'get' on 'configmaps' in namespace 'ns' to the operator's service account"),
            ),
            (
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"",
                None,
            ),
        ] {
            assert_eq!(failed(403, message).hints, Vec::from_iter(expected), "{message}");
        }
        let terminating = json!({"causes": [{"reason": NAMESPACE_ENDS}]});
        assert_eq!(
            answered(403, "because it is being terminated", &terminating).hints,
            ["namespace 'ns' is being deleted: wait until it is gone, and create it again"]
        );
        let absent = json!({"kind": "namespaces", "name": "ns"});
        assert_eq!(answered(404, "no", &absent).hints, ["create the namespace 'ns' first"]);
        assert_eq!(failed(404, "no").hints, [""; 0]);
    }
}
