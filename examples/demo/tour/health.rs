//! The chapters about a module whose pods find no node: another module waits for it, and an upgrade of it is taken back.
//!
//! The operator's sentence is compared with the scheduler's own text, and all pods are read from the API server.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use testbed::plane::User;
use testbed::reader::Only;

use super::Tour;
use crate::cluster::Releases;
use crate::narrator::{Stop, check, seconds};

/// The node of an earlier chapter that web runs on.
const NODE: &str = "node-2";

/// The node that joins the cluster in the second chapter.
const MISSING: &str = "node-6";

/// The number of pods of web.
const PODS: usize = 2;

const WHY: &str = "addon-operator why web";

const LIST: &str = "addon-operator module list --output wide | grep --extended-regexp '^(NAME|web|page) '";

/// The time since which each pod is ready, by the id of the pod.
type Ready = BTreeMap<String, String>;

impl Tour<'_> {
    /// Installs a module on a node that does not exist, and a module that needs it.
    pub(super) fn start_no_pod(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("10  A module that cannot start");
        narrator.say(format_args!(
            "web is a Deployment of {PODS} pods on one node, page is a module that needs web (dependsOn). The ConfigMap"
        ));
        narrator.say(format_args!(
            "switches both on, and names {MISSING}, which does not exist. helm succeeds, and no pod starts."
        ));
        let (mark, before) = (self.mark()?, self.releases()?);
        self.patch(&format!(
            r#"{{"webEnabled": "true", "pageEnabled": "true", "web": "node: {MISSING}"}}"#
        ))?;
        let revision = self.wait_for_revision("web", &before)?;
        let reason = self.wait_for_refusal()?;
        self.hear_and_show(WHY, &[&reason])?;
        narrator.ok(format_args!(
            "web is at revision {revision}; its sentence has the scheduler's text: {reason}"
        ));
        self.hear_and_show("addon-operator why page", &["module 'web', which it needs"])?;
        // No other release is there, so none of page, either.
        self.check_others(&before, "web")?;
        let asked = self.stage.plane().audit().since(mark)?.of(User::Operator).mutating();
        let early = asked.that(|record| record.name.starts_with("sh.helm.release.v1.page"));
        let seen = || format!("the audit log says:\n{early}");
        check("page is not begun", early.is_empty(), seen)?;
        narrator.ok("page waits, and names web: it has no release, and the audit log has no try of one");
        self.mend()
    }

    /// Gives web a node that exists, after which page is installed.
    fn mend(&self) -> anyhow::Result<()> {
        let before = self.releases()?;
        let edited = self.patch(&format!(r#"{{"web": "node: {NODE}"}}"#))?;
        self.wait_for_web(NODE)?;
        self.wait_for_revision("page", &before)?;
        let after = seconds(edited.elapsed());
        let (healthy, begun) = (self.available_since()?, self.release_of_page()?);
        let seen = || format!("web is available since {healthy}, page was begun at {begun}");
        check("page is begun after the pods of web are ready", begun >= healthy, seen)?;
        self.narrator.ok(format_args!(
            "mended: web has {PODS} ready pods on {NODE}, and only then page came, {after} after the edit"
        ));
        Ok(())
    }

    /// Moves web to a node that does not exist, which is taken back, and tries it again when the node is there.
    pub(super) fn take_an_upgrade_back(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("11  An upgrade whose pods never get ready is taken back");
        narrator.say(format_args!(
            "The same mistake, but web works now, and its module.yaml has `health: {{timeout: 10s, onFailure: return}}`."
        ));
        self.type_in("addon-operator module wait web page")?;
        self.show(LIST)?;
        let (mark, before, pods) = (self.mark()?, self.releases()?, self.wait_for_web(NODE)?);
        let edited = self.patch(&format!(r#"{{"web": "node: {MISSING}"}}"#))?;
        let bad = self.wait_for_revision("web", &before)?;
        let reason = self.wait_for_refusal()?;
        self.hear_and_show(WHY, &[&reason])?;
        let mut moved = before.clone();
        if let Some(web) = moved.get_mut("web") {
            web.revision = bad;
        }
        let back = self.wait_for_revision("web", &moved)?;
        let after = seconds(edited.elapsed());
        let now = self.wait_for_web(NODE)?;
        let seen = || format!("{pods:?} before, {now:?} now");
        check("the pods of web go on, and are ready all the while", pods == now, seen)?;
        narrator.ok(format_args!(
            "{after} after the edit web is back on {NODE}, at revision {back}; its {PODS} pods were ready all the while"
        ));
        self.hear_and_show(
            "kubectl get events --field-selector reason=UpgradeHeld --output custom-columns=NOTE:.message --no-headers",
            &["web", &reason],
        )?;
        narrator.ok("an Event of the module tells the reason");
        let writes = self.wait_for_quiet(mark)?;
        self.check_untouched(&before, &["web"], &writes)?;
        let releases = self.releases()?;
        let seen = || releases["web"].to_string();
        check("web stays as it was before", releases["web"].revision == back, seen)?;
        self.hear_and_show(WHY, &["UpgradeHeld", "--again"])?;
        narrator.ok(format_args!(
            "the ConfigMap still names {MISSING}, and web stays at revision {back}; no other release is touched"
        ));
        self.try_again(&releases)
    }

    /// Adds the node that was missing, and has the operator try the values of the ConfigMap again.
    fn try_again(&self, before: &Releases) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.say(format_args!(
            "{MISSING} joins the cluster, and the upgrade may be tried again."
        ));
        self.stage.plane().add_node(MISSING)?;
        self.type_in("addon-operator module upgrade web --again")?;
        let asked = Instant::now();
        let revision = self.wait_for_revision("web", before)?;
        self.wait_for_web(MISSING)?;
        let after = seconds(asked.elapsed());
        narrator.ok(format_args!(
            "{after} after the command web is at revision {revision} with {PODS} ready pods on {MISSING}"
        ));
        Ok(())
    }

    /// Shows the output of a command as soon as it has these words.
    fn hear_and_show(&self, line: &str, words: &[&str]) -> anyhow::Result<()> {
        self.narrator.typed(line);
        let text = self.wait(&format!("`{line}` says {words:?}"), || self.shell.hear(line, words))?;
        self.narrator.say(text);
        Ok(())
    }

    /// Waits until the scheduler has refused a pod of web, and returns its reason.
    fn wait_for_refusal(&self) -> Result<String, Stop> {
        self.wait("the scheduler finds no node for a pod of web", || {
            let pods = self.pods_of_web()?;
            let refused = pods.iter().find_map(|pod| condition(pod, "PodScheduled", "False"));
            let message = refused.context("no pod is refused")?["message"].as_str();
            let (reason, _) = message.and_then(|text| text.split_once(". ")).context("no reason")?;
            Ok(reason.to_owned())
        })
    }

    /// Waits until all pods of web are ready on this node, with no others left.
    fn wait_for_web(&self, node: &str) -> Result<Ready, Stop> {
        self.wait(&format!("web has {PODS} ready pods on {node}, and no others"), || {
            let pods = self.pods_of_web()?;
            let mut ready = Ready::new();
            for pod in &pods {
                let (name, place) = (&pod["metadata"]["name"], &pod["spec"]["nodeName"]);
                ensure!(*place == node, "{name} is on {place}");
                let since = condition(pod, "Ready", "True").with_context(|| format!("{name} is not ready"))?;
                ready.insert(text(&pod["metadata"]["uid"]), text(&since["lastTransitionTime"]));
            }
            ensure!(ready.len() == PODS, "it has {} pods", pods.len());
            Ok(ready)
        })
    }

    fn pods_of_web(&self) -> anyhow::Result<Vec<Value>> {
        Ok(self.stage.namespace().objects("pods", Only::Labels("app=web"))?)
    }

    /// The time since which the Deployment is available, as the API server writes it.
    fn available_since(&self) -> anyhow::Result<String> {
        let web = self.stage.namespace().object("deployment", "web")?;
        let web = web.context("there is no Deployment web")?;
        match condition(&web, "Available", "True") {
            Some(since) => Ok(text(&since["lastTransitionTime"])),
            None => bail!("the Deployment is not available: {}", web["status"]),
        }
    }

    /// The time at which the first revision of page was begun, as the API server writes it.
    fn release_of_page(&self) -> anyhow::Result<String> {
        let first = self.stage.namespace().object("secret", "sh.helm.release.v1.page.v1")?;
        let first = first.context("page has no first revision")?;
        Ok(text(&first["metadata"]["creationTimestamp"]))
    }
}

/// The condition of an object that has this status.
fn condition<'a>(object: &'a Value, kind: &str, status: &str) -> Option<&'a Value> {
    let all = object["status"]["conditions"].as_array()?;
    all.iter().find(|one| one["type"] == kind && one["status"] == status)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
