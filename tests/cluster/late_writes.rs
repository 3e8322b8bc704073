//! Writes of the operator's state that reach the API server after another leader has taken over, or after another
//! program has changed the Secret.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use addon_core::operator::event::SavedState;
use addon_core::release::tenure::Holder;
use child::warrant::{Term, Warrant, boot_time};
use futures::future::LocalBoxFuture;
use kube_access::Cluster;
use tempfile::TempDir;
use testbed::plane::User;
use testbed::proxy::{Fault, On, Proxy, What};
use testbed::wait::wait_until;
use tokio::task::spawn_blocking;

use super::config_map::behind;
use super::state::intent;
use super::world::{PATIENCE, World};

const HOUR: Duration = Duration::from_hours(1);

/// The warrant of a leader after this many changes of the leader, while the previous leader may still be alive.
fn elected(transitions: u32) -> Warrant {
    following(transitions, HOUR)
}

/// The warrant of a leader, while the previous one may be alive for this long.
fn following(transitions: u32, overlap: Duration) -> Warrant {
    let warrant = Warrant::default();
    let identity = format!("replica-{transitions}");
    warrant.name(Term {
        holder: Holder { identity, transitions },
        clear: boot_time() + overlap,
    });
    warrant.extend(boot_time() + HOUR, boot_time() + HOUR);
    warrant
}

fn sections(text: &str) -> BTreeMap<String, String> {
    [("one".to_owned(), text.to_owned())].into()
}

async fn last_good(cluster: &Cluster) -> Option<BTreeMap<String, String>> {
    let SavedState { last_good, .. } = saved_state::load_state(cluster).await.unwrap();
    last_good
}

/// A leader whose writes can be delayed.
struct Slow {
    proxy: Arc<Proxy>,
    cluster: Cluster,
    warrant: Warrant,
    _dir: TempDir,
}

impl Slow {
    async fn elected(world: &World) -> Self {
        let proxy = Proxy::start(testbed::shared::plane(), User::Operator).unwrap();
        let (cluster, dir) = behind(world, proxy.server()).await;
        let warrant = elected(1);
        Self {
            cluster: cluster.under(&warrant),
            proxy: Arc::new(proxy),
            warrant,
            _dir: dir,
        }
    }

    /// From now on another replica leads.
    fn is_deposed(&self) {
        self.warrant.extend(boot_time(), boot_time());
    }

