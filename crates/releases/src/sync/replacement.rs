//! Upgrades that would have to change a field that the API server lets nobody change: takes the object away if the core
//! permits it, or notes on the newest revision that the upgrade is held.
//!
//! Must never delete an object unless the core permits its replacement.

use addon_core::failure::Failure;
use addon_core::release::refusal::{self, Obstacle, REPLACE, Refused, Way};
use helm::immutable::Immutable;
use report::Chain;
use serde_json::Value;
use tracing::{info, warn};

use super::Sync;
use super::brake::objects_of;
use crate::replacement::{self, Place};
use crate::revisions::upgrades;
use jobs::unless;

impl Sync<'_> {
    /// Fails with the failure of the last try, if the same upgrade was refused, the object in its way still exists, and
    /// no person has permitted to replace the object.
    pub(super) async fn fail_as_before(&mut self) -> Result<(), Failure> {
        let Some(revision) = &self.revision else {
            return Ok(());
        };
        // The permission counts for all tries of this upgrade, although a new revision has no note of it.
        self.allowed.extend(revision.allowed.iter().cloned());
        let Some(refused) = revision.refused.clone() else {
            return Ok(());
        };
        if !refused.is_of(&self.facts) || refused.is_among(&self.allowed) {
            return Ok(());
        }
        let place = self.place(
            &refused.api_version,
            &refused.kind,
            refused.namespace.as_deref(),
            &refused.name,
        );
        let Some(place) = place else { return Ok(()) };
        let acting = unless(self.cancel, self.acting()).await?.cluster();
        let present = unless(self.cancel, async { Ok(replacement::uid_at(acting, &place).await?) }).await?;
        if present.as_ref() == Some(&refused.uid) {
            return Err(refused.failure(&self.facts.release));
        }
        Ok(())
    }

    /// Replaces the object that an upgrade could not change, and reads the release, so that the upgrade can be tried again; or
    /// holds the upgrade.
    pub(super) async fn make_way(&mut self, immutable: &Immutable) -> Result<(), Failure> {
        if self.manifest.is_empty() {
            self.manifest = self.render().await?;
        }
        let Some(object) = self.object_in_the_way(immutable)? else {
            return Err(self.held_for(immutable));
        };
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str();
        let Some(place) = self.place(api_version, &immutable.kind, namespace, &immutable.name) else {
            return Err(self.held_for(immutable));
        };
        let object_and_field = format!("{}/{} ({})", immutable.kind, immutable.name, immutable.field);
        let is_first = self.in_the_way.insert(object_and_field.clone());
        let acting = unless(self.cancel, self.acting()).await?.cluster();
        let uid = unless(self.cancel, async { Ok(replacement::uid_at(acting, &place).await?) }).await?;
        let Some(uid) = uid else {
            // An object that is gone does not block the upgrade.
            return if is_first {
                unless(self.cancel, self.observe()).await
            } else {
                Err(self.held_for(immutable))
            };
        };
        let way = self.way(immutable, &object);
        if let Way::Replace | Way::ReplaceAlone = way
            && is_first
        {
            let release = self.facts.release.as_str();
            info!(
                release,
                object = object_and_field,
                "an object is replaced, because nobody can change the field"
            );
            let dependents_stay = way == Way::ReplaceAlone;
            let taken = async { Ok(replacement::take_away(acting, &place, &uid, dependents_stay).await?) };
            if unless(self.cancel, taken).await? {
                self.hold.replaced.push(object_and_field);
                return unless(self.cancel, self.observe()).await;
            }
        }
        let own = self.tools.ground.cluster.namespace();
        let refused = Refused {
            inputs: self.facts.inputs.clone(),
            asked: self.facts.asked.clone(),
            api_version: api_version.to_owned(),
            kind: immutable.kind.clone(),
            namespace: place.namespace.filter(|namespace| namespace != own),
            name: immutable.name.clone(),
            field: immutable.field.clone(),
            uid,
            way,
        };
        unless(self.cancel, self.note_refused(&refused)).await?;
        Err(refused.failure(&self.facts.release))
    }

    /// Notes the held upgrade on the revision that the refused try has left. Without the note the upgrade is only tried once
    /// more.
    async fn note_refused(&mut self, refused: &Refused) -> Result<(), Failure> {
        self.observe().await?;
        let Some(revision) = &self.revision else {
            return Ok(());
        };
        if let Err(error) = upgrades::note_refused(&self.tools.ground.cluster, revision, refused).await {
            let release = self.facts.release.as_str();
            warn!(release, error = %Chain(&error), "the note about a held upgrade could not be written");
        }
        Ok(())
    }

    pub(super) fn way(&self, immutable: &Immutable, object: &Value) -> Way {
        let catalogue = self.tools.ground.catalogue.borrow();
        let files = catalogue.module_named(&self.facts.release);
        let obstacle = Obstacle {
            group: &immutable.group,
            kind: &immutable.kind,
            name: &immutable.name,
            field: &immutable.field,
            is_marked: object["metadata"]["annotations"][REPLACE].as_str() == Some("true"),
            listed: files.map(|files| files.replace.as_slice()).unwrap_or_default(),
            allowed: &self.allowed,
        };
        obstacle.way()
    }

    /// The object as the chart renders it.
    fn object_in_the_way(&self, immutable: &Immutable) -> Result<Option<Value>, Failure> {
        let objects = objects_of(&self.facts.release, &self.manifest)?;
        let is_meant = |object: &Value| {
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            group == immutable.group
                && object["kind"] == immutable.kind.as_str()
                && object["metadata"]["name"] == immutable.name.as_str()
        };
        Ok(objects.into_iter().find(is_meant))
    }

    /// The place of an object of this release, if its kind is served.
    fn place(&self, api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Option<Place> {
        let kind = self.apis.kind(api_version, kind)?;
        let namespace = namespace.unwrap_or(self.tools.ground.cluster.namespace());
        Some(Place {
            kind: kind.clone(),
            namespace: kind.namespaced.then(|| namespace.to_owned()),
            name: name.to_owned(),
        })
    }

    fn held_for(&self, immutable: &Immutable) -> Failure {
        let Immutable { kind, name, field, .. } = immutable;
        refusal::held(&self.facts.release, kind, name, field)
    }
}
