//! The operator follows its own image: versions are pushed to the cluster's registry, tried beside the old one, and
//! adopted or rejected.
//!
//! Almost all of the time is spent waiting, so several installations run at the same time on one control plane, each in
//! a namespace of its own.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

mod bad;
mod bounds;
mod campaign;
mod deaths;
mod followed;
mod good;
mod hands;
mod health;
mod refused;
mod sight;
mod silence;

use super::stage::{Image, play, start};

#[test]
fn versions_are_tried_and_taken_or_sent_away() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let image = Image::push(&plane, "versions");
    play(
        &plane,
        &image,
        &[
            (
                "another channel, a range, an older version",
                good::another_channel_a_range_and_an_older_version,
            ),
            ("a version that hangs from its beginning", bad::hangs_from_its_beginning),
            (
                "a version that breaks a module",
                bad::breaks_a_module_drops_one_and_brings_another_helm,
            ),
            (
                "upgrades of the chart",
                hands::the_chart_is_upgraded_before_during_and_after,
            ),
            ("a registry that is down", silence::the_registry_is_down_for_ten_polls),
            (
                "a pod on trial that is killed",
                deaths::the_pod_on_trial_is_killed_at_each_step,
            ),
            ("a mirror that asks for a login", silence::a_mirror_asks_for_a_login),
            ("old pods that are killed", deaths::the_old_pods_are_killed_at_each_step),
            ("a version that is torn", bad::is_torn),
            ("a version that cannot be pulled", bad::cannot_be_pulled),
            ("a tag that moves", good::a_moved_tag_is_followed),
            (
                "versions that stop or hang while they lead",
                bad::ends_or_hangs_while_it_leads,
            ),
            ("one replica, recreated", deaths::one_replica_that_is_recreated),
            ("no room", bad::finds_no_room),
            ("windows", bounds::a_version_waits_for_its_window),
            (
                "neither a Deployment nor a right",
                bounds::nothing_is_tried_without_a_deployment_or_a_right,
            ),
            ("approvals", refused::an_approval_is_for_one_version_alone),
            (
                "signatures and platforms",
                refused::neither_signed_nor_for_this_platform,
            ),
            ("drained", deaths::the_old_pods_are_evicted_during_a_trial),
        ],
    );
}

#[test]
fn versions_are_judged_by_the_health_of_their_modules() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let image = Image::push(&plane, "health");
    play(
        &plane,
        &image,
        &[
            ("an image of a module", health::names_an_image_that_does_not_exist),
            ("pods that crash later", health::has_pods_that_crash_later),
            ("pods that need long", health::has_pods_that_need_long),
        ],
    );
    // It ends the pods of all installations.
    play(
        &plane,
        &image,
        &[("a node without power", health::its_node_loses_its_power)],
    );
}
