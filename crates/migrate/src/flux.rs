//! Reads HelmReleases of Flux: the release that each stands for, its order, the sources of its values, and the settings
//! that the operator has no counterpart for.
//!
//! Never decides by a field that it does not know: an unknown field means nothing to a release that is deployed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::outline::{Facts, HelmRelease, Outline, Place, Records, Unfit, ValuesSource};

/// The group of HelmReleases.
pub const GROUP: &str = "helm.toolkit.fluxcd.io";
/// The kind of HelmReleases.
pub const KIND: &str = "HelmRelease";
/// The longest name of a release.
const NAME_LIMIT: usize = 53;
/// The part of a longer name that stays.
const NAME_KEPT: usize = 40;
/// The label of the Kustomization that a HelmRelease comes from.
const KUSTOMIZATION: &str = "kustomize.toolkit.fluxcd.io/name";

/// The outline of a HelmRelease, or the reason for which it is not taken over.
pub fn outline(object: &Value, records: &Records) -> Result<Outline, Unfit> {
    let spec = &object["spec"];
    if spec["kubeConfig"].is_object() {
        return Err("spec.kubeConfig: its release is in another cluster".to_owned().into());
    }
    if spec["postRenderers"].as_array().is_some_and(|all| !all.is_empty()) {
        return Err(
            "spec.postRenderers change the objects of the chart, and a module has no post-renderer: write these changes into values or into the chart"
                .to_owned()
                .into(),
        );
    }
    let place = place_of(object);
    let target = text(&spec["targetNamespace"]);
    let release = release_name(spec, &place.name, target);
    let namespace = target.unwrap_or(&place.namespace).to_owned();
    let storage = text(&object["status"]["storageNamespace"]).or_else(|| text(&spec["storageNamespace"]));
    let stored = Place::new(storage.unwrap_or(&place.namespace), &release);
    let Some(record) = records.get(&stored) else {
        return Err(format!("it has no release: there is no record of helm for '{stored}' in a Secret").into());
    };
    record.check()?;
    let needs = spec["dependsOn"].as_array().into_iter().flatten().filter_map(|need| {
        let namespace = text(&need["namespace"]).unwrap_or(&place.namespace);
        Some(Place::new(namespace, text(&need["name"])?))
    });
    let needs: BTreeSet<Place> = needs.collect();
    Ok(Outline {
        release,
        namespace,
        record: Some((stored, record.clone())),
        needs,
        wave: 0,
        facts: Facts::Flux(HelmRelease {
            values: spec["values"].clone(),
            sources: sources(&spec["valuesFrom"], &place.namespace)?,
            corrects_drift: spec["driftDetection"]["mode"] == "enabled",
        }),
        remarks: remarks(object),
        place,
    })
}

/// Namespace and name of an object.
pub(crate) fn place_of(object: &Value) -> Place {
    let field = |field| text(&object["metadata"][field]).unwrap_or_default();
    Place::new(field("namespace"), field("name"))
}

pub(crate) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The name of the release: a name that is too long ends in a digest of the whole.
fn release_name(spec: &Value, name: &str, target: Option<&str>) -> String {
    if let Some(name) = text(&spec["releaseName"]) {
        return name.to_owned();
    }
    let name = target.map_or_else(|| name.to_owned(), |target| format!("{target}-{name}"));
    if name.len() <= NAME_LIMIT {
        return name;
    }
    let mut digest = String::new();
    for byte in Sha256::digest(&name).iter().take(6) {
        let _ = write!(digest, "{byte:02x}");
    }
    let kept = name.get(..NAME_KEPT).unwrap_or(&name);
    format!("{kept}-{digest}")
}

fn sources(list: &Value, namespace: &str) -> Result<Vec<ValuesSource>, String> {
    let source = |entry: &Value| {
        let is_secret = match entry["kind"].as_str() {
            Some("Secret") => true,
            Some("ConfigMap") => false,
            _ => return Err("spec.valuesFrom names neither a Secret nor a ConfigMap".to_owned()),
        };
        Ok(ValuesSource {
            is_secret,
            place: Place::new(namespace, text(&entry["name"]).unwrap_or_default()),
            key: text(&entry["valuesKey"]).unwrap_or("values.yaml").to_owned(),
            target: text(&entry["targetPath"]).map(str::to_owned),
        })
    };
    list.as_array().into_iter().flatten().map(source).collect()
}

