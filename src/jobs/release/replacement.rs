//! Upgrades that would have to change a field that the API server lets nobody change. Objects whose loss costs nothing, and
//! those that the chart marks, are replaced. Any other upgrade is held until the object or the upgrade is another one.
//!
//! Must never delete an object that owns data or other objects.

use addon_core::failure::{Class, Failure};
use addon_core::release::brake::Asked;
use serde_json::Value;
use tracing::info;

use super::Sync;
use super::brake::objects_of;
use crate::cluster::replacement::Place;
use crate::helm::immutable::Immutable;
use crate::jobs::unless;

/// The annotation on objects that may be deleted and created anew.
const REPLACE: &str = "addon-operator/replace";

/// Kinds whose objects may be created anew at any time.
const WITHOUT_LOSS: [(&str, &str); 3] = [
    ("batch", "Job"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];
/// Kinds whose objects own data or other objects, so that no mark lets them go.
const OWNING: [(&str, &str); 4] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];
const SELECTOR: &str = "spec.selector";

/// An upgrade that the API server refused.
#[derive(Debug)]
pub(super) struct Refused {
    inputs: String,
    asked: Asked,
    place: Place,
    uid: String,
    failure: Failure,
}

/// The end of the object in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is created anew. Its dependents go with it, or stay for the new object.
    Replace { dependents_stay: bool },
    /// A person has to decide. The mark allows a replacement.
    Ask,
    /// A person has to act: no mark allows a replacement.
    Never,
}

impl Way {
    fn of(immutable: &Immutable, object: &Value) -> Self {
        let kind = (immutable.group.as_str(), immutable.kind.as_str());
        let is_new_selector = immutable.field.starts_with(SELECTOR);
        // Pods of another selector would stand in the way of the new ones, and claims may go with their owner.
        if OWNING.contains(&kind) || kind == ("apps", "StatefulSet") && is_new_selector {
            return Self::Never;
        }
        let is_marked = object["metadata"]["annotations"][REPLACE].as_str() == Some("true");
        if !is_marked && !WITHOUT_LOSS.contains(&kind) {
            return Self::Ask;
        }
        Self::Replace {
            // Pods of the same selector are taken over by the new object.
            dependents_stay: immutable.group == "apps" && !is_new_selector,
        }
    }
}

