//! Executables with several hooks, executables that only might have several, and hooks in Python.

use addon_core::hook::config::{HookConfig, HookKind};

use super::*;
use crate::config::Asker;

const SEVERAL: &str = r#"case "$1 $2" in
"hook list") echo "Found 2 items:"; exit ;;
"hook config") cat <<'JSON'
{"version":"v1","hooks":[
  {"configVersion":"v1","metadata":{"name":"first"},"beforeHelm":7},
  {"configVersion":"v1","metadata":{"name":"second"},"afterHelm":8}],
 "readiness":{"configVersion":"v1","schedule":[{"crontab":"*/15 * * * * *"}]}}
JSON
exit ;;
esac"#;

fn global() -> Owner {
    Owner::Global
}

async fn configured(world: &World, owner: Owner) -> Result<Vec<(HookName, HookConfig)>, Failure> {
    world.configured(owner).await
}

async fn names(world: &World, owner: Owner) -> Vec<String> {
    let configs = configured(world, owner).await.unwrap();
    configs.iter().map(|(name, _)| name.to_string()).collect()
}

/// The file to which the scripts write what they read.
fn seen(world: &World) -> String {
    fs::read_to_string(world.dir.path().join("seen")).unwrap_or_default()
}

fn lines(script: &str, then: &str) -> String {
    format!("{script}\n{then}\n")
}

#[tokio::test]
async fn an_executable_of_several_hooks_is_run_with_the_number_of_one() {
    let run = r#"
        cd "$(dirname "$VALUES_PATH")/../.."
        echo "$* $MODULE_NAME/$APPLICATION_NAME/$APPLICATION_NAMESPACE" >>seen
        cat "$VALUES_PATH" >>seen
        basename "$METRICS_PATH" >>seen
        echo '{"op":"add","path":"/one/y","value":2}' >"$VALUES_JSON_PATCH_PATH""#;
    let world = world(&[("hooks/batch", &lines(SEVERAL, run)), ("hooks/plain.sh", CONFIG)]).await;
    let expected = [
        "hooks/batch:first:0",
        "hooks/batch:second:1",
        "hooks/batch-readiness",
        "hooks/plain.sh",
    ];
    assert_eq!(names(&world, owner()).await, expected);
    let hook = world.hook_named("hooks/batch:second:1", Duration::from_mins(1)).await;
    assert!(!hook.unwrap().0.values.is_empty());
    world
        .hook_named("hooks/batch-readiness", Duration::from_mins(1))
        .await
        .unwrap();
    let seen = seen(&world);
    assert!(
        seen.starts_with("hook run 1 one//\n{\"global\":{},\"one\":{\"x\":1}}"),
        "{seen}"
    );
    assert!(seen.contains("hooks-batch-second-1.module-hook-metrics-"), "{seen}");
    assert!(
        seen.contains("\nhook ready one//\n") || seen.contains("}hook ready one//\n"),
        "{seen}"
    );
    let failure = world.hook_named("hooks/batch", Duration::from_mins(1)).await;
    assert!(failure.is_ok(), "the file itself is still there: {failure:?}");
}

#[tokio::test]
async fn a_failed_hook_of_several_is_told_by_its_message() {
    let run = "echo trying >&2; echo '{\"message\":\"execute: no nodes\"}' >&2; exit 1";
    let world = world(&[("hooks/batch", &lines(SEVERAL, run))]).await;
    configured(&world, owner()).await.unwrap();
    let failure = world
        .hook_named("hooks/batch:first:0", Duration::from_mins(1))
        .await
        .unwrap_err();
    assert_eq!(
        (failure.class, failure.report.as_str()),
        (Class::HookFailed, "execute: no nodes")
    );
}

#[tokio::test]
async fn an_ordinary_hook_is_asked_three_times_and_may_answer_as_it_likes() {
    for answer in [
        "exit 1",
        "exit 0",
        "echo Hello",
        "echo '{\"configVersion\":\"v1\"}'",
        "kill -KILL $$",
    ] {
        let script = format!("echo \"$*\" >>\"$(dirname \"$0\")/../../../seen\"\n{CONFIG}{answer}");
        let world = world(&[("hooks/plain", &script)]).await;
        assert_eq!(names(&world, owner()).await, ["hooks/plain"], "{answer}");
        assert_eq!(seen(&world), "hook config\nhook list\n--config\n", "{answer}");
    }
}

