//! Plans of files that are not in use: other modules directories, and other versions of a module.

use std::path::Path;
use std::thread;

use serde_json::json;
use testbed::wait::wait_until;

use crate::bad_input::absence::world::copy;
use crate::bad_input::sources::shop::{Shop, status};
use crate::bad_input::stage::{CONVERGED, PATIENCE, Stage, assert_says};

/// Leaves a trace beside its module's directory whenever it runs in earnest.
const TRACE: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nonStartup: 1'; exit; fi\n\
                     touch \"$(dirname \"$0\")/ran\"\n";

/// An enabled script that says yes while the global colour is red.
const SAYS_RED: &str = "#!/bin/bash\njq '.global.colour == \"red\"' \"$VALUES_PATH\" >\"$MODULE_ENABLED_RESULT\"\n";

#[test]
fn a_plan_of_other_directories_says_which_modules_come_go_and_change() {
    let stage = Stage::build("other-dirs");
    stage.add_module("030-late");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    copy(&stage.path("modules"), &stage.path("next"));
    let same = format!("plan --modules-dir {}", stage.path("next").display());
    assert_says(&operator.ask(&same), &["nothing would change"]);

    // Of these modules one changes, one comes, one goes, one has a mistake, and one has another flag.
    let template = fs_err::read_to_string(stage.path("next/010-good/templates/a.yaml")).unwrap();
    stage.write(
        "next/010-good/templates/a.yaml",
        &template.replace("\ndata: {", "\ndata: {more: thing, "),
    );
    stage.write("next/010-good/hooks/trace.sh", TRACE);
    stage.write("next/015-fresh/templates/a.yaml", &template.replace("good", "fresh"));
    stage.write(
        "next/015-fresh/Chart.yaml",
        "apiVersion: v2\nname: fresh\nversion: 3.0.0\n",
    );
    stage.write("next/015-fresh/values.yaml", "fresh: {size: small}\n");
    stage.write("next/020-victim/templates/bad.yaml", "{{ nonsense }}");
    fs_err::remove_dir_all(stage.path("next/030-late")).unwrap();
    let flags = fs_err::read_to_string(stage.path("next/values.yaml")).unwrap();
    stage.write("next/values.yaml", &format!("{flags}freshEnabled: true\n"));
    let objects = stage.objects();
    let said = operator.ask_for_code(2, &same);
    let expected = [
        "good runs",
        "files ",
        "next/010-good, version 0.1.0 as before",
        "trace.sh (onStartup), which has not run: its values are not known",
        "~ ConfigMap good",
        "data.more: + thing",
        "fresh is switched on, and runs",
        "next/015-fresh, version 3.0.0",
        "+ ConfigMap fresh",
        "late is removed (its directory is gone)",
        "- ConfigMap late",
        "not applied",
        "victim: a start would use its files, and they have a fault",
        "nonsense",
    ];
    assert_says(&said, &expected);
    assert!(!stage.path("next/010-good/hooks/ran").exists(), "the hook ran");
    assert_eq!(stage.objects(), objects);

    // It comes true at the next start with these directories.
    operator.stop();
    fs_err::remove_file(stage.path("next/020-victim/templates/bad.yaml")).unwrap();
    stage.rename("modules", "before");
    stage.rename("next", "modules");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_sizes("fresh:small good:small victim:small");
    let more = "get configmap good -o=jsonpath={.data.more}";
    assert_eq!(stage.kubectl(more), "thing");
    operator.stop();
}

