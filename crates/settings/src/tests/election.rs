//! The identities of replicas, and when there is a lease.

use super::*;

#[test]
fn who_asks_for_replicas_says_who_we_are() {
    let all = [
        ("ADDON_OPERATOR_HA", "true"),
        ("ADDON_OPERATOR_POD", "operator-0"),
        ("ADDON_OPERATOR_LISTEN_ADDRESS", "10.0.0.7"),
        ("ADDON_OPERATOR_NAMESPACE", "ns"),
    ];
    let elected = |name| Leadership::Elected {
        lease: "addon-operator-leader-election",
        name,
        timing: Timing::USUAL,
    };
    let pod = Name::Pod("operator-0.10-0-0-7.ns.pod".to_owned());
    assert_eq!(check(&[], &all).unwrap().leadership, elected(pod.clone()));
    assert_eq!(
        check(&[], &all[1..]).unwrap().leadership,
        elected(pod),
        "also without asking"
    );
    for missing in 1..all.len() {
        let some: Vec<_> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != missing)
            .map(|(_, pair)| *pair)
            .collect();
        let error = format!(
            "configuration error: ADDON_OPERATOR_HA needs {}, which is not set",
            all[missing].0
        );
        assert_eq!(check(&[], &some).unwrap_err(), error);
    }
}

#[test]
fn with_modules_there_is_a_lease_unless_it_is_refused() {
    let leadership = |variables: &[(&str, &str)]| check(&[], variables).unwrap().leadership;
    let process = |pod: Option<&str>| Leadership::Elected {
        lease: "addon-operator-leader-election",
        name: Name::Process {
            pod: pod.map(str::to_owned),
        },
        timing: Timing::USUAL,
    };
    assert_eq!(leadership(&[]), process(None));
    assert_eq!(leadership(&[("ADDON_OPERATOR_POD", "p")]), process(Some("p")));
    assert_eq!(leadership(&[("HOSTNAME", "laptop")]), process(None));
    assert_eq!(leadership(&[("ADDON_OPERATOR_HA", "false")]), Leadership::Alone);
    let unknown = check(&[], &[("ADDON_OPERATOR_HA", "1")]).unwrap();
    assert_eq!(unknown.leadership, process(None));
    assert_eq!(
        unknown.remarks,
        ["ADDON_OPERATOR_HA is '1', but only 'true' and 'false' count"]
    );
}

#[test]
fn hooks_alone_have_a_lease_if_it_is_asked_for() {
    assert_eq!(check_hooks(&[], &[]).unwrap().leadership, Leadership::Alone);
    assert_eq!(
        check_hooks(&[], &[("ADDON_OPERATOR_HA", "true")]).unwrap().leadership,
        Leadership::Alone
    );
    let variables = [
        ("SHELL_OPERATOR_HA", "true"),
        ("SHELL_OPERATOR_POD", "hooks-0"),
        ("SHELL_OPERATOR_NAMESPACE", "ns"),
    ];
    let refused = check_hooks(&[], &variables).unwrap_err();
    assert!(
        refused.ends_with("needs SHELL_OPERATOR_LISTEN_ADDRESS, which is not set"),
        "{refused}"
    );
    assert_eq!(
        check_hooks(&["--listen-address=::1"], &variables).unwrap().leadership,
        Leadership::Elected {
            lease: "shell-operator-leader-election",
            name: Name::Pod("hooks-0.--1.ns.pod".to_owned()),
            timing: Timing::USUAL,
        }
    );
}

