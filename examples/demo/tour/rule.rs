//! The chapter about a rule by which a Secret is copied into some namespaces, also into new ones.

use std::time::Instant;

use anyhow::bail;
use serde_json::{Value, json};

use super::Tour;
use crate::narrator::{check, seconds};
use crate::stage::File;

/// The namespace of the rule and of its source.
const HOME: &str = "platform";

/// A namespace that is created after the rule.
const LATER: &str = "branch";

const SECRET: &str = "certificate";

const RULE: [File; 1] = [File {
    path: "rule.yaml",
    text: "apiVersion: flant.com/v1\n\
           kind: CopyratorRule\n\
           metadata: {name: certificates, namespace: platform}\n\
           ruleType: secret\n\
           selector: {copy-me: \"yes\"}\n\
           excludeKeys: [tls.key]\n\
           namespaceSelector:\n\
           \x20 matchLabels: {tier: web}\n",
}];

impl Tour<'_> {
    /// Creates a rule with a source, and then a namespace that the rule selects.
    pub(super) fn copy_by_rule(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("13  A copy in a new namespace, by a rule");
        narrator.say("The module copyrator copies Secrets and ConfigMaps as objects of kind CopyratorRule say: which");
        narrator.say(
            "objects, which of their keys, and into which namespaces. Here only rules in the namespace platform count.",
        );
        self.put(&RULE)?;
        self.patch(r#"{"copyratorEnabled": "true", "copyrator": "ruleNamespaces: [platform]"}"#)?;
        self.type_in(&format!("kubectl create namespace {HOME}"))?;
        self.type_in(&format!(
            "kubectl --namespace {HOME} create secret generic {SECRET} --from-literal=tls.crt=public --from-literal=tls.key=private"
        ))?;
        self.type_in(&format!("kubectl --namespace {HOME} label secret {SECRET} copy-me=yes"))?;
        self.show("cat rule.yaml")?;
        let trial = "kubectl create --filename rule.yaml --dry-run=server";
        self.wait("rules can be created", || self.shell.hear(trial, &[]))?;
        self.type_in("kubectl create --filename rule.yaml")?;
        self.wait("the rule has found its source", || {
            let rule = self.look_up(HOME, "copyrator", "certificates")?;
            if rule["status"]["sources"] == 1 {
                return Ok(());
            }
            bail!("its status is {}", rule["status"])
        })?;
        self.check_copies(&[])?;
        narrator.ok("the rule has found its source; no namespace has the label, and so there is no copy");
        self.type_in(&format!("kubectl create namespace {LATER}"))?;
        self.type_in(&format!("kubectl label namespace {LATER} tier=web"))?;
        let labelled = Instant::now();
        let copy = self.wait(&format!("{LATER} has its copy"), || {
            match self.look_up(LATER, "secret", SECRET)? {
                Value::Null => bail!("there is none"),
                copy => Ok(copy),
            }
        })?;
        let after = seconds(labelled.elapsed());
        let source = self.look_up(HOME, "secret", SECRET)?;
        let wanted = json!({ "tls.crt": source["data"]["tls.crt"] });
        let seen = || format!("its keys are {}", keys(&copy["data"]));
        check(
            "the copy has the certificate, and not the key",
            copy["data"] == wanted,
            seen,
        )?;
        self.check_copies(&[LATER])?;
        narrator.ok(format_args!(
            "{LATER} has its copy {after} after the label, with tls.crt and without tls.key; no other namespace has one"
        ));
        self.wait("the rule counts its copy", || {
            let rule = self.look_up(HOME, "copyrator", "certificates")?;
            if rule["status"]["copies"] == 1 {
                return Ok(());
            }
            bail!("its status is {}", rule["status"])
        })?;
        self.show(&format!("kubectl --namespace {HOME} get copyrator"))?;
        Ok(())
    }

    /// Checks that exactly these namespaces have a copy.
    fn check_copies(&self, wanted: &[&str]) -> anyhow::Result<()> {
        let label = "--selector=copyrator.flant.com/copy";
        let namespaces = "--output=jsonpath={.items[*].metadata.namespace}";
        let plane = self.stage.plane();
        let found = plane.kubectl(["get", "secrets,configmaps", "--all-namespaces", label, namespaces])?;
        let holders: Vec<&str> = found.split_whitespace().collect();
        check("only the selected namespaces have a copy", holders == wanted, || {
            format!("copies in {holders:?}")
        })
    }
}

fn keys(data: &Value) -> String {
    let keys = data.as_object().into_iter().flat_map(|data| data.keys());
    keys.map(String::as_str).collect::<Vec<_>>().join(", ")
}