#[tokio::test]
async fn what_cannot_be_several_hooks_nor_one_says_why() {
    let listed = "[ \"$2\" = list ] && echo Found 2 items: && exit 0\n";
    let huge = format!("{listed}yes | head -c 5000000");
    for (script, class, said) in [
        (
            format!("{listed}echo oh no >&2; exit 3"),
            Class::HookFailed,
            "`hook config` failed: exit status 3: oh no",
        ),
        (
            huge,
            Class::HookFailed,
            "`hook config` failed: it printed more than 4 MiB",
        ),
        (
            format!("{listed}echo '{{\"version\":\"v9\"}}'"),
            Class::Invalid,
            "unknown version 'v9'; it printed `{\"version\":\"v9\"}`",
        ),
        (format!("{listed}echo Hello"), Class::Invalid, "not JSON"),
        (
            "[ \"$2\" = config ] && echo '[{\"beforeHelm\":1}]'; true".to_owned(),
            Class::Invalid,
            "it tells of 1 hooks with `hook config`, and of none with `hook list`",
        ),
        (
            "exit 7".to_owned(),
            Class::HookFailed,
            "getting its configuration with --config failed: exit status 7",
        ),
    ] {
        let world = world(&[("hooks/batch", &script)]).await;
        let failure = configured(&world, owner()).await.unwrap_err();
        assert_eq!(failure.class, class, "{failure}");
        assert!(
            failure.report.starts_with("hook 'hooks/batch' of module 'one': "),
            "{failure}"
        );
        assert!(failure.report.contains(said), "{failure}");
        assert!(!failure.hints.is_empty());
    }
}

#[tokio::test]
async fn names_and_readiness_are_told_once() {
    let world = world(&[("hooks/a", SEVERAL), ("hooks/b", SEVERAL)]).await;
    let failure = configured(&world, owner()).await.unwrap_err();
    assert!(
        failure.report.contains("multiple readiness hooks found: 'hooks/a'"),
        "{failure}"
    );

    let world = super::world(&[("hooks/a", SEVERAL), ("hooks/a-readiness", CONFIG)]).await;
    let failure = configured(&world, owner()).await.unwrap_err();
    assert!(
        failure.report.contains("two hooks have the name 'hooks/a-readiness'"),
        "{failure}"
    );
}

#[tokio::test]
async fn global_hooks_run_around_all_modules() {
    let world = world(&[("../../global-hooks/hooks/batch", SEVERAL)]).await;
    let configs = configured(&world, global()).await.unwrap();
    let (name, first) = &configs[0];
    assert_eq!(
        (name.as_str(), first.order(Stage::BeforeAll)),
        ("hooks/batch-first-0", Some(7))
    );
    assert_eq!(configs[1].1.order(Stage::AfterAll), Some(8));
}

#[tokio::test]
async fn an_executable_without_hooks_is_passed_over() {
    let none = "case \"$2\" in list) echo Found 0 items: ;; config) echo '{\"version\":\"v1\",\"has_settings_check\":true}' ;; esac";
    let world = world(&[("hooks/check", none)]).await;
    assert_eq!(names(&world, owner()).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_module_may_bring_its_own_python() {
    let python = format!("shift\n{CONFIG}echo \"$PYTHONHOME\" >\"$(dirname \"$VALUES_PATH\")/../../seen\"");
    let world = world(&[("hooks/venv/bin/python3", &python), ("hooks/a.py", "exit 9")]).await;
    assert_eq!(names(&world, owner()).await, ["hooks/a.py"]);
    world.hook_named("hooks/a.py", Duration::from_mins(1)).await.unwrap();
    assert!(seen(&world).ends_with("/modules/one/hooks/venv\n"), "{}", seen(&world));

    let script = world.dir.path().join("modules/one/hooks/venv/bin/python3");
    fs::set_permissions(script, Permissions::from_mode(0o644)).unwrap();
    let failure = configured(&world, owner()).await.unwrap_err();
    assert!(
        failure.report.contains("exit status 9"),
        "what cannot be started is no Python: {failure}"
    );
}

#[tokio::test]
async fn an_executable_that_hangs_at_the_question_is_not_asked_again() {
    let world = world(&[("hooks/slow", "echo \"$*\" >>\"$0.asked\"; sleep 600 & wait")]).await;
    let path = world.dir.path().join("modules/one/hooks/slow");
    let hook = HookId {
        owner: owner(),
        name: HookName::parse("hooks/slow").unwrap(),
    };
    let cancel = CancellationToken::new();
    let asker = Asker {
        spawner: &world.tools.ground.spawner,
        environment: &world.tools.ground.environment,
        cwd: None,
        kind: HookKind::Module,
        deadline: Duration::from_millis(500),
        module: None,
    };
    let failure = asker.ask(&hook, &path, &cancel).await.unwrap_err();
    assert_eq!(failure.class, Class::TimedOut);
    let why = "`hook config`: it did not end within 500ms";
    assert!(failure.hints.iter().any(|hint| hint.contains(why)), "{failure:?}");
    let asked = fs::read_to_string(path.with_extension("asked")).unwrap();
    assert_eq!(asked, "hook config\n--config\n");
}