impl Sync<'_> {
    /// Fails like the same upgrade before, if that was refused and the object in its way is still there.
    pub(super) async fn fail_as_before(&mut self) -> Result<(), Failure> {
        let Some(refused) = &self.hold.refused else {
            return Ok(());
        };
        if refused.inputs == self.facts.inputs && refused.asked == self.facts.asked {
            let acting = unless(self.cancel, self.acting()).await?.cluster();
            let present = unless(self.cancel, async { Ok(acting.uid_at(&refused.place).await?) }).await?;
            if present.as_ref() == Some(&refused.uid) {
                return Err(refused.failure.clone());
            }
        }
        self.hold.refused = None;
        Ok(())
    }

    /// Replaces the object that an upgrade could not change, and reads the release, so that the upgrade can be tried again; or
    /// holds the upgrade.
    pub(super) async fn make_way(&mut self, immutable: &Immutable) -> Result<(), Failure> {
        if self.manifest.is_empty() {
            self.manifest = self.render().await?;
        }
        let Some((place, object)) = self.object_in_the_way(immutable)? else {
            return Err(told(&self.facts.release, immutable));
        };
        let object_and_field = format!("{}/{} ({})", immutable.kind, immutable.name, immutable.field);
        let is_first = self.in_the_way.insert(object_and_field.clone());
        let acting = unless(self.cancel, self.acting()).await?.cluster();
        let uid = unless(self.cancel, async { Ok(acting.uid_at(&place).await?) }).await?;
        let Some(uid) = uid else {
            // An object that is gone is in nobody's way.
            return if is_first {
                unless(self.cancel, self.observe()).await
            } else {
                Err(told(&self.facts.release, immutable))
            };
        };
        let way = Way::of(immutable, &object);
        if let Way::Replace { dependents_stay } = way
            && is_first
        {
            let release = self.facts.release.as_str();
            info!(
                release,
                object = object_and_field,
                "an object is replaced, because nobody can change the field"
            );
            let taken = async { Ok(acting.take_away(&place, &uid, dependents_stay).await?) };
            if unless(self.cancel, taken).await? {
                self.hold.replaced.push(object_and_field);
                return unless(self.cancel, self.observe()).await;
            }
        }
        let failure = self.held_for(immutable, &place, way);
        self.hold.refused = Some(Refused {
            inputs: self.facts.inputs.clone(),
            asked: self.facts.asked.clone(),
            place,
            uid,
            failure: failure.clone(),
        });
        Err(failure)
    }

    /// The object as the chart renders it, and its place.
    fn object_in_the_way(&self, immutable: &Immutable) -> Result<Option<(Place, Value)>, Failure> {
        let objects = objects_of(&self.facts.release, &self.manifest)?;
        let is_meant = |object: &Value| {
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            group == immutable.group
                && object["kind"] == immutable.kind.as_str()
                && object["metadata"]["name"] == immutable.name.as_str()
        };
        let Some(object) = objects.into_iter().find(is_meant) else {
            return Ok(None);
        };
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let place = self.apis.kind(api_version, &immutable.kind).map(|kind| {
            let namespace = object["metadata"]["namespace"].as_str();
            let namespace = namespace.unwrap_or(self.tools.cluster.namespace());
            Place {
                kind: kind.clone(),
                namespace: kind.namespaced.then(|| namespace.to_owned()),
                name: immutable.name.clone(),
            }
        });
        Ok(place.map(|place| (place, object)))
    }

    fn held_for(&self, immutable: &Immutable, place: &Place, way: Way) -> Failure {
        let (kind, name) = (immutable.kind.to_lowercase(), &immutable.name);
        let namespace = place.namespace.as_deref();
        let namespace = namespace.filter(|namespace| *namespace != self.tools.cluster.namespace());
        let namespace = namespace.map_or_else(String::new, |namespace| format!(" --namespace {namespace}"));
        let failure = told(&self.facts.release, immutable);
        let failure = match way {
            Way::Never => failure
                .hint("the object holds data or other objects: copy these, delete it and let it be made anew yourself"),
            Way::Ask | Way::Replace { .. } => failure
                .hint(format!(
                    "if it may be made anew, mark it in the chart with the annotation {REPLACE}: \"true\""
                ))
                .hint(format!(
                    "or delete it: `kubectl delete {kind} {name}{namespace}`, and the upgrade goes on by itself"
                )),
        };
        failure.hint(format!("or put {} back as it was", immutable.field))
    }
}

fn told(release: &str, immutable: &Immutable) -> Failure {
    let Immutable { kind, name, field, .. } = immutable;
    let report = format!(
        "the upgrade of release '{release}' is held: it would change {field} of {kind}/{name}, and the API server lets nobody \
         change this field"
    );
    Failure::new(Class::Blocked, report)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn way(group: &str, kind: &str, field: &str, mark: &str) -> Way {
        let immutable = Immutable {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: "a".to_owned(),
            field: field.to_owned(),
        };
        Way::of(&immutable, &json!({"metadata": {"annotations": {REPLACE: mark}}}))
    }

    #[test]
    fn what_is_lost_without_harm_or_marked_is_replaced_and_data_never() {
        let replace = |dependents_stay| Way::Replace { dependents_stay };
        for (group, kind, field, mark, expected) in [
            ("batch", "Job", "spec.template", "", replace(false)),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                "roleRef",
                "",
                replace(false),
            ),
            ("apps", "Deployment", "spec.selector", "", Way::Ask),
            ("apps", "Deployment", "spec.selector", "false", Way::Ask),
            ("apps", "Deployment", "spec.selector", "true", replace(false)),
            ("apps", "StatefulSet", "spec", "", Way::Ask),
            ("apps", "StatefulSet", "spec", "true", replace(true)),
            ("apps", "StatefulSet", "spec.selector", "true", Way::Never),
            ("", "Service", "spec.clusterIPs[0]", "true", replace(false)),
            ("", "PersistentVolumeClaim", "spec", "true", Way::Never),
            ("", "Namespace", "spec", "true", Way::Never),
            (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "spec.scope",
                "true",
                Way::Never,
            ),
            // Another group's kind of the same name is another kind.
            ("example.com", "Job", "spec.template", "", Way::Ask),
        ] {
            assert_eq!(way(group, kind, field, mark), expected, "{group} {kind} {field} {mark}");
        }
    }
}
