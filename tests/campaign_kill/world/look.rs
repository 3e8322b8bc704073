//! The objects of a world, and the checks of their state.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::Value;
use testbed::audit::Record;
use testbed::plane::User;
use testbed::reader::{Objects, Only};

use super::{CELLAR, KEPT, PAGES, VAULT, World};
use crate::cluster;
use crate::plan::Phase;

impl World {
    /// Checks that the vault is as the ConfigMap asks, and that the cellar exists.
    pub(super) fn look(&self) -> anyhow::Result<()> {
        let releases = cluster::releases(self.stage.namespace())?;
        let is_good = |name| {
            releases
                .get(name)
                .is_some_and(|release| release.is_deployed() && release.ours)
        };
        ensure!(
            is_good(CELLAR),
            "the cellar is not deployed: {}",
            cluster::shown(&releases)
        );
        let pages = self.pages()?;
        let Some(word) = &self.word else {
            ensure!(
                !releases.contains_key(VAULT),
                "the vault is there: {}",
                cluster::shown(&releases)
            );
            ensure!(pages.is_empty(), "pages are left: {pages:?}");
            ensure!(self.kept()?.is_empty(), "the vault is not empty");
            return Ok(());
        };
        ensure!(
            is_good(VAULT),
            "the vault is not deployed: {}",
            cluster::shown(&releases)
        );
        ensure!(
            self.kept()?.len() == KEPT.len(),
            "the vault lacks something: {:?}",
            self.kept()?
        );
        ensure!(
            pages.len() == PAGES && pages.iter().all(|page| page == word),
            "the pages should say '{word}': {pages:?}"
        );
        Ok(())
    }

    /// Checks that only objects were deleted that a person wanted to be deleted, and that no two helms worked on the
    /// same release.
    pub(super) fn check(&mut self, phase: Phase) -> anyhow::Result<()> {
        let audit = self.stage.plane().audit();
        let mark = audit.mark()?;
        let records = audit.since(self.checked)?.of(User::Operator);
        let records = records.within(self.stage.namespace().name());
        self.checked = mark;
        let newest = self.newest()?;
        let may_go = |record: &Record| {
            let of_vault = record.name == VAULT || record.name.starts_with("vault-");
            let revision = record.name.strip_prefix("sh.helm.release.v1.vault.v");
            let is_old = revision.is_some_and(|number| number.parse().is_ok_and(|number: u32| number < newest));
            let is_note = record.resource == "secrets" && record.name.starts_with("addon-operator-");
            is_note || is_old || phase == Phase::Uninstall && (of_vault || revision.is_some())
        };
        let deleted = records.deleting().that(|record| record.succeeded() && !may_go(record));
        ensure!(deleted.is_empty(), "deleted, and nobody asked for it:\n{deleted}");
        let overlaps = self.helm.overlaps()?;
        ensure!(overlaps.is_empty(), "a second helm on one release: {overlaps:?}");
        let cellar = self.id("persistentvolumeclaim", CELLAR)?;
        ensure!(
            self.cellar.is_empty() || cellar.as_deref() == Some(&self.cellar),
            "the cellar's claim is another: {cellar:?}"
        );
        Ok(())
    }

    /// The UIDs of the vault's objects that must keep theirs, by kind.
    pub(super) fn kept(&self) -> anyhow::Result<BTreeMap<&'static str, String>> {
        let mut kept = BTreeMap::new();
        for kind in KEPT {
            if let Some(id) = self.id(kind, VAULT)? {
                kept.insert(kind, id);
            }
        }
        Ok(kept)
    }

    pub(super) fn id(&self, kind: &str, name: &str) -> anyhow::Result<Option<String>> {
        let object = self.stage.namespace().object(kind, name)?;
        Ok(object.map(|object| object["metadata"]["uid"].to_string()))
    }

    /// The values on the vault's existing pages.
    pub(super) fn pages(&self) -> anyhow::Result<Vec<String>> {
        let items = self.stage.namespace().objects("configmaps", Only::All)?;
        let is_page = |item: &&Value| {
            item["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("vault-"))
        };
        let word = |item: &Value| item["data"]["word"].as_str().unwrap_or_default().to_owned();
        Ok(items.iter().filter(is_page).map(word).collect())
    }

    /// The number of the vault's newest revision; 0 if there is none.
    pub(super) fn newest(&self) -> anyhow::Result<u32> {
        Ok(revisions(&self.objects()?)?
            .last_key_value()
            .map_or(0, |(number, _)| *number))
    }
}

/// The statuses of the vault's revisions, by number.
pub(super) fn revisions(objects: &Objects) -> anyhow::Result<BTreeMap<u32, String>> {
    let secrets = objects.metadata("secrets", Only::Labels("owner=helm,name=vault"))?;
    let read = |secret: &Value| {
        let labels = &secret["metadata"]["labels"];
        let number = labels["version"].as_str()?.parse().ok()?;
        Some((number, labels["status"].as_str()?.to_owned()))
    };
    secrets
        .iter()
        .map(|secret| read(secret).with_context(|| format!("a revision has unexpected labels: {secret}")))
        .collect()
}