    /// Runs `work` of this leader. Its first write is held back until `others` has ended.
    fn held_up<'a, T>(
        &'a self,
        work: impl Future<Output = T> + 'a,
        others: impl Future<Output = ()> + 'a,
    ) -> LocalBoxFuture<'a, T> {
        let (_, before) = self.proxy.seen();
        self.proxy.impose(vec![Fault {
            on: On::Writes,
            what: What::Stall,
        }]);
        let proxy = Arc::clone(&self.proxy);
        let is_held_up = spawn_blocking(move || {
            let look = || Ok::<_, Infallible>((proxy.seen().1 > before).then_some(()));
            wait_until(PATIENCE, "a write that is held up", look).unwrap();
        });
        let meanwhile = async {
            is_held_up.await.unwrap();
            others.await;
            self.proxy.heal();
        };
        Box::pin(async move { tokio::join!(work, meanwhile).0 })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_of_one_who_leads_no_more_takes_nothing_back_that_another_leader_saved() {
    let world = World::new("late").await;
    let slow = Slow::elected(&world).await;
    saved_state::save_last_good(&slow.cluster, &sections("old"), None)
        .await
        .unwrap();
    let next = world.tools.ground.cluster.under(&elected(2));
    let late = slow
        .held_up(
            saved_state::save_last_good(&slow.cluster, &sections("late"), None),
            async {
                saved_state::save_last_good(&next, &sections("new"), None)
                    .await
                    .unwrap();
                slow.is_deposed();
            },
        )
        .await;
    assert!(late.is_err());
    assert_eq!(last_good(&world.tools.ground.cluster).await, Some(sections("new")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leader_has_loaded_stays_as_it_was_loaded() {
    for there in [None, Some(sections("loaded"))] {
        let world = World::new("loaded").await;
        let slow = Slow::elected(&world).await;
        if let Some(there) = &there {
            saved_state::save_last_good(&slow.cluster, there, None).await.unwrap();
        }
        let next = world.tools.ground.cluster.under(&elected(2));
        let late = slow
            .held_up(
                saved_state::save_last_good(&slow.cluster, &sections("late"), None),
                async {
                    assert_eq!(last_good(&next).await, there);
                    slow.is_deposed();
                },
            )
            .await;
        assert!(late.is_err());
        assert_eq!(last_good(&world.tools.ground.cluster).await, there);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_the_same_name_takes_over_from_its_life_before() {
    let world = World::new("same-name").await;
    let slow = Slow::elected(&world).await;
    saved_state::save_last_good(&slow.cluster, &sections("a"), None)
        .await
        .unwrap();
    assert_eq!(last_good(&slow.cluster).await, Some(sections("a")));
    let next = world.tools.ground.cluster.under(&elected(1));
    let late = slow
        .held_up(
            saved_state::save_last_good(&slow.cluster, &sections("late"), None),
            async {
                assert_eq!(last_good(&next).await, Some(sections("a")));
                slow.is_deposed();
            },
        )
        .await;
    assert!(late.is_err());
    assert_eq!(last_good(&world.tools.ground.cluster).await, Some(sections("a")));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_still_leads_writes_beside_what_others_have_written_or_deleted_meanwhile() {
    let world = World::new("beside").await;
    let slow = Slow::elected(&world).await;
    saved_state::save_last_good(&slow.cluster, &sections("a"), None)
        .await
        .unwrap();
    let beside = slow
        .held_up(
            saved_state::save_last_good(&slow.cluster, &sections("b"), None),
            async {
                world.kubectl(
                    r#"patch secret addon-operator-state --type=merge --patch={"stringData":{"unheard-of":"x"}}"#,
                );
            },
        )
        .await;
    beside.unwrap();
    assert_eq!(last_good(&world.tools.ground.cluster).await, Some(sections("b")));
    let unheard_of = "get secret addon-operator-state -o=jsonpath={.data.unheard-of}";
    assert_eq!(world.kubectl(unheard_of), "eA==");

    let anew = slow
        .held_up(
            saved_state::save_last_good(&slow.cluster, &sections("c"), None),
            async {
                world.kubectl("delete secret addon-operator-state");
            },
        )
        .await;
    anew.unwrap();
    assert_eq!(last_good(&world.tools.ground.cluster).await, Some(sections("c")));

    world.kubectl("delete secret addon-operator-state");
    let made = slow
        .held_up(
            saved_state::save_last_good(&slow.cluster, &sections("d"), None),
            async {
                world.kubectl("create secret generic addon-operator-state --from-literal=unheard-of=x");
            },
        )
        .await;
    made.unwrap();
    assert_eq!(last_good(&world.tools.ground.cluster).await, Some(sections("d")));
    assert_eq!(world.kubectl(unheard_of), "eA==");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_about_helms_of_another_leader_are_neither_altered_nor_forgotten() {
    let world = World::new("late-notes").await;
    let slow = Slow::elected(&world).await;
    let next = world.tools.ground.cluster.under(&elected(2));
    saved_state::record_intent(&slow.cluster, "one", &intent(1))
        .await
        .unwrap();
    saved_state::record_intent(&slow.cluster, "two", &intent(1))
        .await
        .unwrap();
    let late = slow
        .held_up(saved_state::record_intent(&slow.cluster, "one", &intent(2)), async {
            saved_state::record_intent(&next, "one", &intent(3)).await.unwrap();
            slow.is_deposed();
        })
        .await;
    assert!(late.is_err());
    assert_eq!(saved_state::intent(&next, "one").await.unwrap(), Some(intent(3)));

    slow.warrant.extend(boot_time() + HOUR, boot_time() + HOUR);
    let late = slow
        .held_up(saved_state::clear_intent(&slow.cluster, "one"), async {
            saved_state::record_intent(&next, "one", &intent(4)).await.unwrap();
            slow.is_deposed();
        })
        .await;
    assert!(late.is_err());
    assert_eq!(saved_state::intent(&next, "one").await.unwrap(), Some(intent(4)));
    assert_eq!(saved_state::intent(&next, "two").await.unwrap(), Some(intent(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_by_a_leader_that_follows_one_which_has_ended() {
    let world = World::new("ended").await;
    let first = world.tools.ground.cluster.under(&following(1, Duration::ZERO));
    assert_eq!(last_good(&first).await, None);
    assert!(!world.kubectl("get secrets -o=name").contains("addon-operator-state"));
    saved_state::save_last_good(&first, &sections("a"), None).await.unwrap();
    let version = "get secret addon-operator-state -o=jsonpath={.metadata.resourceVersion}";
    let saved = world.kubectl(version);
    let next = world.tools.ground.cluster.under(&following(2, Duration::ZERO));
    assert_eq!(last_good(&next).await, Some(sections("a")));
    assert_eq!(world.kubectl(version), saved);
}
