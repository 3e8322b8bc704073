//! Hooks that are no hooks, cannot be executed, or ask for something forbidden.

use super::stage::{CONVERGED, Stage, assert_says, shown};

#[test]
fn a_hook_that_prints_garbage_for_config() {
    let stage = Stage::installed("garbage");
    stage.write(
        "modules/020-victim/hooks/garbage.sh",
        "#!/bin/sh\necho 'hello: [world'\n",
    );
    stage.add_module("030-late");
    let operator = stage.start();
    let told = operator.wait_for(&["ModuleRun failed"]);
    assert_says(
        &told,
        &[
            "\"module\":\"victim\"",
            "hooks/garbage.sh",
            "--config",
            "hello: [world",
            "hint",
        ],
    );
    operator.wait_for(&["some modules still fail", "\"modules\":\"victim\""]);
    assert_says(
        &operator.ask("module why victim"),
        &["the next try in", "hooks/garbage.sh"],
    );
    assert_says(
        &operator.get("/metrics").1,
        &["module_run_errors_total{module=\"victim\"} 1"],
    );
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);
}

#[test]
fn a_global_hook_that_prints_garbage_for_config_holds_the_start() {
    let stage = Stage::installed("global-garbage");
    stage.write("global-hooks/garbage.sh", "#!/bin/sh\necho '{{'\n");
    let operator = stage.start();
    let told = operator.wait_for(&["Step failed", "ask the global hooks"]);
    assert_says(&told, &["garbage.sh", "hint", "retry_in_seconds"]);
    operator.wait_for_answer("/readyz?verbose", 500, &["waiting: ask the global hooks", "garbage.sh"]);
    stage.assert_installed(&["good", "victim"]);
    stage.write(
        "global-hooks/garbage.sh",
        "#!/bin/sh\necho 'configVersion: v1\nonStartup: 1'\n",
    );
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn hooks_and_scripts_that_are_not_executable() {
    let stage = Stage::installed("not-executable");
    stage.write("modules/020-victim/hooks/plain.sh", "echo never\n");
    stage.write("modules/020-victim/enabled", "echo never\n");
    stage.write("global-hooks/plain.py", "print('never')\n");
    stage.add_module("030-late");
    let operator = stage.start();
    for file in [
        "modules/020-victim/hooks/plain.sh",
        "modules/020-victim/enabled",
        "global-hooks/plain.py",
    ] {
        let told = operator.wait_for(&[shown(&stage.path(file))]);
        assert_says(&told, &["\"level\":\"warn\"", "no executable permissions, chmod +x"]);
    }
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);
}

/// The file is executable, but the kernel refuses to execute it.
#[test]
fn a_hook_whose_interpreter_does_not_exist() {
    let stage = Stage::installed("no-interpreter");
    stage.write("modules/020-victim/hooks/hook.sh", "#!/nowhere/bash\n");
    let operator = stage.start();
    let told = operator.wait_for(&["ModuleRun failed"]);
    assert_says(&told, &["victim", "hooks/hook.sh", "/nowhere/bash", "hint"]);
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn a_values_patch_outside_of_the_modules_section() {
    let stage = Stage::installed("patch");
    let script = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n\
                  echo '[{\"op\": \"add\", \"path\": \"/victim/size\", \"value\": \"huge\"},\
                  {\"op\": \"add\", \"path\": \"/good/size\", \"value\": \"stolen\"}]' >$VALUES_JSON_PATCH_PATH\n";
    stage.write("modules/020-victim/hooks/hook.sh", script);
    stage.add_module("030-late");
    let operator = stage.start();
    let told = operator.wait_for(&["\"level\":\"error\"", "unacceptable patch operation"]);
    assert_says(
        &told,
        &[
            "hooks/hook.sh",
            "\"module\":\"victim\"",
            "'good'",
            "only 'victim' accepted",
        ],
    );
    operator.wait_for(&["some modules still fail", "\"modules\":\"victim\""]);
    assert_eq!(operator.ask("module values victim"), "size: small\n\n");
    assert_eq!(operator.ask("module values good"), "size: small\n\n");
    assert_says(
        &operator.ask("module why victim"),
        &["hooks/hook.sh", "unacceptable patch operation"],
    );
    operator.stop();
    assert_eq!(stage.sizes(), "good:small late:small victim:small");
    stage.assert_installed(&["good", "late", "victim"]);
}

/// The harms that a hook does to its own output files, each with the error that reports it.
const VANDALS: [(&str, &str); 4] = [
    ("truncate -s 800M $F", "holds 838860800 bytes"),
    ("rm $F; mkfifo $F", "is a named pipe now"),
    ("rm $F; ln -s /dev/zero $F", "is a link now"),
    ("rm $F; mkdir $F", "is a directory now"),
];

#[test]
fn hooks_that_leave_no_file_or_too_much_fail_by_name_and_hold_up_nobody() {
    let stage = Stage::installed("left");
    for (at, (vandal, _)) in VANDALS.iter().enumerate() {
        let dir = format!("modules/02{}-vandal{at}", at + 1);
        stage.add_module(&format!("02{}-vandal{at}", at + 1));
        let config = "if [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi";
        stage.write(
            &format!("{dir}/hooks/hook.sh"),
            &format!("#!/bin/sh\n{config}\nF=$METRICS_PATH\n{vandal}\n"),
        );
    }
    stage.add_module("030-late");
    stage.add_module("025-asked");
    stage.write(
        "modules/025-asked/enabled",
        "#!/bin/sh\nrm $MODULE_ENABLED_RESULT; mkfifo $MODULE_ENABLED_RESULT\n",
    );
    let vandals = (0..VANDALS.len()).map(|at| format!("vandal{at}Enabled: true\n"));
    let flags: String = ["good", "victim", "late", "asked"]
        .map(|name| format!("{name}Enabled: true\n"))
        .into_iter()
        .chain(vandals)
        .collect();
    stage.write("modules/values.yaml", &flags);
    let operator = stage.start();
    for (at, (_, said)) in VANDALS.iter().enumerate() {
        let told = operator.wait_for(&["ModuleRun failed", &format!("\"module\":\"vandal{at}\"")]);
        assert_says(&told, &["hooks/hook.sh", "got bad metrics", "metrics-", said, "hint"]);
    }
    let told = operator.wait_for(&["failed to execute 'asked' module's enabled script"]);
    assert_says(&told, &["MODULE_ENABLED_RESULT", "is a named pipe now"]);
    stage.wait_for_sizes("good:small late:small victim:small");
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);
}
