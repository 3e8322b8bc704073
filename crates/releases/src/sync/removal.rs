//! Removes a release. Only an explicit job does this, and a release of another program is refused.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::event::Reworked;
use addon_core::release::brake::Asked;
use addon_core::release::records::{Purpose, Records};
use addon_core::release::{self, Facts, Intent, IntentKind, Known, Objects};
use kube_access::apis::Apis;
use report::Chain;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::holds::Past;
use super::observed::{forget_unless_unfinished, now, observe};
use super::records::Kinds;
use super::withdrawal::withdraw;
use super::{ownership, records};
use crate::Tools;
use crate::revisions::Revision;
use crate::revisions::unserved::Unserved;
use crate::revisions::vanishing;
use jobs::acting::Acting;
use jobs::unless;
use objects::key;

/// Removes one of the operator's releases. If it does not exist, that is a success. Returns the changes to helm's
/// records.
pub async fn delete(tools: &Tools, release: &str, cancel: &CancellationToken) -> Result<Reworked, Failure> {
    let outcome = Box::pin(remove(tools, release, cancel)).await;
    tools.ground.explained(outcome, cancel).await
}

async fn remove(tools: &Tools, release: &str, cancel: &CancellationToken) -> Result<Reworked, Failure> {
    let mut hold = unless(cancel, async { Ok(tools.holds.hold(release).await) }).await?;
    let mut facts = facts(release, tools.helm.options().timeout);
    let seen = unless(cancel, observe(tools, &mut facts)).await?;
    if seen.is_some_and(|revision| revision.is_handed_over) {
        info!(
            release,
            "the release is left alone: it was handed over, and none of its revisions is the operator's"
        );
        return Ok(reworked(&mut hold));
    }
    if let Some(failure) = release::delay_of_repair(&facts) {
        return Err(failure);
    }
    let lost = unless(cancel, examine(tools, &mut facts, &mut hold)).await?;
    let Some(revision) = unless(cancel, observe(tools, &mut facts)).await? else {
        // The operator may have been killed after helm had ended, and before the intent was removed.
        if let Err(error) = saved_state::clear_intent(&tools.ground.cluster, release).await {
            warn!(release, error = %Chain(&error), "cannot delete the note about an ended helm process from the release");
        }
        ownership::settle(tools, release, &BTreeSet::new()).await?;
        return Ok(reworked(&mut hold));
    };
    if let Some(failure) = release::delay_of_removal(&facts) {
        return Err(failure);
    }
    let acting = unless(cancel, tools.ground.acting_for(release, tools.helm.deadline())).await?;
    hold.amended.extend(prepare(tools, &acting, &revision, cancel).await?);
    let intent = intent(&revision, &facts);
    tools.helm.version().await?;
    info!(release, "uninstalling the release");
    let recorded = saved_state::record_intent(&tools.ground.cluster, release, &intent).await?;
    let uninstalled = tools.helm.uninstall(release, acting.kubeconfig(), cancel).await;
    tools.ground.cluster.forget_apis();
    if let Err(error) = uninstalled {
        forget_unless_unfinished(tools, release).await;
        acting.forget();
        return Err(error.into());
    }
    hold.torn = false;
    if let Some(kinds) = lost {
        let left = records::left(tools, release, &kinds, |_| false).await;
        hold.repaired.extend(left.unwrap_or_default());
    }
    // The release is gone, so a failure from here on must not repeat the removal.
    if let Err(failure) = ownership::settle(tools, release, &BTreeSet::new()).await {
        let error = failure.report;
        warn!(
            release,
            error, "the release is uninstalled, but it still claims its objects"
        );
    }
    if let Err(error) = saved_state::clear_recorded(&tools.ground.cluster, recorded).await {
        warn!(release, error = %Chain(&error), "the release is uninstalled, but the record of the helm run could not be removed");
    }
    Ok(reworked(&mut hold))
}

fn intent(revision: &Revision, facts: &Facts) -> Intent {
    Intent {
        kind: IntentKind::Uninstall,
        revision_before: revision.newest.revision,
        digest: String::new(),
        started: now(),
        marks: true,
        holder: facts.tenure.as_ref().map(|tenure| tenure.holder.clone()),
    }
}

