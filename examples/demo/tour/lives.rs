//! The part of the tour with more than one operator process: one is killed while helm works, and one is restarted
//! without any change.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use testbed::plane::User;
use testbed::reader::Only;

use super::{Tour, section};
use crate::cluster::{self, Release};
use crate::life::Life;
use crate::metrics;
use crate::modules::{FEW, MANY};
use crate::narrator::{check, seconds};

/// The value that the crowd has after the edit.
const SONG: &str = "a very long ballad";

/// The objects of the crowd by name.
type Members = BTreeMap<String, Value>;

impl Tour<'_> {
    pub(super) fn kill_in_the_middle_of_helm(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("7  kill -9 in the middle of helm");
        let change = format!("The crowd grows from {FEW} ConfigMaps to {MANY}");
        narrator.say(format_args!("{change}, which takes helm a while."));
        let (mark, before) = (self.mark()?, self.releases()?);
        let members = self.members()?;
        let seen = || format!("{} members", members.len());
        check("the crowd is small at first", members.len() == FEW, seen)?;
        let pending = self.strike()?;
        let complete = self.recover(pending)?;

        let writes = self.wait_for_quiet(mark)?;
        let deletes = writes.clone().deleting();
        let deletes = deletes.that(|record| !cluster::MEMORY.contains(&record.name.as_str()));
        let seen = || format!("the audit log says:\n{deletes}");
        check("nothing is deleted on the way", deletes.is_empty(), seen)?;
        let replaced = members.iter().filter(|(name, old)| {
            let now = complete.get(*name).map(|now| &now["metadata"]["uid"]);
            now != Some(&old["metadata"]["uid"])
        });
        let replaced: Vec<&String> = replaced.map(|(name, _)| name).collect();
        let seen = || format!("not so: {replaced:?}");
        check("the old members are the same objects", replaced.is_empty(), seen)?;
        self.check_untouched(&before, &["crowd"], &writes)?;
        let same = format!("the {FEW} old ConfigMaps and the other releases are the same");
        narrator.ok(format_args!("the audit log has no delete; {same}"));
        Ok(())
    }

    /// Kills the operator while helm works on the crowd. Returns the release as the kill left it.
    fn strike(&mut self) -> anyhow::Result<Release> {
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
        let seen = || format!("crowd: {left:?}");
        check(
            "the kill leaves a release unfinished",
            left.as_ref() == Some(&pending),
            seen,
        )?;
        let state = format!("crowd {pending}, {reached} of {MANY} ConfigMaps");
        self.narrator.ok(format_args!("killed process {id}: {state}"));
        self.wait("no hook and no helm of the dead operator is left", || {
            let left = self.stage.children();
            if left.is_empty() { Ok(()) } else { bail!("{left:?}") }
        })?;
        self.narrator.ok("its helm ended with it");
        Ok(pending)
    }

    /// Starts another operator, which has to finish the release that the killed one began.
    fn recover(&mut self, pending: Release) -> anyhow::Result<Members> {
        self.start()?;
        let revision = self.wait_for_revision("crowd", &BTreeMap::from([("crowd".to_owned(), pending)]))?;
        let after = seconds(self.life.as_ref().map(Life::age).unwrap_or_default());
        let complete = self.wait(&format!("all {MANY} of the crowd sing {SONG}"), || {
            let now = self.members()?;
            let singing = now.values().filter(|member| member["data"]["song"] == SONG).count();
            if singing != MANY || now.len() != MANY {
                bail!("{singing} of {} do", now.len());
            }
            Ok(now)
        })?;
        let state = format!("crowd is at revision {revision}, {} ConfigMaps", complete.len());
        self.narrator.ok(format_args!(
            "a new operator finished it without help, {after} after its start: {state}"
        ));
        Ok(complete)
    }

    fn members(&self) -> anyhow::Result<Members> {
        let members = self
            .stage
            .namespace()
            .objects("configmaps", Only::Labels("app=crowd"))?;
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
        narrator.chapter("8  Restart with nothing changed");
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
        // Only an operator that has looked at the releases can know that there is nothing to do.
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
