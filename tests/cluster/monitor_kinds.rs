//! Kinds that appear and disappear while their objects are watched.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::time::Duration;

use addon_core::failure::Class;
use names::MonitorId;
use serde_json::{Value, json};
use testbed::plane::User;
use testbed::proxy::{Addresses, Fault, Listing, Omission, On, Proxy, What};

use super::monitor_stage::{Stage, until};

/// A kind of the test's own, and a hook that watches it.
struct Gadgets {
    stage: Stage,
    group: String,
}

impl Gadgets {
    async fn new(prefix: &str, bound: Duration) -> Self {
        let stage = Stage::at(testbed::shared::plane(), prefix, None, bound).await;
        let group = format!("{}.example.com", stage.namespace.name());
        Self { stage, group }
    }

    /// Creates the CRD, and waits until the kind is served.
    fn define(&self) {
        self.define_as("gadgets", "Namespaced");
    }

    fn define_as(&self, plural: &str, scope: &str) {
        let group = &self.group;
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": scope,
                "names": {"kind": "Gadget", "plural": plural, "singular": "gadget", "shortNames": ["gad"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
        let kubectl = self.stage.namespace.kubectl_as(User::Admin);
        kubectl.feed(["create", "-f", "-"], &crd.to_string()).unwrap();
        self.stage.kubectl(&format!(
            "wait crd {plural}.{group} --for=condition=Established --timeout=60s"
        ));
    }

    fn put(&self, name: &str, size: u8) {
        let gadget = json!({"apiVersion": format!("{}/v1", self.group), "kind": "Gadget", "metadata": {"name": name},
            "spec": {"size": size}});
        let kubectl = self.stage.namespace.kubectl_as(User::Admin);
        until("the kind is served", || {
            let put = kubectl.feed(["apply", "-f", "-"], &gadget.to_string());
            put.map(|_| ()).map_err(|error| error.to_string())
        });
    }

    /// Written without kubectl, because kubectl caches a kind's plural for hours.
    fn put_at(&self, plural: &str, scope: &str, name: &str, size: u8) {
        let (group, namespace) = (&self.group, self.stage.namespace.name());
        let gadget = json!({"apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": {"name": name},
            "spec": {"size": size}});
        let within = if scope == "Cluster" {
            String::new()
        } else {
            format!("namespaces/{namespace}/")
        };
        let path = format!("/apis/{group}/v1/{within}{plural}");
        let kubectl = self.stage.namespace.kubectl_as(User::Admin);
        until("the kind is served", || {
            let put = kubectl.feed(["create", "--raw", &path, "-f", "-"], &gadget.to_string());
            put.map(|_| ()).map_err(|error| error.to_string())
        });
    }

    fn binding(&self) -> Value {
        json!([{"apiVersion": format!("{}/v1", self.group), "kind": "gad", "jqFilter": ".spec.size",
            "namespace": {"nameSelector": {"matchNames": ["NS"]}}}])
    }

    /// Starts the monitor. Repeats it, because a new kind may be served a moment before discovery lists it.
    async fn started(&self) -> Vec<MonitorId> {
        let mut attempts = 1;
        loop {
            match self.stage.start(1, self.binding()).await {
                Ok(ids) => return ids,
                Err(failure) => assert!(attempts < 1000, "{failure}"),
            }
            tokio::task::yield_now().await;
            attempts += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_appears_later_is_found_at_the_next_attempt() {
    let mut gadgets = Gadgets::new("crd", Duration::from_secs(90)).await;
    gadgets.stage.start(1, gadgets.binding()).await.unwrap_err();
    gadgets.define();
    let ids = gadgets.started().await;
    gadgets.put("g", 1);
    assert_eq!(gadgets.stage.told(1).await, "1+g=1");
    gadgets.put("g", 2);
    assert_eq!(gadgets.stage.told(1).await, "1~g=2");
    gadgets.stage.monitors.stop(&ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_goes_takes_its_objects_along_and_is_watched_again_when_it_comes_back() {
    const BOUND: Duration = Duration::from_secs(10);
    let mut gadgets = Gadgets::new("crd-back", BOUND).await;
    gadgets.define();
    gadgets.put("g", 2);
    let ids = gadgets.started().await;
    let awaited = [("Gadget".to_owned(), format!("{}/v1", gadgets.group))];
    for round in 0..2 {
        let group = &gadgets.group;
        until("nothing is awaited", || {
            let kinds = gadgets.stage.monitors.awaited_kinds();
            if kinds.is_empty() {
                Ok(())
            } else {
                Err(format!("{kinds:?}"))
            }
        });
        gadgets.stage.kubectl(&format!("delete crd gadgets.{group}"));
        assert_eq!(
            gadgets.stage.told(1).await,
            "1-g=2",
            "the definition takes its objects along"
        );
        until("the kind is awaited by its name", || {
            let kinds = gadgets.stage.monitors.awaited_kinds();
            if kinds.iter().eq(&awaited) {
                Ok(())
            } else {
                Err(format!("{kinds:?}"))
            }
        });
        if round == 0 {
            // However long the kind is missing, its monitor does not count as stale.
            let begin = std::time::Instant::now();
            until("more time than a watch may be silent", || {
                assert_eq!(gadgets.stage.monitors.stale(), []);
                if begin.elapsed() > BOUND + Duration::from_secs(2) {
                    Ok(())
                } else {
                    Err("not yet".to_owned())
                }
            });
        }
        // A second monitor for the kind fails with an error that names the reason.
        let failure = gadgets.stage.start(2, gadgets.binding()).await.unwrap_err();
        assert_eq!(failure.class, Class::Refused, "{failure}");
        assert!(failure.report.contains("Possibly CRD is not created"), "{failure}");
        gadgets.define();
        gadgets.put("g", 2);
        assert_eq!(gadgets.stage.told(1).await, "1+g=2");
        assert_eq!(gadgets.stage.shown(ids[0]), "2");
    }
    gadgets.put("g", 3);
    assert_eq!(gadgets.stage.told(1).await, "1~g=3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_comes_back_under_another_plural_or_in_no_namespace_is_watched_there() {
    let mut gadgets = Gadgets::new("crd-moved", Duration::from_secs(90)).await;
    gadgets.define();
    gadgets.put("g", 2);
    let mut binding = gadgets.binding();
    binding[0].as_object_mut().unwrap().remove("namespace");
    let everywhere = binding;
    let ids = loop {
        match gadgets.stage.start(1, everywhere.clone()).await {
            Ok(ids) => break ids,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let mut plural = "gadgets";
    for (next, scope) in [("devices", "Namespaced"), ("machines", "Cluster")] {
        gadgets.stage.kubectl(&format!("delete crd {plural}.{}", gadgets.group));
        assert_eq!(gadgets.stage.told(1).await, "1-g=2");
        until("the kind is awaited by its name", || {
            let kinds = gadgets.stage.monitors.awaited_kinds();
            if kinds.len() == 1 {
                Ok(())
            } else {
                Err(format!("{kinds:?}"))
            }
        });
        gadgets.define_as(next, scope);
        gadgets.put_at(next, scope, "g", 2);
        assert_eq!(gadgets.stage.told(1).await, "1+g=2");
        assert_eq!(gadgets.stage.shown(ids[0]), "2");
        plural = next;
    }
    gadgets.stage.kubectl(&format!("delete crd {plural}.{}", gadgets.group));
}

/// While an API server cannot reach the server of a kind, or has not read its CRD yet, it answers 404 at the kind's
/// paths.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_of_a_kind_stays_while_nothing_is_found_where_it_was() {
    let proxy = Proxy::start(testbed::shared::plane(), User::Operator).unwrap();
    let bound = Duration::from_secs(5);
    let stage = Stage::at(testbed::shared::plane(), "crd-nowhere", Some(proxy.server()), bound).await;
    let group = format!("{}.example.com", stage.namespace.name());
    let mut gadgets = Gadgets { stage, group };
    gadgets.define();
    gadgets.put("g", 1);
    let ids = gadgets.started().await;
    let mut size = 1;
    for listing in [Listing::Stale, Listing::LeftOut] {
        proxy.omit(Some(Omission {
            group: gadgets.group.clone(),
            listing,
            addresses: Addresses::NotFound,
        }));
        let (on, what) = (On::Watches, What::Refuse);
        proxy.impose(vec![Fault { on, what }]);
        until("the end of the watch", || {
            let errors = gadgets.stage.watch_errors.lock().unwrap();
            if errors.is_empty() { Err(String::new()) } else { Ok(()) }
        });
        proxy.heal();
        let name = gadgets.stage.namespace.name().to_owned();
        until("it is said which of both it is", || {
            let monitors = &gadgets.stage.monitors;
            let (awaited, stale) = (monitors.awaited_kinds().len(), monitors.stale());
            let withheld = stale.iter().filter(|watch| watch.namespace == name).count();
            let expected = match listing {
                // A server exists, but its objects cannot be read.
                Listing::Stale => (0, 1),
                // No server exists, so nothing is missed.
                Listing::LeftOut => (1, 0),
            };
            if (awaited, withheld) == expected {
                Ok(())
            } else {
                Err(format!("{awaited} awaited, {stale:?}"))
            }
        });
        assert_eq!(gadgets.stage.shown(ids[0]), size.to_string());
        proxy.omit(None);
        gadgets.stage.watch_errors.lock().unwrap().clear();
        size += 1;
        gadgets.put("g", size);
        assert_eq!(gadgets.stage.told(1).await, format!("1~g={size}"));
        gadgets.stage.watch_errors.lock().unwrap().clear();
    }
    gadgets.stage.kubectl(&format!("delete crd gadgets.{}", gadgets.group));
    assert_eq!(gadgets.stage.told(1).await, format!("1-g={size}"));
}
