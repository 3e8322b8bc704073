//! Modules from registries: their versions are followed, bad ones give way, and neither a lost registry nor an empty disk
//! removes anything.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

mod guarded;
mod kept;
mod rehearsed;
pub(super) mod shop;

use fs_err as fs;
use serde_json::json;
use testbed::part::Part;
use testbed::process;
use testbed::wait::wait_until;

use self::shop::{Shop, status, wait_for_status};
use super::stage::{CONVERGED, PATIENCE, assert_says};

/// Helm renders this object, and the API server refuses its name.
const REFUSED: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: No_Name}\n";

#[test]
fn a_module_comes_from_a_registry_and_follows_its_tag() {
    let shop = Shop::open("from-registry");
    let first = shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    let said = wait_for_status(&operator, &first);
    assert_says(&said, &["module 'shop' from", "version stable"]);
    operator.wait_for(&["Module is enabled", "shop", "moduleSources"]);

    let second = shop.push("stable", "1.1.0", "large", &[]);
    // The answer shows the version that the round has brought.
    assert_says(
        &operator.ask("module source check shop"),
        &[&format!("in use:    stable {second}")],
    );
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    let shown = status(&operator);
    assert_eq!(
        (&shown["running"]["digest"], &shown["former"]["digest"]),
        (&json!(second), &json!(first))
    );
    // No other module ran for it.
    assert_eq!(
        operator.records(&["Module is ready", "victim"]).len(),
        1,
        "{}",
        operator.said()
    );
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn the_section_the_values_and_the_variables_of_a_source_reach_the_module() {
    let shop = Shop::open("source-values");
    let hook = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n\
                echo \"$COLOR $KUBECONFIG\" > \"$COLOR_FILE\"\n";
    shop.push("1.4.2", "1.4.2", "small", &[("hooks/color.sh", hook)]);
    shop.push("1.5.0", "1.5.0", "huge", &[]);
    let file = shop.stage.path("color");
    let env = format!(
        ", values: more, env: {{COLOR: blue, COLOR_FILE: '{}', KUBECONFIG: /nowhere}}",
        file.display()
    );
    shop.stage
        .kubectl("create configmap more --from-literal=a.yaml=size:medium");
    let text = "{\"data\":{\"a.yaml\":\"size: medium\\n\"}}";
    shop.stage
        .namespace()
        .kubectl(["patch", "configmap", "more", "-p", text])
        .unwrap();
    shop.configure(&shop.source("~1.4", &env));
    let operator = shop.stage.start();
    shop.stage.wait_for_sizes("good:small shop:medium victim:small");
    let color = fs::read_to_string(&file).unwrap();
    assert!(color.starts_with("blue ") && !color.contains("/nowhere"), "{color}");

    // Another values file is another reading.
    let text = "{\"data\":{\"b.yaml\":\"shop: {size: wide}\\n\"}}";
    shop.stage
        .namespace()
        .kubectl(["patch", "configmap", "more", "-p", text])
        .unwrap();
    shop.stage.wait_for_sizes("good:small shop:wide victim:small");
    shop.stage.kubectl("delete configmap more");
    wait_for_status(&operator, "there is no ConfigMap 'more'");
    assert_eq!(shop.stage.sizes(), "good:small shop:wide victim:small");
    let data = json!({"moduleSources": shop.source("~1.4", &env), "shop": "size: mine"});
    shop.stage.configure(&data);
    shop.stage.wait_for_sizes("good:small shop:mine victim:small");
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn neither_a_lost_registry_nor_an_empty_disk_stops_a_module() {
    let shop = Shop::open("no-registry");
    shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    wait_for_status(&operator, "in use:");
    shop.wait_for_secrets(2);
    operator.stop();
    shop.lose_registry();
    shop.lose_disk();
    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    shop.stage
        .configure(&json!({"moduleSources": shop.source("stable", ""), "shop": "size: wide"}));
    shop.stage.wait_for_sizes("good:small shop:wide victim:small");
    operator.stop();

    // Without a copy the module waits. Its release stays, and the other modules go on.
    shop.stage
        .kubectl("delete secrets -l addon-operator/module-source=shop");
    shop.lose_disk();
    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    let said = wait_for_status(&operator, "trouble:");
    assert_says(&said, &["in use:    none", "no files have come yet"]);
    assert_says(
        &operator.ask("module why shop"),
        &["waits for its files from", "module source status shop"],
    );
    shop.stage
        .configure(&json!({"moduleSources": shop.source("stable", ""), "good": "size: wide"}));
    shop.stage.wait_for_sizes("good:wide shop:wide victim:small");
    // The registry comes back.
    shop.guard.impose(Vec::new());
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:wide shop:small victim:small");
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_version_that_fails_gives_way_to_the_last_good_one_and_is_remembered() {
    let shop = Shop::open("bad-version");
    let good = shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    wait_for_status(&operator, &good);
    let bad = shop.push("stable", "1.1.0", "large", &[("templates/b.yaml", REFUSED)]);
    operator.ask("module source check shop");
    operator.wait_for(&["A version of a module fails, the last good one returns", &bad]);
    let said = wait_for_status(&operator, "failed:");
    assert_says(
        &said,
        &[
            &good,
            &format!("failed:    {bad}"),
            "it failed on trial and is not tried again",
        ],
    );
    shop.stage.wait_for_sizes("good:small shop:small victim:small");
    // Neither another round nor another life tries it again.
    operator.ask("module source check shop");
    operator.stop();
    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.ask("module source check shop");
    assert_eq!(status(&operator)["running"]["digest"], json!(good));
    let better = shop.push("stable", "1.2.0", "wide", &[]);
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:small shop:wide victim:small");
    assert_eq!(status(&operator)["running"]["digest"], json!(better));
    operator.stop();
}

#[test]
fn a_version_with_mistakes_is_never_used() {
    let shop = Shop::open("unfit-version");
    let good = shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    wait_for_status(&operator, &good);
    let needs_more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: {{ required \"no color\" .Values.shop.color }}}\n";
    let rows: [(&str, &str, &str); 4] = [
        ("templates/b.yaml", "data: {{ .Values", "b.yaml"),
        ("templates/b.yaml", needs_more, "no color"),
        ("hooks/h.sh", "#!/bin/sh\nexit 3\n", "h.sh"),
        ("module.yaml", "dependsOn: 7\n", "dependsOn"),
    ];
    for (number, (file, text, word)) in rows.into_iter().enumerate() {
        let bad = shop.push("stable", &format!("1.1.{number}"), "large", &[(file, text)]);
        operator.ask("module source check shop");
        let said = wait_for_status(&operator, &format!("unusable:  {bad}"));
        assert_says(&said, &[word, &good]);
    }
    assert_eq!(
        operator.records(&["Module begins a new life"]).len(),
        1,
        "{}",
        operator.said()
    );
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_person_approves_holds_and_releases_versions() {
    let shop = Shop::open("held-version");
    let first = shop.push("1.0.0", "1.0.0", "small", &[]);
    let operator = shop.install(">=1.0", ", policy: {mode: manual}");
    let second = shop.push("1.1.0", "1.1.0", "large", &[]);
    operator.ask("module source check shop");
    let said = wait_for_status(&operator, "waits:");
    assert_says(
        &said,
        &["it wants an approval (the field approved of its source)", &second],
    );
    let edit = |words: &str| shop.stage.command(&format!("module source {words} --yes"));
    assert_says(&edit("approve shop"), &["the source of 'shop' is changed"]);
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    edit("rollback shop");
    shop.stage.wait_for_sizes("good:small shop:small victim:small");
    assert_says(&wait_for_status(&operator, "pinned:"), &[&first]);
    edit("resume shop");
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_source_that_is_taken_out_removes_its_module_and_a_directory_steps_in_where_there_is_one() {
    let shop = Shop::open("source-out");
    shop.push("stable", "1.0.0", "small", &[]);
    let of_good = format!(
        "good: {{repository: '{}/good', version: stable}}\n",
        shop.guard.address()
    );
    shop.stage
        .configure(&json!({"moduleSources": shop.source("stable", "") + &of_good, "shopEnabled": "true"}));
    let operator = shop.stage.start();
    // The directory of a module does not step in for files that cannot be had.
    shop.stage.wait_for_sizes("shop:small victim:small");
    operator.wait_for(&[CONVERGED]);
    assert_says(&operator.ask("module why good"), &["waits for its files from"]);
    shop.stage.configure(&json!({"shopEnabled": "true"}));
    shop.stage.wait_for_sizes("good:small victim:small");
    let gone = || {
        let secrets = shop
            .stage
            .kubectl("get secrets -l addon-operator/module-source -o=name");
        if secrets.trim().is_empty() {
            Ok(Some(()))
        } else {
            Err(secrets)
        }
    };
    wait_until(PATIENCE, "no record of a source", gone).unwrap();
    operator.stop();
}

#[test]
fn a_mistake_in_the_sources_changes_nothing() {
    let shop = Shop::open("bad-source");
    shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    shop.configure("shop: {repository: r.example.com/shop}\n");
    operator.wait_for(&["moduleSources", "'shop.version' is missing: write a tag"]);
    shop.stage
        .configure(&json!({"moduleSources": "shop: {", "good": "size: wide"}));
    shop.stage.wait_for_sizes("good:wide shop:small victim:small");
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_plain_chart_of_helm_is_a_module_with_its_values_in_the_section() {
    let shop = Shop::open("plain-chart");
    let stage = &shop.stage;
    stage.write("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 2.0.1\n");
    stage.write("chart/values.yaml", "size: small\n");
    stage.write(
        "chart/templates/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {size: {{ .Values.size | quote }}}\n",
    );
    let helm = |arguments: &[&str]| {
        let mut command = process::command(stage.namespace().plane().program(Part::Helm3));
        command
            .args(arguments)
            .current_dir(stage.path(""))
            .env_clear()
            .env("HOME", stage.path("home"));
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    helm(&["package", "chart"]);
    let repository = shop.repository();
    let folder = repository.rsplit_once('/').unwrap().0;
    helm(&["push", "shop-2.0.1.tgz", &format!("oci://{folder}"), "--plain-http"]);
    stage.configure(&json!({"moduleSources": shop.source("2.x", ""), "shop": "size: wide"}));
    let operator = stage.start();
    stage.wait_for_sizes("good:small shop:wide victim:small");
    operator.stop();
    stage.assert_installed(&["good", "shop", "victim"]);
}
