//! The notes that helm prints after an installation.

use testbed::plane::User;

use super::tool::{HELMS, chart, helm, image_said, printed, root};

/// Only the leader can answer, and the lease names it.
#[test]
fn commands_go_to_the_leader_with_webhooks_and_without() {
    let namespace = testbed::shared::plane().namespace("noted").unwrap();
    let (chart, image) = (chart(), image_said());
    let inside = format!("--namespace={}", namespace.name());
    for part in HELMS {
        let leader = "get lease addon-operator-leader-election --output jsonpath='{.spec.holderIdentity}'";
        for webhooks in ["webhooks.enabled=true", "webhooks.enabled=false"] {
            let kubeconfig = namespace.kubeconfig(User::Admin);
            let install = [
                "install",
                "ao",
                chart.to_str().unwrap(),
                &image,
                &inside,
                "--dry-run=server",
                "--set",
                webhooks,
            ];
            let said = printed(helm(part, Some(&kubeconfig), install));
            assert!(said.contains(leader), "{part}: {said}");
            assert!(!said.contains("exec deployment/"), "{part}: {said}");
        }
    }
}

/// The notes name webhook ports that are open to everyone, and the way to close them.
#[test]
fn open_ports_are_told_until_somebody_says_from_where_the_api_server_comes() {
    let namespace = testbed::shared::plane().namespace("open").unwrap();
    let (chart, image) = (chart(), image_said());
    let inside = format!("--namespace={}", namespace.name());
    let asked = "networkPolicy.webhooksFrom[0].ipBlock.cidr";
    let said = format!("{asked}=10.0.0.1/32");
    let rows: [(&[&str], Option<&str>); 5] = [
        (&[], Some(asked)),
        (&["networkPolicy.enabled=false", &said], Some(asked)),
        (&[&said], None),
        (&["hostNetwork=true", &said], Some("webhooks.clientAuthority")),
        (&["webhooks.enabled=false"], None),
    ];
    for part in HELMS {
        for (values, told) in rows {
            let kubeconfig = namespace.kubeconfig(User::Admin);
            let install = ["install", "ao", chart.to_str().unwrap(), &image, &inside];
            let values = values.iter().flat_map(|value| ["--set", value]);
            let all = install.into_iter().chain(["--dry-run=server"]).chain(values);
            let said = printed(helm(part, Some(&kubeconfig), all));
            let notes = said.split("\nNOTES:").nth(1).unwrap();
            assert_eq!(
                notes.contains("may ask the webhooks"),
                told.is_some(),
                "{part}: {notes}"
            );
            assert!(told.is_none_or(|told| notes.contains(told)), "{part}: {notes}");
        }
    }
}

/// With the rights of copyrator the notes name the setting that permits sources in other namespaces.
#[test]
fn rights_of_the_copyrator_come_with_the_setting_for_its_sources() {
    let namespace = testbed::shared::plane().namespace("copying").unwrap();
    let (chart, image) = (chart(), image_said());
    let inside = format!("--namespace={}", namespace.name());
    let rights = format!("--values={}", root().join("charts/shipped-modules.yaml").display());
    for part in HELMS {
        for (rights, told) in [(None, 0), (Some(rights.as_str()), 1)] {
            let kubeconfig = namespace.kubeconfig(User::Admin);
            let install = ["install", "ao", chart.to_str().unwrap(), &image, &inside];
            let all = install.into_iter().chain(["--dry-run=server"]).chain(rights);
            let said = printed(helm(part, Some(&kubeconfig), all));
            let notes = said.split("\nNOTES:").nth(1).unwrap();
            assert_eq!(
                notes.matches("copyrator.ruleNamespaces").count(),
                told,
                "{part}: {notes}"
            );
        }
    }
}

/// Without keys everyone who can push the image decides what runs; the notes have to say so.
#[test]
fn a_channel_is_told_with_what_it_lacks() {
    let namespace = testbed::shared::plane().namespace("channel-noted").unwrap();
    let (chart, image) = (chart(), image_said());
    let inside = format!("--namespace={}", namespace.name());
    let most = format!("--values={}", root().join("tests/chart/values/most.yaml").display());
    // Resource kinds that this API server does not have.
    let without = "--set=monitoring.serviceMonitor.enabled=false,monitoring.prometheusRule.enabled=false";
    let (on, always) = ("--set=channel.enabled=true", "--set=image.pullPolicy=Always");
    let rows: [(&[&str], [bool; 4]); 5] = [
        (&[], [false; 4]),
        (&[on], [true, true, false, false]),
        (&[on, always], [true, true, true, false]),
        (&[on, "--set=rbac.create=false"], [true, true, false, true]),
        (
            &[&most, without, "--set=image.pullPolicy=IfNotPresent"],
            [true, false, false, false],
        ),
    ];
    for part in HELMS {
        for (values, told) in rows {
            let kubeconfig = namespace.kubeconfig(User::Admin);
            let install = ["install", "ao", chart.to_str().unwrap(), &image, &inside];
            let template = ["--dry-run=server"].into_iter().chain(values.iter().copied());
            let said = printed(helm(part, Some(&kubeconfig), install.into_iter().chain(template)));
            let notes = said.split("\nNOTES:").nth(1).unwrap();
            let words = [
                "channel status",
                "verification.keys",
                "image.pullPolicy=Always",
                "docs/guides/channels.md",
            ];
            assert_eq!(
                words.map(|word| notes.contains(word)),
                told,
                "{part}, {values:?}: {notes}"
            );
        }
    }
}