#[test]
fn a_plan_of_other_directories_has_their_global_values() {
    let stage = Stage::build("other-globals");
    let template = fs_err::read_to_string(stage.path("modules/010-good/templates/a.yaml")).unwrap();
    let from_global = template.replace(".Values.good.size", ".Values.global.colour");
    stage.write("modules/010-good/templates/a.yaml", &from_global);
    let flags = fs_err::read_to_string(stage.path("modules/values.yaml")).unwrap();
    stage.write("modules/values.yaml", &format!("{flags}global: {{colour: red}}\n"));
    // The answer of an enabled script may follow from them.
    stage.write("modules/020-victim/enabled", SAYS_RED);
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    copy(&stage.path("modules"), &stage.path("next"));
    stage.write("next/values.yaml", &format!("{flags}global: {{colour: blue}}\n"));
    let said = operator.ask_for_code(2, &format!("plan --modules-dir {}", stage.path("next").display()));
    let expected = [
        "1. victim is removed (enabled script)",
        "2. good runs",
        "~ ConfigMap good",
        "data.size: red → blue",
        "global\n   values   colour: red → blue",
        "objects: 0 created, 1 changed, 1 deleted",
    ];
    assert_says(&said, &expected);
    stage.write("next/values.yaml", &format!("{flags}global: {{colour: [blue}}\n"));
    let said = operator.ask_in_vain(&format!("plan --modules-dir {}", stage.path("next").display()));
    assert_says(&said, &["values.yaml"]);
    operator.stop();
}

