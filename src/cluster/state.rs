//! Our own state: one Secret that remembers last good sections, and one for helm children under way, which must find room
//! however large the sections are.
//!
//! Losing them loses no release. What cannot be read is as if it were not there, with a warning, and is put aside before
//! it is written over; every write is a merge patch of its own keys, so that writers do not disturb each other and nothing
//! a newer version wrote is lost.

mod sections;

use std::collections::BTreeMap;

use addon_core::module::outline::ValuesFiles;
use addon_core::operator::event::SavedState;
use addon_core::operator::provenance::Made;
use addon_core::release::Intent;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use tracing::warn;

use self::sections::Sections;
use super::Cluster;
use super::error::RequestError;

/// The Secret's name.
pub const NAME: &str = "addon-operator-state";
/// The one that holds what helm children are about to do.
pub const INTENTS: &str = "addon-operator-intents";
/// Where that is put which cannot be read.
pub const UNREADABLE: &str = "addon-operator-state-unreadable";
/// What this version writes. A reader takes of a higher one what it knows.
const VERSION: &str = "1";
const VERSION_KEY: &str = "version";
const LAST_GOOD_KEY: &str = "last-good";
const MADE_KEY: &str = "made";
/// The key of texts that find no room in the one above. Earlier versions do not know it.
const PACKED_KEY: &str = "last-good.gz";
const VALUES_FILES_KEY: &str = "values-files";
const INTENT_PREFIX: &str = "intent.";

type Data = BTreeMap<String, ByteString>;
/// Keys with what they are to hold; without it they go.
type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// That an intent stands in its Secret; if nothing else does, the Secret as it was then.
#[derive(Debug)]
pub struct Recorded(Option<ObjectMeta>);

