//! The damages: records of helm, objects, the definition of the custom resource, and a webhook without a server.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::{Before, NAME, World, group};
use crate::plan::{Flaw, Plan, State};

/// The versions of the custom resource.
const VERSIONS: [&str; 2] = ["v1beta1", "v1"];

fn secret_of(revision: u32) -> String {
    format!("sh.helm.release.v1.{NAME}.v{revision}")
}

fn unpack(stored: &Value) -> anyhow::Result<Value> {
    let packed = STANDARD.decode(STANDARD.decode(stored.as_str().context("a record has contents")?)?)?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn pack(record: &Value) -> anyhow::Result<Value> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(record.to_string().as_bytes())?;
    Ok(json!(STANDARD.encode(STANDARD.encode(gzip.finish()?))))
}

/// Changes the status in the contents.
fn restate(secret: &mut Value, status: &str) -> anyhow::Result<()> {
    let mut record = unpack(&secret["data"]["release"])?;
    record["info"]["status"] = json!(status);
    secret["data"]["release"] = pack(&record)?;
    Ok(())
}

/// Changes the status in the contents and in the label.
fn mark_as(secret: &mut Value, status: &str) -> anyhow::Result<()> {
    restate(secret, status)?;
    set_label(secret, "status", status);
    Ok(())
}

fn set_label(secret: &mut Value, label: &str, value: &str) {
    secret["metadata"]["labels"][label] = json!(value);
}

fn take_label(secret: &mut Value, label: &str) {
    if let Some(labels) = secret["metadata"]["labels"].as_object_mut() {
        labels.remove(label);
    }
}

fn cut(secret: &mut Value) -> anyhow::Result<()> {
    let stored = STANDARD.decode(secret["data"]["release"].as_str().context("a record has contents")?)?;
    secret["data"]["release"] = json!(STANDARD.encode(&stored[..stored.len() / 2]));
    Ok(())
}

fn take_all(secret: &mut Value) {
    secret["data"] = json!({});
    secret["metadata"]["annotations"] = json!({});
}

impl World {
    pub(super) fn group(&self) -> String {
        group(self.stage.namespace().name())
    }

    pub(super) fn crd(&self) -> String {
        format!("widgets.{}", self.group())
    }

    /// The name of the webhook without a server.
    pub(super) fn webhook(&self) -> String {
        format!("refuses.{}", self.group())
    }

    /// Brings the release into the state.
    pub(super) fn damage(&self, state: State, newest: u32, before: &Before) -> anyhow::Result<()> {
        match state {
            State::Record(flaw) => self.damage_records(flaw, newest)?,
            State::Deleted(kind) => {
                anyhow::ensure!(before.ids.contains_key(&kind), "{kind:?} is there before it is deleted");
                self.kubectl().run(["delete", &kind.resource(), NAME])?;
            }
            State::Fixed(_) => {}
            State::KindGone => {
                self.kubectl().run(["delete", "crd", &self.crd()])?;
                self.wait_for_version("v1", false)?;
            }
            State::VersionGone => self.serve(&["v1"])?,
            State::Refused => self.refuse()?,
        }
        Ok(())
    }

    fn damage_records(&self, flaw: Flaw, newest: u32) -> anyhow::Result<()> {
        match flaw {
            Flaw::OlderCut => self.alter(newest - 1, cut),
            Flaw::AllUnnoted => (1..=newest).try_for_each(|revision| {
                self.alter(revision, |secret| {
                    take_all(secret);
                    Ok(())
                })
            }),
            Flaw::Missing => {
                self.kubectl().run(["delete", "secret", &secret_of(newest)])?;
                Ok(())
            }
            Flaw::Exchanged => {
                let older = self.secret(newest - 1)?["data"]["release"].clone();
                self.alter(newest, |secret| {
                    secret["data"]["release"] = older;
                    Ok(())
                })
            }
            Flaw::Copied => {
                let mut copy = self.secret(newest)?;
                copy["metadata"] = json!({
                    "name": format!("{}-backup", secret_of(newest)),
                    "labels": copy["metadata"]["labels"],
                    "annotations": copy["metadata"]["annotations"],
                });
                self.kubectl().feed(["create", "--filename=-"], &copy.to_string())?;
                Ok(())
            }
            Flaw::TwoDeployed => self.alter(newest - 1, |secret| mark_as(secret, "deployed")),
            flaw => self.alter(newest, |secret| damage_newest(flaw, secret)),
        }
    }

    fn secret(&self, revision: u32) -> anyhow::Result<Value> {
        let text = self.kubectl().run(["get", "secret", &secret_of(revision), "-o=json"])?;
        Ok(serde_json::from_str(&text)?)
    }

