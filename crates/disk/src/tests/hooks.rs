//! Hooks and `enabled` scripts of modules, and global hooks, in directories.

use super::*;

#[test]
fn hooks_are_found_at_any_depth() {
    let tree = Tree::new(&[
        ("modules/001-one/hooks/b.sh*", ""),
        ("modules/001-one/hooks/a-b/deep/er/x*", ""),
        ("modules/001-one/hooks/a/hook.py*", ""),
        ("modules/001-one/hooks/linked -> b.sh", ""),
        ("modules/001-one/hooks/plain.sh", ""),
        ("modules/001-one/hooks/to-plain -> plain.sh", ""),
        ("modules/001-one/hooks/to-dir -> a", ""),
        ("modules/001-one/hooks/.hidden*", ""),
        ("modules/001-one/hooks/.dir/x*", ""),
        ("modules/001-one/hooks/venv/bin/python3*", ""),
        ("modules/001-one/hooks/lib/common.sh*", ""),
        ("modules/001-one/hooks/a/lib/quiet.sh", ""),
        ("modules/001-one/hooks/crd.yaml*", ""),
        ("modules/001-one/hooks/x.json*", ""),
        ("modules/001-one/hooks/x.md*", ""),
        ("modules/001-one/hooks/x.txt*", ""),
        ("modules/001-one/other.sh*", ""),
    ]);
    let found = tree.read();
    let expected = ["hooks/a-b/deep/er/x", "hooks/a/hook.py", "hooks/b.sh", "hooks/linked"];
    assert_eq!(names(&found.modules[0].hooks), expected);
    assert_eq!(found.modules[0].hooks[2].path, tree.path("modules/001-one/hooks/b.sh"));
    let no_bits = "no executable permissions, chmod +x is required to run this hook";
    let lib = "file has executable permissions and is located in the ignored 'lib' directory";
    let to_dir = "is a link to a directory, which is not searched for hooks";
    assert_eq!(
        tree.told(&found.problems),
        [
            format!("Warning modules/001-one/hooks/lib/common.sh: {lib}"),
            format!("Warning modules/001-one/hooks/plain.sh: {no_bits}"),
            format!("Warning modules/001-one/hooks/to-dir: {to_dir}"),
            format!("Warning modules/001-one/hooks/to-plain: {no_bits}"),
        ]
    );
    assert!(found.is_complete());
}

#[test]
fn a_hook_that_leads_nowhere_breaks_its_module() {
    let tree = Tree::new(&[
        ("modules/001-one/hooks/a.sh -> nowhere", ""),
        ("modules/002-two/hooks", "no directory"),
    ]);
    let found = tree.read();
    let faults: Vec<_> = found
        .modules
        .iter()
        .flat_map(|module| tree.told(&module.faults))
        .collect();
    assert_eq!(
        faults,
        [
            "Fatal modules/001-one/hooks/a.sh: is a link to nothing",
            "Fatal modules/002-two/hooks: is no directory"
        ]
    );
}

#[test]
fn hooks_directories_may_be_links() {
    let tree = Tree::new(&[
        ("modules/001-one/hooks -> ../../shelf", ""),
        ("shelf/a.sh*", ""),
        ("venv/b.sh*", ""),
        ("linked-hooks -> shelf", ""),
    ]);
    let found = read(&Layout {
        global_hooks_dir: tree.path("linked-hooks"),
        ..tree.layout(&["modules"])
    });
    assert_eq!(names(&found.modules[0].hooks), ["hooks/a.sh"]);
    assert_eq!(names(&found.global_hooks), ["a.sh"]);
}

#[test]
fn global_hooks_lie_in_hooks_or_beside() {
    let rows = [
        ("global-hooks/hooks/sub/a.sh*", "global-hooks", ["hooks/sub/a.sh"]),
        ("global-hooks/sub/a.sh*", "global-hooks", ["sub/a.sh"]),
        ("hooks/a.sh*", "hooks", ["hooks/a.sh"]),
        ("global-hooks/venv/a.sh*", "global-hooks", ["venv/a.sh"]),
    ];
    for (file, dir, expected) in rows {
        let tree = Tree::new(&[(file, "")]);
        let found = read(&Layout {
            global_hooks_dir: tree.path(dir),
            ..tree.layout(&["modules"])
        });
        assert_eq!(names(&found.global_hooks), expected);
    }
}

#[test]
fn the_enabled_script_has_a_say_if_it_can_run() {
    let tree = Tree::new(&[
        ("modules/001-one/enabled*", ""),
        ("modules/002-two/enabled", ""),
        ("modules/003-three/", ""),
        ("modules/004-four/enabled -> nowhere", ""),
    ]);
    let found = tree.read();
    let scripts: Vec<_> = found
        .modules
        .iter()
        .map(|module| module.enabled_script.clone())
        .collect();
    assert_eq!(scripts, [Some(tree.path("modules/001-one/enabled")), None, None, None]);
    let text = "no executable permissions, chmod +x is required to run the enabled script";
    assert_eq!(
        tree.told(&found.problems),
        [format!("Warning modules/002-two/enabled: {text}")]
    );
    let broken: Vec<_> = found.modules.iter().map(FoundModule::is_broken).collect();
    assert_eq!(broken, [false, false, false, true]);
}
