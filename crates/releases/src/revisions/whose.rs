//! Tells the owner of a record of helm by the marks on its Secret. Must never take a release of another program for the operator's.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{CHECKSUM, INPUTS, MAINTENANCE};

/// The annotation with which a person hands a release over to the operator, which may then work on it. Until it has done so, it does
/// not remove the release. It is no label, because helm would copy it to the next revision.
pub const HANDED_OVER: &str = "addon-operator/handed-over";

/// The owner of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The operator or the original has made it, or marked it since.
    Ours,
    /// A person has handed it over, and the operator has not worked on it yet.
    HandedOver,
    /// Another program has made it.
    Theirs,
}

impl Whose {
    /// Reads the marks on the Secret of a record. Only the operator writes its annotation, and helm never copies it.
    pub fn read(secret: &ObjectMeta) -> Self {
        let has = |map: &Option<BTreeMap<String, String>>, key| map.as_ref().is_some_and(|all| all.contains_key(key));
        let is_labelled = |key| has(&secret.labels, key);
        let is_annotated = |key| has(&secret.annotations, key);
        if is_labelled(CHECKSUM) || is_labelled(MAINTENANCE) || is_annotated(INPUTS) {
            Self::Ours
        } else if is_annotated(HANDED_OVER) {
            Self::HandedOver
        } else {
            Self::Theirs
        }
    }
}
