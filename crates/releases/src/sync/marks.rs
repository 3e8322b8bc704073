//! The notes on the newest revision of a release, and the comparisons with them.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::release::{ConfigTrace, Likeness, Rendered, Status};
use helm_yaml::yaml;
use tracing::warn;

use super::{Sync, ownership};
use crate::revisions::marks::{Marks, labels_of_new};
use crate::revisions::{self, Revision};
use objects::key::{self, ObjectKey};

/// The kinds whose objects change the APIs that the API server serves.
const KINDS_OF_KINDS: [&str; 2] = ["CustomResourceDefinition", "APIService"];
/// The size limit of one annotation in bytes. All annotations together may have 256 KiB. A list of objects that needs
/// more is read from the release itself.
const ANNOTATION_LIMIT: usize = 128 << 10;

impl Sync<'_> {
    /// Renders the chart.
    pub(super) async fn rendering(&mut self) -> Result<Rendered, Failure> {
        let manifest = self.render().await?;
        let rendered = Rendered {
            parts: self.parts_of(&manifest)?,
            checksum: checksum(&manifest),
        };
        self.manifest = manifest;
        Ok(rendered)
    }

    /// The labels of the revision that helm makes if it starts at the time `started`.
    pub(super) fn labels_of_new(&self, started: u64) -> BTreeMap<String, String> {
        let rendered = self.facts.rendered.as_ref();
        let checksum = rendered.map(|rendered| self.partial(&rendered.checksum));
        let (asked, unmanaged) = (&self.facts.asked, self.facts.unmanaged);
        labels_of_new(checksum.as_deref(), asked, unmanaged, self.config, started)
    }

    /// Compares the rendering with the manifest in the newest revision.
    pub(super) async fn compare(&mut self) -> Result<(), Failure> {
        let deployed = revisions::manifest(&self.tools.ground.cluster, self.deployed()?).await?;
        self.facts.likeness = Some(likeness(&self.manifest, &deployed));
        Ok(())
    }

    pub(super) async fn record(&self, checksum: String) -> Result<(), Failure> {
        let revision = self.deployed()?;
        let Some(keys) = &self.objects else {
            return Err(Failure::new(
                Class::Defect,
                "an equal rendering was decided on without a look at its objects",
            ));
        };
        let marks = Marks {
            inputs: self.facts.inputs.clone(),
            checksum,
            asked: self.facts.asked.clone(),
            objects: annotation(keys),
            remarks: self.remarks_on(&self.manifest),
            unmanaged: self.facts.unmanaged,
            config: self.config,
            good: revision.newest.good,
            returned: None,
        };
        let cluster = &self.tools.ground.cluster;
        revisions::marks::mark(cluster, &revision.release, revision.newest.revision, &marks).await?;
        Ok(())
    }

    /// Whether a note is to be written on the revision of an up-to-date release.
    pub(super) fn lacks_notes(&self, revision: &Revision) -> bool {
        revision.is_held() || self.lacks_config(revision) || revision.asked.as_ref() != Some(&self.facts.asked)
    }

    fn lacks_config(&self, revision: &Revision) -> bool {
        revision.config.as_deref().and_then(ConfigTrace::parse) != Some(self.config)
    }

    /// Writes the digest of the ConfigMap's values. They may have changed although the effective values did not, or may
    /// never have been noted.
    pub(super) async fn note_config(&self) -> Result<(), Failure> {
        let revision = self.deployed()?;
        if !self.lacks_config(revision) {
            return Ok(());
        }
        Ok(revisions::marks::note_config(&self.tools.ground.cluster, revision, self.config).await?)
    }

    /// Writes the marks on the deployed revision. If they cannot be written, the next sync only has more work. It is an
    /// error if the revision is not deployed: helm ends well even if its last write was refused.
    pub(super) async fn mark_upgraded(&self, upgraded: &helm::Upgraded, good: Option<u32>) -> Result<(), Failure> {
        let (cluster, release) = (&self.tools.ground.cluster, self.facts.release.as_str());
        let remarks = self.remarks_on(&upgraded.manifest);
        self.warn_of(&remarks);
        let marked = async {
            let keys = keys_of(release, &upgraded.manifest)?;
            ownership::settle(self.tools, release, &keys).await?;
            if keys.iter().any(|key| KINDS_OF_KINDS.contains(&key.kind.as_str())) {
                cluster.forget_apis();
            }
            let checksum = self.facts.rendered.as_ref().map_or_else(
                || checksum(&upgraded.manifest),
                |rendered| self.partial(&rendered.checksum),
            );
            let marks = Marks {
                inputs: self.partial(&self.facts.inputs),
                checksum,
                asked: self.facts.asked.clone(),
                objects: annotation(&keys),
                remarks: remarks.clone(),
                unmanaged: self.facts.unmanaged,
                config: self.config,
                good,
                returned: None,
            };
            revisions::marks::mark(cluster, release, upgraded.revision, &marks)
                .await
                .map_err(Failure::from)
        };
        let mut unmarked = String::new();
        let status = match marked.await {
            Ok(status) => status,
            Err(error) => {
                let newest = revisions::newest_revision(cluster, release)
                    .await?
                    .map(|revision| revision.newest);
                let newest = newest.filter(|newest| newest.revision == upgraded.revision);
                warn!(release, %error, "cannot write the operator's labels and annotations to the release");
                unmarked = format!("; {error}");
                newest.map_or(Status::Unknown, |newest| newest.status)
            }
        };
        if status == Status::Deployed {
            return Ok(());
        }
        let report = format!(
            "helm ended well, but revision {} of release '{release}' is not deployed in its record: it is {status}{unmarked}",
            upgraded.revision
        );
        let failure = Failure::new(Class::Unavailable, report)
            .hint("does a webhook or a quota refuse writes of Secrets in this namespace?");
        Err(remarks.into_iter().fold(failure, Failure::hint))
    }
}

