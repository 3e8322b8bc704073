//! A modules directory with a manifest.

use super::super::manifest::Manifest;
use super::*;

const FILE: &str = "modules/.addon-operator-manifest.json";

/// Two modules, a common values file, and the manifest of both.
fn tree() -> Tree {
    let tree = Tree::new(&[
        ("modules/values.yaml", "oneEnabled: true\n"),
        ("modules/001-one/Chart.yaml", "name: one\n"),
        ("modules/001-one/templates/a.yaml", "a: 1\n"),
        ("modules/001-one/python/__pycache__/x.pyc", "x"),
        ("modules/002-two/values.yaml", "two: {}\n"),
        ("modules/.git/config", ""),
    ]);
    let text = Manifest::of(&tree.path("modules")).unwrap().text();
    tree.put(FILE, &text);
    tree
}

#[test]
fn what_is_as_the_manifest_says_is_complete_and_more_may_lie_beside_it() {
    let tree = tree();
    tree.put("modules/003-more/Chart.yaml", "name: more\n");
    tree.put("modules/001-one/templates/b.yaml", "b: 1\n");
    tree.put("modules/values.yaml", "oneEnabled: false\n");
    let found = tree.read();
    assert_eq!(tree.told(&found.problems), [""; 0]);
    assert!(found.modules.iter().all(|module| !module.is_broken()));
    assert_eq!(found.modules.len(), 3);
    let text = fs_err::read_to_string(tree.path(FILE)).unwrap();
    assert!(!text.contains("pyc") && !text.contains(".git"), "{text}");
}

#[test]
fn what_is_not_as_the_manifest_says_makes_its_module_unknown() {
    for (row, expected) in [
        (
            "- 001-one/templates/a.yaml",
            "Fatal modules/001-one/templates/a.yaml: is missing, and the manifest",
        ),
        (
            "- 001-one/templates",
            "Fatal modules/001-one/templates/a.yaml: is missing, and the manifest",
        ),
        (
            "001-one/templates/a.yaml",
            "Fatal modules/001-one/templates/a.yaml: differs from the manifest",
        ),
    ] {
        let tree = tree();
        change(&tree, row);
        let found = tree.read();
        let told = tree.told(&found.modules[0].faults);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{row}: {told:?}");
        assert!(!found.modules[1].is_broken() && found.is_complete());
    }
}

/// Without its manifest the empty directory could be a volume that is not mounted.
#[test]
fn a_directory_whose_manifest_names_nothing_is_empty_on_purpose() {
    let tree = Tree::new(&[("more/001-one/", "")]);
    tree.put(FILE, &Manifest::of(&tree.path("modules")).unwrap().text());
    let found = read(&tree.layout(&["modules", "more"]));
    assert_eq!(tree.told(&found.problems), [""; 0]);
    assert!(found.is_complete());
    fs_err::remove_file(tree.path(FILE)).unwrap();
    let found = read(&tree.layout(&["modules", "more"]));
    assert_eq!(tree.told(&found.problems), ["Gap modules: holds no modules"]);
}

#[test]
fn a_module_or_a_common_values_file_that_only_the_manifest_names_is_missing() {
    for (row, expected) in [
        ("- 002-two", "Gap modules/002-two: is missing, and the manifest"),
        (
            "- values.yaml",
            "Fatal modules/values.yaml: is missing, and the manifest",
        ),
        ("values.yaml", "Fatal modules/values.yaml: differs from the manifest"),
    ] {
        let tree = tree();
        change(&tree, row);
        let found = tree.read();
        let told = tree.told(&found.problems);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{row}: {told:?}");
        assert!(!found.is_complete());
    }
}

#[test]
fn a_manifest_that_cannot_be_read_is_told_by_name() {
    for (row, text, expected) in [
        (FILE, "{\"version\": 1, \"fi", "is no manifest of a modules directory: "),
        (
            FILE,
            "{\"version\": 2, \"files\": {}}",
            "is a manifest of version 2, which this operator does not know",
        ),
        (
            "modules/.addon-operator-manifest.json -> .addon-operator-manifest.json",
            "",
            "cannot be read: ",
        ),
    ] {
        let tree = tree();
        fs_err::remove_file(tree.path(FILE)).unwrap();
        tree.put(row, text);
        let told = tree.told(&tree.read().problems);
        let expected = format!("Fatal {FILE}: {expected}");
        assert!(told.len() == 1 && told[0].starts_with(&expected), "{told:?}");
    }
}

/// The image's assembler has a test with the same folder and the same text.
#[test]
fn what_an_image_says_must_be_there_is_read_and_is_what_we_would_say() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/manifest");
    let tree = Tree::new(&[]);
    for file in ["values.yaml", "010-one/Chart.yaml", "010-one/templates/one.yaml"] {
        let text = fs_err::read_to_string(shared.join("modules").join(file)).unwrap();
        tree.put(&format!("modules/{file}"), &text);
    }
    let said = fs_err::read_to_string(shared.join("manifest.json")).unwrap();
    let document = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let ours = Manifest::of(&tree.path("modules")).unwrap().text();
    assert_eq!(document(&ours), document(&said));
    tree.put(FILE, &said);
    assert_eq!(tree.told(&tree.read().problems), [""; 0]);
    change(&tree, "- 010-one/templates/one.yaml");
    assert_eq!(tree.told(&tree.read().modules[0].faults).len(), 1);
}

/// Empties a file, or removes the one after a dash.
fn change(tree: &Tree, row: &str) {
    let path = |inner: &str| tree.path(&format!("modules/{inner}"));
    match row.strip_prefix("- ") {
        Some(inner) if path(inner).is_dir() => fs_err::remove_dir_all(path(inner)).unwrap(),
        Some(inner) => fs_err::remove_file(path(inner)).unwrap(),
        None => fs_err::write(path(row), "").unwrap(),
    }
}
