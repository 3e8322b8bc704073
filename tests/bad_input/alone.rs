//! Hooks without modules: no message may call one of them a global hook, because global hooks exist only beside
//! modules.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use fs_err as fs;

use super::stage::{Operator, Stage, assert_says, shown};

/// The name of a hook in an operator with modules.
const OF_MODULES: &str = "global hook";

fn stage(prefix: &str) -> Stage {
    let mut stage = Stage::build(prefix);
    stage.serve_hooks();
    fs::create_dir(stage.path("hooks")).unwrap();
    let (hooks, tmp) = (stage.path("hooks"), stage.path("tmp"));
    stage.set("SHELL_OPERATOR_HOOKS_DIR", hooks);
    stage.set("SHELL_OPERATOR_TMP_DIR", tmp);
    stage.set("SHELL_OPERATOR_LISTEN_ADDRESS", "127.0.0.1");
    let port = stage.port().to_string();
    stage.set("SHELL_OPERATOR_LISTEN_PORT", port);
    let namespace = stage.namespace().name().to_owned();
    stage.set("SHELL_OPERATOR_NAMESPACE", namespace);
    stage
}

fn add(stage: &Stage, name: &str, config: &str, work: &str) {
    let config = format!("if [ \"$1\" = --config ]; then echo '{config}'; exit; fi");
    stage.write(&format!("hooks/{name}"), &format!("#!/bin/sh\n{config}\n{work}\n"));
}

/// The answers of all commands and endpoints, without the log.
fn everything(operator: &Operator<'_>) -> String {
    let mut said = operator.said();
    for page in [
        "/",
        "/healthz",
        "/readyz",
        "/readyz?verbose",
        "/metrics",
        "/metrics/hooks",
        "/status",
    ] {
        said += &operator.get(page).1;
    }
    let routes = operator.ask("hooks raw /discovery");
    let paths = routes.lines().filter_map(|line| line.trim().strip_prefix("GET "));
    let plain = paths.filter_map(|path| path.split(['{', '?']).next());
    let listed: Vec<String> = plain
        .map(|path| match path.strip_suffix('.') {
            Some(path) => format!("{path}.json"),
            None => path.to_owned(),
        })
        .collect();
    assert!(listed.iter().any(|path| path == "/queue/list.json"), "{listed:?}");
    for path in &listed {
        said += &operator.try_ask(&format!("hooks raw {path}"));
    }
    for command in [
        "queue list",
        "queue list --show-empty",
        "queue main",
        "hook list",
        "config list",
    ] {
        said += &operator.try_ask(&format!("hooks {command}"));
    }
    for command in ["module list -o wide", "why", "global list", "channel status"] {
        said += &operator.try_ask(command);
    }
    said
}

fn assert_plain(said: &str) {
    let found: Vec<&str> = said
        .lines()
        .filter(|line| line.to_lowercase().contains(OF_MODULES))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_hook_without_a_configuration_and_a_directory_that_is_not_there() {
    let mut stage = stage("alone-refused");
    add(&stage, "bad.sh", "configVersion: v1\nonStartup: soon", "");
    let said = stage.refused();
    assert_says(
        &said,
        &["hook 'bad.sh': getting its configuration with --config failed"],
    );
    assert_plain(&said);

    stage.write("hooks/bad.sh", "#!/bin/sh\nsleep 1; echo no; exit 3\n");
    let said = stage.refused();
    assert_says(
        &said,
        &["hook 'bad.sh': getting its configuration", "exit status 3: no"],
    );
    assert_plain(&said);

    stage.rename("hooks", "away");
    let said = stage.refused();
    assert_says(&said, &[shown(&stage.path("hooks")), "--hooks-dir"]);
    assert!(!said.contains("--global-hooks-dir"), "{said}");
    assert_plain(&said);

    fs::create_dir(stage.path("hooks")).unwrap();
    std::os::unix::fs::symlink("nowhere", stage.path("hooks/lost.sh")).unwrap();
    let said = stage.refused();
    assert_says(&said, &["lost.sh", "is a link to nothing", "--hooks-dir"]);
    assert!(!said.contains("--global-hooks-dir"), "{said}");
    // Without the variable the operator looks only for hooks, not for modules.
    stage.unset("SHELL_OPERATOR_HOOKS_DIR");
    assert_plain(&stage.refused());
}

#[test]
fn hooks_that_fail_hang_and_wait() {
    let mut stage = stage("alone-texts");
    stage.set("ADDON_OPERATOR_PATIENCE", "1s");
    stage.set("ADDON_OPERATOR_HOOK_SLOTS", "1");
    let (mended, woken) = (stage.path("mended"), stage.path("woken"));
    let fails = format!("test -e {} || {{ echo broken >&2; exit 1; }}", shown(&mended));
    add(&stage, "01-fails.sh", "configVersion: v1\nonStartup: 1", &fails);
    let hangs = format!("until test -e {}; do sleep 0.1; done", shown(&woken));
    let often = |queue: &str| format!("configVersion: v1\nschedule: [{{crontab: \"* * * * * *\", queue: {queue}}}]");
    add(&stage, "02-hangs.sh", &often("slow"), &hangs);
    let measures = "echo '{\"name\": \"a\", \"action\": \"dance\"}' >$METRICS_PATH";
    add(&stage, "03-measures.sh", &often("odd"), measures);
    let watches =
        "configVersion: v1\nkubernetes: [{apiVersion: v1, kind: ConfigMap, jqFilter: .data.size, name: sizes}]";
    add(&stage, "04-watches.sh", watches, &fails);
    let nothing = "configVersion: v1\nkubernetes: [{apiVersion: nowhere.example.com/v1, kind: Nothing, name: none}]";
    add(&stage, "05-nothing.sh", nothing, "");

    let operator = stage.start();
    operator.wait_for(&["Hook failed", "01-fails.sh"]);
    assert_plain(&everything(&operator));
    fs::write(&mended, "").unwrap();
    // The monitors of the last hook can never start, and the report of that names the hook.
    let failed = operator.wait_for(&["start the monitors of hook '05-nothing.sh'"]);
    assert_plain(&failed);
    operator.wait_for(&["takes long", "hook '02-hangs.sh'"]);
    let said = everything(&operator);
    assert_says(&said, &["02-hangs.sh", "03-measures.sh"]);
    assert_plain(&said);
    fs::write(&woken, "").unwrap();
    operator.wait_for(&["03-measures.sh", "dance"]);
    assert_plain(&everything(&operator));
    let log = operator.said();
    operator.stop();
    assert_plain(&log);
}
