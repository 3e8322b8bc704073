//! The part of the tour that only edits the ConfigMap: a changed value, a flag, and a mistake.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use testbed::audit::Records;

use super::{Tour, is_about, section};
use crate::cluster::{self, Releases, shown};
use crate::life;
use crate::narrator::{check, seconds};

/// The plan of the edit of a chapter.
const PLAN: &str = "addon-operator plan --filename edited.yaml";

/// The values that a hook of the module computes begin with this.
const COMPUTED: &str = "derived.";

impl Tour<'_> {
    /// Edits one section, which must lead to exactly one release.
    pub(super) fn edit(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("2  Edit the ConfigMap");
        narrator.say(
            "sysctlTuner: the profile becomes \"search\". A plan shows first what that would do; a hook that computes",
        );
        narrator.say("values is tried for it.");
        let before = self.releases()?;
        let planned = self.plan()?;
        let now = self.releases()?;
        check("a plan changes nothing", now == before, || shown(&now))?;
        let mark = self.mark()?;
        self.type_in("kubectl replace --filename edited.yaml")?;
        let edited = Instant::now();
        let revision = self.wait_for_revision("sysctl-tuner", &before)?;
        narrator.ok(format_args!(
            "sysctl-tuner is at revision {revision}, {} after the edit",
            seconds(edited.elapsed())
        ));
        self.check_settings("search", "vm.max_map_count = 262144")?;
        let writes = self.wait_for_quiet(mark)?;
        self.check_untouched(&before, &["sysctl-tuner"], &writes)?;
        let others = "no other release has changed";
        narrator.ok(format_args!(
            "{others}; the operator wrote {} times, all for sysctl-tuner",
            writes.len()
        ));
        let written = objects(&writes);
        let seen = || format!("planned: {planned:?}; written: {written:?}");
        check(
            "the objects of the plan are those that change",
            planned == written,
            seen,
        )?;
        let names = written.into_iter().collect::<Vec<_>>().join(" and ");
        narrator.ok(format_args!("the plan had named each object that was written: {names}"));
        Ok(())
    }

    /// Shows the plan of the edit, and returns the objects that it names.
    fn plan(&self) -> anyhow::Result<BTreeSet<String>> {
        self.type_in(
            "kubectl get configmap addon-operator --output yaml |\n    \
             sed 's/profile: database/profile: search/' > edited.yaml",
        )?;
        // Code 2 says that something would change.
        self.show(&format!("{PLAN} || (($? == 2))"))?;
        let said = self.shell.run(&format!("{PLAN} --output json || (($? == 2))"))?;
        let plan: Value = serde_json::from_str(&said.text).with_context(|| said.text.clone())?;
        let module = &plan["modules"][0];
        let mut hooks = module["hooks"].as_array().into_iter().flatten();
        let is_tried = hooks.any(|hook| hook["values"] == "try");
        check("a hook is tried for the plan", is_tried, || plan.to_string())?;
        let mut values = module["values"].as_array().into_iter().flatten();
        let is_computed = values.any(|field| field["path"].as_str().is_some_and(|path| path.starts_with(COMPUTED)));
        check("the plan has the values that the hook computes", is_computed, || {
            plan.to_string()
        })?;
        let objects = module["release"]["objects"].as_array().into_iter().flatten();
        let named = objects.map(|object| {
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            format!("{} {}", text("kind").to_lowercase(), text("name"))
        });
        Ok(named.collect())
    }

    /// Switches a module off, and on again.
    pub(super) fn switch_off_and_on(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("5  Switch a module off and on");
        narrator.say("sysctlAuditEnabled: \"false\", and a moment later \"true\".");
        let (mark, before) = (self.mark()?, self.releases()?);
        let flag = |value: &str| cluster::edit(self.stage.namespace(), &json!({ "sysctlAuditEnabled": value }));
        flag("false")?;
        let edited = Instant::now();
        self.wait("nothing is left of sysctl-audit", || {
            match self.left_of("sysctl-audit")? {
                left if left.is_empty() => Ok(()),
                left => bail!("there is still {}", left.join(", ")),
            }
        })?;
        narrator.ok(format_args!(
            "release, DaemonSet and ConfigMap were gone {} after the edit",
            seconds(edited.elapsed())
        ));
        let deletes = self.wait_for_quiet(mark)?.deleting();
        let strange = deletes.that(|record| !is_about(record, &["sysctl-audit"]));
        check("nothing else is deleted", strange.is_empty(), || {
            format!("the audit log says:\n{strange}")
        })?;

        let off = self.releases()?;
        flag("true")?;
        let edited = Instant::now();
        let revision = self.wait_for_revision("sysctl-audit", &off)?;
        let pods = self.wait_for_pods("sysctl-audit")?;
        let after = seconds(edited.elapsed());
        narrator.ok(format_args!(
            "{after} after the second edit it is back, at revision {revision}: {pods}"
        ));
        let writes = self.wait_for_quiet(mark)?;
        self.check_untouched(&before, &["sysctl-audit"], &writes)?;
        narrator.ok("nothing else was deleted, and no other release has a new revision");
        Ok(())
    }

    /// Makes a mistake in one section together with a change in another, and then corrects the mistake.
    pub(super) fn break_and_mend(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("6  Break a module, and mend it");
        narrator.say("One edit: greeter.text gets so long that its chart refuses it, and sysctl-tuner gets a setting.");
        let (mark, before) = (self.mark()?, self.releases()?);
        let long = "Welcome to everybody who came from near and far.";
        let tuner = json!({ "profile": "search", "settings": { "vm.max_map_count": 524_288 } });
        let data = json!({ "greeter": section(&json!({ "text": long })), "sysctlTuner": section(&tuner) });
        cluster::edit(self.stage.namespace(), &data)?;
        let edited = Instant::now();
        let revision = self.wait_for_revision("sysctl-tuner", &before)?;
        narrator.ok(format_args!(
            "sysctl-tuner is at revision {revision}, {} after the edit",
            seconds(edited.elapsed())
        ));
        self.check_settings("search", "vm.max_map_count = 524288")?;
        let writes = self.wait_for_quiet(mark)?;
        self.check_untouched(&before, &["sysctl-tuner"], &writes)?;
        let text = self.greeting()?;
        check("greeter keeps what it had", text == "Welcome.", || {
            format!("it says \"{text}\"")
        })?;
        narrator.ok(format_args!("greeter stays at its {}: \"{text}\"", before["greeter"]));
        self.show_complaint();

        cluster::edit(
            self.stage.namespace(),
            &json!({ "greeter": section(&json!({ "text": "Welcome, all." })) }),
        )?;
        let edited = Instant::now();
        let revision = self.wait_for_revision("greeter", &before)?;
        let text = self.wait("greeter says what its section says", || match self.greeting()? {
            text if text == "Welcome, all." => Ok(text),
            text => bail!("it says \"{text}\""),
        })?;
        let after = seconds(edited.elapsed());
        narrator.ok(format_args!(
            "mended: greeter is at revision {revision}, {after} after the edit: \"{text}\""
        ));
        Ok(())
    }

    pub(super) fn releases(&self) -> anyhow::Result<Releases> {
        cluster::releases(self.stage.namespace())
    }

    /// The objects that are left of a module. They are found by its name.
    fn left_of(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let mut left = Vec::new();
        if let Some(release) = self.releases()?.get(name) {
            left.push(format!("a release: {release}"));
        }
        for kind in ["daemonset", "configmap"] {
            if self.stage.namespace().object(kind, name)?.is_some() {
                left.push(format!("a {kind}"));
            }
        }
        Ok(left)
    }

    fn greeting(&self) -> anyhow::Result<String> {
        let config = self
            .stage
            .namespace()
            .object("configmap", "greeter")?
            .unwrap_or_default();
        Ok(config["data"]["text"].as_str().unwrap_or("nothing").to_owned())
    }

    /// Shows the log line about the mistake.
    fn show_complaint(&self) {
        let log = self
            .life
            .as_ref()
            .map(|life| life::tail(life.log(), 50))
            .unwrap_or_default();
        let error = log
            .lines()
            .rev()
            .find(|line| line.contains("more than 40 characters"))
            .and_then(error_of);
        if let Some(error) = error {
            self.narrator.say("The operator's log:");
            self.narrator.say(error.replacen(": ", ":\n", 1));
        }
    }
}

/// The written objects, without the records of helm and of the operator.
fn objects(writes: &Records) -> BTreeSet<String> {
    let kept = writes.0.iter().filter(|record| record.resource != "secrets");
    kept.map(|record| format!("{} {}", record.resource.trim_end_matches('s'), record.name))
        .collect()
}

/// The field with the error, in a record of the log.
fn error_of(record: &str) -> Option<&str> {
    let (_, error) = record.split_once("error=\"")?;
    error.split('"').next()
}
