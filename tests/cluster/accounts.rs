//! Modules that act as a service account of their own have the rights of that account.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use addon_core::failure::Failure;
use addon_core::hook::cause::Cause;
use addon_core::hook::config::ConfigVersion;
use addon_core::hook::config::Stage;
use addon_core::operator::effect::{HookLabels, HookRun};
use addon_core::operator::event::SyncAction;
use addon_core::values::HookSecrecy;
use fs_err as fs;
use names::{HookId, HookName, ModuleName, Owner};
use serde_json::json;
use testbed::part::Part;

use super::world::{CHART, PATIENCE, TEMPLATE, World, document, with_each_helm};

/// Names the account for which the module's jobs act.
const MODULE: &str = "serviceAccount: small\n";

async fn world(helm: Part) -> World {
    let mut world = World::with("accounts", helm).await;
    let files = [
        ("module.yaml", MODULE),
        ("Chart.yaml", CHART),
        ("templates/a.yaml", TEMPLATE),
    ];
    world.module("one", &files).await;
    world
}

fn make_account(world: &World) {
    world.kubectl("create serviceaccount small");
}

/// Gives the account these verbs on these resources of the namespace.
fn allow(world: &World, name: &str, verbs: &str, resources: &str) {
    world.kubectl(&format!("create role {name} --verb={verbs} --resource={resources}"));
    let namespace = world.namespace.name();
    world.kubectl(&format!(
        "create rolebinding {name} --role={name} --serviceaccount={namespace}:small"
    ));
}

/// Writes a hook that runs this script, which may use `$KUBECTL`.
async fn hook(world: &mut World, does: &str) {
    let path = world.module_dir().join("hooks/h.sh");
    let kubectl = testbed::shared::program(Part::Kubectl);
    let text = format!(
        "#!/bin/sh\nset -e\nKUBECTL={}\ncd {}\n{does}\n",
        kubectl.display(),
        world.module_dir().display()
    );
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    world.restart().await;
}

async fn run_hook(world: &World) -> Result<(), Failure> {
    let owner = Owner::Module(ModuleName::parse("one").unwrap());
    let values = document(&json!({}));
    let run = HookRun {
        hook: HookId {
            owner,
            name: HookName::parse("hooks/h.sh").unwrap(),
        },
        version: ConfigVersion::V1,
        contexts: Vec::new(),
        snapshots: BTreeMap::default(),
        values: values.clone(),
        config_values: values,
        secrecy: HookSecrecy::default(),
        deadline: Duration::from_mins(1),
        labels: HookLabels {
            cause: Cause::Stage(Stage::BeforeHelm),
            binding_name: String::new(),
            queue: "main".to_owned(),
            activation: "",
        },
    };
    Box::pin(hooks::run(&world.tools.hooks, run, &world.cancel))
        .await
        .map(drop)
}

fn whoami(world: &World) -> String {
    fs::read_to_string(world.module_dir().join("who")).unwrap()
}

const ASK: &str = "$KUBECTL auth whoami -o=jsonpath={.status.userInfo.username} >who\necho $KUBECONFIG >where";

#[tokio::test]
async fn scripts_act_as_the_account_of_their_module() {
    let mut world = world(Part::Helm3).await;
    make_account(&world);
    let namespace = world.namespace.name().to_owned();
    hook(&mut world, &format!("{ASK}\n$KUBECTL get secrets -n {namespace}")).await;
    let failure = run_hook(&world).await.unwrap_err();
    let lacks = format!("User \"system:serviceaccount:{namespace}:small\" cannot list resource \"secrets\"");
    assert!(failure.report.contains(&lacks), "{failure}");
    assert_eq!(whoami(&world), format!("system:serviceaccount:{namespace}:small"));

    let kubeconfig = fs::read_to_string(world.module_dir().join("where")).unwrap();
    let kubeconfig = PathBuf::from(kubeconfig.trim());
    for file in [&kubeconfig, &kubeconfig.with_file_name("token")] {
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600,
            "{file:?}"
        );
    }

    allow(&world, "reads", "list", "secrets");
    run_hook(&world).await.unwrap();
}

#[tokio::test]
async fn object_patches_are_made_as_the_account_of_their_module() {
    let mut world = world(Part::Helm3).await;
    make_account(&world);
    let namespace = world.namespace.name().to_owned();
    let object = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: made, namespace: {namespace}}}}}");
    let patch = format!("echo 'operation: Create\nobject: {object}' >$KUBERNETES_PATCH_PATH");
    hook(&mut world, &patch).await;
    let failure = run_hook(&world).await.unwrap_err();
    assert!(failure.report.contains("cannot create configmaps"), "{failure}");
    let hint =
        format!("allow the verb 'create' on 'configmaps' in namespace '{namespace}' to the service account 'small'");
    assert_eq!(failure.hints, [hint]);
    allow(&world, "makes", "create", "configmaps");
    run_hook(&world).await.unwrap();
    assert!(world.kubectl("get configmap made -o=name").contains("made"));
}

#[tokio::test]
async fn releases_are_made_and_removed_as_the_account_of_their_module() {
    with_each_helm(async |helm| {
        let world = world(helm).await;
        make_account(&world);
        // The Secrets in which helm stores releases.
        allow(&world, "keeps", "get,list,create,update,patch,delete", "secrets");
        let values = || json!({"one": {"x": "a"}});
        let failure = world.sync(values()).await.unwrap_err();
        let lacks = format!("system:serviceaccount:{}:small", world.namespace.name());
        assert!(
            failure.report.contains(&lacks) && failure.report.contains("resource \"configmaps\""),
            "{failure}"
        );
        allow(&world, "makes", "get,create,update,patch,delete", "configmaps");
        let synced = world.sync(values()).await.unwrap();
        assert_eq!(synced.action, SyncAction::Upgraded);
        world.kubectl("delete rolebinding makes");
        allow(&world, "reads", "get", "configmaps");
        let failure = world.delete().await.unwrap_err();
        assert!(
            failure.report.contains("cannot get resource \"configmaps\"")
                || failure.report.contains("cannot delete resource \"configmaps\""),
            "{failure}"
        );
        world.kubectl(&format!(
            "create rolebinding makes --role=makes --serviceaccount={}:small",
            world.namespace.name()
        ));
        world.delete().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_account_that_is_missing_is_named_and_waited_for() {
    let mut world = world(Part::Helm3).await;
    hook(&mut world, ASK).await;
    for outcome in [
        run_hook(&world).await,
        world.sync(json!({"one": {"x": "a"}})).await.map(drop),
    ] {
        let failure = outcome.unwrap_err();
        assert!(
            failure
                .report
                .starts_with("cannot act as service account 'small': cannot create serviceaccounts/token"),
            "{failure}"
        );
        assert!(
            failure.hints[0].starts_with("create the service account 'small'"),
            "{failure:?}"
        );
    }
    make_account(&world);
    run_hook(&world).await.unwrap();
    world.kubectl("delete serviceaccount small");
    make_account(&world);
    // When the API server has noticed, the old token is invalid. One run fails because of that, and the next one
    // requests a new token.
    let until = Instant::now() + PATIENCE;
    while run_hook(&world).await.is_ok() {
        assert!(Instant::now() < until, "the old token is worth something for ever");
    }
    run_hook(&world).await.unwrap();
}
