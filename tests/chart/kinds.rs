//! The kinds that `rbac generate` has in a table are those that an API server serves.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::tool::root;

const HEAD: &str = "# Group, kind, plural, scope, short names. UPDATE=1 cargo test --test chart kinds\n";

/// Every resource that can be listed, a line each, without the CRDs of other tests.
fn served() -> String {
    let plane = testbed::shared::plane();
    let raw = |path: &str| -> Value { serde_json::from_str(&plane.kubectl(["get", "--raw", path]).unwrap()).unwrap() };
    let mut paths = vec![("-".to_owned(), "/api/v1".to_owned())];
    for group in raw("/apis")["groups"].as_array().unwrap() {
        let name = group["name"].as_str().unwrap().to_owned();
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        let is_built_in = !name.contains('.') || name.ends_with(".k8s.io");
        if is_built_in {
            paths.push((name, format!("/apis/{version}")));
        }
    }
    let mut lines = BTreeSet::new();
    for (group, path) in paths {
        for resource in raw(&path)["resources"].as_array().unwrap() {
            let word = |key: &str| resource[key].as_str().unwrap().to_owned();
            let list = |key: &str| -> Vec<String> {
                let items = resource[key].as_array().into_iter().flatten();
                items.map(|item| item.as_str().unwrap().to_owned()).collect()
            };
            if list("verbs").contains(&"list".to_owned()) {
                let scope = if resource["namespaced"] == true {
                    "namespaced"
                } else {
                    "cluster"
                };
                let mut words = vec![group.clone(), word("kind"), word("name"), scope.to_owned()];
                words.extend(list("shortNames"));
                lines.insert(words.join(" ") + "\n");
            }
        }
    }
    lines.into_iter().collect()
}

#[test]
fn kinds_of_kubernetes_are_known_by_heart() {
    let (file, text) = (
        root().join("crates/authoring/src/rights/kinds.txt"),
        HEAD.to_owned() + &served(),
    );
    if std::env::var_os("UPDATE").is_some() {
        fs_err::write(&file, &text).unwrap();
    }
    let written = fs_err::read_to_string(&file).unwrap();
    assert_eq!(text, written, "UPDATE=1 renews {}", file.display());
}
