//! Good versions, which must be adopted.

use testbed::plane::ControlPlane;

use super::followed::{Change, Followed};
use crate::installed::stage::Image;

/// The tag moves to a good version, then to one that crashes, then to a good one again.
pub(super) fn a_moved_tag_is_followed(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    let info = r#"addon_operator_channel_info{available="",running="0.1.0",state="up-to-date"} 1"#;
    followed.wait_for("the metric that says so", || followed.metrics().contains(info));

    let revisions = followed.stage.revisions();
    let good = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_for_a_trial();
    let named = followed.image();
    assert_eq!(
        named,
        followed.of(&first),
        "the Deployment names no version that has not passed"
    );
    followed.wait_until_at_rest_with(&good);
    assert_eq!(followed.image(), followed.of(&good));
    followed.assert_untouched(&revisions);

    let crashes = Change {
        entrypoint: Some(&["/bin/false"]),
        ..Change::default()
    };
    let bad = followed.push("0.3.0", &crashes);
    followed.check();
    let why = followed.wait_until_sent_away(&bad, &good);
    assert!(why.contains("started again"), "{why}");
    followed.assert_untouched(&revisions);
    // The rejected version is not tried again.
    followed.check();
    assert_eq!(followed.waits(), ["failed_before"]);
    assert!(followed.trial_pod().is_none());

    let next = followed.push("0.3.1", &Change::default());
    followed.check();
    followed.wait_until_at_rest_with(&next);
    followed.assert_untouched(&revisions);
}

/// A person sets another tag as the channel, then a range, then the first tag, which is an older version.
pub(super) fn another_channel_a_range_and_an_older_version(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let beta = format!("{}-beta", followed.tag);
    let newer = followed.push_as(&beta, "0.2.0", &Change::default());
    followed.edit("releaseChannel", &beta);
    followed.wait_until_at_rest_with(&newer);

    // Versions like these are tags of the repository that all tests share; no other test uses these numbers.
    let lower = followed.push_as("41.2.0", "41.2.0", &Change::default());
    let highest = followed.push_as("41.10.0", "41.10.0", &Change::default());
    followed.push_as("42.0.0", "42.0.0", &Change::default());
    assert_ne!(lower, highest);
    followed.edit("releaseChannel", "41.x");
    followed.wait_until_at_rest_with(&highest);

    // A tag may lead to an older version, because a person has chosen it.
    followed.edit("releaseChannel", &followed.tag);
    followed.wait_until_at_rest_with(&followed.first);
}
