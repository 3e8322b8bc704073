//! The objects with pods that the cases have.

use serde_json::{Value, json};

use super::look::LABEL;

/// The pods of a module: one container named `main`, with these fields beside its name and its image.
pub(super) struct Pods<'a> {
    pub(super) name: &'a str,
    pub(super) image: &'a str,
    /// The command of the shell; the image's own if it is empty.
    pub(super) script: &'a str,
    pub(super) container: Value,
    pub(super) spec: Value,
}

impl<'a> Pods<'a> {
    pub(super) fn of(name: &'a str, image: &'a str, script: &'a str) -> Self {
        Self {
            name,
            image,
            script,
            container: json!({}),
            spec: json!({}),
        }
    }

    pub(super) fn with(self, container: Value) -> Self {
        Self { container, ..self }
    }

    pub(super) fn within(self, spec: Value) -> Self {
        Self { spec, ..self }
    }

    fn template(&self) -> Value {
        let mut container = json!({ "name": "main", "image": self.image });
        if !self.script.is_empty() {
            container["args"] = json!([self.script]);
        }
        merge(&mut container, &self.container);
        let mut spec = json!({ "containers": [container], "terminationGracePeriodSeconds": 1 });
        merge(&mut spec, &self.spec);
        json!({ "metadata": { "labels": { LABEL: self.name } }, "spec": spec })
    }

    fn workload(&self, kind: &str, spec: &Value) -> Value {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": self.name },
            "spec": { "selector": { "matchLabels": { LABEL: self.name } }, "template": self.template() },
        });
        merge(&mut object["spec"], spec);
        object
    }

    pub(super) fn deployment(&self) -> Value {
        self.workload("Deployment", &json!({ "replicas": 1 }))
    }

    /// A Deployment with a rollout that fails soon.
    pub(super) fn hasty(&self) -> Value {
        self.workload("Deployment", &json!({ "replicas": 1, "progressDeadlineSeconds": 5 }))
    }

    pub(super) fn stateful_set(&self, replicas: u32) -> Value {
        self.workload(
            "StatefulSet",
            &json!({ "replicas": replicas, "serviceName": self.name }),
        )
    }

    pub(super) fn daemon_set(&self) -> Value {
        self.workload("DaemonSet", &json!({}))
    }

    /// A Job of another name after its cure, because nobody can change the pods of one.
    pub(super) fn job(&self, name: &str, tries: u32) -> Value {
        let mut template = self.template();
        template["spec"]["restartPolicy"] = json!("Never");
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
            "spec": { "backoffLimit": tries, "template": template },
        })
    }
}

/// The same object in a namespace.
pub(super) fn inside(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

fn merge(object: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
}
