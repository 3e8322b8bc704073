//! Incomplete discovery answers, because of which nothing may be deleted.

use std::time::Duration;

use fs_err as fs;
use testbed::proxy::{Addresses, Aimed, Fault, Listing, Of, Omission, On, Proxy, What};

use super::*;

/// Other tests delete groups, each of which is in doubt for 15 seconds.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_mins(5);

const ASKING: &str = "{{ if .Capabilities.APIVersions.Has \"GROUP/v1/Widget\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n{{ end }}\n";

/// Makes the server of the group version unreachable: its `APIService` now leads to a Service without pods.
fn kill_who_serves(stage: &Stage) {
    let service = format!("v1.{}", stage.group);
    let admin = stage.world.namespace.kubectl_as(User::Admin);
    stage.apply("apiVersion: v1\nkind: Service\nmetadata: {name: dead}\nspec: {ports: [{port: 443}]}\n");
    // Without this label the controller for CRDs no longer updates the `APIService`.
    admin
        .run([
            "label",
            "apiservice",
            &service,
            "kube-aggregator.kubernetes.io/automanaged-",
        ])
        .unwrap();
    let dead = json!({"spec": {"insecureSkipTLSVerify": true,
        "service": {"namespace": stage.world.namespace.name(), "name": "dead", "port": 443}}});
    admin
        .run([
            "patch",
            "apiservice",
            &service,
            "--type=merge",
            "--patch",
            &dead.to_string(),
        ])
        .unwrap();
    let look = || {
        let said = admin.run(["get", "--raw", &format!("/apis/{}/v1", stage.group)]);
        if said.is_err() {
            Ok(Some(()))
        } else {
            Err("it answers".to_owned())
        }
    };
    wait_until(PATIENCE, "the end of who serves it", look).unwrap();
}

impl Stage {
    /// Installs a chart that renders an additional object if its CRD is served.
    async fn asking(prefix: &str) -> Self {
        let mut stage = Self::new(prefix).await;
        let crd = stage.widgets(&[version("v1", STORED)]);
        let asking = ASKING.replace("GROUP", &stage.group);
        let files = [
            ("crds/widgets.yaml", crd.as_str()),
            ("Chart.yaml", CHART),
            ("templates/a.yaml", TEMPLATE),
            ("templates/asking.yaml", &asking),
        ];
        stage.files(&files).await;
        stage.ensure().await.unwrap();
        stage.world.sync(values("a")).await.unwrap();
        stage
    }

    /// Restarts the stage with its requests going through a proxy, which can change the answers of discovery.
    async fn through_a_proxy(&mut self) -> Proxy {
        let namespace = &self.world.namespace;
        let proxy = Proxy::start(namespace.plane(), User::Operator).unwrap();
        let text = proxy.kubeconfig(namespace.plane(), User::Operator, namespace.name());
        let kubeconfig = self.world.module_dir().join("../../kubeconfig");
        fs::write(&kubeconfig, text).unwrap();
        self.world.parts.kubeconfig = kubeconfig;
        self.world.restart().await;
        proxy
    }

    fn omission(&self, listing: Listing, addresses: Addresses) -> Omission {
        let group = self.group.clone();
        Omission {
            group,
            listing,
            addresses,
        }
    }
}

/// The objects of the chart.
fn objects(stage: &Stage) -> String {
    stage
        .world
        .kubectl("get configmaps -l heritage -o=jsonpath={.items[*].metadata.name}")
}

/// Checks that an upgrade with a changed value is refused, because the chart asks for an API whose presence is
/// uncertain.
async fn refused(stage: &Stage, x: &str) {
    let failure = stage.world.sync(values(x)).await.unwrap_err();
    assert_eq!(failure.class, Class::Unavailable, "{failure}");
    assert!(failure.report.contains(&format!("{}/v1", stage.group)), "{failure}");
    assert_eq!(objects(stage), "extra shown");
}

/// Waits until the release has this history. Groups of other tests that are in doubt delay it.
async fn until_synced(stage: &Stage, x: &str, history: &str) {
    let deadline = tokio::time::Instant::now() + PATIENCE_WITH_OTHERS;
    while stage.world.history() != history {
        assert!(tokio::time::Instant::now() < deadline, "{}", stage.world.history());
        stage.world.tools.ground.cluster.forget_apis();
        drop(stage.world.sync(values(x)).await);
    }
}

fn values(x: &str) -> Value {
    json!({"one": {"x": x}})
}

