//! Removals of releases during which helm is interrupted or refused.

use addon_core::operator::event::{SyncAction, Synced};
use serde_json::json;
use testbed::proxy::{Aimed, Fault, Of, On, What};

use super::world::{World, with_each_helm};

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_helm_cannot_read_is_not_taken_for_removed() {
    with_each_helm(async |helm| {
        let mut world = World::with("unread", helm).await;
        world.simple_module().await;
        let synced = world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        assert!(
            matches!(
                synced,
                Synced {
                    action: SyncAction::Upgraded,
                    ..
                }
            ),
            "{synced:?}"
        );
        let proxy = world.restart_behind_a_proxy().await;

        let what = What::Status(504, None);
        let fault = Fault { on: On::Lists, what };
        proxy.aim(vec![Aimed {
            of: Of::Agent("Helm/"),
            every: 1,
            fault,
        }]);
        let failure = world.delete().await.unwrap_err();
        assert!(failure.report.contains("cannot uninstall release 'one'"), "{failure}");
        assert_eq!(world.history(), "1:deployed");

        proxy.heal();
        world.delete().await.unwrap();
        assert_eq!(world.history(), "");
        assert_eq!(world.kubectl("get configmap -l heritage=addon-operator -o=name"), "");
    })
    .await;
}
