//! The objects that operations have written, with the versions that the server gave them.
//!
//! Must never count a write that the server has not confirmed.

use std::sync::{Arc, Mutex, PoisonError};

use addon_core::digest::Digest;
use addon_core::object::ObjectName;
use addon_core::operator::event::ObjectWritten;
use serde_json::Value;

/// A list that all clones share.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Mutex<Vec<ObjectWritten>>>);

impl Tally {
    /// Counts a write, with the server's answer and the content of the request.
    pub(super) fn wrote(&self, object: ObjectName, answer: &Value, content: Option<&Value>) {
        if let Some(version) = version(answer) {
            let content = content.map(digest);
            self.push(object, Some(version), content);
        }
    }

    /// Counts a deletion. An object with finalizers changes before it is deleted.
    pub(super) fn deleted(&self, object: ObjectName, answer: &Value) {
        if let Some(version) = version(answer) {
            self.push(object.clone(), Some(version), None);
        }
        self.push(object, None, None);
    }

    pub(super) fn take(&self) -> Vec<ObjectWritten> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, object: ObjectName, version: Option<u64>, content: Option<Digest>) {
        let content = content.unwrap_or_else(|| Digest::of_bytes(b"delete"));
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(ObjectWritten {
            object,
            version,
            content,
        });
    }
}

fn version(answer: &Value) -> Option<u64> {
    answer.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
}

/// The digest of a request's content without the parts that the server changes with each write.
fn digest(content: &Value) -> Digest {
    let version = content.pointer("/metadata/resourceVersion");
    if version.is_none() {
        return Digest::of(content);
    }
    let mut content = content.clone();
    if let Some(metadata) = content.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        for key in ["resourceVersion", "generation", "managedFields"] {
            metadata.remove(key);
        }
    }
    Digest::of(&content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_and_managed_fields_make_no_other_content() {
        let object = |version: &str, x: u32| json!({"metadata": {"resourceVersion": version, "name": "a"}, "x": x});
        assert_eq!(digest(&object("1", 1)), digest(&object("2", 1)));
        assert_ne!(digest(&object("1", 1)), digest(&object("1", 2)));
    }

    #[test]
    fn an_answer_without_a_version_is_no_write() {
        let tally = Tally::default();
        tally.wrote(ObjectName::default(), &json!({"kind": "Status"}), None);
        assert_eq!(tally.take(), []);
        tally.deleted(ObjectName::default(), &json!({"kind": "Status"}));
        let versions: Vec<_> = tally.take().into_iter().map(|wrote| wrote.version).collect();
        assert_eq!(versions, [None]);
    }
}
