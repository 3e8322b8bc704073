//! Changes of the Deployment by other programs, mainly by upgrades of the chart.

use testbed::part::Part;
use testbed::plane::ControlPlane;

use super::followed::{Change, Followed};
use crate::installed::stage::{DEPLOYMENT, Image};

/// Each helm upgrades the chart with the image values of the installation. No upgrade may go back to an old version, or
/// start an untried one.
pub(super) fn the_chart_is_upgraded_before_during_and_after(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    // Upgrades before a trial keep the first version.
    followed.upgrade(Part::Helm3, &["log.level=debug"]);
    assert!(followed.names(&first), "{}", followed.image());
    followed.upgrade(Part::Helm4, &["log.level=info"]);
    assert!(followed.names(&first), "{}", followed.image());
    // During a trial: the trial is cancelled, and another one begins.
    let version = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_until_the_new_one_leads();
    followed.upgrade(Part::Helm4, &["log.level=debug"]);
    assert!(followed.names(&first), "{}", followed.image());
    followed.wait_for("an end of the trial", || followed.trial_pod().is_none());
    followed.wait_until_at_rest_with(&version);
    // Upgrades after the end of the trial keep the adopted version.
    for helm in [Part::Helm3, Part::Helm4] {
        followed.upgrade(helm, &["log.level=info"]);
        assert!(followed.names(&version), "{}", followed.image());
    }
    // An upgrade by a program that cannot read the cluster sets the bare tag. The operator pins it to the running
    // version again. By then the tag leads to another version, which is untried.
    let next = followed.push("0.3.0", &Change::default());
    followed.stage.apply(&followed.rendered());
    followed.wait_for("the version that ran, pinned again", || followed.names(&version));
    followed.check();
    followed.wait_until_at_rest_with(&next);
    // A person sets a digest in the Deployment: it is kept, and nothing is tried.
    let image = format!("addon-operator={}@{first}", followed.image_repository);
    followed
        .stage
        .kubectl(&format!("set image deployment/{DEPLOYMENT} {image}"));
    followed.stage.roll_out();
    followed.wait_for("a hold", || followed.state() == "held");
    followed.check();
    assert!(followed.names(&first) && followed.trial_pod().is_none());
}
