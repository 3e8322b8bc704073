//! The part of the tour about hooks that react to changes in the cluster: one writes objects, one changes a release.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::bail;
use serde_json::{Value, json};

use super::Tour;
use crate::cluster;
use crate::narrator::{check, seconds};

/// The name of the Secret that is copied, and of all its copies.
const SECRET: &str = "team-registry";

/// The label of the copies; its value is the source's namespace.
const COPIED_FROM: &str = "registry-secret-copier/copied-from";

/// A namespace that is created later.
const NEWCOMER: &str = "newcomer";

/// With at most this many nodes sysctl-tuner leaves the neighbour tables alone, as its README says.
const NO_NEED: usize = 4;

impl Tour<'_> {
    /// Creates a source Secret, then another namespace, and then deletes the source.
    pub(super) fn copy_secrets(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("3  A Secret for every namespace");
        narrator.say("registry-secret-copier is a module without a chart: its hook watches Secrets and namespaces.");
        narrator.say(format_args!(
            "Secret {SECRET} is created with the label registry-secret-copier/source: \"true\"."
        ));
        let (mark, before) = (self.mark()?, self.releases()?);
        let targets = self.targets()?;
        self.offer_secret()?;
        let after = self.wait_for_copies(Instant::now(), &targets)?;
        narrator.ok(format_args!(
            "{after} later all {} other namespaces have it: {}",
            targets.len(),
            targets.join(", ")
        ));

        self.stage.plane().kubectl(["create", "namespace", NEWCOMER])?;
        let created = Instant::now();
        let targets = self.targets()?;
        let seen = || targets.join(", ");
        check(
            "the new namespace is active",
            targets.contains(&NEWCOMER.to_owned()),
            seen,
        )?;
        let after = self.wait_for_copies(created, &targets)?;
        narrator.ok(format_args!(
            "{NEWCOMER}, a new namespace, has its copy {after} after it was created"
        ));

        self.stage.namespace().kubectl(["delete", "secret", SECRET])?;
        let after = self.wait_for_copies(Instant::now(), &[])?;
        narrator.ok(format_args!("the source is deleted: its copies are gone {after} later"));

        let writes = self.wait_for_quiet(mark)?;
        let strange = writes
            .clone()
            .that(|record| record.resource != "secrets" || record.name != SECRET);
        let seen = || format!("the audit log says:\n{strange}");
        check("nothing but the copies is written", strange.is_empty(), seen)?;
        let done = |verb: &str| {
            let done = writes.clone().that(|record| record.verb == verb && record.succeeded());
            done.len()
        };
        let counts = (done("create"), done("delete"));
        let seen = || format!("{counts:?}; the audit log says:\n{writes}");
        let wanted = (targets.len(), targets.len());
        check("each copy is made once and deleted once", counts == wanted, seen)?;
        let now = self.releases()?;
        check("no release is touched", now == before, || cluster::shown(&now))?;
        narrator.ok(format_args!(
            "the audit log has {} creates and as many deletes of copies, and nothing else",
            counts.0
        ));
        Ok(())
    }

    fn offer_secret(&self) -> anyhow::Result<()> {
        let login = json!({ "auths": { "registry.example.com": { "username": "team", "password": "secret" } } });
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": SECRET, "labels": { "registry-secret-copier/source": "true" } },
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": { ".dockerconfigjson": login.to_string() },
        });
        let admin = self.stage.namespace().kubectl_as(testbed::plane::User::Admin);
        admin.feed(["create", "--filename=-"], &secret.to_string())?;
        Ok(())
    }

    /// All active namespaces except the source's.
    fn targets(&self) -> anyhow::Result<Vec<String>> {
        let active = "--field-selector=status.phase=Active";
        let list = self
            .stage
            .plane()
            .kubectl(["get", "namespaces", active, "--output=name"])?;
        let names = list.lines().filter_map(|line| line.strip_prefix("namespace/"));
        let own = self.stage.namespace().name();
        Ok(names.filter(|name| *name != own).map(ToOwned::to_owned).collect())
    }

    /// Waits until exactly these namespaces have a copy that equals the source. Returns the time since `since`.
    fn wait_for_copies(&self, since: Instant, targets: &[String]) -> anyhow::Result<String> {
        let source = self.stage.namespace().object("secret", SECRET)?.unwrap_or_default();
        let claim = match targets.len() {
            0 => "no namespace has a copy any more".to_owned(),
            all => format!("all {all} other namespaces have a copy"),
        };
        self.wait(&claim, || {
            let copies = self.copies()?;
            let holders: Vec<&str> = copies.keys().map(String::as_str).collect();
            if holders != targets {
                bail!("copies in {}", nothing_or(&holders.join(", ")));
            }
            let differs = |copy: &Value| copy["data"] != source["data"] || copy["type"] != source["type"];
            match copies.iter().find(|(_, copy)| differs(copy)) {
                Some((namespace, _)) => bail!("the copy in {namespace} differs from its source"),
                None => Ok(()),
            }
        })?;
        Ok(seconds(since.elapsed()))
    }

    /// The copies of our Secret by namespace.
    fn copies(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let label = format!("--selector={COPIED_FROM}={}", self.stage.namespace().name());
        let text = self
            .stage
            .plane()
            .kubectl(["get", "secrets", "--all-namespaces", &label, "--output=json"])?;
        let mut list: Value = serde_json::from_str(&text)?;
        let Value::Array(items) = list["items"].take() else {
            bail!("the list of Secrets has no items");
        };
        let namespaced = |copy: Value| {
            let namespace = copy["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            (namespace, copy)
        };
        Ok(items.into_iter().map(namespaced).collect())
    }

    /// Adds nodes that change nothing, and then the node that makes the difference.
    pub(super) fn add_nodes(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("4  Nodes join the cluster");
        narrator.say("A hook of sysctl-tuner watches the nodes. Up to four the kernel's table of neighbours is large");
        narrator.say("enough, for a fifth it must grow. Three join the one that is there, and then one more.");
        let (mark, before) = (self.mark()?, self.releases()?);
        for number in 2..=NO_NEED {
            self.stage.plane().add_node(&node(number))?;
        }
        self.wait_for_pods_on("sysctl-tuner", NO_NEED)?;
        let writes = self.wait_for_quiet(mark)?;
        let seen = || format!("the audit log says:\n{writes}");
        check("four nodes need no other settings", writes.is_empty(), seen)?;
        let tuner = &before["sysctl-tuner"];
        narrator.ok(format_args!(
            "{NO_NEED} nodes, each with its pod: sysctl-tuner stays at its {tuner}"
        ));

        self.stage.plane().add_node(&node(NO_NEED + 1))?;
        let joined = Instant::now();
        let revision = self.wait_for_revision("sysctl-tuner", &before)?;
        let after = seconds(joined.elapsed());
        let setting = "net.ipv4.neigh.default.gc_thresh3 = 2048";
        self.wait_for_setting("sysctl-tuner has room for five nodes", setting)?;
        narrator.ok(format_args!(
            "{after} after the fifth sysctl-tuner is at revision {revision}, with {setting}"
        ));
        let pods = self.wait_for_pods_on("sysctl-tuner", NO_NEED + 1)?;
        let writes = self.wait_for_quiet(mark)?;
        self.check_untouched(&before, &["sysctl-tuner"], &writes)?;
        narrator.ok(format_args!(
            "the new settings are rolled out: {pods}; no other release is touched"
        ));
        Ok(())
    }

    fn wait_for_pods_on(&self, name: &str, nodes: usize) -> anyhow::Result<String> {
        let wanted = format!("{nodes} of {nodes} pods ready");
        Ok(self.wait(
            &format!("the DaemonSet {name} has a pod on {nodes} nodes"),
            || match self.pods(name)? {
                pods if pods == wanted => Ok(pods),
                pods => bail!(pods),
            },
        )?)
    }
}

fn node(number: usize) -> String {
    format!("node-{number}")
}

fn nothing_or(text: &str) -> &str {
    if text.is_empty() { "no namespace" } else { text }
}