impl Cluster {
    /// The state that was last saved, as far as it can be read.
    pub async fn load_state(&self) -> Result<SavedState, RequestError> {
        let data = self.remembered(NAME).await?;
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
        })
    }

    /// Makes these the last good entries, and this what is known of a ConfigMap that a program made. Returns the keys of those that found no room.
    pub async fn save_last_good(&self, last_good: &Sections, made: Option<&Made>) -> Result<Vec<String>, RequestError> {
        let last_good = last_good.clone();
        let stored = tokio::task::spawn_blocking(move || sections::store(&last_good)).await;
        let stored = stored.map_err(|error| RequestError::Unusable {
            attempt: self.attempt("patch", "secrets", NAME),
            problem: error.to_string(),
        })?;
        self.put_aside(&self.remembered(NAME).await?).await?;
        let changes = [
            (LAST_GOOD_KEY, Some(stored.plain.into_bytes())),
            (PACKED_KEY, stored.packed),
            (MADE_KEY, made.map(|made| json!(made).to_string().into_bytes())),
        ];
        let changes = changes.map(|(key, value)| (key.to_owned(), value)).into();
        self.remember(NAME, &changes).await?;
        Ok(stored.left_out)
    }

    /// A state that nobody can read is about to be written over: it is put aside for people to look at.
    async fn put_aside(&self, data: &Data) -> Result<(), RequestError> {
        let read = [plain(data), packed(data)].into_iter().flatten();
        let unreadable: Data = read
            .filter_map(Result::err)
            .filter_map(|problem| Some((problem.key.to_owned(), data.get(problem.key)?.clone())))
            .collect();
        if unreadable.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = unreadable.keys().cloned().collect();
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(UNREADABLE.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(unreadable),
            ..Secret::default()
        };
        let secrets = self.secrets();
        let created = self
            .ask(
                self.attempt("create", "secrets", UNREADABLE),
                secrets.create(&PostParams::default(), &secret),
            )
            .await;
        match created {
            Ok(_) => warn!(
                secret = NAME,
                ?keys,
                kept = UNREADABLE,
                "our own state that cannot be read is put aside"
            ),
            // The state that was put aside first is the older one, and nobody has looked at it yet.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Keeps what the common values files say.
    pub async fn save_values_files(&self, files: &ValuesFiles) -> Result<(), RequestError> {
        let change = (VALUES_FILES_KEY.to_owned(), Some(json!(files).to_string().into_bytes()));
        self.remember(NAME, &[change].into()).await.map(|_| ())
    }

    /// The helm child of ours on this release that was not seen to end.
    pub async fn intent(&self, release: &str) -> Result<Option<Intent>, RequestError> {
        let key = intent_key(release);
        for secret in [INTENTS, NAME] {
            // Earlier versions recorded it beside the sections.
            let intent = self.remembered(secret).await?.remove(&key);
            match intent.map(|intent| serde_json::from_slice(&intent.0)) {
                Some(Ok(intent)) => return Ok(Some(intent)),
                Some(Err(error)) => warn!(secret, key, %error, "cannot read our own state, going on without it"),
                None => {}
            }
        }
        Ok(None)
    }

    /// Remembers that a helm child is about to work on the release.
    pub async fn record_intent(&self, release: &str, intent: &Intent) -> Result<Recorded, RequestError> {
        let key = intent_key(release);
        let text = json!(intent).to_string().into_bytes();
        let secret = self.remember(INTENTS, &[(key.clone(), Some(text))].into()).await?;
        let alone = remembers_nothing_but(&key, &secret).then_some(secret.metadata);
        Ok(Recorded(alone))
    }

    /// Forgets what was recorded: the child has ended and told us how.
    pub async fn clear_recorded(&self, release: &str, recorded: Recorded) -> Result<(), RequestError> {
        if let Some(seen) = recorded.0
            && self.drop_secret(INTENTS, seen).await?
        {
            return Ok(());
        }
        self.forget(INTENTS, &intent_key(release)).await
    }

    /// Forgets what we meant to do with the release, whichever version recorded it.
    pub async fn clear_intent(&self, release: &str) -> Result<(), RequestError> {
        let key = intent_key(release);
        self.forget(INTENTS, &key).await?;
        self.forget(NAME, &key).await
    }

    /// Drops a key. When nothing else is remembered, the Secret goes too.
    async fn forget(&self, name: &str, key: &str) -> Result<(), RequestError> {
        match self.merge(name, &[(key.to_owned(), None)].into()).await {
            Ok(secret) if remembers_nothing_but(key, &secret) => {
                self.drop_secret(name, secret.metadata).await.map(|_| ())
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the Secret as it was seen; one that somebody wrote to meanwhile stays, and the answer is no.
    async fn drop_secret(&self, name: &str, seen: ObjectMeta) -> Result<bool, RequestError> {
        let params = DeleteParams::default().preconditions(Preconditions {
            resource_version: seen.resource_version,
            uid: seen.uid,
        });
        let secrets = self.secrets();
        let deleted = self
            .ask(self.attempt("delete", "secrets", name), secrets.delete(name, &params))
            .await;
        match deleted {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn remembered(&self, name: &str) -> Result<Data, RequestError> {
        let secret = self
            .ask(self.attempt("get", "secrets", name), self.secrets().get_opt(name))
            .await?;
        Ok(secret.and_then(|secret| secret.data).unwrap_or_default())
    }

    async fn remember(&self, name: &str, changes: &Changes) -> Result<Secret, RequestError> {
        // The second round is for a Secret that somebody else created or deleted between two requests.
        for _ in 0..2 {
            match self.merge(name, changes).await {
                Err(error) if error.is_not_found() => {}
                patched => return patched,
            }
            match self.create(name, changes).await {
                Err(error) if error.is_conflict() => {}
                created => return created,
            }
        }
        Err(RequestError::Unusable {
            attempt: self.attempt("patch", "secrets", name),
            problem: "the Secret is created and deleted again and again".to_owned(),
        })
    }

    async fn merge(&self, name: &str, changes: &Changes) -> Result<Secret, RequestError> {
        let encoded = changes.iter().map(|(key, value)| {
            let value = value
                .as_ref()
                .map_or(Value::Null, |value| json!(STANDARD.encode(value)));
            (key.clone(), value)
        });
        let data: serde_json::Map<_, _> = encoded.collect();
        let patch = Patch::Merge(json!({"data": data}));
        let (secrets, params) = (self.secrets(), PatchParams::default());
        self.ask(
            self.attempt("patch", "secrets", name),
            secrets.patch(name, &params, &patch),
        )
        .await
    }

    async fn create(&self, name: &str, changes: &Changes) -> Result<Secret, RequestError> {
        let changed = changes
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), ByteString(value.clone()?))));
        let version = (VERSION_KEY.to_owned(), ByteString(VERSION.into()));
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(changed.chain([version]).collect()),
            ..Secret::default()
        };
        let created = self.secrets();
        self.ask(
            self.attempt("create", "secrets", name),
            created.create(&PostParams::default(), &secret),
        )
        .await
    }
}

/// Nothing stands in it but this key and our own version: what a newer version wrote is never dropped.
fn remembers_nothing_but(key: &str, secret: &Secret) -> bool {
    let mut data = secret.data.iter().flatten();
    data.all(|(own, value)| own == key || own == VERSION_KEY && value.0 == VERSION.as_bytes())
}

fn intent_key(release: &str) -> String {
    format!("{INTENT_PREFIX}{release}")
}

/// A key that holds something else than it should.
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

/// The sections that stand there as text.
fn plain(data: &Data) -> Option<Result<Sections, Unreadable>> {
    let read = serde_json::from_slice(&data.get(LAST_GOOD_KEY)?.0);
    Some(read.map_err(|error| Unreadable {
        key: LAST_GOOD_KEY,
        error: error.to_string(),
    }))
}

/// A small note beside the sections; one that cannot be read is none.
fn noted<T: serde::de::DeserializeOwned>(data: &Data, key: &str) -> Option<T> {
    let read = serde_json::from_slice(&data.get(key)?.0);
    read.inspect_err(|error| warn!(secret = NAME, key, %error, "cannot read our own state, going on without it"))
        .ok()
}

/// Those that are packed.
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
