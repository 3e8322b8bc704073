//! A helm that is at work while the store is reset to an earlier time: its revision is lost, but its later writes are
//! not.

use addon_core::operator::event::SyncAction;
use serde_json::json;
use testbed::plane::User;
use testbed::proxy::{Side, Trap};

use super::world::{World, with_each_helm};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_helm_did_that_left_no_revision_is_undone_by_the_next() {
    with_each_helm(async |helm| {
        let mut world = World::with("torn", helm).await;
        world.simple_module().await;
        let proxy = world.restart_behind_a_proxy().await;
        let shown = |world: &World| world.kubectl("get configmap shown -o=jsonpath={.data.x}");
        let a = json!({"one": {"x": "a"}});
        assert_eq!(world.sync(a.clone()).await.unwrap().action, SyncAction::Upgraded);

        // The first write creates the revision, the second one the object.
        let kubectl = world.namespace.kubectl_as(User::Admin);
        proxy.trap(Trap {
            agent: "Helm/",
            nth: 2,
            side: Side::After,
            deed: Box::new(move || {
                kubectl.run(["delete", "secret", "sh.helm.release.v1.one.v2"]).unwrap();
            }),
        });
        world.sync(json!({"one": {"x": "b"}})).await.unwrap_err();
        assert_eq!((world.history().as_str(), shown(&world).as_str()), ("1:deployed", "b"));

        assert_eq!(world.sync(a.clone()).await.unwrap().action, SyncAction::Upgraded);
        assert_eq!(shown(&world), "a");
        assert_eq!(
            world.sync(a).await.unwrap().action,
            SyncAction::Unchanged,
            "once is enough"
        );
    })
    .await;
}
