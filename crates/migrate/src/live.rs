//! The objects of an Application as they are in the cluster, compared with those that its module renders. The API server applies these in
//! dry runs, so its defaults are no differences.
//!
//! Must never change anything, and never tell the contents of an object.

use addon_core::failure::{Class, Failure};
use masking::secret::object::is_secret;
use releases::difference::{Tried, try_to_apply};
use serde_json::Value;

use crate::manifest::{Rendering, differ, settled, shown};
use crate::read::Reader;

/// Fields that the API server writes by itself.
const OWN_FIELDS: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// The objects that the hand-over would change, in words. One that is not in the cluster is left out.
pub async fn differences(reader: &Reader, rendering: &Rendering, namespace: &str) -> Result<Vec<String>, Failure> {
    let mut told = Vec::new();
    for object in settled(&rendering.objects, namespace, &reader.kinds).values() {
        match try_to_apply(&reader.cluster, object, &reader.apis).await {
            Ok(Some(Tried {
                live: Some(live),
                applied,
                ..
            })) => {
                let mut places = Vec::new();
                differ(&pruned(live), &pruned(applied), String::new(), &mut places);
                if !places.is_empty() {
                    told.push(format!("{} has another {}", shown(object), places.join(", ")));
                }
            }
            Ok(_) => {}
            Err(failure) if failure.class == Class::Unavailable => return Err(failure),
            // The reason may quote the object.
            Err(_) if is_secret(object) => told.push(format!("{} cannot be compared", shown(object))),
            Err(failure) => told.push(format!("{} cannot be compared: {}", shown(object), failure.report)),
        }
    }
    Ok(told)
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
