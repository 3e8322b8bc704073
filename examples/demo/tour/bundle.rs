//! The chapter about an application in a registry that is kept at the highest version of a mask, with the rights of its
//! own namespace.

use std::time::Instant;

use anyhow::{bail, ensure};
use serde_json::Value;
use testbed::audit::Mark;
use testbed::files;

use super::Tour;
use crate::narrator::{Stop, check, seconds};
use crate::stage::File;

/// The namespace of the application.
pub(super) const TEAM: &str = "team";

/// The account that deploys, as the audit log names it.
const ACCOUNT: &str = "system:serviceaccount:team:werf";

const CHART: [File; 2] = [
    File {
        path: "fortune/Chart.yaml",
        text: "apiVersion: v2\nname: fortune\nversion: 0.0.0\n",
    },
    File {
        path: "fortune/templates/fortune.yaml",
        text: r"apiVersion: v1
kind: ConfigMap
metadata:
  name: fortune
data:
  text: Fortune {{ .Chart.Version }}
",
    },
];

impl Tour<'_> {
    /// Deploys an application from a registry, and pushes newer versions of it.
    pub(super) fn follow_a_mask(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("12  An application follows its registry");
        narrator.say("The module bundles deploys applications that are no modules: charts and bundles in registries,");
        narrator.say("each named by an object of kind Bundle. A team deploys with an account and rights of its own.");
        self.put(&CHART)?;
        let mark = self.mark()?;
        self.patch(r#"{"bundlesEnabled": "true", "bundles": "{interval: 5, nearRegistries: [127.0.0.1]}"}"#)?;
        self.type_in(&format!("kubectl create namespace {TEAM}"))?;
        self.type_in(&format!("kubectl --namespace {TEAM} create serviceaccount werf"))?;
        self.type_in(&format!(
            "kubectl --namespace {TEAM} create rolebinding werf --clusterrole=admin --serviceaccount={TEAM}:werf"
        ))?;
        self.push_fortune("1.4.0")?;
        self.create_bundle()?;
        self.check_account(mark)?;
        narrator.say("Versions 2.0.0 and 1.4.1 are pushed, and only the second one is in the mask. No command has to");
        narrator.say("follow: with this interval the operator asks the registry about every 10 s.");
        self.push_fortune("2.0.0")?;
        let pushed = self.push_fortune("1.4.1")?;
        self.wait_for_fortune("1.4.1")?;
        let after = seconds(pushed.elapsed());
        narrator.ok(format_args!("version 1.4.1 is deployed {after} after it was pushed"));
        self.wait("the Bundle names the deployed version", || {
            let bundle = self.bundle()?;
            ensure!(
                bundle["status"]["deploy"]["version"] == "1.4.1",
                bundle["status"].to_string()
            );
            Ok(())
        })?;
        self.show(&format!("kubectl --namespace {TEAM} get bundles"))?;
        Ok(())
    }

    fn create_bundle(&self) -> anyhow::Result<()> {
        let bundle = format!(
            "apiVersion: operator.werf.dev/v1\nkind: Bundle\nmetadata: {{name: fortune, namespace: {TEAM}}}\n\
             spec:\n  registry: {}\n  repo: charts/fortune\n  version: 1.4.*\n",
            self.registry()?
        );
        files::put(self.shell.folder(), "bundle.yaml", &bundle)?;
        self.show("cat bundle.yaml")?;
        let trial = "kubectl create --filename bundle.yaml --dry-run=server";
        self.wait("Bundles can be created", || self.shell.hear(trial, &[]))?;
        self.type_in("kubectl create --filename bundle.yaml")?;
        let created = Instant::now();
        self.wait_for_fortune("1.4.0")?;
        let after = seconds(created.elapsed());
        self.narrator.ok(format_args!(
            "version 1.4.0 is deployed {after} after the Bundle was created"
        ));
        self.show(&format!(
            "kubectl --namespace {TEAM} wait --for=condition=Ready --timeout=30s bundle/fortune"
        ))?;
        Ok(())
    }

    /// Checks that only the team's account wrote the objects of the application and helm's records.
    fn check_account(&self, mark: Mark) -> anyhow::Result<()> {
        let writes = self.stage.plane().audit().since(mark)?.within(TEAM).mutating();
        let ours = writes.that(|record| {
            let is_of_release = record.name == "fortune" && record.resource == "configmaps";
            record.succeeded() && (is_of_release || record.name.starts_with("sh.helm.release."))
        });
        let by_others = ours.clone().that(|record| record.acting_as != ACCOUNT);
        let seen = || format!("the audit log says:\n{by_others}");
        check("only the team's account deploys", by_others.is_empty(), seen)?;
        check("the team's account deploys", !ours.is_empty(), String::new)?;
        self.narrator.ok(format_args!(
            "the release was made as {ACCOUNT}, which has rights in its namespace alone"
        ));
        Ok(())
    }

    /// Packs the chart as this version, and pushes it.
    fn push_fortune(&self, version: &str) -> anyhow::Result<Instant> {
        let registry = self.registry()?;
        self.type_in(&format!(
            "helm package fortune --version {version} && helm push fortune-{version}.tgz oci://{registry}/charts --plain-http"
        ))?;
        Ok(Instant::now())
    }

    fn bundle(&self) -> anyhow::Result<Value> {
        self.look_up(TEAM, "bundles.operator.werf.dev", "fortune")
    }

    fn wait_for_fortune(&self, version: &str) -> Result<(), Stop> {
        let text = format!("Fortune {version}");
        self.wait(&format!("version {version} is deployed"), || {
            let found = self.look_up(TEAM, "configmap", "fortune")?;
            if found["data"]["text"] == text.as_str() {
                return Ok(());
            }
            let status = &self.bundle()?["status"];
            bail!("the ConfigMap says {}, the Bundle {status}", found["data"]["text"])
        })
    }
}
