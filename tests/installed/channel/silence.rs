//! A registry that does not answer, or refuses access.

use testbed::plane::ControlPlane;
use testbed::registry::guard::{Aim, Lock, Trouble};

use super::followed::{Change, Followed, Way, write_login};
use crate::installed::stage::Image;

/// Twice the registry is down for ten polls, and pods are restarted meanwhile. Then it is back, with a new version.
pub(super) fn the_registry_is_down_for_ten_polls(plane: &ControlPlane, image: &Image) {
    let guard = plane.guard_for_pods().unwrap();
    let followed = Followed::begin_by(plane, image, Way::Guarded(guard), &[]);
    let guard = followed.guard.as_ref().unwrap();
    let first = followed.first.clone();
    let version = followed.push("0.2.0", &Change::default());
    guard.impose(vec![Aim::at("/", Trouble::Break)]);
    let revisions = followed.stage.revisions();
    for poll in 1..=10 {
        guard.seen();
        followed.check();
        followed.wait_for("a poll without an answer", || !guard.seen().is_empty());
        if poll == 4 || poll == 8 {
            followed.stage.kubectl("delete pods --all --wait=true");
            followed.stage.roll_out();
            followed.wait_for("a leader", || !followed.status().is_null());
        }
    }
    assert!(followed.names(&first) && followed.trial_pod().is_none());
    followed.assert_untouched(&revisions);
    assert!(followed.has_trouble(""), "{:#}", followed.status());
    followed.wait_for("an Event", || !followed.events("RegistryUnreachable").is_empty());

    guard.impose(vec![Aim::at("/", Trouble::Status(429, Some("30")))]);
    followed.check();
    followed.wait_for("a registry that wants to be left alone", || {
        followed.has_trouble("left alone")
    });
    guard.seen();
    followed.check();
    assert_eq!(guard.seen(), [], "it is left alone");
    guard.impose(Vec::new());
    followed.wait_until_at_rest_with(&version);
    followed.assert_untouched(&revisions);
}

/// The basic credentials `user:old` and `user:new`.
const OLD: &str = "Basic dXNlcjpvbGQ=";
const NEW: &str = "Basic dXNlcjpuZXc=";

/// A mirror whose certificate is signed by a private authority gives tokens for the login in a Secret. The tokens
/// expire, and then the login changes.
pub(super) fn a_mirror_asks_for_a_login(plane: &ControlPlane, image: &Image) {
    let guard = plane.mirror_for_pods().unwrap();
    guard.lock(Lock::tokens(Some(OLD)));
    let followed = Followed::begin_by(plane, image, Way::Mirrored(guard, "old"), &[]);
    let guard = followed.guard.as_ref().unwrap();
    guard.expire();
    let one = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_until_at_rest_with(&one);

    guard.lock(Lock::tokens(Some(NEW)));
    let other = followed.push("0.3.0", &Change::default());
    followed.check();
    // The registry itself has no TLS, so the operator cannot use it in place of the mirror.
    followed.wait_for("a mirror that does not let us in", || followed.has_trouble(""));
    assert!(followed.names(&one) && followed.trial_pod().is_none());
    write_login(&followed.stage, guard, "new");
    followed.check();
    followed.wait_until_at_rest_with(&other);
}
