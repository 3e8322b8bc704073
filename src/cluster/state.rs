//! Our own state: one Secret that remembers last good sections and helm children under way.
//!
//! Losing it loses no release. What cannot be read is as if it were not there, with a warning; every write is a merge
//! patch of its own keys, so that writers do not disturb each other and nothing a newer version wrote is lost.

use std::collections::BTreeMap;

use addon_core::module::outline::ValuesFiles;
use addon_core::operator::event::SavedState;
use addon_core::release::Intent;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::warn;

use super::Cluster;
use super::error::RequestError;

/// The Secret's name.
pub const NAME: &str = "addon-operator-state";
/// What this version writes. A reader takes of a higher one what it knows.
const VERSION: &str = "1";
const VERSION_KEY: &str = "version";
const LAST_GOOD_KEY: &str = "last-good";
const VALUES_FILES_KEY: &str = "values-files";
const INTENT_PREFIX: &str = "intent.";

/// That an intent stands in the Secret; if nothing else does, the Secret as it was then.
#[derive(Debug)]
pub struct Recorded(Option<ObjectMeta>);

impl Cluster {
    /// What was last saved; empty if nothing was, or nothing that can be read.
    pub async fn load_state(&self) -> Result<SavedState, RequestError> {
        let data = self.state_data().await?;
        Ok(SavedState {
            last_good: read(&data, LAST_GOOD_KEY).unwrap_or_default(),
            values_files: read(&data, VALUES_FILES_KEY),
        })
    }

    /// Makes these the last good entries.
    pub async fn save_last_good(&self, last_good: &BTreeMap<String, String>) -> Result<(), RequestError> {
        self.patch_state(LAST_GOOD_KEY, &json!(last_good)).await.map(|_| ())
    }

    /// Keeps what the common values files say.
    pub async fn save_values_files(&self, files: &ValuesFiles) -> Result<(), RequestError> {
        self.patch_state(VALUES_FILES_KEY, &json!(files)).await.map(|_| ())
    }

    /// The helm child of ours on this release that was not seen to end.
    pub async fn intent(&self, release: &str) -> Result<Option<Intent>, RequestError> {
        Ok(read(&self.state_data().await?, &intent_key(release)))
    }

    /// Remembers that a helm child is about to work on the release.
    pub async fn record_intent(&self, release: &str, intent: &Intent) -> Result<Recorded, RequestError> {
        let key = intent_key(release);
        let secret = self.patch_state(&key, &json!(intent)).await?;
        let alone = remembers_nothing_but(&key, &secret).then_some(secret.metadata);
        Ok(Recorded(alone))
    }

    /// Forgets what was recorded: the child has ended and told us how.
    pub async fn clear_recorded(&self, release: &str, recorded: Recorded) -> Result<(), RequestError> {
        if let Some(seen) = recorded.0
            && self.drop_state(seen).await?
        {
            return Ok(());
        }
        self.clear_intent(release).await
    }

    /// Forgets what we meant to do with the release. When nothing else is remembered, the Secret goes too.
    pub async fn clear_intent(&self, release: &str) -> Result<(), RequestError> {
        let key = intent_key(release);
        match self.merge_state(&key, Value::Null).await {
            Ok(secret) if remembers_nothing_but(&key, &secret) => self.drop_state(secret.metadata).await.map(|_| ()),
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the Secret as it was seen; one that somebody wrote to meanwhile stays, and the answer is no.
    async fn drop_state(&self, seen: ObjectMeta) -> Result<bool, RequestError> {
        let params = DeleteParams::default().preconditions(Preconditions {
            resource_version: seen.resource_version,
            uid: seen.uid,
        });
        let secrets = self.secrets();
        let deleted = self
            .ask(self.attempt("delete", "secrets", NAME), secrets.delete(NAME, &params))
            .await;
        match deleted {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn state_data(&self) -> Result<BTreeMap<String, ByteString>, RequestError> {
        let secret = self
            .ask(self.attempt("get", "secrets", NAME), self.secrets().get_opt(NAME))
            .await?;
        Ok(secret.and_then(|secret| secret.data).unwrap_or_default())
    }

    async fn patch_state(&self, key: &str, value: &Value) -> Result<Secret, RequestError> {
        let text = value.to_string();
        // The second round is for a Secret that somebody else created or deleted between two requests.
        for _ in 0..2 {
            match self.merge_state(key, json!(STANDARD.encode(&text))).await {
                Err(error) if error.is_not_found() => {}
                patched => return patched,
            }
            match self.create_state(key, &text).await {
                Err(error) if error.is_conflict() => {}
                created => return created,
            }
        }
        Err(RequestError::Unusable {
            attempt: self.attempt("patch", "secrets", NAME),
            problem: "the Secret is created and deleted again and again".to_owned(),
        })
    }

    async fn merge_state(&self, key: &str, value: Value) -> Result<Secret, RequestError> {
        let patch = Patch::Merge(json!({"data": {key: value}}));
        let (secrets, params) = (self.secrets(), PatchParams::default());
        self.ask(
            self.attempt("patch", "secrets", NAME),
            secrets.patch(NAME, &params, &patch),
        )
        .await
    }

    async fn create_state(&self, key: &str, text: &str) -> Result<Secret, RequestError> {
        let data = [(VERSION_KEY, VERSION), (key, text)];
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(data.map(|(key, text)| (key.to_owned(), ByteString(text.into()))).into()),
            ..Secret::default()
        };
        let created = self.secrets();
        self.ask(
            self.attempt("create", "secrets", NAME),
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

fn read<T: DeserializeOwned>(data: &BTreeMap<String, ByteString>, key: &str) -> Option<T> {
    let bytes = &data.get(key)?.0;
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            warn!(secret = NAME, key, %error, "cannot read our own state, going on without it");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_content_is_no_content() {
        let data = [("good", r#"{"a":"b"}"#), ("cut", r#"{"a":"#), ("other", "[1]")]
            .map(|(key, text)| (key.to_owned(), ByteString(text.into())))
            .into();
        let read = |key| read::<BTreeMap<String, String>>(&data, key);
        assert_eq!(read("good").unwrap()["a"], "b");
        assert_eq!(read("cut"), None);
        assert_eq!(read("other"), None);
        assert_eq!(read("absent"), None);
    }
}
