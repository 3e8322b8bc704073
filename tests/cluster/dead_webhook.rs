//! A module's own webhook that cannot be called: it refuses the writes of helm and the operator.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::convert::Infallible;

use addon_core::module::outline::ValuesFiles;
use addon_core::operator::policy::OnTrial;
use addon_operator::dispatch;
use channel_core::trial::record::Ruling;
use config_map::section::{self, Section};
use releases::withdrawal;
use saved_state::trial_sections;
use serde_json::{Value, json};
use testbed::part::Part;
use testbed::wait::wait_until;

use super::withheld::{self, give_endpoint, take_endpoint};
use super::world::{CHART, PATIENCE, TEMPLATE, World, with_each_helm};

const CONFIGURATION: &str = "validatingwebhookconfiguration";

/// A configuration whose webhook takes in all Secrets and ConfigMaps of the namespace, without a server.
fn configuration(world: &World, name: &str) -> Value {
    withheld::configuration(world, name, "nobody", "*", &["configmaps", "secrets"])
}

/// A world with a module whose own webhook refuses all writes; also the names of two configurations: of that webhook, and
/// of one that is kept and may fail.
async fn wedged(prefix: &str, helm: Part) -> (World, [String; 2]) {
    let mut world = World::with(prefix, helm).await;
    let names = ["dead", "kept"].map(|word| format!("{word}.{}.example.com", world.namespace.name()));
    let dead = configuration(&world, &names[0]);
    let mut kept = configuration(&world, &names[1]);
    kept["webhooks"][0]["failurePolicy"] = json!("Ignore");
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let webhooks = format!("{dead}\n---\n{kept}\n");
    let files = [
        ("Chart.yaml", CHART),
        ("templates/a.yaml", TEMPLATE),
        ("templates/w.yaml", &webhooks),
    ];
    world.module("one", &files).await;
    let noted = trial_sections::note_trial_section(&world.tools.ground.cluster, "one", None, "x: 1");
    noted.await.unwrap();
    // Without an endpoint the configuration would not be applied.
    give_endpoint(&world, "nobody");
    // The API server may learn of the webhook only after helm's last write.
    let _ = world.sync(json!({"one": {"x": "a"}})).await;
    let probe = ["create", "configmap", "probe", "--dry-run=server"];
    let is_refused = || Ok::<_, Infallible>(world.namespace.kubectl(probe).is_err().then_some(()));
    wait_until(PATIENCE, "the webhook refuses writes", is_refused).unwrap();
    take_endpoint(&world, "nobody");
    (world, names)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_whose_webhook_refuses_its_removal_is_removed() {
    with_each_helm(async |helm| {
        let (mut world, [dead, kept]) = wedged("wedged", helm).await;
        world.restart().await;
        let cluster = &world.tools.ground.cluster;
        let of_another = withdrawal::withdraw(cluster, "other", "ValidatingWebhookConfiguration", &dead).await;
        assert!(!of_another.unwrap());

        world.delete().await.unwrap();
        assert_eq!(world.history(), "");
        assert_eq!(world.kubectl("get configmap -l heritage=addon-operator -o=name"), "");
        let left = world.kubectl(&format!("get {CONFIGURATION} {dead} {kept} --ignore-not-found -o=name"));
        assert!(left.contains(&kept) && !left.contains(&dead), "{left}");
        world.kubectl(&format!("delete {CONFIGURATION} {kept}"));
    })
    .await;
}

/// A section for a `ConfigMap` that need not exist.
fn one() -> Section<'static> {
    Section {
        key: "one",
        text: "x: 1".to_owned(),
        base: None,
        create: true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_names_the_webhook_its_module_and_its_server() {
    with_each_helm(async |helm| {
        let (world, [dead, kept]) = wedged("named", helm).await;
        let tools = &world.tools;
        let saved = Box::pin(section::save(&tools.ground, &tools.config_map, one(), OnTrial::No)).await;
        let server = format!("its Service '{}/nobody' has no endpoints", world.namespace.name());
        let of_module =
            format!("webhook '{dead}' is in ValidatingWebhookConfiguration '{dead}' of module 'one'; {server}");
        let synced = world.sync(json!({"one": {"x": "b"}})).await;
        let outlines = ValuesFiles::from([("values.yaml".to_owned(), None)]);
        let outlined = dispatch::save_values_files(tools, &outlines).await;
        let settled = section::settle(&tools.ground, &tools.config_map, Ruling::Failed).await;
        let failures = [
            saved.unwrap_err(),
            synced.unwrap_err(),
            outlined.unwrap_err(),
            settled.unwrap_err(),
        ];
        for failure in failures {
            assert!(failure.report.contains("failed calling webhook"), "{failure}");
            let hints = &failure.hints;
            let named = hints.iter().filter(|hint| hint.starts_with(&of_module)).count();
            assert_eq!(named, 1, "{hints:?}");
        }

        // Another program's configuration.
        world.kubectl(&format!(
            "annotate {CONFIGURATION} {dead} --overwrite meta.helm.sh/release-namespace=elsewhere"
        ));
        let saved = Box::pin(section::save(&tools.ground, &tools.config_map, one(), OnTrial::No)).await;
        let failure = saved.unwrap_err();
        let of_other = format!("of release 'one' in namespace 'elsewhere'; {server}");
        assert!(failure.hints[0].contains(&of_other), "{:?}", failure.hints);
        world.kubectl(&format!("delete {CONFIGURATION} {dead} {kept}"));
    })
    .await;
}
