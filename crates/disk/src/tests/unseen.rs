//! A path that cannot be read, or is of another type than its name says, is unknown and never absent. Link loops and
//! overlong names fail for root too.

use addon_core::module::outline::ValuesFile;

use super::*;

#[test]
fn a_part_of_a_module_that_cannot_be_looked_at_is_not_taken_for_absent() {
    for (row, expected) in [
        (
            "Chart.yaml -> Chart.yaml",
            "Fatal modules/001-one/Chart.yaml: cannot be read: ",
        ),
        (
            "Chart.yaml -> nowhere",
            "Fatal modules/001-one/Chart.yaml: is a link to nothing",
        ),
        ("Chart.yaml/", "Fatal modules/001-one/Chart.yaml: is no file"),
        (
            "templates -> templates",
            "Fatal modules/001-one/templates: cannot be read: ",
        ),
        ("templates", "Fatal modules/001-one/templates: is no directory"),
        (
            "templates -> nowhere",
            "Fatal modules/001-one/templates: is a link to nothing",
        ),
        ("crds -> crds", "Fatal modules/001-one/crds: cannot be read: "),
        ("crds", "Fatal modules/001-one/crds: is no directory"),
        ("hooks -> hooks", "Fatal modules/001-one/hooks: cannot be read: "),
        (
            "openapi/values.yaml -> values.yaml",
            "Fatal modules/001-one/openapi/values.yaml: cannot be read: ",
        ),
        (
            "values.yaml -> values.yaml",
            "Fatal modules/001-one/values.yaml: cannot be read: ",
        ),
        ("enabled -> enabled", "Fatal modules/001-one/enabled: cannot be read: "),
    ] {
        let tree = Tree::new(&[("modules/001-one/", ""), ("modules/002-two/", "")]);
        tree.put(&format!("modules/001-one/{row}"), "");
        let found = tree.read();
        let told = tree.told(&found.modules[0].faults);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{row}: {told:?}");
        assert!(!found.modules[1].is_broken());
    }
}

#[test]
fn an_entry_that_cannot_be_looked_at_or_is_no_directory_may_be_a_module() {
    for (row, expected) in [
        ("modules/010-lost -> 010-lost", "Gap modules/010-lost: cannot be read: "),
        (
            "modules/010-lost",
            "Gap modules/010-lost: is a file where the directory of a module is expected",
        ),
        (
            "modules/010-lost -> nowhere",
            "Gap modules/010-lost: is a link to nothing",
        ),
        ("modules/010-notes.txt", "Warning modules/010-notes.txt: is neither "),
        ("modules/Makefile", "Warning modules/Makefile: is neither "),
    ] {
        let tree = Tree::new(&[("modules/020-good/", ""), (row, "")]);
        let found = tree.read();
        let told = tree.told(&found.problems);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{row}: {told:?}");
        assert_eq!(found.is_complete(), expected.starts_with("Warning"), "{row}");
        assert_eq!(found.modules.len(), 1);
    }
}

#[test]
fn global_hooks_that_cannot_be_looked_at_are_not_taken_for_none() {
    let tree = Tree::new(&[("modules/001-one/", ""), ("global-hooks/hooks -> hooks", "")]);
    let told = tree.told(&tree.read().problems);
    assert!(
        told.len() == 1 && told[0].starts_with("Fatal global-hooks/hooks: cannot be read: "),
        "{told:?}"
    );
}

#[test]
fn what_values_files_say_is_known_apart_from_what_they_hold() {
    let said = |flags: &[(&str, bool)], sections: &[&str]| ValuesFile {
        flags: flags.iter().map(|(name, flag)| (module(name), *flag)).collect(),
        sections: sections.iter().map(ToString::to_string).collect(),
    };
    for (text, expected) in [
        (None, None),
        (Some(""), None),
        (Some("# a remark\n---\n"), None),
        (Some("{}"), Some(said(&[], &[]))),
        (
            Some("global: {a: 1}\none: {}\noneEnabled: true\ntwoEnabled: false\n"),
            Some(said(&[("one", true), ("two", false)], &["global", "one"])),
        ),
    ] {
        let tree = Tree::new(&[("modules/001-one/", "")]);
        if let Some(text) = text {
            tree.put("modules/values.yaml", text);
        }
        let found = tree.read();
        let path = tree.path("modules/values.yaml").display().to_string();
        assert_eq!(found.values_files, [(path, expected)].into());
        let flag = found.flags.get(&module("one")).copied();
        assert_eq!(found.outline().modules, [(module("one"), flag)].into());
    }
}
