//! The objects of a world, and the checks of their state.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::Value;
use testbed::audit::Record;
use testbed::plane::User;
use testbed::reader::Only;

use super::chart::own_page;
use super::{Before, NAME, Records, Wanted, World};
use crate::plan::{Flaw, Follow, Kind, Plan, State};
use crate::tally::Help;

impl World {
    /// Checks that the release is as people want it.
    pub(super) fn look(&self) -> anyhow::Result<()> {
        let Wanted::On(section) = &self.wanted else {
            return self.look_for_nothing();
        };
        self.look_at_records()?;
        for kind in Kind::ALL {
            let object = self.object(kind)?;
            let word = object.as_ref().map(|object| &object["metadata"]["annotations"]["word"]);
            let wanted = section.kinds.contains(&kind).then_some(section.word.as_str());
            let is_right = word.and_then(Value::as_str) == wanted || wanted.is_none() && word.is_none();
            ensure!(is_right, "{kind:?} should say {wanted:?}, and says {word:?}");
        }
        let page = own_page(&section.word);
        ensure!(
            self.stage.namespace().object("configmap", &page)?.is_some(),
            "there is no {page}"
        );
        let state = self.why()?["state"].clone();
        ensure!(state == "Ready", "the module is {state}");
        Ok(())
    }

    fn look_at_records(&self) -> anyhow::Result<()> {
        let records = self.records()?;
        let states: Vec<&str> = records.iter().map(|record| label(record, "status")).collect();
        let newest = records
            .iter()
            .max_by_key(|record| label(record, "version").parse::<u32>().unwrap_or(0));
        let is_good = newest.is_some_and(|newest| {
            label(newest, "status") == "deployed"
                && label(newest, "name") == NAME
                && (self.records == Records::Labelled || !label(newest, "moduleChecksum").is_empty())
        });
        let is_alone = states.iter().filter(|state| **state == "deployed").count() == 1;
        ensure!(is_good && is_alone, "the release is not deployed: {states:?}");
        Ok(())
    }

    /// Checks that neither the release is left nor an object that may not stay.
    fn look_for_nothing(&self) -> anyhow::Result<()> {
        let records = self.records()?;
        ensure!(records.is_empty(), "the release is there: {} records", records.len());
        // A module without a release is not known before the operator answers.
        if let Ok(why) = self.why() {
            let is_over = why["state"] != "Removing" && why["error"].is_null();
            ensure!(is_over, "the removal goes on: {why}");
        }
        Ok(())
    }

    /// The objects of the module, by kind and name.
    fn present(&self) -> anyhow::Result<Vec<(Kind, Value)>> {
        let mut present = Vec::new();
        for kind in Kind::ALL {
            present.extend(self.object(kind)?.map(|object| (kind, object)));
        }
        let pages = self.stage.namespace().objects("configmaps", Only::All)?;
        let pages = pages.into_iter().filter(|page| name(page).starts_with("only-"));
        present.extend(pages.map(|page| (Kind::ConfigMap, page)));
        Ok(present)
    }

    /// Checks that all objects of a removed release are gone, except those that may stay. Deletes these, as a person
    /// would, and returns their number.
    pub(super) fn tidy(&self, plan: &Plan, before: &Before) -> anyhow::Result<usize> {
        let told = self.told_since(before)?;
        let mut count = 0;
        for (kind, object) in self.present()? {
            if object["metadata"]["deletionTimestamp"].is_string() {
                continue;
            }
            let title = format!("{kind:?}/{}", name(&object));
            let is_taken_over = object["metadata"]["annotations"]["addon-operator/adopted"].is_string();
            let may_stay = match plan.state {
                State::Record(flaw) if flaw.may_leave() => {
                    told.contains(&title) || is_taken_over || is_past_finding(plan, flaw, kind)
                }
                _ => false,
            };
            ensure!(
                may_stay,
                "{title} is left; the command of the round said: '{}'",
                self.said
            );
            count += 1;
            self.kubectl()
                .run(["delete", &kind.resource(), name(&object), "--ignore-not-found"])?;
        }
        Ok(count)
    }

