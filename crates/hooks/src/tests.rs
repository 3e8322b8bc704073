//! Hooks and scripts as real processes. The cluster is never asked: nothing listens at its address.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use addon_core::hook::cause::Cause;
use addon_core::hook::config::{ConfigVersion, HookConfig, Stage};
use addon_core::hook::output::HookOutput;
use addon_core::operator::effect::{HookLabels, HookRun};
use addon_core::operator::event::{ScriptAnswer, Usage};
use addon_core::values::Store;
use fs_err as fs;
use names::{HookId, HookName, ModuleName, Owner};
use serde_json::json;
use settings::TmpFiles;
use tempfile::TempDir;

use super::*;
use tools::Place;

mod batch;
mod left;

/// The tools that tests with a cluster also use.
#[path = "../../../tests/cluster/hook_tools.rs"]
mod tools;

const KUBECONFIG: &str = r#"
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"#;
const CONFIG: &str = "if [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"beforeHelm\":5}'; exit; fi\n";

struct World {
    dir: TempDir,
    tools: Arc<Tools>,
}

/// A module `one` with these scripts.
async fn world(scripts: &[(&str, &str)]) -> World {
    let dir = tempfile::tempdir().unwrap();
    let module = dir.path().join("modules/one");
    fs::create_dir_all(dir.path().join("global-hooks")).unwrap();
    for (name, script) in scripts {
        let path = module.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(dir.path().join("kubeconfig"), KUBECONFIG).unwrap();
    let tools = tools(dir.path()).await;
    World { dir, tools }
}

async fn tools(dir: &Path) -> Arc<Tools> {
    let place = Place {
        dir,
        tmp_files: TmpFiles::Removed,
        namespace: "ns",
        kubeconfig: dir.join("kubeconfig"),
        environment: &[("PATH", "/usr/bin:/bin"), ("INHERITED", "yes")],
        remedies: |_, _| Box::pin(std::future::ready(Vec::new())),
    };
    tools::tools(place).await
}

fn owner() -> Owner {
    Owner::Module(ModuleName::parse("one").unwrap())
}

impl World {
    async fn configured(&self, owner: Owner) -> Result<Vec<(HookName, HookConfig)>, Failure> {
        config::ask_all(&self.tools, &owner, &CancellationToken::new()).await
    }

    async fn hook(&self, deadline: Duration) -> Result<(HookOutput, Usage), Failure> {
        self.hook_named("hooks/a.sh", deadline).await
    }

    async fn hook_named(&self, name: &str, deadline: Duration) -> Result<(HookOutput, Usage), Failure> {
        let mut store = Store::new();
        store.set_static(&owner(), json!({"x": 1})).unwrap();
        let hook = HookRun {
            hook: HookId {
                owner: owner(),
                name: HookName::parse(name).unwrap(),
            },
            version: ConfigVersion::V1,
            contexts: Vec::new(),
            snapshots: BTreeMap::default(),
            values: store.hook_values(&owner()),
            config_values: store.config_values(&owner()),
            secrecy: store.hook_secrecy(&owner()),
            deadline,
            labels: HookLabels {
                cause: Cause::Stage(Stage::BeforeHelm),
                binding_name: String::new(),
                queue: "main".to_owned(),
                activation: "",
            },
        };
        let ran = run(&self.tools, hook, &CancellationToken::new()).await?;
        Ok((ran.output, ran.usage))
    }

    async fn script(&self) -> Result<ScriptAnswer, Failure> {
        let module = ModuleName::parse("one").unwrap();
        let values = Arc::new(json!({"global": {"enabledModules": ["two"]}}));
        let config_values = Store::new().config_values(&owner());
        enabled::run(&self.tools, &module, values, config_values, &CancellationToken::new()).await
    }

    /// The files for child processes that are left.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tools.ground.tmp.dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| !["kubeconfig", "helm"].contains(&&**name))
            .collect()
    }
}

#[tokio::test]
async fn hooks_are_asked_in_the_order_of_their_paths() {
    let world = world(&[("hooks/b.sh", CONFIG), ("hooks/a.sh", CONFIG)]).await;
    let configs = world.configured(owner()).await.unwrap();
    let names: Vec<_> = configs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["hooks/a.sh", "hooks/b.sh"]);
    assert_eq!(configs[0].1.order(Stage::BeforeHelm), Some(5));
}

#[tokio::test]
async fn a_hook_without_a_usable_configuration_is_named_with_what_it_said() {
    for (script, class, said) in [
        ("echo oh no >&2; exit 3", Class::HookFailed, "exit status 3: oh no"),
        ("echo Hello, world!", Class::Invalid, "`Hello, world!`"),
        ("true", Class::Invalid, "it printed nothing"),
    ] {
        let world = world(&[("hooks/a.sh", script)]).await;
        let failure = world.configured(owner()).await.unwrap_err();
        assert_eq!(failure.class, class, "{failure}");
        assert!(
            failure.report.contains("hook 'hooks/a.sh' of module 'one'"),
            "{failure}"
        );
        assert!(failure.report.contains(said), "{failure}");
        assert!(!failure.hints.is_empty());
    }
}

