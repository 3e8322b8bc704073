//! Checks that a world is as people want it, and that the operator did nothing on the way that no one asked for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use testbed::audit::Record;
use testbed::plane::User;

use super::World;
use super::files::{CELLAR, CELLAR_PAGE, MIRROR, PAGES, VAULT, WATCHER};
use super::seen::{Seen, revision};
use crate::cluster;
use crate::metrics;
use crate::plan::Plan;

impl World<'_> {
    pub(super) fn seen(&self) -> anyhow::Result<Seen> {
        Seen::now(self.stage.namespace())
    }

    /// Checks that the state is as people want it and that the operator is at rest.
    pub(super) fn look(&self) -> anyhow::Result<()> {
        let seen = self.seen()?;
        self.look_at_releases(&seen)?;
        self.look_at_objects(&seen)?;
        self.look_at_operator()
    }

    fn look_at_releases(&self, seen: &Seen) -> anyhow::Result<()> {
        let releases = seen.releases()?;
        let vault = self.wanted.is_on.then_some(VAULT);
        let names: BTreeSet<&str> = [CELLAR, WATCHER].into_iter().chain(vault).collect();
        let found: BTreeSet<&str> = releases.keys().map(String::as_str).collect();
        ensure!(
            found == names,
            "there should be releases {names:?}, and there are {found:?}"
        );
        for (name, told) in &releases {
            ensure!(told.is_deployed(), "{name} is not deployed: {told:?}");
            let peace = self.peace.get(&self.wanted.vault()).and_then(|peace| peace.get(name));
            ensure!(
                peace.is_none_or(|peace| peace == told),
                "{name} is another than in peace: {told:?} instead of {peace:?}"
            );
        }
        Ok(())
    }

    fn look_at_objects(&self, seen: &Seen) -> anyhow::Result<()> {
        let equal = |name: &str, key: &str, wanted: Option<&str>| {
            let found = seen.text(name, key);
            ensure!(found == wanted, "{key} of {name} is {found:?} and should be {wanted:?}");
            Ok(())
        };
        let on = self.wanted.is_on;
        for page in 0..PAGES {
            equal(&format!("vault-{page}"), "word", on.then_some(self.wanted.word()))?;
            equal(&format!("vault-{page}"), "roles", on.then_some("true"))?;
        }
        for kind in ["PersistentVolumeClaim", "Secret", "Role"] {
            let is_there = seen.get(kind, VAULT).is_some();
            ensure!(is_there == on, "that there is a {kind} of the vault is {is_there}");
        }
        ensure!(
            seen.get("PersistentVolumeClaim", CELLAR).is_some(),
            "the cellar has no claim"
        );
        equal(CELLAR_PAGE, "word", Some("here"))?;
        let mirror = seen.text(MIRROR, "seen").context("there is no mirror")?;
        let mirror: BTreeMap<String, String> = serde_json::from_str(mirror)?;
        let notes = &self.wanted.notes;
        ensure!(mirror == *notes, "the hook has seen {mirror:?}, and there is {notes:?}");
        let config = seen
            .get("ConfigMap", cluster::CONFIG)
            .context("there is no ConfigMap")?;
        let config: Option<BTreeMap<String, String>> = serde_json::from_value(config["data"].clone())?;
        if let Some(config) = config {
            let said = self.wanted.config();
            ensure!(config == said, "the ConfigMap is {config:?}, people said {said:?}");
        }
        Ok(())
    }

    fn look_at_operator(&self) -> anyhow::Result<()> {
        let get = |path| metrics::get(self.stage.port(), path);
        let (status, told) = get("/readyz")?;
        ensure!(
            status == 200 && !told.contains("cannot be reached"),
            "/readyz says {status}: {told}"
        );
        let (_, told) = get("/status/converge")?;
        ensure!(told.contains("CONVERGE_WAIT_TASK"), "it converges: {told}");
        let (_, told) = get("/metrics")?;
        let lengths = told
            .lines()
            .filter(|line| line.starts_with("addon_operator_tasks_queue_length{"));
        let waiting: Vec<&str> = lengths.filter(|line| !line.ends_with(" 0")).collect();
        ensure!(waiting.is_empty(), "queues are not empty: {waiting:?}");
        Ok(())
    }

    /// Checks that only objects were deleted that a person wanted to be deleted, and that no two helms worked on the
    /// same release.
    pub(super) fn check(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let audit = self.stage.plane().audit();
        let mark = audit.mark()?;
        let records = audit.since(self.checked)?.of(User::Operator);
        let records = records.within(self.stage.namespace().name());
        self.checked = mark;
        let seen = self.seen()?;
        let may_go = |record: &Record| {
            let name = record.name.as_str();
            let is_note = record.resource == "secrets" && name.starts_with("addon-operator-");
            let is_old = |(release, number)| number < seen.newest(release) || plan.restores();
            let of_vault = name == VAULT || name.starts_with("vault-") || name.contains(".vault.v");
            is_note || revision(name).is_some_and(is_old) || of_vault && plan.switches()
        };
        let deleted = records.deleting().that(|record| record.succeeded() && !may_go(record));
        ensure!(deleted.is_empty(), "deleted, and nobody asked for it:\n{deleted}");
        let overlaps = self.helm.overlaps()?;
        ensure!(overlaps.is_empty(), "a second helm on one release: {overlaps:?}");
        Ok(())
    }
}
