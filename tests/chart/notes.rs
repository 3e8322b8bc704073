//! What helm says after an installation.

use testbed::plane::User;

use super::tool::{HELMS, chart, helm, image_said, printed};

/// Only the leader has the answers, and who leads is told by the label of its pod only where Services need that.
#[test]
fn commands_go_to_the_leader_with_webhooks_and_without() {
    let namespace = testbed::shared::plane().namespace("noted").unwrap();
    let (chart, image) = (chart(), image_said());
    let inside = format!("--namespace={}", namespace.name());
    for part in HELMS {
        for (webhooks, leader) in [
            (
                "webhooks.enabled=true",
                "get pods --selector addon-operator/leader=true --output name",
            ),
            (
                "webhooks.enabled=false",
                "get lease addon-operator-leader-election --output jsonpath='{.spec.holderIdentity}'",
            ),
        ] {
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
