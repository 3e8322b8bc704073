//! Verbs that replace a forbidden one: a list of one name for `get`, an update for `patch`. Roles written for the
//! original operators may allow only these.
//!
//! The better verb is tried first each time, so a right that is granted later takes effect at once. Must never do more
//! to an object than the better verb would, and never hide another error.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use addon_core::failure::Failure;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::warn;

use crate::Cluster;
use crate::error::{Attempt, RequestError};

/// The number of attempts for a replacement when another writer is faster.
const ROUNDS: usize = 3;

/// The missing verbs that were logged, each with its resource. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Lacking(Arc<Mutex<BTreeSet<(&'static str, String)>>>);

/// A kind of object that can be read and written.
pub trait Object: Resource + Clone + fmt::Debug + Serialize + DeserializeOwned {}

impl<K: Resource + Clone + fmt::Debug + Serialize + DeserializeOwned> Object for K {}

impl Lacking {
    /// Logs a refusal, once in the life of the process.
    pub fn tell(&self, refusal: RequestError, instead: &'static str) {
        let attempt = refusal.attempt();
        let (verb, resource) = (attempt.verb, attempt.resource.clone());
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.insert((verb, resource.clone())) {
            return;
        }
        let Failure { report, hints, .. } = refusal.into();
        warn!(
            verb,
            resource,
            instead,
            error = report,
            hint = hints.join("; "),
            "A verb is forbidden, another one serves in its place"
        );
    }
}

impl Cluster {
    /// Reads the object of the attempt; `None` if it does not exist. If `get` is forbidden, a list is used.
    pub async fn find<K: Object>(&self, api: &Api<K>, attempt: Attempt) -> Result<Option<K>, RequestError> {
        let get = Attempt { verb: "get", ..attempt };
        let refusal = match self.ask(get.clone(), api.get_opt(&get.name)).await {
            Err(error) if error.is_forbidden() => error,
            found => return found,
        };
        let list = Attempt { verb: "list", ..get };
        let params = ListParams::default().fields(&format!("metadata.name={}", list.name));
        let found = match self.ask(list, api.list(&params)).await {
            // The first refusal has the better hint.
            Err(error) if error.is_forbidden() => return Err(refusal),
            found => found?,
        };
        self.lacking.tell(refusal, "list");
        Ok(found.items.into_iter().next())
    }

    /// Sends a merge patch for the object of the attempt. If `patch` is forbidden, the object is read, changed in the
    /// same way and replaced.
    pub async fn patch_or_replace<K: Object>(
        &self,
        api: &Api<K>,
        attempt: Attempt,
        patch: &Value,
    ) -> Result<K, RequestError> {
        self.patched(api, attempt, patch, false).await
    }

    /// The same in a dry run: nothing changes, and the result is the object as it would be.
    pub async fn try_patch_or_replace<K: Object>(
        &self,
        api: &Api<K>,
        attempt: Attempt,
        patch: &Value,
    ) -> Result<K, RequestError> {
        self.patched(api, attempt, patch, true).await
    }

    async fn patched<K: Object>(
        &self,
        api: &Api<K>,
        attempt: Attempt,
        patch: &Value,
        dry_run: bool,
    ) -> Result<K, RequestError> {
        let attempt = Attempt {
            verb: "patch",
            ..attempt
        };
        let params = PatchParams {
            dry_run,
            ..PatchParams::default()
        };
        let merge = Patch::Merge(patch);
        let patched = api.patch(&attempt.name, &params, &merge);
        match self.ask(attempt.clone(), patched).await {
            Err(error) if error.is_forbidden() => Box::pin(self.replaced(api, error, patch, dry_run)).await,
            patched => patched,
        }
    }

    /// Replaces the object after a refused merge patch. A resource version in the patch has to match.
    pub async fn replace_instead<K: Object>(
        &self,
        api: &Api<K>,
        refusal: RequestError,
        patch: &Value,
    ) -> Result<K, RequestError> {
        self.replaced(api, refusal, patch, false).await
    }

    async fn replaced<K: Object>(
        &self,
        api: &Api<K>,
        refusal: RequestError,
        patch: &Value,
        dry_run: bool,
    ) -> Result<K, RequestError> {
        let is_versioned = !patch["metadata"]["resourceVersion"].is_null();
        let rounds = if is_versioned { 1 } else { ROUNDS };
        for round in 1..=rounds {
            match self.replace_patched(api, refusal.attempt(), patch, dry_run).await {
                Err(error) if error.is_forbidden() => return Err(refusal),
                Err(error) if error.is_conflict() && round < rounds => {}
                Err(error) => return Err(error),
                Ok(replaced) => {
                    self.lacking.tell(refusal, "update");
                    return Ok(replaced);
                }
            }
        }
        Err(refusal)
    }

    async fn replace_patched<K: Object>(
        &self,
        api: &Api<K>,
        about: &Attempt,
        patch: &Value,
        dry_run: bool,
    ) -> Result<K, RequestError> {
        let update = Attempt {
            verb: "update",
            ..about.clone()
        };
        let unusable = |problem: &str| RequestError::Unusable {
            attempt: update.clone(),
            problem: problem.to_owned(),
        };
        let found = self.find(api, update.clone()).await?;
        let found = found.ok_or_else(|| unusable("the object no longer exists"))?;
        let mut wanted = json!(found);
        lay(&mut wanted, patch);
        let wanted: K = serde_json::from_value(wanted).map_err(|error| unusable(&error.to_string()))?;
        let params = PostParams {
            dry_run,
            ..PostParams::default()
        };
        self.ask(update.clone(), api.replace(&update.name, &params, &wanted))
            .await
    }
}

/// Applies a merge patch to an object as the API server does (RFC 7396).
pub fn lay(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        object.clone_from(patch);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    let fields = object.as_object_mut().expect("it was made an object above");
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            lay(fields.entry(key).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_object_is_what_the_patch_would_have_made() {
        // Rows from the RFC, one of each kind.
        for (object, patch, wanted) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut made = object.clone();
            lay(&mut made, &patch);
            assert_eq!(made, wanted, "{object} {patch}");
        }
    }
}