    fn alter(&self, revision: u32, change: impl FnOnce(&mut Value) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut secret = self.secret(revision)?;
        change(&mut secret)?;
        if let Some(metadata) = secret["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        self.kubectl().feed(["replace", "--filename=-"], &secret.to_string())?;
        Ok(())
    }

    /// Serves the custom resource in these versions, and waits until the API server does.
    pub(super) fn serve(&self, served: &[&str]) -> anyhow::Result<()> {
        let version = |name: &str| {
            json!({
                "name": name,
                "served": served.contains(&name),
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })
        };
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd()},
            "spec": {
                "group": self.group(),
                "names": {"kind": "Widget", "plural": "widgets"},
                "scope": "Namespaced",
                "versions": VERSIONS.map(version),
            },
        });
        self.kubectl().feed(["apply", "--filename=-"], &crd.to_string())?;
        VERSIONS
            .into_iter()
            .try_for_each(|name| self.wait_for_version(name, served.contains(&name)))
    }

    fn wait_for_version(&self, version: &str, is_served: bool) -> anyhow::Result<()> {
        let path = format!("/apis/{}/{version}", self.group());
        let claim = format!("that {path} is served is {is_served}");
        wait_until(Duration::from_mins(1), &claim, || {
            let listed = self.kubectl().run(["get", "--raw", &path]);
            let listed = listed.unwrap_or_else(|error| error.to_string());
            (listed.contains("\"Widget\"") == is_served)
                .then_some(Some(()))
                .ok_or(listed)
        })?;
        Ok(())
    }

    fn refuse(&self) -> anyhow::Result<()> {
        let namespace = self.stage.namespace().name();
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.webhook()},
            "webhooks": [{
                "name": self.webhook(),
                "clientConfig": {"service": {"namespace": namespace, "name": "nobody"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        self.kubectl().feed(["create", "--filename=-"], &webhook.to_string())?;
        let secret = secret_of(1);
        wait_until(Duration::from_mins(1), "a webhook that refuses", || {
            let change = [
                "label",
                "--overwrite",
                "--dry-run=server",
                "secret",
                &secret,
                "tried=yes",
            ];
            match self.kubectl().run(change) {
                Ok(text) => Err(text),
                Err(_) => Ok(Some(())),
            }
        })?;
        Ok(())
    }

    /// Undoes a damage that is none of the release's own.
    pub(super) fn restore(&self, plan: &Plan) -> anyhow::Result<()> {
        match plan.state {
            State::KindGone | State::VersionGone => self.serve(&VERSIONS),
            State::Refused => {
                let webhook = self.webhook();
                self.kubectl().run([
                    "delete",
                    "--ignore-not-found",
                    "validatingwebhookconfiguration",
                    &webhook,
                ])?;
                Ok(())
            }
            State::Record(_) | State::Deleted(_) | State::Fixed(_) => Ok(()),
        }
    }
}

/// Damages the newest record alone.
fn damage_newest(flaw: Flaw, secret: &mut Value) -> anyhow::Result<()> {
    match flaw {
        Flaw::Cut => cut(secret)?,
        Flaw::Garbage => secret["data"]["release"] = json!("AAAA"),
        Flaw::NoContents => secret["data"] = json!({}),
        Flaw::Emptied => secret["data"]["release"] = pack(&json!({}))?,
        Flaw::Unnoted => take_all(secret),
        Flaw::NoVersion => take_label(secret, "version"),
        Flaw::OtherVersion => set_label(secret, "version", "99"),
        Flaw::OtherName => set_label(secret, "name", "two"),
        Flaw::NoOwner => take_label(secret, "owner"),
        Flaw::NoLabels => secret["metadata"]["labels"] = json!({}),
        Flaw::NoneDeployed => mark_as(secret, "superseded")?,
        Flaw::LabelledPending => set_label(secret, "status", "pending-upgrade"),
        Flaw::ContentsPending => restate(secret, "pending-upgrade")?,
        Flaw::PendingInstall => mark_as(secret, "pending-install")?,
        Flaw::PendingUpgrade => mark_as(secret, "pending-upgrade")?,
        Flaw::Uninstalling => mark_as(secret, "uninstalling")?,
        Flaw::OthersPending => {
            mark_as(secret, "pending-upgrade")?;
            // The operator began its own work at another time.
            set_label(secret, "addon-operator/begun", "1");
        }
        Flaw::Exchanged | Flaw::OlderCut | Flaw::AllUnnoted | Flaw::Missing | Flaw::Copied | Flaw::TwoDeployed => {
            anyhow::bail!("{flaw:?} is no damage of one record");
        }
    }
    Ok(())
}
