//! The operator's own state: one Secret with last good sections, and one with the intents of helm children, which must
//! have room however large the sections are.
//!
//! If the Secrets are lost, no release is lost. A key that cannot be read counts as absent, with a warning, and is
//! copied to another Secret before it is overwritten. Every write is a merge patch of single keys on the version that
//! was read (see `writing.rs`). So writers do not disturb each other, and nothing that a newer version or a later
//! leader wrote is lost.
//!
//! ```text
//!   last good sections, values files, values of global hooks --+
//!   notes of a trial ------------------------------------------+--> writing --> Secret addon-operator-state
//!   intents of helm children ---------------------------------------writing --> Secret addon-operator-intents
//! ```
//!
//! Begin with `load_state`.

mod given;
mod sections;
pub mod trial;
pub mod trial_sections;
mod writing;

use addon_core::module::outline::ValuesFiles;
use addon_core::operator::event::SavedState;
use addon_core::operator::provenance::Made;
use addon_core::release::Intent;
use channel_core::footing::STATE_FORMAT;
use futures::future::try_join;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use kube_access::Cluster;
use kube_access::error::RequestError;
use kube_access::known::{Changes, Data};
use serde_json::json;
use tracing::warn;

use self::sections::Sections;

/// The Secret's name.
pub const NAME: &str = "addon-operator-state";
/// The Secret with the intents of helm children.
pub const INTENTS: &str = "addon-operator-intents";
/// The Secret for contents that cannot be read.
pub const UNREADABLE: &str = "addon-operator-state-unreadable";
/// The format in which this version of the operator writes the Secret. A reader uses the known parts of a newer format.
const VERSION: &str = STATE_FORMAT;
const VERSION_KEY: &str = "version";
const LAST_GOOD_KEY: &str = "last-good";
const MADE_KEY: &str = "made";
/// The key for sections that are too long for the key above. Earlier versions do not know it.
const PACKED_KEY: &str = "last-good.gz";
const VALUES_FILES_KEY: &str = "values-files";
/// The key with the values that global hooks gave.
const GIVEN_KEY: &str = "hook-values.gz";
/// The key with the leader that last took over the state from one that might still run.
const LEADER_KEY: &str = "leader";
const INTENT_PREFIX: &str = "intent.";

/// An intent that was written.
#[derive(Debug)]
pub struct Recorded {
    key: String,
    text: Vec<u8>,
    /// The metadata of the Secret, if the Secret has only this intent.
    alone: Option<ObjectMeta>,
}

/// Reads the saved state as far as possible. After that, no write of an earlier leader succeeds. If that leader has
/// certainly ended, nothing is written for this.
pub async fn load_state(cluster: &Cluster) -> Result<SavedState, RequestError> {
    let data = match cluster.warrant().tenure() {
        Some(tenure) if !tenure.overlap.is_zero() => writing::take_over(cluster, &tenure.holder).await?,
        _ => writing::remembered(cluster, NAME).await?,
    };
    let mut last_good = None;
    for read in [plain(&data), packed(&data)].into_iter().flatten() {
        match read {
            Ok(sections) => last_good.get_or_insert_with(Sections::new).extend(sections),
            Err(problem) => problem.told("going on without it"),
        }
    }
    Ok(SavedState {
        last_good,
        made: noted(&data, MADE_KEY),
        values_files: noted(&data, VALUES_FILES_KEY),
        trial_sections: trial_sections::read(&data),
        given: given_in(&data),
    })
}

/// Stores the last good sections, and the facts about a ConfigMap that a program made. Returns the keys that found
/// no room.
pub async fn save_last_good(
    cluster: &Cluster,
    last_good: &Sections,
    made: Option<&Made>,
) -> Result<Vec<String>, RequestError> {
    let last_good = last_good.clone();
    let stored = blocking::run(move || sections::store(&last_good)).await;
    let changes = [
        (LAST_GOOD_KEY, Some(stored.plain.into_bytes())),
        (PACKED_KEY, stored.packed),
        (MADE_KEY, made.map(|made| json!(made).to_string().into_bytes())),
    ];
    let changes = changes.map(|(key, value)| (key.to_owned(), value)).into();
    writing::remember(cluster, NAME, &changes).await?;
    Ok(stored.left_out)
}

/// Stores the contents of the common values files.
pub async fn save_values_files(cluster: &Cluster, files: &ValuesFiles) -> Result<(), RequestError> {
    let change = (VALUES_FILES_KEY.to_owned(), Some(json!(files).to_string().into_bytes()));
    writing::remember(cluster, NAME, &[change].into()).await.map(|_| ())
}

/// Stores the values that global hooks gave in their last good runs.
pub async fn save_given(cluster: &Cluster, given: given::All) -> Result<(), RequestError> {
    let stored = blocking::run(move || given::store(given)).await;
    let stored = stored.unwrap_or_else(|error| {
        warn!(%error, "cannot compress the values of global hooks, they are not kept for a restart");
        given::Stored::default()
    });
    for hook in stored.left_out {
        warn!(
            hook = hook.as_str(),
            "The values of a global hook are too large to be kept, modules wait for the hook if it fails at a start"
        );
    }
    let change = (GIVEN_KEY.to_owned(), stored.packed);
    writing::remember(cluster, NAME, &[change].into()).await.map(|_| ())
}

