//! The copies that are kept in the cluster, and a source that is taken out while no operator runs.

use std::io::Read;

use fs_err as fs;
use serde_json::json;
use testbed::registry::guard::{Aim, Trouble};
use testbed::wait::wait_until;

use super::REFUSED;
use super::shop::{Shop, wait_for_status};
use crate::bad_input::stage::{CONVERGED, PATIENCE};

/// Writes a file that no packing makes smaller into the module's directory.
fn write_random(shop: &Shop, bytes: u64) {
    let mut content = Vec::new();
    let random = fs::File::open("/dev/urandom").unwrap();
    random.take(bytes).read_to_end(&mut content).unwrap();
    fs::write(shop.stage.path("made/100-shop/noise"), content).unwrap();
}

#[test]
fn copies_of_several_megabytes_are_kept_and_larger_ones_are_told() {
    let shop = Shop::open("large-copies");
    shop.write("1.0.0", "small", &[(".helmignore", "noise\n")]);
    write_random(&shop, 2_500_000);
    shop.push_written("stable", &[]);
    let operator = shop.install("stable", "");
    // The record, and three parts of at most a megabyte.
    shop.wait_for_secrets(4);
    operator.stop();
    shop.lose_registry();
    shop.lose_disk();
    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    let noise = fs::read(shop.stage.path("made/100-shop/noise")).unwrap();
    let restored = fs::read_dir(shop.stage.path("tmp/module-sources/shop"))
        .unwrap()
        .map(|entry| fs::read(entry.unwrap().path().join("noise")).unwrap());
    assert!(restored.eq([noise]), "the copy is not what was pushed");

    shop.guard.impose(Vec::new());
    shop.write("1.1.0", "large", &[(".helmignore", "noise\n")]);
    write_random(&shop, 5_000_000);
    shop.push_written("stable", &[]);
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    operator.wait_for(&["too large to be kept in the cluster", "shop"]);
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_version_that_never_did_well_is_kept_too() {
    let shop = Shop::open("kept-first");
    let only = shop.push("stable", "1.0.0", "small", &[("templates/b.yaml", REFUSED)]);
    shop.configure(&shop.source("stable", ""));
    let operator = shop.stage.start();
    operator.wait_for(&["ModuleRun failed", "shop"]);
    shop.wait_for_secrets(2);
    operator.stop();
    shop.lose_registry();
    shop.lose_disk();
    let operator = shop.stage.start();
    operator.wait_for(&["ModuleRun failed", "shop"]);
    wait_for_status(&operator, &format!("in use:    stable {only}"));
    operator.stop();
}

#[test]
fn a_registry_that_lost_the_version_in_use_changes_nothing() {
    let shop = Shop::open("lost-version");
    let only = shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    shop.guard
        .impose(vec![Aim::at("/manifests/", Trouble::Status(404, None))]);
    operator.ask("module source check shop");
    operator.wait_for(&["no longer has the version of a module that is in use", "shop"]);
    shop.stage
        .configure(&json!({"moduleSources": shop.source("stable", ""), "shop": "size: wide"}));
    shop.stage.wait_for_sizes("good:small shop:wide victim:small");
    wait_for_status(&operator, &format!("in use:    stable {only}"));
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_source_that_goes_and_comes_back_at_once_has_its_files_again() {
    let shop = Shop::open("back-at-once");
    shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    for size in ["wide", "large", "small"] {
        // The followers look at the sources once a second.
        shop.configure("");
        shop.stage
            .configure(&json!({"moduleSources": shop.source("stable", ""), "shop": format!("size: {size}")}));
        shop.stage
            .wait_for_sizes(&format!("good:small shop:{size} victim:small"));
    }
    operator.stop();
}

#[test]
fn a_source_that_was_taken_out_while_no_operator_ran_removes_its_module() {
    let shop = Shop::open("out-meanwhile");
    shop.push("stable", "1.0.0", "small", &[]);
    let operator = shop.install("stable", "");
    shop.wait_for_secrets(2);
    operator.stop();
    shop.stage.configure(&json!({"shopEnabled": "true"}));
    let operator = shop.stage.start();
    shop.stage.wait_for_sizes("good:small victim:small");
    shop.wait_for_secrets(0);
    let is_clean = || {
        let left = shop.stage.path("tmp/module-sources/shop").exists();
        if left { Err("the files are there") } else { Ok(Some(())) }
    };
    wait_until(PATIENCE, "no files of the source", is_clean).unwrap();
    operator.stop();
}
