//! Examines helm's records of a release, and repairs those whose remedy is certain. The core names the remedies.
//!
//! Never touches an object of the release.

use std::collections::BTreeSet;

use addon_core::failure::{Class, Failure};
use addon_core::release::brake::Part;
use addon_core::release::records::{self, Consent, Finding, Purpose, Record, Records, Remedy};
use addon_core::release::{Facts, Status};
use helm::HelmError;
use helm_yaml::yaml;
use tracing::warn;

use super::Sync;
use super::brake::part_with;
use super::marks::keys_of;
use super::removal::told;
use crate::Tools;
use crate::revisions::records::Stored;
use crate::revisions::records::made::made_for;
use crate::revisions::{self, upgrades};
use jobs::unless;
use objects::key;

/// The number of repairs in one sync. A repair changes the state; if more are needed, another program works against the
/// operator.
const REPAIRS: usize = 2;

/// API versions and kinds.
pub(super) type Kinds = BTreeSet<(String, String)>;

/// The result of an examination.
#[derive(Default)]
pub(super) struct Examination {
    /// The repaired records, each with its remedy.
    pub(super) repaired: Vec<String>,
    /// The failure for remedies that need a person.
    pub(super) refusal: Option<Failure>,
    /// The API versions and kinds of the records that can be read, if the newest record is lost.
    pub(super) lost: Option<Kinds>,
}

/// Examines all records of the release, and repairs those whose remedy is certain.
pub(super) async fn examine(tools: &Tools, facts: &Facts, purpose: Purpose) -> Result<Examination, Failure> {
    let (cluster, release) = (&tools.ground.cluster, facts.release.as_str());
    let stored = revisions::records::records(cluster, release).await?;
    // Records of another program are not ours to repair.
    if stored.last().is_some_and(|newest| !newest.is_ours) {
        return Ok(Examination::default());
    }
    let found: Vec<Record> = stored.iter().map(|stored| stored.record.clone()).collect();
    let examined = records::examine(release, &found, purpose, facts.other_helm());
    let is_certain = |finding: &&Finding| finding.consent == Consent::Needless && finding.remedy != Remedy::Wait;
    let mut repaired = Vec::new();
    for finding in examined.findings.iter().filter(is_certain) {
        let apis = cluster.apis().await?;
        revisions::records::mend(cluster, release, &stored, finding, &apis).await?;
        let (secret, flaw, remedy) = (finding.secret.as_str(), &finding.flaw, finding.remedy);
        warn!(release, secret, %flaw, %remedy, "repairing a damaged record of helm");
        repaired.push(finding.to_string());
    }
    Ok(Examination {
        repaired,
        refusal: examined.refusal(release),
        lost: examined.is_lossy.then(|| kinds_of(&stored)),
    })
}

/// The API versions and kinds of all objects in the records.
fn kinds_of(stored: &[Stored]) -> Kinds {
    let manifests = stored.iter().filter_map(Stored::manifest);
    let documents = manifests.filter_map(|manifest| yaml::documents_v2(&manifest).ok());
    let objects = documents.flatten().flat_map(key::flat);
    let keys = objects.filter_map(|object| key::key_of(&object));
    keys.map(|key| (key.api_version, key.kind)).collect()
}

/// The text about the objects that helm has made for the release and that are not known; `None` if there are none.
pub(super) async fn left(
    tools: &Tools,
    release: &str,
    kinds: &Kinds,
    is_known: impl Fn(&Part) -> bool,
) -> Result<Option<String>, Failure> {
    let cluster = &tools.ground.cluster;
    let apis = cluster.apis().await?;
    let made = made_for(cluster, release, kinds, &apis).await?;
    let parts = made.into_iter().map(|key| part_with(key, cluster.namespace()));
    let left: BTreeSet<String> = parts
        .filter(|part| !is_known(part))
        .map(|part| part.to_string())
        .collect();
    if left.is_empty() {
        return Ok(None);
    }
    let objects = Vec::from_iter(left).join(", ");
    warn!(release, objects, "objects of a lost record of helm stay");
    Ok(Some(format!(
        "the newest record is lost, and its objects stay that no other record names: {objects}"
    )))
}

impl Sync<'_> {
    pub(super) async fn repair(&mut self, revision: u32, left: Status) -> Result<(), Failure> {
        let release = self.facts.release.as_str();
        warn!(release, revision, %left, "a helm process ended before its work was done, its revision is marked as failed");
        revisions::fail_revision(&self.tools.ground.cluster, self.deployed()?).await?;
        saved_state::clear_intent(&self.tools.ground.cluster, release).await?;
        self.observe().await
    }

    pub(super) async fn amend(&mut self) -> Result<(), Failure> {
        let unserved = upgrades::amend_base(&self.tools.ground.cluster, self.deployed()?, &self.apis).await?;
        self.hold.amended.extend(told(&self.facts.release, &unserved));
        self.observe().await
    }

    /// Counts a repair, up to the limit.
    pub(super) fn count_repair(&mut self) -> Result<(), Failure> {
        self.repairs += 1;
        if self.repairs <= REPAIRS {
            return Ok(());
        }
        let report = format!(
            "release '{}' becomes unfinished or outdated again and again",
            self.facts.release
        );
        Err(Failure::new(Class::Unavailable, report).hint("does another operator manage it?"))
    }

    /// Examines the records once, and reads the release again. Returns whether a record was repaired.
    pub(super) async fn examine(&mut self) -> Result<bool, Failure> {
        let cancel = self.cancel;
        let examination = examine(self.tools, &self.facts, Purpose::Upgrade);
        let Examination {
            repaired,
            refusal,
            lost,
        } = unless(cancel, examination).await?;
        self.facts.records = Records::Examined;
        self.lost = lost;
        let is_repaired = !repaired.is_empty();
        self.hold.repaired.extend(repaired);
        refusal.map_or(Ok(()), Err)?;
        unless(cancel, self.observe()).await?;
        Ok(is_repaired)
    }

    /// Repairs damaged records, if they may be the reason why helm failed before its work. Returns whether a record was
    /// repaired.
    pub(super) async fn is_repaired_after(&mut self, error: &HelmError) -> Result<bool, Failure> {
        let is_suspect = matches!(error, HelmError::Failed { .. }) && self.hold.torn;
        if !is_suspect || self.facts.records != Records::Unread {
            return Ok(false);
        }
        self.examine().await
    }

    /// Names the objects of a lost record that the upgrade leaves behind: helm has made them for the release, the chart does
    /// not render them, and the revision from which helm upgrades does not name them.
    pub(super) async fn tell_left(&mut self) -> Result<(), Failure> {
        let Some(mut kinds) = self.lost.take() else {
            return Ok(());
        };
        if self.facts.rendered.is_none() {
            self.facts.rendered = Some(self.rendering().await?);
        }
        let release = self.facts.release.as_str();
        let rendered = keys_of(release, &self.manifest)?;
        kinds.extend(rendered.into_iter().map(|key| (key.api_version, key.kind)));
        let known = [
            self.facts.rendered.as_ref().map(|rendered| &rendered.parts),
            self.facts.base.as_ref().map(|base| &base.parts),
        ];
        let is_known = |part: &Part| known.iter().flatten().any(|parts| parts.contains(part));
        let left = left(self.tools, release, &kinds, is_known);
        let left = unless(self.cancel, left).await?;
        self.hold.repaired.extend(left);
        Ok(())
    }
}