/// The intent of a helm child on this release whose end was not observed.
pub async fn intent(cluster: &Cluster, release: &str) -> Result<Option<Intent>, RequestError> {
    let key = intent_key(release);
    // Earlier versions stored the intent in the other Secret.
    let (intents, state) = try_join(
        writing::remembered(cluster, INTENTS),
        writing::remembered(cluster, NAME),
    )
    .await?;
    for (secret, mut data) in [(INTENTS, intents), (NAME, state)] {
        let intent = data.remove(&key);
        let intent = intent.filter(|text| !cluster.known().has_ended(&key, &text.0));
        match intent.map(|intent| serde_json::from_slice(&intent.0)) {
            Some(Ok(intent)) => return Ok(Some(intent)),
            Some(Err(error)) => warn!(secret, key, %error, "cannot read our own state, going on without it"),
            None => {}
        }
    }
    Ok(None)
}

/// Stores that a helm child is about to work on the release. Intents of this process whose children have ended are
/// removed by the same write.
pub async fn record_intent(cluster: &Cluster, release: &str, intent: &Intent) -> Result<Recorded, RequestError> {
    let key = intent_key(release);
    let text = json!(intent).to_string().into_bytes();
    let ended = cluster.known().ended();
    let changes = |data: &Data| {
        let mut changes = ended.still_in(data);
        changes.insert(key.clone(), Some(text.clone()));
        changes
    };
    let secret = Box::pin(writing::change(cluster, INTENTS, changes)).await?;
    cluster.known().are_removed(&ended);
    let alone = secret.filter(|secret| remembers_nothing_but(&key, secret));
    let alone = alone.map(|secret| secret.metadata);
    Ok(Recorded { key, text, alone })
}

/// Notes in memory that the child of a stored intent has ended well. There is no request: the write of the next intent
/// removes this one. If no other intent comes, this one stays, and explains nothing that another program does.
pub fn note_end(cluster: &Cluster, recorded: Recorded) {
    cluster.known().end(recorded.key, recorded.text);
}

/// Removes a stored intent, after the child has ended with a known outcome.
pub async fn clear_recorded(cluster: &Cluster, recorded: Recorded) -> Result<(), RequestError> {
    if let Some(seen) = recorded.alone
        && writing::drop_secret(cluster, INTENTS, seen).await?
    {
        return Ok(());
    }
    writing::forget(cluster, INTENTS, &recorded.key).await
}

/// Removes the intent for the release, whatever the version of the Secret is.
pub async fn clear_intent(cluster: &Cluster, release: &str) -> Result<(), RequestError> {
    let key = intent_key(release);
    writing::forget(cluster, INTENTS, &key).await?;
    writing::forget(cluster, NAME, &key).await
}

/// Whether the Secret has only this key, and the format of this version of the operator. Data of a newer version is
/// never dropped.
fn remembers_nothing_but(key: &str, secret: &Secret) -> bool {
    let mut data = secret.data.iter().flatten();
    data.all(|(own, value)| own == key || own == VERSION_KEY && value.0 == VERSION.as_bytes())
}

fn intent_key(release: &str) -> String {
    format!("{INTENT_PREFIX}{release}")
}

/// A key of a Secret of ours with invalid contents.
#[derive(Debug)]
struct Unreadable {
    key: &'static str,
    error: String,
}

impl Unreadable {
    fn told(&self, what_then: &str) {
        let Self { key, error } = self;
        warn!(secret = NAME, key, error, "cannot read our own state, {what_then}");
    }
}

/// The sections that are stored as text.
fn plain(data: &Data) -> Option<Result<Sections, Unreadable>> {
    let read = serde_json::from_slice(&data.get(LAST_GOOD_KEY)?.0);
    Some(read.map_err(|error| Unreadable {
        key: LAST_GOOD_KEY,
        error: error.to_string(),
    }))
}

/// A small entry beside the sections; an invalid one counts as absent.
fn noted<T: serde::de::DeserializeOwned>(data: &Data, key: &str) -> Option<T> {
    let read = serde_json::from_slice(&data.get(key)?.0);
    read.inspect_err(|error| warn!(secret = NAME, key, %error, "cannot read our own state, going on without it"))
        .ok()
}

/// The values that global hooks gave; unreadable ones count as absent.
fn given_in(data: &Data) -> given::All {
    let read = data.get(GIVEN_KEY).map(|packed| given::unpack(&packed.0)).transpose();
    let told =
        |error: &_| warn!(secret = NAME, key = GIVEN_KEY, %error, "cannot read our own state, going on without it");
    read.inspect_err(told).ok().flatten().unwrap_or_default()
}

/// The sections that are stored compressed.
fn packed(data: &Data) -> Option<Result<Sections, Unreadable>> {
    let beside = data.get(LAST_GOOD_KEY).map_or(&[][..], |plain| &plain.0);
    let read = sections::unpack(&data.get(PACKED_KEY)?.0, beside);
    Some(read.map_err(|error| Unreadable {
        key: PACKED_KEY,
        error: error.to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn unreadable_content_is_no_content() {
        let read = |text: &str| plain(&[(LAST_GOOD_KEY.to_owned(), ByteString(text.into()))].into());
        assert_eq!(read(r#"{"a":"b"}"#).unwrap().unwrap()["a"], "b");
        assert!(read(r#"{"a":"#).unwrap().is_err());
        assert!(read("[1]").unwrap().is_err());
        assert!(plain(&Data::new()).is_none());
    }
}