/// Repairs the records before helm reads them: helm would leave behind the records that it cannot read, with their
/// objects. Returns the kinds of which objects may stay, if the newest record is lost.
async fn examine(tools: &Tools, facts: &mut Facts, hold: &mut Past) -> Result<Option<Kinds>, Failure> {
    if facts.newest.is_none() {
        return Ok(None);
    }
    let examination = records::examine(tools, facts, Purpose::Removal).await?;
    facts.records = Records::Examined;
    hold.repaired.extend(examination.repaired);
    examination.refusal.map_or(Ok(examination.lost), Err)
}

/// Everything that was done to the records and not reported yet.
fn reworked(hold: &mut Past) -> Reworked {
    Reworked {
        amended: mem::take(&mut hold.amended),
        repaired: mem::take(&mut hold.repaired),
    }
}

/// Prepares the removal, so that helm can remove all objects of the release: deletes webhooks that would refuse the
/// removal, and amends the record. Returns the objects that were not served as the record named them.
async fn prepare(
    tools: &Tools,
    acting: &Acting<'_>,
    revision: &Revision,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Failure> {
    let apis = unless(cancel, certain_apis(tools, revision)).await?;
    let missed = unless(cancel, missed(tools, acting, revision, &apis)).await?;
    unless(cancel, withdraw(tools, acting, revision, &missed)).await?;
    unless(cancel, amend(tools, revision, &missed, &apis)).await
}

/// The served APIs, asked anew, because a version in a list that is a few seconds old may be gone since. Fails if a
/// version in the revision has just ceased to be served.
async fn certain_apis(tools: &Tools, revision: &Revision) -> Result<Arc<Apis>, Failure> {
    tools.ground.cluster.forget_apis();
    let apis = tools.ground.cluster.apis().await?;
    vanishing::refuse_vanishing_of(&tools.ground.cluster, revision, &apis).await?;
    Ok(apis)
}

/// The objects that helm would leave behind, because the record of a failed upgrade does not name them.
async fn missed(tools: &Tools, acting: &Acting<'_>, revision: &Revision, apis: &Apis) -> Result<Vec<Value>, Failure> {
    let missed = crate::revisions::missed::missed(&tools.ground.cluster, revision, acting.cluster(), apis).await?;
    let keys: Vec<String> = missed
        .iter()
        .filter_map(key::key_of)
        .map(|key| key.to_string())
        .collect();
    if !keys.is_empty() {
        let (release, objects) = (revision.release.as_str(), keys.join(", "));
        info!(
            release,
            objects, "objects that the failed upgrade does not name are removed with the release"
        );
    }
    Ok(missed)
}

/// Rewrites the record by which helm would remove the release, if the record names kinds that are no longer served, or
/// too few objects.
async fn amend(tools: &Tools, revision: &Revision, missed: &[Value], apis: &Apis) -> Result<Vec<String>, Failure> {
    let unserved = crate::revisions::unserved::amend(&tools.ground.cluster, revision, missed, apis).await?;
    Ok(told(&revision.release, &unserved))
}

/// Logs the objects that were not served as a record named them, and returns them in words.
pub(super) fn told(release: &str, unserved: &[Unserved]) -> Vec<String> {
    let objects: Vec<String> = unserved.iter().map(ToString::to_string).collect();
    if !objects.is_empty() {
        let objects = objects.join(", ");
        warn!(
            release,
            objects, "the stored release names kinds that the API server does not serve, so its record is rewritten"
        );
    }
    objects
}

/// The facts for a removal, which depend only on the release's state and not on a chart. A run of a module adds those of
/// its chart.
pub(super) fn facts(release: &str, helm_timeout: Duration) -> Facts {
    Facts {
        release: release.to_owned(),
        inputs: String::new(),
        asked: Asked::default(),
        version: None,
        unmanaged: false,
        unhealthy: None,
        newest: None,
        known: Known::Read,
        records: Records::Unread,
        objects: Objects::Unknown,
        base: None,
        rendered: None,
        likeness: None,
        intent: None,
        torn: false,
        tenure: None,
        unchanged: Duration::ZERO,
        helm_timeout,
    }
}