/// Checks that, after a kind is really gone, the object made for it is deleted too.
async fn goes_with_its_kind(stage: &Stage) {
    let admin = stage.world.namespace.kubectl_as(User::Admin);
    admin.run(["delete", "crd", &stage.name(), "--wait=false"]).unwrap();
    admin
        .run([
            "delete",
            "apiservice",
            &format!("v1.{}", stage.group),
            "--ignore-not-found",
        ])
        .unwrap();
    let deadline = tokio::time::Instant::now() + PATIENCE_WITH_OTHERS;
    while objects(stage) != "shown" {
        assert!(tokio::time::Instant::now() < deadline, "{}", objects(stage));
        let cluster = &stage.world.tools.ground.cluster;
        cluster.forget_apis();
        drop(stage.world.sync(values("gone")).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_not_rendered_with_less_while_who_serves_an_api_is_down() {
    let mut stage = Box::pin(Stage::asking("stale")).await;
    assert_eq!(objects(&stage), "extra shown");

    kill_who_serves(&stage);
    let cluster = &stage.world.tools.ground.cluster;
    cluster.forget_apis();
    // The cached list still has the group, so nothing has changed. An upgrade would be rendered by helm, which has no
    // cached list.
    assert!(cluster.apis().await.unwrap().doubtful.is_empty());
    let synced = stage.world.sync(values("a")).await.unwrap();
    assert_eq!(synced.revision, 1, "{:?}", synced.action);
    refused(&stage, "b").await;
    // A restarted operator has no cached list.
    stage.world.restart().await;
    refused(&stage, "c").await;
    // A chart that does not ask for served APIs is upgraded.
    let extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n";
    stage.files(&[("templates/asking.yaml", extra)]).await;
    assert_eq!(stage.world.sync(values("c")).await.unwrap().revision, 2);
    let asking = ASKING.replace("GROUP", &stage.group);
    stage.files(&[("templates/asking.yaml", &asking)]).await;
    refused(&stage, "d").await;
    goes_with_its_kind(&stage).await;
}

/// As an API server answers for a while after its start. The groups of other tests come and go meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_not_rendered_with_less_while_discovery_leaves_out_a_group() {
    let mut stage = Box::pin(Stage::asking("left-out")).await;
    let proxy = stage.through_a_proxy().await;
    let group_version = format!("{}/v1", stage.group);
    let cluster = &stage.world.tools.ground.cluster;
    assert!(cluster.apis().await.unwrap().names.contains(&group_version));

    proxy.omit(Some(stage.omission(Listing::LeftOut, Addresses::Answer)));
    cluster.forget_apis();
    assert!(cluster.apis().await.unwrap().uncertain.contains(&group_version));
    drop(stage.world.sync(values("a")).await);
    refused(&stage, "b").await;
    assert_eq!(stage.world.history(), "1:deployed");

    proxy.omit(None);
    until_synced(&stage, "b", "1:superseded 2:deployed").await;
    assert_eq!(objects(&stage), "extra shown");
    goes_with_its_kind(&stage).await;
}

/// The operator's list is whole, and helm's is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_not_rendered_with_less_while_discovery_leaves_out_a_group_for_helm() {
    let mut stage = Box::pin(Stage::new("helm-left-out")).await;
    let asking = ASKING.replace("GROUP/v1/Widget", "batch/v1/Job");
    let files = [
        ("Chart.yaml", CHART),
        ("templates/a.yaml", TEMPLATE),
        ("templates/asking.yaml", &asking),
    ];
    stage.files(&files).await;
    let proxy = stage.through_a_proxy().await;
    until_synced(&stage, "a", "1:deployed").await;
    assert_eq!(objects(&stage), "extra shown");

    let (on, what) = (On::Discovery, What::LostGroup("batch"));
    let (of, every, fault) = (Of::Agent("Helm/"), 1, Fault { on, what });
    proxy.aim(vec![Aimed { of, every, fault }]);
    let deadline = tokio::time::Instant::now() + PATIENCE_WITH_OTHERS;
    loop {
        let failure = stage.world.sync(values("b")).await.unwrap_err();
        assert_eq!(failure.class, Class::Unavailable, "{failure}");
        if failure.report.contains("batch/v1 is missing") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{failure}");
    }
    assert_eq!(
        (objects(&stage), stage.world.history()),
        ("extra shown".to_owned(), "1:deployed".to_owned())
    );

    proxy.aim(Vec::new());
    until_synced(&stage, "b", "1:superseded 2:deployed").await;
    assert_eq!(objects(&stage), "extra shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_at_addresses_that_lead_nowhere_are_unknown_and_not_missing() {
    for count in ["1", "8"] {
        let mut stage = Stage::new(&format!("nowhere-{count}")).await;
        let crd = stage.widgets(&[version("v1", STORED)]);
        let widgets = format!(
            "{{{{ range until {count} }}}}\n---\napiVersion: {}/v1\nkind: Widget\nmetadata: {{name: w{{{{ . }}}}}}\n{{{{ end }}}}\n",
            stage.group
        );
        let files = [
            ("crds/widgets.yaml", crd.as_str()),
            ("Chart.yaml", CHART),
            ("templates/widgets.yaml", &widgets),
        ];
        stage.files(&files).await;
        stage.ensure().await.unwrap();
        let proxy = stage.through_a_proxy().await;
        stage.world.sync(values("a")).await.unwrap();

        proxy.omit(Some(stage.omission(Listing::LeftOut, Addresses::NotFound)));
        stage.world.tools.ground.cluster.forget_apis();
        if let Err(failure) = stage.world.sync(values("a")).await {
            assert!(failure.report.contains("404"), "{failure}");
        }
        proxy.omit(None);
        stage.world.tools.ground.cluster.forget_apis();
        stage.world.sync(values("a")).await.unwrap();
        assert_eq!(stage.world.history(), "1:deployed");
        let upgrades = |stage: &Stage| {
            let calls = stage.world.helm_calls();
            calls.iter().filter(|call| *call == "upgrade").count()
        };
        assert_eq!(upgrades(&stage), 1);

        // A missing object is created anew.
        stage.world.kubectl(&format!("delete {} w0", stage.name()));
        stage.world.tools.ground.cluster.forget_apis();
        let synced = stage.world.sync(values("a")).await.unwrap();
        assert_eq!((synced.action, synced.revision), (SyncAction::Upgraded, 2));
    }
}
