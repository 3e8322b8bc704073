use std::collections::BTreeSet;

use super::*;

fn version(minor: u16) -> KubeVersion {
    KubeVersion(minor)
}

#[test]
fn versions_are_read_as_people_and_servers_write_them() {
    for text in ["1.38", "v1.38", "1.38.2", "v1.38.0-rc.1", "1.38.4+k3s1", "1.38+"] {
        assert_eq!(text.parse(), Ok(version(38)), "{text}");
    }
    for text in [
        "",
        "1",
        "1.",
        "38",
        "2.0",
        "1.x",
        "1.38x",
        "v",
        "latest",
        "1.99999999",
        "1.-3",
    ] {
        let refused = text.parse::<KubeVersion>().unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("'{text}' is no version of Kubernetes: write it as 1.38")
        );
    }
    assert_eq!(version(38).to_string(), "1.38");
    assert!(version(9) < version(16));
}

#[test]
fn a_judgement_is_read_as_it_is_written() {
    let budget = KindName::new("policy/v1beta1", "PodDisruptionBudget");
    let outdated = judge(&budget, version(37), None).unwrap();
    let written = serde_json::to_value(&outdated).unwrap();
    assert_eq!(written["replacement"], "policy/v1 PodDisruptionBudget");
    assert_eq!(serde_json::from_value::<Outdated>(written).unwrap(), outdated);
    for bad in ["\"1\"", "37"] {
        assert!(serde_json::from_str::<KubeVersion>(bad).is_err(), "{bad}");
    }
    assert!(serde_json::from_str::<KindName>("\"v1\"").is_err());
}

/// Rows of the Kubernetes deprecated API migration guide and of `k8s.io/api`.
#[test]
fn known_kinds_have_their_known_ends() {
    let rows = [
        ("apps/v1beta2", "DaemonSet", 9, Some(16), "apps/v1 DaemonSet"),
        (
            "extensions/v1beta1",
            "Ingress",
            14,
            Some(22),
            "networking.k8s.io/v1 Ingress",
        ),
        (
            "apiextensions.k8s.io/v1beta1",
            "CustomResourceDefinition",
            16,
            Some(22),
            "apiextensions.k8s.io/v1 CustomResourceDefinition",
        ),
        ("batch/v1beta1", "CronJob", 21, Some(25), "batch/v1 CronJob"),
        (
            "policy/v1beta1",
            "PodDisruptionBudget",
            21,
            Some(25),
            "policy/v1 PodDisruptionBudget",
        ),
        ("policy/v1beta1", "PodSecurityPolicy", 21, Some(25), ""),
        (
            "autoscaling/v2beta1",
            "HorizontalPodAutoscaler",
            22,
            Some(25),
            "autoscaling/v2 HorizontalPodAutoscaler",
        ),
        (
            "autoscaling/v2beta2",
            "HorizontalPodAutoscaler",
            23,
            Some(26),
            "autoscaling/v2 HorizontalPodAutoscaler",
        ),
        (
            "storage.k8s.io/v1beta1",
            "CSIStorageCapacity",
            24,
            Some(27),
            "storage.k8s.io/v1 CSIStorageCapacity",
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1beta3",
            "FlowSchema",
            29,
            Some(32),
            "flowcontrol.apiserver.k8s.io/v1 FlowSchema",
        ),
        (
            "resource.k8s.io/v1beta1",
            "ResourceClaim",
            35,
            Some(38),
            "resource.k8s.io/v1 ResourceClaim",
        ),
        ("v1", "Endpoints", 33, None, "discovery.k8s.io/v1 EndpointSlice"),
        ("v1", "ComponentStatus", 19, None, ""),
    ];
    for (api_version, kind, deprecated, gone, replacement) in rows {
        let found = lifetime(&KindName::new(api_version, kind)).unwrap();
        let shown = found.replacement.map(|kind| kind.to_string()).unwrap_or_default();
        assert_eq!(
            (found.deprecated, found.gone, shown.as_str()),
            (version(deprecated), gone.map(version), replacement),
            "{api_version} {kind}"
        );
    }
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("v1", "Endpoint"),
        ("t/v1beta1", "CronJob"),
        ("batch/v1beta1", "Cron"),
    ] {
        assert_eq!(
            lifetime(&KindName::new(api_version, kind)),
            None,
            "{api_version} {kind}"
        );
    }
}

