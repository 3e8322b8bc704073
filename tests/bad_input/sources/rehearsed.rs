//! Plans of a start with modules from a registry: the plan takes the version that a start would take, and keeps nothing.

use super::super::stage::{CONVERGED, assert_says};
use super::shop::{Shop, wait_for_status};

#[test]
fn a_plan_of_a_start_has_the_modules_from_registries_and_keeps_none() {
    let shop = Shop::open("rehearsed-shop");
    shop.push("stable", "1.0.0", "small", &[]);
    shop.configure(&shop.source("stable", ""));
    let (code, said) = shop.stage.typed("plan --start");
    assert_says(&said, &["shop is switched on, and runs", "+ ConfigMap shop"]);
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(shop.stage.kubectl("get secrets,leases --output=name"), "");
    assert!(!shop.stage.path("tmp/module-sources").exists());

    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    shop.stage.wait_for_sizes("good:small shop:small victim:small");
    shop.wait_for_secrets(2);
    operator.stop();
    // A start uses the kept files, and takes a newer version then.
    shop.push("stable", "1.1.0", "large", &[]);
    let (_, said) = shop.stage.typed("plan --start");
    assert_says(&said, &["shop runs", "~ ConfigMap shop", "small", "large"]);
    // Without the registry the kept files are enough, and the plan says that they may not be the newest.
    shop.lose_registry();
    shop.lose_disk();
    let (_, said) = shop.stage.typed("plan --start");
    assert_says(
        &said,
        &[
            "module 'shop' comes from a registry, and a start would use its kept files: ",
            "500",
        ],
    );
    assert!(!said.contains("shop runs"), "{said}");

    let kept = shop.stage.kubectl("get secrets --output=name");
    let lost = "module 'shop' comes from a registry, and a start would have no files for it: ";
    let copies = "delete secrets -l addon-operator/module-source=shop";
    shop.stage.kubectl(copies);
    let (_, said) = shop.stage.typed("plan --start");
    assert_says(&said, &[lost, "500"]);
    let rest: String = kept.lines().filter(|name| !name.contains("-source-")).collect();
    let left = shop.stage.kubectl("get secrets --output=name");
    assert_eq!(left.lines().collect::<String>(), rest);
}

#[test]
fn a_version_that_cannot_be_used_is_told_by_the_plan_of_a_start() {
    let shop = Shop::open("rehearsed-unfit");
    let broken = [("templates/b.yaml", "{{ .Values.shop.size ")];
    shop.push("stable", "1.0.0", "small", &broken);
    shop.configure(&shop.source("stable", ""));
    let (code, said) = shop.stage.typed("plan --start");
    let expected = [
        "good is switched on",
        "module 'shop' comes from a registry, and a start would have no files for it",
        "b.yaml",
    ];
    assert_says(&said, &expected);
    assert_eq!(code, Some(2), "{said}");
    // The operator says the same.
    let operator = shop.stage.start();
    let told = wait_for_status(&operator, "unusable:");
    assert_says(&told, &["b.yaml"]);
    operator.stop();
}
