//! What is noted of a release on its newest revision, and compared with it.

use std::collections::BTreeSet;

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::release::{ConfigTrace, Rendered};
use addon_core::yaml;

use super::Sync;
use crate::cluster::drift::{self, ObjectKey};
use crate::cluster::releases::marks::Marks;
use crate::jobs::unless;

/// An annotation can be 256 KiB long with all others; beyond this the objects are read from the release itself.
const ANNOTATION_LIMIT: usize = 128 << 10;

impl Sync<'_> {
    /// The checksum of what the chart renders to; that of the deployed revision if both mean the same objects, as they may
    /// after a change of helm or of a comment.
    pub(super) async fn rendering(&mut self) -> Result<Rendered, Failure> {
        let manifest = self.render().await?;
        Ok(Rendered {
            parts: self.parts_of(&manifest)?,
            checksum: self.checksum_of(&manifest).await?,
        })
    }

    async fn checksum_of(&self, manifest: &str) -> Result<String, Failure> {
        let rendered = checksum(manifest);
        let revision = self.deployed()?;
        match &revision.newest.checksum {
            Some(known) if *known != rendered => {
                let deployed = unless(self.cancel, async { Ok(self.tools.cluster.manifest(revision).await?) }).await?;
                Ok(if is_same(manifest, &deployed) {
                    known.clone()
                } else {
                    rendered
                })
            }
            Some(_) | None => Ok(rendered),
        }
    }

    pub(super) async fn record(&mut self) -> Result<(), Failure> {
        let revision = self.deployed()?;
        let (Some(rendered), Some(keys)) = (&self.facts.rendered, &self.objects) else {
            return Err(Failure::new(
                Class::Defect,
                "an equal rendering was decided on without a rendering",
            ));
        };
        let marks = Marks {
            inputs: self.facts.inputs.clone(),
            checksum: rendered.checksum.clone(),
            asked: self.facts.asked.clone(),
            objects: annotation(keys),
            unmanaged: self.facts.unmanaged,
            config: self.config,
        };
        Ok(self
            .tools
            .cluster
            .mark(&revision.release, revision.newest.revision, &marks)
            .await?)
    }

    /// What the ConfigMap says may have changed where the values did not, or was never noted.
    pub(super) async fn note_config(&self) -> Result<(), Failure> {
        let revision = self.deployed()?;
        if revision.config.as_deref().and_then(ConfigTrace::parse) == Some(self.config) {
            return Ok(());
        }
        Ok(self.tools.cluster.note_config(revision, self.config).await?)
    }
}

/// The checksum of a manifest, whatever white space is around it.
pub(super) fn checksum(manifest: &str) -> String {
    Digest::of_bytes(manifest.trim().as_bytes()).to_string()
}

/// Whether two manifests mean the same objects, however they are written and in whatever order.
fn is_same(one: &str, other: &str) -> bool {
    let objects = |text: &str| {
        let documents = yaml::documents_v2(text).ok()?;
        let objects = documents
            .into_iter()
            .flat_map(drift::flat)
            .filter(|object| !object.is_null());
        let named = objects.map(|object| Some((drift::key_of(&object)?, object)));
        let mut named = named.collect::<Option<Vec<_>>>()?;
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some(named)
    };
    objects(one).is_some_and(|one| objects(other).is_some_and(|other| one == other))
}

pub(super) fn keys_of(release: &str, manifest: &str) -> Result<BTreeSet<ObjectKey>, Failure> {
    let documents = yaml::documents_v2(manifest).map_err(|error| {
        Failure::new(
            Class::Invalid,
            format!("the manifest of release '{release}' is no YAML: {error}"),
        )
    })?;
    Ok(drift::keys_of(&documents))
}

/// The objects as they are marked on the release, nothing if there are too many for that.
pub(super) fn annotation(keys: &BTreeSet<ObjectKey>) -> Option<String> {
    serde_json::to_string(keys)
        .ok()
        .filter(|text| text.len() <= ANNOTATION_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_the_same_if_their_objects_are() {
        let (a, b) = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', y: '2'}\n",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n",
        );
        let one = format!("---\n# Source: one/a.yaml\n{a}---\n{b}");
        let other = format!(
            "---\n{b}---\n# nothing\n---\n{}",
            a.replace("{x: '1', y: '2'}", "{y: '2', x: '1'}")
        );
        assert!(is_same(&one, &other));
        for different in [
            a.to_owned(),
            one.replace("'2'", "'3'"),
            format!("{one}---\n{b}"),
            "{".to_owned(),
        ] {
            assert!(!is_same(&one, &different), "{different}");
        }
    }
}
