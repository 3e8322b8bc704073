//! The chapter about a release of helm that the operator takes over: its objects stay the same.

use anyhow::bail;

use super::Tour;
use crate::cluster;
use crate::narrator::check;
use crate::stage::File;

const NAME: &str = "visitor";

const CHART: [File; 2] = [
    File {
        path: "visitor/Chart.yaml",
        text: "apiVersion: v2\nname: visitor\ndescription: Came with helm\nversion: 0.1.0\n",
    },
    File {
        path: "visitor/templates/deployment.yaml",
        text: "apiVersion: apps/v1\n\
               kind: Deployment\n\
               metadata: {name: visitor}\n\
               spec:\n\
               \x20 replicas: {{ .Values.replicas | default 1 }}\n\
               \x20 selector: {matchLabels: {app: visitor}}\n\
               \x20 template:\n\
               \x20   metadata: {labels: {app: visitor}}\n\
               \x20   spec: {containers: [{name: main, image: \"registry.k8s.io/pause:3.10.1\"}]}\n",
    },
];

impl Tour<'_> {
    /// Installs a release with helm, has its way to the operator planned, and goes it.
    pub(super) fn move_in(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("15  A release of helm moves in");
        narrator
            .say("Somebody has installed an add-on with helm. A command plans how the operator takes it over: it only");
        narrator.say("reads, and writes a module, a ConfigMap and the steps, which a person runs.");
        self.put(&CHART)?;
        self.type_in(&format!("helm install {NAME} ./{NAME} --set replicas=2"))?;
        let before = self.stage.namespace().object("deployment", NAME)?.unwrap_or_default();
        let within = self.stage.namespace().name();
        self.show(&format!(
            "addon-operator migrate from helm {NAME} --namespace {within} --operator-namespace {within} --output-dir plan"
        ))?;
        self.show("head --lines=3 plan/STEPS.md && grep '^    ' plan/STEPS.md | head --lines=3")?;
        self.type_in(&format!("mv plan/modules/100-{NAME} ../modules/"))?;
        self.type_in(&format!("addon-operator module reload {NAME}"))?;
        self.type_in("grep '^    kubectl apply' plan/STEPS.md | (cd plan; bash -eu)")?;
        self.type_in("grep 'handed-over=true' plan/STEPS.md | bash -eu")?;
        let revision = self.wait("the release is the operator's own", || {
            match cluster::releases(self.stage.namespace())?.get(NAME) {
                Some(release) if release.is_deployed() && release.ours && release.revision > 1 => Ok(release.revision),
                Some(release) => bail!("{release}"),
                None => bail!("there is none"),
            }
        })?;
        self.type_in(&format!("addon-operator module wait {NAME} --timeout 1m"))?;
        let after = self.stage.namespace().object("deployment", NAME)?.unwrap_or_default();
        let is_same = before["metadata"]["uid"] == after["metadata"]["uid"] && before["spec"] == after["spec"];
        check("the Deployment is the same object", is_same, || {
            format!("before: {before}\nafter: {after}")
        })?;
        narrator.ok(format_args!(
            "the operator has taken {NAME} over, at revision {revision}: the Deployment is the same object with the same spec"
        ));
        Ok(())
    }
}
