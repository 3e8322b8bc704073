//! Versions with a module whose pods do not work, and one whose pods need long. A trial waits for the health of what the
//! version upgrades, and of nothing else.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use testbed::plane::ControlPlane;

use super::bad::SHORT;
use super::followed::{Change, Followed};
use crate::installed::health::push_image;
use crate::installed::stage::Image;

/// The file that a version replaces.
const VALUES: &str = "trial/health/010-web/values.yaml";

/// A whiteout for the manifest of the modules directory, which would report that files were changed.
const UNKEPT: (&str, &[u8]) = ("trial/health/.wh..addon-operator-manifest.json", b"");

/// An installation with the module `web`, which is healthy.
fn begin<'a>(plane: &'a ControlPlane, image: &Image, more: &[&str]) -> Followed<'a> {
    let section = format!("configMap.sections.web=image: {}:1", push_image(plane));
    let values = [&[section.as_str()], more].concat();
    let followed = Followed::begin(plane, image, &values);
    followed
        .stage
        .wait_until_it_says("module list -o wide", &["web", "Healthy"]);
    followed
}

/// Pushes a version with other values of the module.
fn push(followed: &Followed<'_>, version: &str, suffix: &str, script: &str) -> String {
    let values = format!("web:\n  image: \"\"\n  suffix: \"{suffix}\"\n  script: {script}\n");
    let change = Change {
        files: &[UNKEPT, (VALUES, values.as_bytes())],
        ..Change::default()
    };
    followed.push(version, &change)
}

/// Waits until the version has failed for these words, and the module is as before.
fn is_sent_away(followed: &Followed<'_>, bad: &str, words: &[&str]) {
    followed.check();
    let why = followed.wait_until_sent_away(bad, &followed.first);
    let told = followed.stage.ask("addon-operator channel status");
    let event = followed.events("TrialFailed");
    for word in words {
        assert!(why.contains(word), "{word}: {why}");
        assert!(told.contains(word), "{word}: {told}");
        assert!(event.contains(word), "{word}: {event}");
    }
    followed
        .stage
        .wait_until_it_says("module list -o wide", &["web", "Healthy"]);
    let script = "get deployment web --output=jsonpath={.spec.template.spec.containers[0].args[0]}";
    assert_eq!(followed.stage.kubectl(script), "touch /tmp/ready; exec sleep inf");
    followed.wait_for("the pods of before", || is_rolled_out(followed));
}

/// Whether the module has all its pods, and no others.
fn is_rolled_out(followed: &Followed<'_>) -> bool {
    let status = &followed.stage.json("get deployment web")["status"];
    ["replicas", "updatedReplicas", "availableReplicas"]
        .iter()
        .all(|count| status[*count] == 1)
}

/// The module's image does not exist.
pub(super) fn names_an_image_that_does_not_exist(plane: &ControlPlane, image: &Image) {
    let followed = begin(plane, image, &[SHORT]);
    let bad = push(&followed, "0.2.0", "-typo", "exec sleep inf");
    followed.check();
    followed.wait_for("the trouble in the status", || {
        let stage = &followed.status()["stage"];
        stage.to_string().contains(":1-typo cannot be pulled (not found)")
    });
    let words = [
        "module web is not healthy: Deployment web: 1 of 2 pods is available",
        ":1-typo cannot be pulled (not found)",
    ];
    is_sent_away(&followed, &bad, &words);
}

/// The module's pods work for a while, again and again, but not for as long as a trial wants to see them work.
pub(super) fn has_pods_that_crash_later(plane: &ControlPlane, image: &Image) {
    let followed = begin(plane, image, &[SHORT]);
    let script = "touch /tmp/ready; sleep 40; echo no more >&2; exit 1";
    let bad = push(&followed, "0.2.0", "", script);
    is_sent_away(
        &followed,
        &bad,
        &["module web is not healthy: Deployment web: 0 of 1 pods are available"],
    );
}

/// The module's pods need longer than a version without modules has to lead. The version is adopted after they work.
pub(super) fn has_pods_that_need_long(plane: &ControlPlane, image: &Image) {
    let followed = begin(plane, image, &[]);
    let slow = "sleep 75; touch /tmp/ready; exec sleep inf";
    let good = push(&followed, "0.2.0", "", slow);
    followed.check();
    followed.wait_for("the version in the Deployment", || followed.names(&good));
    assert!(
        is_rolled_out(&followed),
        "it passed before its pods worked: {}\n{}",
        followed.stage.kubectl("get deployment web --output=yaml"),
        followed.status()
    );
    followed.wait_until_at_rest_with(&good);
}

/// All processes of the node end while the version leads. It is adopted nevertheless.
pub(super) fn its_node_loses_its_power(plane: &ControlPlane, image: &Image) {
    let followed = begin(plane, image, &[]);
    let good = push(&followed, "0.2.0", "", "sleep 5; touch /tmp/ready; exec sleep inf");
    followed.check();
    followed.wait_until_the_new_one_leads();
    plane.reboot().unwrap();
    followed.wait_until_at_rest_with(&good);
    assert_eq!(followed.events("TrialFailed"), "");
    followed.wait_for("the pods of the module", || is_rolled_out(&followed));
}