#[test]
fn a_plan_says_which_modules_miss_one_that_is_gone_and_that_many_are_not_removed_at_once() {
    let stage = Stage::build("gone-dirs");
    stage.add_module("030-late");
    stage.add_module("040-needy");
    stage.write("modules/040-needy/module.yaml", "dependsOn: [late]\n");
    stage.configure(&json!({"needyEnabled": "true"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let plan = |dir: &str| format!("plan --modules-dir {}", stage.path(dir).display());
    let said = operator.ask_in_vain(&plan("modules"));
    assert_says(&said, &["these are the directories in use"]);

    copy(&stage.path("modules"), &stage.path("next"));
    fs_err::remove_dir_all(stage.path("next/030-late")).unwrap();
    let said = operator.ask_for_code(2, &plan("next"));
    let expected = [
        "late is removed (its directory is gone)",
        "module 'needy' needs 'late', which is gone, and would wait",
        "still has those that are gone (late)",
    ];
    assert_says(&said, &expected);

    for module in ["010-good", "020-victim"] {
        fs_err::remove_dir_all(stage.path("next").join(module)).unwrap();
    }
    let said = operator.ask_for_code(2, &plan("next"));
    assert_says(&said, &["held until a person confirms", "good: its directory is gone"]);
    assert!(!said.contains("is removed"), "{said}");
    operator.stop();

    // It comes true.
    stage.rename("modules", "before");
    stage.rename("next", "modules");
    let operator = stage.start();
    operator.wait_for(&["whose modules are no longer named are kept"]);
    stage.wait_for_sizes("good:small late:small needy:small victim:small");
    operator.stop();
}

#[test]
fn directories_that_cannot_be_read_give_no_plan() {
    let stage = Stage::build("no-dirs");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let said = operator.ask_in_vain("plan --modules-dir /nowhere");
    assert_says(&said, &["cannot read /nowhere"]);
    fs_err::create_dir(stage.path("empty")).unwrap();
    let said = operator.ask_in_vain(&format!("plan --modules-dir {}", stage.path("empty").display()));
    assert_says(&said, &["the modules directories cannot be read", "empty"]);
    let said = operator.ask_in_vain("plan --module good=1.0.0");
    assert_says(&said, &["module 'good', version 1.0.0", "has no source"]);
    let said = operator.ask_in_vain("plan --module good");
    assert_says(&said, &["a module and its version are wanted"]);
    operator.stop();
}

/// A hook that waits after the release until a file is there.
const LATE: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nafterHelm: 1'; exit; fi\n\
                    until [ -e GATE ]; do sleep 0.1; done\n";

#[test]
fn the_files_of_a_planned_version_stay_until_the_plan_is_made() {
    let shop = Shop::open("planned-beside");
    shop.push("1.0.0", "1.0.0", "small", &[]);
    shop.push("1.1.0", "1.1.0", "large", &[]);
    let operator = shop.install("~1.0", "");
    operator.wait_for(&[CONVERGED]);
    // Once another version does well, the files of versions that nobody needs are removed.
    let gate = shop.stage.path("gate");
    let late = LATE.replace("GATE", gate.to_str().unwrap());
    shop.push("1.0.1", "1.0.1", "medium", &[("hooks/late.sh", &late)]);
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:small shop:medium victim:small");
    let (code, said) = thread::scope(|scope| {
        let planned = scope.spawn(|| shop.stage.typed("plan --module shop=1.1.0"));
        let versions = || fs_err::read_dir(shop.stage.path("tmp/module-sources/shop")).map(Iterator::count);
        let read = || versions().map(|number| (number == 3).then_some(()));
        wait_until(PATIENCE, "the files of three versions", read).unwrap();
        shop.stage.write("gate", "");
        planned.join().unwrap()
    });
    assert_says(
        &said,
        &[
            "version 1.1.0 after 1.0.1",
            "~ ConfigMap shop",
            "data.size: medium → large",
        ],
    );
    assert_eq!(code, Some(2), "{said}");
    operator.stop();
}

#[test]
fn a_plan_of_a_version_says_what_it_brings_and_does_not_take_it() {
    let shop = Shop::open("planned-version");
    let first = shop.push("1.0.0", "1.0.0", "small", &[]);
    let operator = shop.install("~1.0", "");
    shop.push("1.1.0", "1.1.0", "large", &[("hooks/trace.sh", TRACE)]);
    shop.push("1.2.0", "1.2.0", "large", &[("templates/bad.yaml", "{{ nonsense }}")]);
    let said = operator.ask_for_code(2, "plan --module shop=1.1.0");
    let expected = [
        "1. shop runs",
        "version 1.1.0 after 1.0.0",
        "size: small → large",
        "trace.sh (onStartup)",
        "~ ConfigMap shop",
        "data.size: small → large",
        "modules: 1 run again; objects: 0 created, 1 changed, 0 deleted",
    ];
    assert_says(&said, &expected);
    let said = operator.ask_in_vain("plan --module shop=1.2.0");
    assert_says(
        &said,
        &["module 'shop', version 1.2.0", "the files cannot be used", "nonsense"],
    );
    let said = operator.ask_in_vain("plan --module shop=9.9.9");
    assert_says(&said, &["has no tag 9.9.9"]);
    assert_eq!(shop.stage.sizes(), "good:small shop:small victim:small");
    assert_eq!(status(&operator)["running"]["digest"], json!(first));

    // It comes true when the source names it.
    shop.configure(&shop.source("1.1.0", ""));
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    operator.stop();
}

#[test]
fn no_program_of_a_version_runs_for_a_plan_unless_our_key_has_signed_it() {
    let mut shop = Shop::open("unsigned-plan");
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signatures/keys");
    let key = |name: &str| keys.join(name).to_str().unwrap().to_owned();
    shop.stage.set("ADDON_OPERATOR_VERIFICATION_KEYS", key("p256.pub"));
    shop.write("1.0.0", "small", &[]);
    shop.push_written("1.0.0", &["--key", &key("p256.key")]);
    let trace = shop.stage.path("asked");
    let hook = format!(
        "#!/bin/sh\ntouch {}\necho 'configVersion: v1\nonStartup: 1'\n",
        trace.display()
    );
    shop.push("1.1.0", "1.1.0", "large", &[("hooks/trace.sh", &hook)]);
    shop.configure(&shop.source("~1.0", ""));
    let operator = shop.stage.start();
    shop.stage.wait_for_sizes("good:small shop:small victim:small");
    let said = operator.ask_in_vain("plan --module shop=1.1.0");
    assert_says(&said, &["the signature of 1.1.0", "is not good"]);
    assert!(!trace.exists(), "a hook of an unsigned version ran");
    shop.push_written("1.1.0", &["--key", &key("p256.key")]);
    operator.ask_for_code(2, "plan --module shop=1.1.0");
    assert!(
        trace.exists(),
        "the hook of a signed version is asked for its configuration"
    );
    operator.stop();
}
