//! Linked crates: the core links none that does I/O, and no crate enables a feature of `serde_json` that changes the
//! meaning of JSON.
//!
//! A query with a mistake finds nothing and would always pass. So each query is first shown to find something that
//! exists.
#![expect(
    clippy::disallowed_methods,
    reason = "cargo is asked for the tree; process.rs belongs to the program"
)]

use std::process::Command;

use crate::finding::{Finding, assert_none};
use crate::repository;

/// Crates that do I/O. The root package links the first three, which shows that the query works.
const DOES_IO: [&str; 10] = [
    "tokio",
    "hyper",
    "kube-client",
    "kube",
    "reqwest",
    "mio",
    "socket2",
    "rustls",
    "axum",
    "hyper-util",
];

/// `preserve_order` makes equal values differ, and `arbitrary_precision` changes the type of numbers. A feature that
/// one crate enables is enabled for all, so no crate may enable these.
const UNWANTED_FEATURES: [&str; 2] = ["preserve_order", "arbitrary_precision"];

fn cargo_tree(arguments: &[&str]) -> String {
    let cargo = env!("CARGO");
    let mut command = Command::new(cargo);
    command.args([
        "tree",
        "--locked",
        "--offline",
        "--prefix",
        "none",
        "--charset",
        "ascii",
    ]);
    let output = command
        .args(arguments)
        .current_dir(repository::root())
        .output()
        .expect("cargo runs this test");
    assert!(
        output.status.success(),
        "cargo tree {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("crate names are ASCII")
}

/// The crates of the list that occur in a listing with one `name version` a line.
fn linked<'a>(tree: &str, crates: &[&'a str]) -> Vec<&'a str> {
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    crates.iter().copied().filter(|name| names.contains(name)).collect()
}

/// The features of the list that occur in the output of `cargo tree -e features`.
fn enabled<'a>(tree: &str, features: &[&'a str]) -> Vec<&'a str> {
    let on = |feature: &str| {
        tree.lines()
            .any(|line| line.starts_with(&format!("serde_json feature \"{feature}\"")))
    };
    features.iter().copied().filter(|feature| on(feature)).collect()
}

#[test]
fn the_core_links_nothing_that_does_io() {
    let root = cargo_tree(&["-p", "addon-operator", "-e", "normal"]);
    assert_eq!(
        linked(&root, &DOES_IO[..3]),
        DOES_IO[..3],
        "the same query finds them under the root package"
    );
    let core = cargo_tree(&["-p", "addon-core", "-e", "normal"]);
    assert_eq!(
        linked(
            &core,
            &[
                "addon-core",
                "crontab",
                "gojq",
                "helm-yaml",
                "masking",
                "serde_json",
                "values-schema"
            ]
        ),
        [
            "addon-core",
            "crontab",
            "gojq",
            "helm-yaml",
            "masking",
            "serde_json",
            "values-schema"
        ],
        "the query saw the core, and the languages that it uses"
    );
    let findings: Vec<Finding> = linked(&core, &DOES_IO)
        .into_iter()
        .map(|name| {
            let remedy = format!(
                "`cargo tree -p addon-core -e normal -i {name}` says through whom; decide in the core, act in the shell"
            );
            Finding::new(
                "crates/addon-core/Cargo.toml",
                0,
                format!("the core links {name}"),
                remedy,
            )
        })
        .collect();
    assert_none("what the core links", &findings);
}

#[test]
fn json_means_the_same_everywhere() {
    let tree = cargo_tree(&["--workspace", "-e", "features", "-i", "serde_json"]);
    assert_eq!(
        enabled(&tree, &["raw_value"]),
        ["raw_value"],
        "the query sees the feature that we do switch on"
    );
    let findings: Vec<Finding> = enabled(&tree, &UNWANTED_FEATURES)
        .into_iter()
        .map(|feature| {
            let remedy = "`cargo tree --workspace -e features -i serde_json` says by whom; switch it off there";
            Finding::new("Cargo.toml", 0, format!("serde_json has the feature {feature}"), remedy)
        })
        .collect();
    assert_none("features of serde_json", &findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_crate_is_found() {
        let tree = "addon-core v0.1.0 (/somewhere)\nserde v1.0.228\ntokio v1.54.1 (*)\nhyper-utilities v1.0.0\n";
        assert_eq!(linked(tree, &DOES_IO), ["tokio"]);
    }

    #[test]
    fn a_feature_that_is_on_is_found() {
        let tree = "serde_json v1.0.154\nserde_json feature \"preserve_order\"\nserde_json feature \"raw_value\" (*)\n";
        assert_eq!(enabled(tree, &UNWANTED_FEATURES), ["preserve_order"]);
    }
}
