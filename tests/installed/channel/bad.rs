//! Versions that must be rejected.

use fs_err as fs;
use testbed::part::Part;
use testbed::plane::ControlPlane;

use super::followed::{ALONE, Change, Followed};
use crate::installed::stage::{Image, LEASE};

pub(super) const SHORT: &str = "configMap.sections.releasePolicy=trialLimit: 2m";

pub(super) const HOOK: &str = "trial/versions/010-greeter/hooks/greet.sh";

/// A whiteout for the manifest of the modules directory, which would report that files were changed.
pub(super) const UNKEPT: (&str, &[u8]) = ("trial/versions/.wh..addon-operator-manifest.json", b"");

/// A hook that takes the place of the good one: it saves a section, and fails from then on.
pub(super) const FAILS: &[u8] = br#"#!/usr/bin/env bash
if [[ ${1:-} == --config ]]; then
  echo '{"configVersion": "v1", "afterHelm": 1}'
  exit
fi
echo '[{"op": "add", "path": "/greeter/text", "value": "by a hook"}]' > "$CONFIG_VALUES_JSON_PATCH_PATH"
[[ $(jq -r '.greeter.text' "$CONFIG_VALUES_PATH") == null ]] && exit 0
echo 'this version is bad' >&2
exit 1
"#;

/// A program that ends or stops, depending on the signal, five seconds after it begins to lead.
pub(super) fn script(signal: &str) -> String {
    format!(
        "/addon-operator \"$@\" & pid=$!
         until kubectl get lease {LEASE} --output=jsonpath={{.spec.holderIdentity}} | grep --quiet \"^$HOSTNAME\"; do sleep 1; done
         sleep 5; kill -{signal} $pid; wait $pid"
    )
}

/// The version starts and never becomes ready. The next version is tried.
pub(super) fn hangs_from_its_beginning(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[SHORT]);
    let first = followed.first.clone();
    let hangs = Change {
        entrypoint: Some(&["/bin/sleep", "infinity"]),
        ..Change::default()
    };
    let bad = followed.push("0.2.0", &hangs);
    followed.check();
    let why = followed.wait_until_sent_away(&bad, &first);
    assert!(
        why.contains("not ready within") || why.contains("started again"),
        "{why}"
    );
    assert!(
        followed.events("TrialFailed").contains("0.2.0"),
        "{}",
        followed.events("TrialFailed")
    );
}

/// A file of a module does not match the manifest of the modules directory, so that module cannot run.
pub(super) fn is_torn(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    let torn = Change {
        files: &[("trial/versions/010-greeter/values.yaml", b"greeter:\n  text: bonjour\n")],
        ..Change::default()
    };
    let bad = followed.push("0.2.0", &torn);
    followed.check();
    let why = followed.wait_until_sent_away(&bad, &first);
    assert!(why.contains("module greeter cannot be run as it is declared"), "{why}");
    assert_eq!(followed.in_map("greeting", "text"), "hello");
}

/// No node can unpack the image.
pub(super) fn cannot_be_pulled(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    let garbage = Change {
        is_garbage: true,
        ..Change::default()
    };
    let bad = followed.push("0.2.0", &garbage);
    followed.check();
    let why = followed.wait_until_unclear(&bad, &first);
    assert!(why.contains("could not be pulled"), "{why}");
    // The registry may be the cause, so the version waits for another attempt. Meanwhile a newer version is tried.
    assert!(
        followed.waits().contains(&"unclear".to_owned()),
        "{:?}",
        followed.waits()
    );
    let next = followed.push("0.2.1", &Change::default());
    followed.check();
    followed.wait_until_at_rest_with(&next);
}

/// The pod on trial finds no node: two pods must not share a node, and there is only one.
pub(super) fn finds_no_room(plane: &ControlPlane, image: &Image) {
    let alone = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
    let label = format!(r"{alone}.labelSelector.matchLabels.app\.kubernetes\.io/name=addon-operator");
    let place = format!("{alone}.topologyKey=kubernetes.io/hostname");
    let values: Vec<&str> = [label.as_str(), &place]
        .into_iter()
        .chain(ALONE.iter().copied())
        .collect();
    let followed = Followed::begin(plane, image, &values);
    let first = followed.first.clone();
    let version = followed.push("0.2.0", &Change::default());
    followed.check();
    let why = followed.wait_until_unclear(&version, &first);
    assert!(why.contains("no machine was found"), "{why}");
}

/// The first version ends without an error message while it leads. The second one hangs while it leads.
pub(super) fn ends_or_hangs_while_it_leads(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    for (version, harm, words) in [("0.2.0", "KILL", "started again"), ("0.3.0", "STOP", "")] {
        let script = script(harm);
        let change = Change {
            entrypoint: Some(&["/bin/bash", "-c", &script, "bash"]),
            ..Change::default()
        };
        let bad = followed.push(version, &change);
        followed.check();
        followed.wait_until_the_new_one_leads();
        let why = followed.wait_until_sent_away(&bad, &first);
        assert!(why.contains(words), "{why}");
    }
}

/// The version changes a release, saves a section, lacks a module and uses helm 4, and one of its hooks fails. The next
/// version is the same without that hook.
pub(super) fn breaks_a_module_drops_one_and_brings_another_helm(plane: &ControlPlane, image: &Image) {
    const KEPT: &str = "no release is removed by a version on trial";
    const VALUES: &[u8] = b"greeter:\n  text: bonjour\n";
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    followed.wait_for("a release", || followed.in_map("greeting", "text") == "hello");
    let side = followed.revision("side");

    let helm = fs::read(plane.program(Part::Helm4)).unwrap_or_default();
    let values = "trial/versions/010-greeter/values.yaml";
    let bad = Change {
        files: &[
            UNKEPT,
            (HOOK, FAILS),
            (values, VALUES),
            ("trial/versions/.wh.020-side", b""),
            ("usr/local/bin/helm", &helm),
        ],
        ..Change::default()
    };
    let bad = followed.push("0.2.0", &bad);
    followed.check();
    followed.wait_for("the new version's release", || {
        ["bonjour", "by a hook"].contains(&followed.in_map("greeting", "text").as_str())
    });
    assert_eq!(followed.revision("side"), side, "{KEPT}");
    let why = followed.wait_until_sent_away(&bad, &first);
    assert!(why.contains("greeter") && why.contains("times in a row"), "{why}");
    assert_eq!(followed.revision("side"), side, "{KEPT}");
    followed.wait_for("the release of before", || {
        followed.in_map("greeting", "text") == "hello"
    });
    followed.wait_for("the section of before", || {
        !followed.in_map("addon-operator", "greeter").contains("by a hook")
    });

    let good = Change {
        files: &[
            UNKEPT,
            (values, VALUES),
            ("trial/versions/.wh.020-side", b""),
            ("usr/local/bin/helm", &helm),
        ],
        ..Change::default()
    };
    let good = followed.push("0.2.1", &good);
    followed.check();
    followed.wait_for("the new version's release", || {
        followed.in_map("greeting", "text") == "bonjour"
    });
    if followed.state() == "on-trial" {
        assert_eq!(followed.revision("side"), side, "{KEPT}");
    }
    followed.wait_until_at_rest_with(&good);
    followed.wait_for("the end of the module that is no more", || {
        followed.revision("side") == 0
    });
}
