//! The part of the tour with more than one process: a kill in the middle of helm, and a restart for nothing.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use testbed::plane::User;

use super::{Tour, check, section};
use crate::cluster;
use crate::life;
use crate::metrics;
use crate::modules::{FEW, MANY};
use crate::narrator::seconds;

/// What the crowd sings after the edit.
const SONG: &str = "a very long ballad";

impl Tour<'_> {
    pub(super) fn kill_in_the_middle_of_helm(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("5  kill -9 in the middle of helm");
        narrator.say(format_args!(
            "The crowd grows from {FEW} ConfigMaps to {MANY}, which takes helm a while."
        ));
        let (mark, before) = (self.mark()?, self.releases()?);
        let members = self.members()?;
        check("the crowd is small at first", members.len() == FEW, || {
            format!("{} members", members.len())
        })?;
        let crowd = section(&json!({ "size": MANY, "song": SONG }));
        cluster::edit(self.stage.namespace(), &json!({ "crowd": crowd }))?;
        let pending = self.wait("helm is in the middle of the crowd's release", || {
            match self.releases()?.remove("crowd") {
                Some(release) if release.is_pending() => Ok(release),
                Some(release) => bail!("crowd {release}"),
                None => bail!("no release crowd"),
            }
        })?;
        let life = self.life.take().context("the operator runs since the first chapter")?;
        let id = life.id();
        life.kill()?;
        let left = self.releases()?.remove("crowd");
        let reached = self.members()?.len();
        check(
            "the kill leaves a release unfinished",
            left.as_ref() == Some(&pending),
            || format!("crowd: {left:?}"),
        )?;
        narrator.ok(format_args!(
            "killed process {id}: crowd {pending}, {reached} of {MANY} ConfigMaps"
        ));
        self.wait("no hook and no helm of the dead operator is left", || {
            let left = self.stage.children();
            if left.is_empty() { Ok(()) } else { bail!("{left:?}") }
        })?;
        narrator.ok("its helm ended with it");

        self.start()?;
        let revision = self.wait_for_revision("crowd", &BTreeMap::from([("crowd".to_owned(), pending)]))?;
        let age = self.life.as_ref().map(life::Life::age).unwrap_or_default();
        let complete = self.wait(&format!("all {MANY} of the crowd sing {SONG}"), || {
            let now = self.members()?;
            let singing = now.values().filter(|member| member["data"]["song"] == SONG).count();
            if singing == MANY && now.len() == MANY {
                Ok(now)
            } else {
                bail!("{singing} of {} do", now.len())
            }
        })?;
        narrator.ok(format_args!(
            "a new operator finished it alone, {} after its start: crowd is at revision {revision}, {} ConfigMaps",
            seconds(age),
            complete.len()
        ));
        let writes = self.wait_for_quiet(mark)?;
        let deletes = writes.clone().deleting();
        check("nothing is deleted on the way", deletes.is_empty(), || {
            format!("the audit log says:\n{deletes}")
        })?;
        let replaced = members.iter().filter(|(name, old)| {
            let now = complete.get(*name).map(|now| &now["metadata"]["uid"]);
            now != Some(&old["metadata"]["uid"])
        });
        let replaced: Vec<&String> = replaced.map(|(name, _)| name).collect();
        check("the old members are the same objects", replaced.is_empty(), || {
            format!("not so: {replaced:?}")
        })?;
        self.check_untouched(&before, &["crowd"], &writes)?;
        narrator.ok(format_args!(
            "the audit log has no delete; the {FEW} old ConfigMaps and the other releases are the same"
        ));
        Ok(())
    }

    /// The members of the crowd, by name.
    fn members(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let members = cluster::objects(self.stage.namespace(), "configmaps", "app=crowd")?;
        let named = |member: Value| {
            (
                member["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                member,
            )
        };
        Ok(members.into_iter().map(named).collect())
    }

    pub(super) fn restart_unchanged(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("6  Restart with nothing changed");
        let before = self.releases()?;
        let life = self.life.take().context("the operator runs since the last chapter")?;
        let took = life.stop(narrator.patience())?;
        narrator.ok(format_args!("stopped {} after SIGTERM", seconds(took)));
        let mark = self.mark()?;
        self.start()?;
        let ready = self.wait("the new operator is ready", || {
            let life = self.life.as_ref().context("it has just been started")?;
            if metrics::is_ready(self.stage.port()) {
                Ok(life.age())
            } else {
                bail!("it does not say so yet")
            }
        })?;
        // Only who has looked at the releases can know that there is nothing to do.
        self.wait("the new operator has looked at the releases", || {
            let asked = self
                .stage
                .plane()
                .audit()
                .since(mark)?
                .of(User::Operator)
                .within(self.stage.namespace().name());
            let lists = asked.that(|record| record.verb == "list" && record.resource == "secrets");
            if lists.is_empty() {
                bail!("the audit log has no list of Secrets by it");
            }
            Ok(())
        })?;
        let writes = self.wait_for_quiet(mark)?;
        check("a restart writes nothing", writes.is_empty(), || {
            format!("the audit log says:\n{writes}")
        })?;
        let now = self.releases()?;
        let seen = || cluster::shown(&now);
        check("a restart makes no new revision", now == before, seen)?;
        narrator.ok(format_args!(
            "ready {} after the start; no write but leases and events, no new revision",
            seconds(ready)
        ));
        Ok(())
    }
}
