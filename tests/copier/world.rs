//! An operator with the module copyrator, and the namespaces between which it copies.

use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::audit::Mark;
use testbed::kubectl::KubectlError;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::wait::wait_until;
use testbed::{reader::Only, shared};

use super::life::{Operator, apply};

/// Far longer than any step takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);
pub(super) const RULE: &str = "copyrator.flant.com/rule";

pub(super) fn operator() -> &'static Operator {
    static OPERATOR: OnceLock<Operator> = OnceLock::new();
    OPERATOR.get_or_init(|| {
        let operator = Operator::new("copyrator");
        operator.start();
        operator.switch("true");
        operator
    })
}

impl Operator {
    pub(super) fn switch(&self, flag: &str) {
        self.set(&json!({"copyratorEnabled": flag}));
    }
}

/// The namespaces of one test: one with rules and sources, and others with a label that its rules select.
pub(super) struct Places {
    pub(super) home: Namespace<'static>,
    mark: Mark,
}

impl Places {
    pub(super) fn new() -> Self {
        let plane = shared::plane();
        let mark = plane.audit().mark().unwrap();
        let home = plane.namespace("copies").unwrap();
        home.show_on_panic("operator", &operator().log());
        let served = || home.kubectl(["get", "copyrator"]).map(Some);
        wait_until(PATIENCE, "the CRD of rules", served).unwrap();
        Self { home, mark }
    }

    /// A namespace that the rules of this test select.
    pub(super) fn target(&self) -> Namespace<'static> {
        let target = shared::plane().namespace("target").unwrap();
        let label = format!("copies={}", self.home.name());
        target.kubectl(["label", "namespace", target.name(), &label]).unwrap();
        target
    }

    /// Creates or changes an object of the home.
    pub(super) fn apply(&self, object: &Value) {
        self.try_apply(object).unwrap();
    }

    pub(super) fn try_apply(&self, object: &Value) -> Result<String, KubectlError> {
        apply(&self.home, object)
    }

    /// A rule for the namespaces of this test, with these fields besides.
    pub(super) fn rule(&self, name: &str, fields: &Value) -> Value {
        let mut rule = json!({"apiVersion": "flant.com/v1", "kind": "CopyratorRule", "metadata": {"name": name},
            "ruleType": "configmap", "selector": {"copy": "yes"},
            "namespaceSelector": {"matchLabels": {"copies": self.home.name()}}});
        let added = fields.as_object().expect("the fields are a map").clone();
        rule.as_object_mut().expect("a rule is a map").extend(added);
        rule
    }

    /// Waits until the status of a rule has these fields, and returns it.
    pub(super) fn wait_for_status(&self, rule: &str, expected: &Value) -> Value {
        let look = || {
            let rule = self.home.object("copyrator", rule).map_err(|error| error.to_string())?;
            let status = rule.unwrap_or_default()["status"].take();
            let fields = expected.as_object().expect("the fields are a map");
            if fields.iter().all(|(key, value)| status[key] == *value) {
                Ok(Some(status))
            } else {
                Err(status.to_string())
            }
        };
        wait_until(PATIENCE, &format!("the status {expected} of rule {rule}"), look).unwrap()
    }

    /// Requests of the operator since the test began that changed, or tried to change, objects of a namespace.
    pub(super) fn writes_in(&self, namespace: &Namespace<'_>) -> testbed::audit::Records {
        let records = shared::plane().audit().since(self.mark).unwrap();
        records.of(User::Operator).within(namespace.name()).mutating()
    }
}

pub(super) fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"copy": "yes"}}, "data": data})
}

/// Waits until an object fits, and returns it.
pub(super) fn wait_for(namespace: &Namespace<'_>, kind: &str, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let look = || match namespace.object(kind, name) {
        Ok(Some(object)) if fits(&object) => Ok(Some(object)),
        Ok(found) => Err(format!("{found:?}")),
        Err(error) => Err(error.to_string()),
    };
    wait_until(PATIENCE, &format!("{kind} {name} in {}", namespace.name()), look).unwrap()
}

/// Waits until there is no object of this name.
pub(super) fn wait_until_gone(namespace: &Namespace<'_>, kind: &str, name: &str) {
    let look = || match namespace.object(kind, name) {
        Ok(None) => Ok(Some(())),
        Ok(found) => Err(format!("{found:?}")),
        Err(error) => Err(error.to_string()),
    };
    wait_until(
        PATIENCE,
        &format!("the end of {kind} {name} in {}", namespace.name()),
        look,
    )
    .unwrap();
}

/// The names of the copies in a namespace.
pub(super) fn copies(namespace: &Namespace<'_>) -> Vec<String> {
    let found = namespace.objects("configmap", Only::Labels("copyrator.flant.com/copy"));
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    found.unwrap().iter().map(name).collect()
}