/// The settings of Flux that change nothing about a deployed release, in words.
fn remarks(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let mut remarks = Vec::new();
    if let Some(name) = object["metadata"]["labels"][KUSTOMIZATION].as_str() {
        remarks.push(format!(
            "it comes from the Kustomization '{name}': take it out of the source too, or Flux makes it again"
        ));
    }
    let rows = [
        (
            "/install/remediation",
            "a failed upgrade is tried again by the operator, with growing pauses",
        ),
        (
            "/upgrade/remediation",
            "a failed upgrade is tried again by the operator; `health.onFailure: return` in module.yaml rolls an unhealthy one back",
        ),
        ("/test", "the operator does not run the tests of charts"),
        (
            "/serviceAccountName",
            "its account is in another namespace: `serviceAccount` in module.yaml names one beside the operator",
        ),
        (
            "/maxHistory",
            "the operator has one limit of revisions for all releases",
        ),
        (
            "/driftDetection/ignore",
            "`drift` in module.yaml has no list of fields; `drift: absent` leaves all altered fields alone",
        ),
    ];
    for (field, remark) in rows {
        if spec.pointer(field).is_some_and(|value| !value.is_null()) {
            remarks.push(format!("spec{} is left out: {remark}", field.replace('/', ".")));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outline::Record;

    fn records(names: &[(&str, &str, &str)]) -> Records {
        let record = |status: &str| Record {
            revision: 3,
            status: status.to_owned(),
            secret: "s".to_owned(),
            is_ours: false,
        };
        let each = names.iter();
        each.map(|(namespace, name, status)| (Place::new(*namespace, *name), record(status)))
            .collect()
    }

    fn release(spec: &Value) -> Value {
        json!({"metadata": {"namespace": "flux-system", "name": "web"}, "spec": spec})
    }

    #[test]
    fn names_and_namespaces_are_those_of_flux() {
        let stored = records(&[
            ("flux-system", "web", "deployed"),
            ("flux-system", "shop-web", "deployed"),
            ("shop", "front", "deployed"),
        ]);
        let rows = [
            (json!({}), "web", "flux-system", "flux-system"),
            (json!({"targetNamespace": "shop"}), "shop-web", "shop", "flux-system"),
            (
                json!({"releaseName": "front", "targetNamespace": "shop", "storageNamespace": "shop"}),
                "front",
                "shop",
                "shop",
            ),
        ];
        for (spec, name, namespace, storage) in rows {
            let outline = outline(&release(&spec), &stored).unwrap();
            assert_eq!(outline.release, name, "{spec}");
            assert_eq!(outline.namespace, namespace, "{spec}");
            assert_eq!(outline.record.unwrap().0.namespace, storage, "{spec}");
        }
        let long = release_name(&json!({}), &"a".repeat(50), Some("target"));
        assert_eq!(long.len(), 53);
        assert!(long.starts_with("target-aaaa") && long.as_bytes()[40] == b'-', "{long}");
    }

    #[test]
    fn releases_that_cannot_be_kept_are_named() {
        let stored = records(&[("flux-system", "web", "pending-upgrade")]);
        let rows = [
            (json!({"kubeConfig": {}}), "another cluster"),
            (json!({"postRenderers": [{"kustomize": {}}]}), "postRenderers"),
            (
                json!({"releaseName": "other"}),
                "no record of helm for 'flux-system/other'",
            ),
            (json!({}), "revision 3 is pending-upgrade"),
        ];
        for (spec, expected) in rows {
            let reason = outline(&release(&spec), &stored).unwrap_err().to_string();
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn sources_needs_and_remarks_are_read() {
        let stored = records(&[("flux-system", "web", "deployed")]);
        let mut object = release(&json!({
            "dependsOn": [{"name": "db"}, {"name": "dns", "namespace": "net"}],
            "valuesFrom": [
                {"kind": "Secret", "name": "s", "valuesKey": "pw", "targetPath": "auth.password"},
                {"kind": "ConfigMap", "name": "c", "optional": true}],
            "driftDetection": {"mode": "enabled"},
            "upgrade": {"remediation": {"retries": 3}},
        }));
        object["metadata"]["labels"] = json!({KUSTOMIZATION: "apps"});
        let outline = outline(&object, &stored).unwrap();
        let needs: Vec<String> = outline.needs.iter().map(ToString::to_string).collect();
        assert_eq!(needs, ["flux-system/db", "net/dns"]);
        let Facts::Flux(facts) = outline.facts else {
            panic!("it is a HelmRelease");
        };
        assert!(facts.corrects_drift && facts.sources[0].is_secret && !facts.sources[1].is_secret);
        assert_eq!(facts.sources[1].key, "values.yaml");
        assert_eq!(outline.remarks.len(), 2, "{:?}", outline.remarks);
    }
}