/// The checksum of a manifest, without the white space around it.
pub(super) fn checksum(manifest: &str) -> String {
    Digest::of_bytes(manifest.trim().as_bytes()).to_string()
}

/// How two manifests differ; an unreadable one differs from all others.
fn likeness(rendered: &str, deployed: &str) -> Likeness {
    match (yaml::documents_v2(rendered), yaml::documents_v2(deployed)) {
        (Ok(rendered), Ok(deployed)) => Likeness::of(rendered, deployed),
        (Err(_), _) | (_, Err(_)) => Likeness::Other,
    }
}

pub(super) fn keys_of(release: &str, manifest: &str) -> Result<BTreeSet<ObjectKey>, Failure> {
    let documents = yaml::documents_v2(manifest).map_err(|error| {
        Failure::new(
            Class::Invalid,
            format!("the manifest of release '{release}' is not YAML: {error}"),
        )
    })?;
    Ok(key::keys_of(&documents))
}

/// The objects in the form of the annotation; none if there are too many.
pub(super) fn annotation(keys: &BTreeSet<ObjectKey>) -> Option<String> {
    serde_json::to_string(keys)
        .ok()
        .filter(|text| text.len() <= ANNOTATION_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_render_to_nothing_and_ways_of_writing_make_no_difference() {
        let (a, b) = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', z: '2'}\n",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n",
        );
        let one = format!("---\n# Source: one/a.yaml\n{a}---\n{b}");
        let written = a.replace("{x: '1', z: '2'}", "\n  \"z\": \"2\"\n  x: |-\n    1");
        for same in [
            format!("{b}---\n{written}"),
            format!(
                "---\n---\n# Source: one/c.yaml\n\n---\n{b}---\n# nothing\n---\n{a}---\n# Source: one/d.yaml\n# nothing\n"
            ),
        ] {
            assert_eq!(likeness(&one, &same), Likeness::Same, "{same}");
        }
        for different in [one.replace("'2'", "'3'"), format!("{one}---\n{b}"), "{".to_owned()] {
            assert_eq!(likeness(&one, &different), Likeness::Other, "{different}");
        }
        assert_eq!(likeness("{", "{"), Likeness::Other);
    }
}