    /// The log since the damage, and the output of the command that a person ran.
    fn told_since(&self, before: &Before) -> anyhow::Result<String> {
        let logs = self.logs()?;
        let known = before.logs.iter().copied().chain(std::iter::repeat(0));
        let parts = logs
            .iter()
            .zip(known)
            .map(|(log, known)| log.get(known..).unwrap_or_default());
        Ok(parts.chain([self.said.as_str()]).collect())
    }

    /// The UIDs of the module's objects.
    pub(super) fn ids(&self) -> anyhow::Result<BTreeMap<Kind, String>> {
        let mut ids = BTreeMap::new();
        for kind in Kind::ALL {
            let object = self.object(kind)?;
            ids.extend(object.map(|object| (kind, object["metadata"]["uid"].to_string())));
        }
        Ok(ids)
    }

    /// Checks that objects which are not meant to be replaced are the same, and that the operator deleted only objects
    /// that are meant to go.
    pub(super) fn check(&self, plan: &Plan, before: &Before, help: Help) -> anyhow::Result<()> {
        let is_removed = plan.follow == Follow::Removal;
        let replaced = match plan.state {
            State::Deleted(kind) => Some(kind),
            State::Fixed(kind) if kind != Kind::PersistentVolumeClaim => Some(kind),
            State::KindGone => Some(Kind::Widget),
            _ => None,
        };
        if !is_removed {
            let now = self.ids()?;
            for (kind, id) in before.ids.iter().filter(|(kind, _)| Some(**kind) != replaced) {
                ensure!(
                    now.get(kind) == Some(id),
                    "{kind:?} is another: {id}, now {:?}",
                    now.get(kind)
                );
            }
            let is_anew = |kind: Kind| now.get(&kind) != before.ids.get(&kind);
            let must_be_anew = replaced.is_none_or(is_anew);
            ensure!(must_be_anew, "{replaced:?} was not replaced (help: {help:?})");
        }
        let records = self.stage.plane().audit().since(before.mark)?.of(User::Operator);
        let records = records.within(self.stage.namespace().name());
        let may_go = |record: &Record| {
            let is_note = record.resource == "secrets" && !record.name.eq(NAME);
            let is_page = record.resource == "configmaps" && record.name.starts_with("only-");
            let is_replaced = replaced.is_some_and(|kind| record.resource == format!("{}s", kind.resource()));
            is_note || is_page || is_removed || is_replaced && matches!(plan.state, State::Fixed(_))
        };
        let deleted = records.deleting().that(|record| record.succeeded() && !may_go(record));
        ensure!(deleted.is_empty(), "deleted, although nobody asked for it:\n{deleted}");
        Ok(())
    }

    /// All records of helm of the release, also those whose labels are wrong.
    pub(super) fn records(&self) -> anyhow::Result<Vec<Value>> {
        let records = self
            .stage
            .namespace()
            .metadata("secrets", Only::Fields("type=helm.sh/release.v1"))?;
        Ok(records)
    }

    /// An object of the chart, if it exists.
    fn object(&self, kind: Kind) -> anyhow::Result<Option<Value>> {
        if kind != Kind::Widget {
            return Ok(self.stage.namespace().object(&kind.resource(), NAME)?);
        }
        let resource = format!("widgets.v1.{}", self.group());
        let asked = self
            .kubectl()
            .run(["get", &resource, NAME, "--ignore-not-found", "-o=json"]);
        match asked {
            Ok(text) if text.is_empty() => Ok(None),
            Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
            // Its kind is gone.
            Err(error) if error.to_string().contains("doesn't have a resource type") => Ok(None),
            Err(error) => Err(error).context("a custom resource"),
        }
    }
}

/// Whether no record that is left names the kind. A removal does not look for its objects, unless a person runs the command.
fn is_past_finding(plan: &Plan, flaw: Flaw, kind: Kind) -> bool {
    flaw == Flaw::Missing && plan.follow == Follow::Removal && !plan.first.contains(&kind)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn label<'a>(object: &'a Value, label: &str) -> &'a str {
    object["metadata"]["labels"][label].as_str().unwrap_or_default()
}
