//! The objects of an Application as they are in the cluster, compared with those that its module renders. The API server applies these in
//! dry runs, so its defaults are no differences.
//!
//! Must never change anything, and never tell the contents of an object: a reason of the API server may quote it.

use std::collections::BTreeSet;

use kube_access::error::RequestError;
use releases::difference::{NotTried, Tried, try_to_apply};
use report::Chain;
use serde_json::Value;

use crate::manifest::{Rendering, differ, settled, shown};
use crate::read::Reader;

/// Fields that the API server writes by itself.
const OWN_FIELDS: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// The objects that the hand-over would change, in words. `names` has those that Argo CD names. Fails if the API server cannot be reached.
pub async fn differences(
    reader: &Reader,
    names: &BTreeSet<String>,
    rendering: &Rendering,
    namespace: &str,
) -> Result<Vec<String>, RequestError> {
    let mut told = Vec::new();
    for (name, object) in settled(&rendering.objects, namespace, &reader.kinds) {
        let difference = match try_to_apply(&reader.cluster, &object, &reader.apis).await {
            Ok(Some(Tried {
                live: Some(live),
                applied,
                ..
            })) => {
                let mut places = Vec::new();
                differ(&pruned(live), &pruned(applied), String::new(), &mut places);
                (!places.is_empty()).then(|| format!("has another {}", places.join(", ")))
            }
            // The difference of names tells all others.
            Ok(_) => names.contains(&name).then(|| "is gone, and would be made".to_owned()),
            Err(NotTried::Request(error)) if error.is_unreachable() => return Err(error),
            Err(NotTried::Request(error)) => Some(format!("cannot be compared: {}", reason(&error))),
            Err(NotTried::Unserved(_)) => Some("cannot be compared: its kind is not served".to_owned()),
        };
        told.extend(difference.map(|difference| format!("{} {difference}", shown(&object))));
    }
    Ok(told)
}

/// The reason of a refusal, without the text of the API server.
fn reason(error: &RequestError) -> String {
    // A webhook or a quota forbids, too, and no right helps.
    let lacks_right = error.hint("").is_some_and(|hint| hint.starts_with("allow the verb"));
    if lacks_right {
        let attempt = error.attempt();
        return format!("the right to {} {} is missing", attempt.verb, attempt.resource);
    }
    match helm::immutable::read(&Chain(error).to_string()) {
        Some(immutable) => format!("its field {} cannot be changed", immutable.field),
        None => "the API server refuses a dry run".to_owned(),
    }
}

fn pruned(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN_FIELDS.contains(&field.as_str()));
    }
    object
}