#[tokio::test]
async fn a_hook_reads_its_files_and_its_patches_are_read() {
    let script = r#"
        test "$INHERITED" = yes && test $# = 0 || exit 9
        cd "$(dirname "$VALUES_PATH")/../.."
        cat "$VALUES_PATH" "$CONFIG_VALUES_PATH" "$BINDING_CONTEXT_PATH" >seen
        for path in "$VALUES_PATH" "$METRICS_PATH" "$KUBERNETES_PATCH_PATH"; do basename "$path" >>seen; done
        echo '{"op":"add","path":"/one/y","value":2}' >"$VALUES_JSON_PATCH_PATH"
        echo '[]' >"$CONFIG_VALUES_JSON_PATCH_PATH""#;
    let world = world(&[("hooks/a.sh", script)]).await;
    let (output, usage) = world.hook(Duration::from_mins(1)).await.unwrap();
    assert!(!output.values.is_empty());
    assert!(output.config.is_empty());
    assert!(usage.max_rss > 0);
    let seen = fs::read_to_string(world.dir.path().join("seen")).unwrap();
    assert!(
        seen.starts_with(r#"{"global":{},"one":{"x":1}}{"global":null,"one":null}[]"#),
        "{seen}"
    );
    for part in [
        "one.module-values-",
        "hooks-a.sh.module-hook-metrics-",
        "hooks-a.sh-object-patch-",
    ] {
        assert!(seen.contains(part), "{seen}");
    }
    assert_eq!(world.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_failing_hook_changes_nothing_and_says_why() {
    let patch = r#"echo '{"op":"add","path":"/one/y","value":2}' >"$VALUES_JSON_PATCH_PATH";"#;
    for (script, text) in [
        ("echo no space >&2; exit 1", "no space"),
        ("exit 4", "cmd run: exit status 4"),
        ("kill -KILL $$", "cmd run: signal: killed"),
        (
            "echo '{' >\"$VALUES_JSON_PATCH_PATH\"",
            "got bad json patch for values: ",
        ),
        (
            "echo x >\"$CONFIG_VALUES_JSON_PATCH_PATH\"",
            "got bad json patch for config values: ",
        ),
    ] {
        let world = world(&[("hooks/a.sh", &format!("{patch}{script}"))]).await;
        let failure = world.hook(Duration::from_mins(1)).await.unwrap_err();
        assert_eq!(failure.class, Class::HookFailed);
        assert!(failure.report.starts_with(text), "{failure}");
        assert_eq!(world.left(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_hook_beyond_its_deadline_is_ended() {
    let world = world(&[("hooks/a.sh", "exec sleep 600")]).await;
    let failure = world.hook(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(failure.class, Class::TimedOut);
    assert!(failure.report.contains("did not end within 300ms"), "{failure}");
}

#[tokio::test]
async fn a_hook_that_is_gone_is_told_as_gone() {
    let world = world(&[("hooks/b.sh", CONFIG)]).await;
    let failure = world.hook(Duration::from_mins(1)).await.unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    assert!(
        failure.report.contains("'hooks/a.sh'") && failure.report.contains("no longer on disk"),
        "{failure}"
    );
}

#[tokio::test]
async fn an_enabled_script_answers_yes_or_no_with_a_reason() {
    let ask = "grep -q two \"$VALUES_PATH\" && echo true >\"$MODULE_ENABLED_RESULT\"";
    let answer = world(&[("enabled", ask)]).await.script().await.unwrap();
    assert_eq!((answer.enabled, answer.reason), (true, None));
    let no = "echo ' false ' >\"$MODULE_ENABLED_RESULT\"; echo because >\"$MODULE_ENABLED_REASON\"";
    let answer = world(&[("enabled", no)]).await.script().await.unwrap();
    assert_eq!((answer.enabled, answer.reason.as_deref()), (false, Some("because")));
}

#[tokio::test]
async fn only_an_answer_is_an_answer() {
    for (script, said) in [
        ("true", "wrote ''"),
        ("echo yes >\"$MODULE_ENABLED_RESULT\"", "wrote 'yes'"),
        (
            "echo true >\"$MODULE_ENABLED_RESULT\"; echo oh >&2; exit 1",
            "exit status 1: oh",
        ),
    ] {
        let failure = world(&[("enabled", script)]).await.script().await.unwrap_err();
        assert_eq!(failure.class, Class::HookFailed);
        assert!(
            failure
                .report
                .starts_with("failed to execute 'one' module's enabled script")
                && failure.report.contains(said),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn a_cancelled_job_ends_as_cancelled() {
    let world = world(&[("hooks/a.sh", CONFIG)]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let asked = config::ask_all(&world.tools, &owner(), &cancel).await;
    assert_eq!(asked.unwrap_err().class, Class::Cancelled);
}

#[test]
fn files_are_written_by_threads_that_may_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = world(&[("hooks/a.sh", "true")]).await;
        let (release, held) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        let mut run = Box::pin(world.hook(Duration::from_mins(1)));
        assert!(futures::poll!(&mut run).is_pending());
        assert_eq!(world.left(), Vec::<String>::new(), "the only such thread is busy");
        release.send(()).unwrap();
        run.await.unwrap();
        busy.await.unwrap().unwrap();
    });
}
