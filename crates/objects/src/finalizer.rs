//! Operations on one finalizer of an object.
//!
//! Must never take away, nor bring back, a finalizer of another writer: the list is written only in the version in which it
//! was read.

use addon_core::object::patch::Finalizer;
use hyper::Method;
use serde_json::{Value, json};

use super::address::{Address, Ask};
use super::change::MERGE_PATCH;
use super::race::Lost;

/// Adds the finalizer. An object that is being deleted gets none, because the API server accepts none any more.
pub(super) async fn hold(address: &Address, name: &str, finalizer: &Finalizer) -> Result<(), Lost> {
    let found = address.get(name).await?;
    let mut list = listed(&found);
    if list.contains(&finalizer.as_str()) || is_being_deleted(&found) {
        return Ok(());
    }
    list.push(finalizer.as_str());
    write(address, name, &found, &list).await
}

/// Takes the finalizer away.
pub(super) async fn free(address: &Address, name: &str, finalizer: &Finalizer) -> Result<(), Lost> {
    let found = address.get(name).await?;
    let mut list = listed(&found);
    if !list.contains(&finalizer.as_str()) {
        return Ok(());
    }
    list.retain(|one| *one != finalizer.as_str());
    write(address, name, &found, &list).await
}

async fn write(address: &Address, name: &str, found: &Value, list: &[&str]) -> Result<(), Lost> {
    let metadata = &found["metadata"];
    let patch = json!({"metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "finalizers": list,
    }});
    let ask = Ask {
        content_type: MERGE_PATCH,
        body: Some(&patch),
        ..Ask::new("patch", Method::PATCH)
    };
    address.ask(name, ask).await?;
    Ok(())
}

fn listed(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_being_deleted(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null())
}
