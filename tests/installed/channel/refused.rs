//! Versions that are wanted but never tried.

use fs_err as fs;
use serde_json::json;
use testbed::plane::ControlPlane;

use super::followed::{Change, Followed};
use crate::installed::stage::{Image, root};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A person approves one version. The tag moves on before the version is tried, and the newer version waits for its own
/// approval.
pub(super) fn an_approval_is_for_one_version_alone(plane: &ControlPlane, image: &Image) {
    let manual = "configMap.sections.releasePolicy=mode: manual";
    let followed = Followed::begin(plane, image, &[manual]);
    let first = followed.first.clone();
    let one = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_for("a version that waits", || followed.waits() == ["approval"]);
    let other = followed.push("0.3.0", &Change::default());
    followed.check();
    followed.wait_for("the other version", || {
        followed.status()["available"]["digest"] == other
    });
    followed.edit("releaseApproved", &one);
    followed.wait_for("the other version to wait", || {
        let status = followed.status();
        status["available"]["digest"] == other && status["approved"] == json!([one])
    });
    assert_eq!(followed.waits(), ["approval"]);
    // A few more polls and decisions.
    for _ in 0..5 {
        followed.check();
    }
    assert!(followed.trial_pod().is_none() && followed.names(&first));
    followed.edit("releaseApproved", &other);
    followed.wait_until_at_rest_with(&other);
}

/// With signing keys configured: versions without a signature, with one by an unknown key, and with one by a known key;
/// and a version for another platform.
pub(super) fn neither_signed_nor_for_this_platform(plane: &ControlPlane, image: &Image) {
    let keys = root().join("tests/signatures/keys");
    let public = fs::read_to_string(keys.join("p256.pub")).unwrap();
    let keys_value = format!("verification.keys[0]={public}");
    let followed = Followed::begin(plane, image, &[&keys_value]);
    let first = followed.first.clone();
    assert_eq!(followed.status()["running"]["verified"], json!(false));

    let version = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_for("a version that waits", || followed.waits() == ["not_verified"]);
    followed.sign(&version, &keys.join("ed25519.key"));
    followed.check();
    assert_eq!(followed.waits(), ["not_verified"]);
    assert!(followed.names(&first) && followed.trial_pod().is_none());
    followed.sign(&version, &keys.join("p256.key"));
    followed.check();
    followed.wait_until_at_rest_with(&version);
    assert_eq!(followed.status()["running"]["verified"], json!(true));

    let size = followed.size(&first);
    let platform = json!({ "os": "linux", "architecture": "s390x" });
    let foreign = json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": first, "size": size, "platform": platform });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [foreign] });
    let elsewhere = followed.put(&followed.tag, INDEX, &index);
    followed.sign(&elsewhere, &keys.join("p256.key"));
    followed.check();
    followed.wait_for("a version that waits", || {
        followed.waits().contains(&"platform".to_owned())
    });
    assert!(followed.names(&version) && followed.trial_pod().is_none());
}