#[test]
fn the_table_is_in_order_and_leads_to_kinds_that_live_longer() {
    let mut seen = BTreeSet::new();
    for row in TABLE {
        let group = KindName::new(row.api_version, "").group().to_owned();
        assert!(is_of_kubernetes(&group), "{group}");
    }
    assert!(!is_of_kubernetes("gateway.networking.k8s.io") && !is_of_kubernetes("example.com"));
    for row in TABLE {
        for kind in row.kinds.split(' ') {
            let name = KindName::new(row.api_version, kind);
            assert!(seen.insert(name.clone()), "{name} is there twice");
            let found = lifetime(&name).unwrap();
            assert!(found.gone.is_none_or(|gone| gone >= found.deprecated), "{name}");
            let Some(next) = found.replacement.as_ref().and_then(lifetime) else {
                continue;
            };
            assert!(
                next.gone.is_none() || next.gone > found.gone,
                "{name} leads to a kind that is gone with it"
            );
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

#[test]
fn objects_move_only_to_the_same_kind_of_another_group() {
    let rows = [
        ("extensions/v1beta1", "Deployment", Some("apps")),
        ("extensions/v1beta1", "Ingress", Some("networking.k8s.io")),
        ("extensions/v1beta1", "PodSecurityPolicy", Some("policy")),
        ("policy/v1beta1", "PodDisruptionBudget", None),
        ("v1", "Endpoints", None),
        ("t/v1", "Widget", None),
    ];
    for (api_version, kind, group) in rows {
        assert_eq!(moved_to(&KindName::new(api_version, kind)).as_deref(), group, "{kind}");
    }
}

#[test]
fn a_version_that_does_not_run_is_judged_by_the_table() {
    let state = |api_version, kind, at| {
        judge(&KindName::new(api_version, kind), version(at), None).map(|outdated| outdated.state)
    };
    let budget = |at| state("policy/v1beta1", "PodDisruptionBudget", at);
    assert_eq!(
        [budget(20), budget(21), budget(24), budget(25), budget(99)],
        [
            None,
            Some(KindState::Deprecated),
            Some(KindState::Deprecated),
            Some(KindState::Gone),
            Some(KindState::Gone)
        ]
    );
    assert_eq!(state("v1", "Endpoints", 99), Some(KindState::Deprecated));
    assert_eq!(state("t/v1", "Widget", 99), None);
}

#[test]
fn in_the_running_version_the_api_server_decides() {
    let here = |kind: &KindName, served: &Served| judge(kind, version(37), Some(served));
    let (widget, budget) = (
        KindName::new("t/v1beta1", "Widget"),
        KindName::new("policy/v1beta1", "PodDisruptionBudget"),
    );
    assert_eq!(here(&widget, &Served::default()), None);
    let warned = Served {
        warning: Some("t/v1beta1 Widget is deprecated".to_owned()),
        preferred: Some(KindName::new("t/v1", "Widget")),
        ..Served::default()
    };
    let outdated = here(&widget, &warned).unwrap();
    assert_eq!(
        (outdated.state, outdated.deprecated, outdated.gone),
        (KindState::Deprecated, None, None)
    );
    assert_eq!(
        (outdated.warning, outdated.replacement),
        (warned.warning, warned.preferred)
    );
    let gone = Served {
        is_gone: true,
        ..Served::default()
    };
    assert_eq!(here(&widget, &gone).unwrap().state, KindState::Gone);
    // An API server may serve a kind for longer than announced.
    assert_eq!(here(&budget, &Served::default()).unwrap().state, KindState::Deprecated);
    assert_eq!(here(&budget, &gone).unwrap().state, KindState::Gone);
}
