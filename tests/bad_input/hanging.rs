//! Hooks that hang: which other work goes on, and how they end.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use fs_err as fs;
use testbed::process;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

/// A hook that writes its process id to a file beside the modules and sleeps. It succeeds when the sleep is ended.
const HANGING: &str = "#!/bin/sh\n\
    if [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n\
    sleep 7200 &\n\
    echo $! >PLACE/pid.new && mv PLACE/pid.new PLACE/pid\n\
    wait $!\n\
    exit 0\n";

fn add_hanging(stage: &Stage, dir: &str) {
    stage.add_module(dir);
    let place = stage.path(&format!("hung-{dir}"));
    fs::create_dir(&place).unwrap();
    let hook = HANGING.replace("PLACE", place.to_str().unwrap());
    stage.write(&format!("modules/{dir}/hooks/hang.sh"), &hook);
}

/// Waits until the hook of this module sleeps, and ends the sleep.
fn wake(stage: &Stage, dir: &str) {
    let file = stage.path(&format!("hung-{dir}/pid"));
    let look = || Ok::<_, String>(fs::read_to_string(&file).ok());
    let pid = wait_until(PATIENCE, "a hook that sleeps", look).unwrap();
    process::signal(pid.trim().parse().unwrap(), libc::SIGTERM);
}

fn switch_on(stage: &Stage, names: &[&str]) {
    let flags = names.iter().map(|name| format!("{name}Enabled: true\n"));
    stage.write("modules/values.yaml", &flags.collect::<String>());
}

#[test]
fn a_hook_that_hangs_holds_up_its_own_module_only() {
    let mut stage = Stage::build("hanging-hook");
    stage.set("ADDON_OPERATOR_PATIENCE", "3s");
    add_hanging(&stage, "030-hung");
    let behind = ["a", "b", "c", "d", "e", "f", "g"];
    for (nth, name) in behind.iter().enumerate() {
        stage.add_module(&format!("04{nth}-{name}"));
    }
    switch_on(&stage, &["good", "victim", "hung", "a", "b", "c", "d", "e", "f", "g"]);

    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let rest = "a:small b:small c:small d:small e:small f:small g:small good:small";
    stage.wait_for_sizes(&format!("{rest} victim:small"));
    operator.wait_for_answer(
        "/readyz?verbose",
        200,
        &[
            "Startup converge done",
            "late: module 'hung': hook '",
            "hang.sh' (beforeHelm), for ",
        ],
    );
    operator.wait_for(&["Module run does not progress.", "\"module\":\"hung\"", "hang.sh"]);
    operator.wait_for_event("ModuleLate");
    let late = "addon_operator_module_late{module=\"hung\"} 1";
    operator.wait_for_answer("/metrics", 200, &[late]);
    assert_says(
        &operator.ask("module why hung"),
        &["hang.sh' (beforeHelm), for ", "late: "],
    );

    wake(&stage, "030-hung");
    stage.wait_for_sizes(&format!("{rest} hung:small victim:small"));
    operator.wait_for(&["\"module\":\"hung\"", "Module is ready"]);
    let (_, metrics) = operator.get("/metrics");
    assert!(!metrics.contains(late), "{metrics}");
    operator.stop();
    stage.assert_installed(&["a", "b", "c", "d", "e", "f", "g", "good", "hung", "victim"]);
}

#[test]
fn hooks_that_hang_do_not_keep_the_places_of_others() {
    let mut stage = Stage::build("hanging-slots");
    stage.set("ADDON_OPERATOR_PATIENCE", "3s");
    stage.set("ADDON_OPERATOR_HOOK_SLOTS", "2");
    let hung = ["one", "two", "three", "four"];
    for name in hung {
        add_hanging(&stage, &format!("001-{name}"));
    }
    switch_on(&stage, &["good", "victim", "one", "two", "three", "four"]);

    let operator = stage.start();
    // All places for runs are taken. The victim's hook can run only after two long runs have lent their places.
    stage.wait_for_sizes("good:small victim:small");
    operator.wait_for_answer("/readyz", 200, &[]);
    operator.wait_for_more(&["A run takes long.", "hang.sh"], 2);
    for name in hung {
        wake(&stage, &format!("001-{name}"));
    }
    stage.wait_for_sizes("four:small good:small one:small three:small two:small victim:small");
    operator.stop();
}