#[test]
fn the_label_of_the_leader_needs_a_pod_to_carry_it() {
    assert_eq!(check(&[], &[("ADDON_OPERATOR_POD", "p")]).unwrap().leader_label, None);
    let label = |key| ("ADDON_OPERATOR_LEADER_LABEL", key);
    let known = check(&[], &[("ADDON_OPERATOR_POD", "p"), label("addon-operator/leader")]).unwrap();
    let (pod, key) = ("p".to_owned(), "addon-operator/leader".to_owned());
    assert_eq!(known.leader_label, Some(LeaderLabel { pod, key }));
    assert_eq!(
        check(&[], &[label("leader")]).unwrap_err(),
        "configuration error: ADDON_OPERATOR_LEADER_LABEL needs ADDON_OPERATOR_POD, which is not set"
    );
    for key in ["/leader", "a b", "Of.Us/leader", "-"] {
        let refused = check(&[], &[("ADDON_OPERATOR_POD", "p"), label(key)]).unwrap_err();
        assert!(refused.contains("the key of a label"), "{refused}");
    }
}

#[test]
fn a_lease_leaves_time_to_try_again_and_to_end() {
    let [lease, deadline, retry] = [
        "ADDON_OPERATOR_LEASE_DURATION",
        "ADDON_OPERATOR_LEASE_RENEW_DEADLINE",
        "ADDON_OPERATOR_LEASE_RETRY_PERIOD",
    ];
    let timing =
        |variables: &[(&'static str, &'static str)]| match check(&[], variables).map(|settings| settings.leadership) {
            Ok(Leadership::Elected { timing, .. }) => {
                Ok([timing.lease, timing.deadline, timing.retry].map(|time| time.as_secs()))
            }
            Ok(Leadership::Alone) => Err("alone".to_owned()),
            Err(error) => Err(error),
        };
    for (said, expected) in [
        (&[][..], [18, 13, 3]),
        (&[(lease, "35s")], [35, 30, 3]),
        (&[(lease, "35s"), (retry, "10s")], [35, 30, 10]),
        (&[(lease, "8s"), (retry, "1s")], [8, 3, 1]),
        (&[(lease, "1m"), (deadline, "20s")], [60, 20, 3]),
    ] {
        assert_eq!(timing(said), Ok(expected), "{said:?}");
    }
    for (said, allowed) in [
        (&[(lease, "6s")][..], "seven or more"),
        (&[(lease, "8500ms")], "whole seconds"),
        (&[(lease, "8s"), (deadline, "4s")], "five seconds less"),
        (&[(lease, "8s"), (retry, "2s")], "half of the renew deadline"),
    ] {
        let refused = timing(said).unwrap_err();
        assert!(refused.contains(allowed), "{refused}");
    }
}

#[test]
fn services_that_lead_to_the_leader_need_its_address() {
    let services = |names| ("ADDON_OPERATOR_LEADER_SERVICES", names);
    let (pod, address) = (
        ("ADDON_OPERATOR_POD", "p"),
        ("ADDON_OPERATOR_LISTEN_ADDRESS", "fd00::7"),
    );
    let known = check(&[], &[pod, address, services("one, two")]).unwrap();
    let wanted = LeaderServices {
        pod: "p".to_owned(),
        address: "fd00::7".parse().unwrap(),
        names: vec!["one".to_owned(), "two".to_owned()],
    };
    assert_eq!(known.leader_services, Some(wanted));
    let everywhere = ("ADDON_OPERATOR_LISTEN_ADDRESS", "::");
    for (variables, missing) in [
        (vec![address, services("one")], "ADDON_OPERATOR_POD"),
        (vec![pod, services("one")], "ADDON_OPERATOR_LISTEN_ADDRESS"),
        (vec![pod, everywhere, services("one")], "ADDON_OPERATOR_LISTEN_ADDRESS"),
    ] {
        let refused = check(&[], &variables).unwrap_err();
        assert_eq!(
            refused,
            format!("configuration error: ADDON_OPERATOR_LEADER_SERVICES needs {missing}, which is not set")
        );
    }
    for names in ["One", "one,,two", "a.b"] {
        let refused = check(&[], &[pod, address, services(names)]).unwrap_err();
        assert!(refused.contains("names of services"), "{refused}");
    }
}
