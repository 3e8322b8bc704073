//! Directories of various forms, and the findings in them.

mod hooks;
mod manifest;
mod unseen;

use std::os::unix::fs::{PermissionsExt, symlink};

use report::Chain;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A directory made from rows: a path that ends in `*` is executable, one with ` -> ` is a link, others are plain
/// files.
struct Tree(TempDir);

impl Tree {
    fn new(rows: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs_err::create_dir(tree.path("modules")).unwrap();
        fs_err::create_dir(tree.path("global-hooks")).unwrap();
        for (path, text) in rows {
            tree.put(path, text);
        }
        tree
    }

    fn put(&self, row: &str, text: &str) {
        let (path, link) = row
            .split_once(" -> ")
            .map_or((row, None), |(path, link)| (path, Some(link)));
        let (path, executable) = path.strip_suffix('*').map_or((path, false), |path| (path, true));
        let path = self.path(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        match link {
            Some(target) => symlink(target, &path).unwrap(),
            None if row.ends_with('/') => fs_err::create_dir_all(&path).unwrap(),
            None => fs_err::write(&path, text).unwrap(),
        }
        if executable {
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(relative)
    }

    fn layout(&self, modules_dirs: &[&str]) -> Layout {
        Layout {
            modules_dirs: modules_dirs.iter().map(|dir| self.path(dir)).collect(),
            global_hooks_dir: self.path("global-hooks"),
            unnumbered_order: 1,
            missing_values: MissingValues::NoValues,
            crd_filters: vec!["doc-".to_owned()],
        }
    }

    fn read(&self) -> Found {
        read(&self.layout(&["modules"]))
    }

    /// The severity and text of each problem, without the path of the test's folder.
    fn told(&self, problems: &[Problem]) -> Vec<String> {
        let place = format!("{}/", self.path("").display().to_string().trim_end_matches('/'));
        let text = |problem: &Problem| format!("{:?} {}", problem.severity, Chain(problem)).replace(&place, "");
        problems.iter().map(text).collect()
    }
}

fn module(name: &str) -> ModuleName {
    ModuleName::parse(name).unwrap()
}

fn names(hooks: &[HookFile]) -> Vec<&str> {
    hooks.iter().map(|hook| hook.name.as_str()).collect()
}

#[test]
fn modules_come_by_order_then_by_name() {
    let tree = Tree::new(&[
        ("modules/100-beta/", ""),
        ("modules/020-gamma/", ""),
        ("modules/20-alpha/", ""),
        ("modules/plain/", ""),
        ("elsewhere/anything/", ""),
        ("modules/005-linked -> ../elsewhere/anything", ""),
        ("modules/.git/", ""),
        ("modules/values.yaml", ""),
    ]);
    let found = tree.read();
    let modules: Vec<_> = found
        .modules
        .iter()
        .map(|module| (module.order, module.name.as_str()))
        .collect();
    assert_eq!(
        modules,
        [(1, "plain"), (5, "linked"), (20, "alpha"), (20, "gamma"), (100, "beta")]
    );
    assert_eq!(found.modules[1].path, tree.path("elsewhere/anything"));
    assert_eq!(tree.told(&found.problems), [""; 0]);
    assert!(found.is_complete());
}

#[test]
fn what_is_no_module_is_told() {
    let tree = Tree::new(&[
        ("modules/010-good/", ""),
        ("modules/020-lost -> nowhere", ""),
        ("modules/030-Bad_Name/", ""),
        ("modules/readme.txt", ""),
        ("more/040-good/", ""),
        ("more/050-other/", ""),
    ]);
    let found = read(&tree.layout(&["modules", "more"]));
    let expected = [
        "Gap modules/020-lost: is a link to nothing",
        "Gap modules/030-Bad_Name: is no name of a module: ",
        "Warning modules/readme.txt: is neither a module's directory nor values.yaml and is ignored",
        "Warning more/040-good: is ignored: module 'good' is taken from modules/010-good",
    ];
    let told = tree.told(&found.problems);
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}");
    }
    assert!(!found.is_complete());
    assert_eq!(found.fatal().count(), 0);
    assert_eq!(found.modules.len(), 2);
}

#[test]
fn what_is_missing_is_not_taken_for_empty() {
    let tree = Tree::new(&[("file", "")]);
    let found = tree.read();
    assert_eq!(tree.told(&found.problems), ["Gap modules: holds no modules"]);
    assert!(!found.is_complete());

    let found = read(&Layout {
        global_hooks_dir: tree.path("nohooks"),
        ..tree.layout(&["nothing", "file"])
    });
    let expected = [
        "Fatal nohooks: does not exist",
        "Fatal nothing: does not exist",
        "Fatal file: is no directory",
    ];
    assert_eq!(tree.told(&found.problems), expected);
    assert_eq!(found.fatal().count(), 3);
}

#[test]
fn values_are_laid_over_each_other() {
    let tree = Tree::new(&[
        (
            "modules/values.yaml",
            "global: {a: 1, b: {c: 1}}\nfooBar: {x: 1, list: [1, 2]}\nfooBarEnabled: true\nother: {no: 1}",
        ),
        (
            "modules/001-foo-bar/values.yaml",
            "fooBar: {list: [3], y: 2}\nfooBarEnabled: false\nflat: 1",
        ),
        ("modules/002-bare/", ""),
        (
            "more/values.yaml",
            "global: {b: {d: 2}}\nfooBarEnabled: false\nbareEnabled: yes\nfooBar: {never: 1}",
        ),
        ("more/003-third/values.yaml", ""),
    ]);
    let found = read(&tree.layout(&["modules", "more"]));
    // The flag and the stray key in the module's own file are reported.
    assert_eq!(found.problems.len(), 2);
    assert_eq!(found.global_values, json!({"a": 1, "b": {"c": 1, "d": 2}}));
    assert_eq!(
        found.flags,
        BTreeMap::from([(module("foo-bar"), false), (module("bare"), true)])
    );
    let values: Vec<_> = found.modules.iter().map(|module| &module.values).collect();
    // `y` is a boolean in the YAML of values files.
    assert_eq!(
        values,
        [&json!({"x": 1, "list": [3], "true": 2}), &json!({}), &json!({})]
    );
    assert!(found.modules.iter().all(|module| !module.is_broken()));
}

/// As in the image: the directory with the user's own modules comes before the one with the shipped modules.
#[test]
fn a_module_of_ones_own_takes_the_place_of_a_shipped_one_with_its_flag_and_values() {
    let tree = Tree::new(&[
        (
            "modules/values.yaml",
            "tunerEnabled: true\nglobal: {cluster: prod}\ntuner: {a: own}",
        ),
        ("modules/300-tuner/Chart.yaml", "name: tuner\nversion: 9.0.0\n"),
        ("shipped/values.yaml", "{}"),
        ("shipped/100-tuner/values.yaml", "tuner: {b: shipped}"),
        ("shipped/200-other/", ""),
    ]);
    let found = read(&tree.layout(&["modules", "shipped"]));
    let told = ["Warning shipped/100-tuner: is ignored: module 'tuner' is taken from modules/300-tuner"];
    assert_eq!(tree.told(&found.problems), told);
    let modules: Vec<_> = found
        .modules
        .iter()
        .map(|module| (module.order, module.name.as_str()))
        .collect();
    assert_eq!(modules, [(200, "other"), (300, "tuner")]);
    assert_eq!(found.modules[1].values, json!({"a": "own"}));
    assert_eq!(found.modules[1].version.as_deref(), Some("9.0.0"));
    assert_eq!(found.global_values, json!({"cluster": "prod"}));
    assert_eq!(found.flags, BTreeMap::from([(module("tuner"), true)]));
    assert!(found.is_complete());
}

#[test]
fn a_bad_values_file_breaks_its_module_only() {
    let rows = [
        ("a: [1\nb: 2", "Fatal modules/001-one/values.yaml: is not YAML: line "),
        (
            "[1]",
            "Fatal modules/001-one/values.yaml: should hold a map, but holds a list",
        ),
        (
            "one: text",
            "Fatal modules/001-one/values.yaml: section one should be a map, but is a text",
        ),
    ];
    for (text, expected) in rows {
        let tree = Tree::new(&[
            ("modules/values.yaml", "one: {kept: 1}"),
            ("modules/001-one/values.yaml", text),
            ("modules/002-two/", ""),
        ]);
        let found = tree.read();
        let told = tree.told(&found.modules[0].faults);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
        assert_eq!(found.modules[0].values, json!({"kept": 1}));
        assert!(found.modules[0].is_broken() && !found.modules[1].is_broken());
        assert!(found.is_complete());
    }
}

#[test]
fn a_bad_common_file_leaves_flags_unknown() {
    for (text, expected) in [
        ("a: [1\nb: 2", "Fatal modules/values.yaml: is not YAML: line "),
        (
            "just text",
            "Fatal modules/values.yaml: should hold a map, but holds a text",
        ),
        (
            "global: 5",
            "Fatal modules/values.yaml: section global should be a map, but is a number",
        ),
    ] {
        let tree = Tree::new(&[("modules/values.yaml", text), ("modules/001-one/", "")]);
        let found = tree.read();
        let told = tree.told(&found.problems);
        assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
        assert!(!found.is_complete());
        assert_eq!(found.modules.len(), 1);
    }
}

#[test]
fn a_flag_in_the_file_of_a_module_is_told() {
    let tree = Tree::new(&[
        ("modules/values.yaml", ""),
        (
            "modules/001-one/values.yaml",
            "oneEnabled: true\none: {a: 1}\ntwoEnabled: false",
        ),
    ]);
    let found = read(&tree.layout(&["modules"]));
    let flag = "has no effect in the file of a module: write it into the common values.yaml or the ConfigMap";
    let told = |key| format!("Warning modules/001-one/values.yaml: {key} {flag}");
    assert_eq!(tree.told(&found.problems), [told("oneEnabled"), told("twoEnabled")]);
    assert!(found.modules[0].faults.is_empty());
}

#[test]
fn values_outside_of_the_section_are_told_unless_the_chart_reads_them() {
    let values = "one: {a: 1}\nglobal: {}\nlabel: a\nlabels: a\nredis: {}\nalias: {}\npacked: {}";
    let files = |template| {
        Tree::new(&[
            ("modules/values.yaml", ""),
            ("modules/001-one/values.yaml", values),
            (
                "modules/001-one/Chart.yaml",
                "dependencies: [{name: cache, alias: alias}]",
            ),
            ("modules/001-one/charts/redis/Chart.yaml", ""),
            ("modules/001-one/charts/packed-1.2.3.tgz", ""),
            ("modules/001-one/templates/one.yaml", template),
        ])
    };
    let told = |key| {
        format!(
            "Warning modules/001-one/values.yaml: {key} counts for nothing outside of the module's section, and no template \
             reads it: write it below 'one:'"
        )
    };
    for (template, keys) in [
        ("{{ .Values.one.label }}", &["label", "labels"][..]),
        ("{{ .Values.label }}", &["labels"]),
        ("{{ .Values.labels.label }}", &["label"]),
        ("{{ .ValuesOf.label }}", &["label", "labels"]),
        ("{{ index .Values \"label\" }}", &[]),
        ("{{ toYaml .Values}}", &[]),
    ] {
        let tree = files(template);
        let found = read(&tree.layout(&["modules"]));
        let keys: Vec<_> = keys.iter().map(told).collect();
        assert_eq!(tree.told(&found.problems), keys, "{template}");
        assert!(found.modules[0].faults.is_empty());
    }
}

#[test]
fn a_second_document_of_values_is_told_and_a_mark_of_byte_order_does_no_harm() {
    let tree = Tree::new(&[
        ("modules/values.yaml", "\u{feff}one: {a: 1}\n---\none: {a: 2}\n"),
        (
            "modules/001-one/values.yaml",
            "\u{feff}one: {b: 1}\n---\n---\n\none: {b: 2}\n",
        ),
        ("modules/001-one/module.yaml", "\u{feff}drift: off\n"),
    ]);
    let found = read(&tree.layout(&["modules"]));
    let told = |file, line| {
        format!(
            "Warning modules/{file}: is read in part: line {line}, column 1: a second document begins here, and only the first \
             counts: move its keys up, and remove the line `---`"
        )
    };
    assert_eq!(
        tree.told(&found.problems),
        [told("values.yaml", 3), told("001-one/values.yaml", 5)]
    );
    let one = &found.modules[0];
    assert!(one.faults.is_empty());
    assert_eq!(
        (&one.values, one.drift),
        (&json!({"a": 1, "b": 1}), Some(Restoring::Off))
    );
}

#[test]
fn a_flag_is_true_or_false() {
    let common = "oneEnabled: \"true\"\ntwoEnabled: 1\ngoneEnabled: []\nbad_nameEnabled: true\nEnabled: true";
    let tree = Tree::new(&[
        ("modules/values.yaml", common),
        ("modules/001-one/", ""),
        ("modules/003-three/", ""),
        ("more/002-two/", ""),
    ]);
    let found = read(&tree.layout(&["modules", "more"]));
    let faults: Vec<_> = found
        .modules
        .iter()
        .flat_map(|module| tree.told(&module.faults))
        .collect();
    assert_eq!(
        faults,
        [
            "Fatal modules/values.yaml: oneEnabled should be true or false, but is a text",
            "Fatal modules/values.yaml: twoEnabled should be true or false, but is a number",
        ]
    );
    assert_eq!(
        tree.told(&found.problems),
        [
            "Warning modules/values.yaml: Enabled looks like the flag of a module, but there can be none of that name",
            "Warning modules/values.yaml: bad_nameEnabled looks like the flag of a module, but there can be none of that name",
            "Warning modules/values.yaml: goneEnabled should be true or false, but is a list",
        ]
    );
    assert_eq!(found.flags, BTreeMap::new());
}

#[test]
fn strict_checking_refuses_missing_values() {
    let tree = Tree::new(&[("modules/001-one/", "")]);
    let found = read(&Layout {
        missing_values: MissingValues::Refused,
        ..tree.layout(&["modules"])
    });
    let expected = "values.yaml: is missing, which strict checking of values refuses";
    assert_eq!(tree.told(&found.problems), [format!("Fatal modules/{expected}")]);
    assert_eq!(
        tree.told(&found.modules[0].faults),
        [format!("Fatal modules/001-one/{expected}")]
    );
}

#[test]
fn a_module_says_what_it_depends_on() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("", &[], &[]),
        ("dependsOn: [b, a-c, b]", &["b", "a-c"], &[]),
        (
            "dependsOn: b",
            &[],
            &["line 1: dependsOn should be a list of module names, but is a text"],
        ),
        (
            "dependsOn: [b, 5]",
            &["b"],
            &["line 1: dependsOn[1] should be the name of a module, or {name: …, until: ready}, but is a number"],
        ),
        ("dependsOn: [{name: b, until: ready}, {name: c}]", &["b", "c"], &[]),
        (
            "dependsOn: [{name: b, untill: ready}]",
            &[],
            &["line 1: dependsOn[0] should be the name of a module, or {name: …, until: ready}, but is a map"],
        ),
        (
            "health: {timeout: 90s, onFailure: return, ignore: [{kind: Job}, {kind: Deployment, name: a}]}",
            &[],
            &[],
        ),
        (
            "health: {timeout: 0s, retries: 3, onFailure: rollback}",
            &[],
            &[
                "line 1: health.onFailure should be keep or return, but is a text",
                "line 1: unknown field health.retries; there are timeout, ignore, rules, onFailure",
                "line 1: health.timeout should be a time above zero, such as 90s or 5m",
            ],
        ),
        (
            "health: {rules: [{apiVersion: a.b/v1, kind: C, failed: status.x == 1}]}",
            &[],
            &[],
        ),
        (
            "health: {rules: [{apiVersion: a.b/v1, kind: C, ready: x}, {apiVersion: a.b/v1, kind: C, failed: x ==}]}",
            &[],
            &[
                "line 1: health.rules[0]: should be a rule as {apiVersion: …, kind: …} with one or more of current, inProgress and failed: unknown field `ready`, expected one of `apiVersion`, `kind`, `current`, `inProgress`, `failed`",
                "line 1: health.rules[1]: the expression `failed` of the health rule for a.b/C: line 1, column 5: ",
            ],
        ),
        (
            "health: {ignore: [Job]}",
            &[],
            &[
                "line 1: health.ignore[0] should be an object as {kind: …, name: …}; without a name all of the kind, but is a text",
            ],
        ),
        ("dependsOn: [Bad]", &[], &["line 1: dependsOn[0] names no module: "]),
        (
            "name: one\ndepends-on: [b]",
            &[],
            &["line 2: unknown field depends-on, is dependsOn meant?"],
        ),
        ("- b", &[], &["should hold a map, but holds a list"]),
        ("dependsOn: [b]\ndependsOn: [c]", &[], &["is not YAML: line 2"]),
    ];
    for (text, expected, faults) in rows {
        let tree = Tree::new(&[("modules/001-one/module.yaml", text)]);
        let found = &tree.read().modules[0];
        let depends_on: Vec<_> = found.depends_on.iter().map(ModuleName::as_str).collect();
        assert_eq!(depends_on, *expected, "{text}");
        let told = tree.told(&found.faults);
        assert_eq!(told.len(), faults.len(), "{text}: {told:?}");
        for (told, fault) in told.iter().zip(*faults) {
            assert!(
                told.starts_with(&format!("Fatal modules/001-one/module.yaml: {fault}")),
                "{told}"
            );
        }
    }
}

#[test]
fn what_others_keep_in_module_yaml_is_let_pass_and_what_nobody_knows_is_told() {
    let text = "name: one\nweight: 900\nstage: Preview\nrequirements:\n  modules: {b: '>= 1.0'}\ncolour: red\n\
                dependsOn: [b]\n";
    let tree = Tree::new(&[("modules/001-one/module.yaml", text)]);
    let found = tree.read();
    let module = &found.modules[0];
    assert!(!module.is_broken() && found.is_complete());
    assert_eq!(module.depends_on.len(), 1);
    let told = tree.told(&found.problems);
    let expected = "Warning modules/001-one/module.yaml: line 6: unknown field colour is ignored";
    assert!(told.iter().any(|told| told == expected), "{told:?}");
}

#[test]
fn a_chart_is_whole_or_made_or_not_there() {
    let tree = Tree::new(&[
        ("modules/001-one/Chart.yaml", ""),
        ("modules/002-two/templates/a.yaml", ""),
        ("modules/003-three/hooks/a.sh*", ""),
    ]);
    let charts: Vec<_> = tree.read().modules.iter().map(|module| module.chart).collect();
    assert_eq!(charts, [Some(Chart::Whole), Some(Chart::Made), None]);
}

#[test]
fn the_digest_follows_everything_helm_reads() {
    let tree = Tree::new(&[
        ("shared.tpl", "1"),
        ("m/templates/a.yaml", "a"),
        ("m/templates/b.tpl -> ../../shared.tpl", ""),
        ("m/hooks/a.sh*", ""),
    ]);
    let dir = tree.path("m");
    for (chart, hooks_count) in [(Chart::Whole, true), (Chart::Made, false)] {
        let mut before = chart_digest(&dir, chart).unwrap();
        assert_eq!(chart_digest(&dir, chart).unwrap(), before, "nothing changed");
        let mut changes = |row: &str, text: &str, counts: bool| {
            tree.put(row, &format!("{text} of {chart:?}"));
            let after = chart_digest(&dir, chart).unwrap();
            assert_eq!(after != before, counts, "{row} for {chart:?}");
            before = after;
        };
        changes("m/templates/a.yaml", "changed", true);
        changes("shared.tpl", "changed behind a link", true);
        changes("m/values.yaml", "new", true);
        changes(&format!("m/files/{chart:?}"), "new, of another name only", true);
        changes("m/hooks/a.sh", "changed", hooks_count);
        changes(
            "m/templates/lib/x.tpl",
            "in a directory that a made chart leaves out",
            hooks_count,
        );
    }
    tree.put("m/templates/lost -> nowhere", "");
    let error = chart_digest(&dir, Chart::Whole).unwrap_err();
    assert!(
        Chain(&error).to_string().contains("templates/lost"),
        "{}",
        Chain(&error)
    );
}

#[test]
fn files_that_trade_their_content_are_noticed() {
    let digest = |rows: &[(&str, &str)]| chart_digest(&Tree::new(rows).path("m"), Chart::Whole).unwrap();
    assert_eq!(
        digest(&[("m/a", "1"), ("m/b", "2")]),
        digest(&[("m/b", "2"), ("m/a", "1")])
    );
    assert_ne!(
        digest(&[("m/a", "1"), ("m/b", "2")]),
        digest(&[("m/a", "2"), ("m/b", "1")])
    );
    assert_ne!(digest(&[("m/a", "1b")]), digest(&[("m/a1", "b")]));
}

#[test]
fn schemas_are_read_with_what_they_refer_to() {
    use values_schema::schema::Kind;
    let tree = Tree::new(&[
        ("global-hooks/openapi/values.yaml", "properties: {a: {}}"),
        (
            "modules/001-one/openapi/config-values.yaml",
            "properties: {a: {$ref: 'lib/a.yaml#/a'}}",
        ),
        ("modules/001-one/openapi/lib/a.yaml", "a: {$ref: '../b.yaml'}"),
        ("modules/001-one/openapi/b.yaml", "type: string"),
        ("modules/001-one/openapi/values.yaml", ""),
        ("modules/002-two/values.yaml", ""),
    ]);
    let found = tree.read();
    assert!(tree.told(&found.problems).is_empty());
    assert!(found.global_schemas.has(Kind::Values) && !found.global_schemas.has(Kind::Config));
    let one = &found.modules[0].schemas;
    assert!(
        one.has(Kind::Config) && !one.has(Kind::Values),
        "an empty file is no schema"
    );
    let refused = one.check(Kind::Config, "one", &json!({"a": 1}), None).unwrap_err();
    assert_eq!(refused.to_string(), "one.a in body must be of type string: \"number\"");
    assert!(found.modules[1].schemas.is_empty());
}

#[test]
fn a_schema_that_cannot_be_used_breaks_its_module_alone() {
    let tree = Tree::new(&[
        (
            "modules/001-one/openapi/values.yaml",
            "properties: {a: {$ref: 'nowhere.yaml'}}",
        ),
        (
            "modules/002-two/openapi/config-values.yaml",
            "x-deckhouse-validations: [{expression: 'self.', message: m}]",
        ),
        ("modules/003-three/openapi/values.yaml", "properties: {}"),
        ("modules/004-four/openapi/values.yaml/", ""),
    ]);
    let found = tree.read();
    assert!(tree.told(&found.problems).is_empty());
    let told: Vec<_> = found
        .modules
        .iter()
        .map(|module| tree.told(&module.faults).join(""))
        .collect();
    assert_eq!(
        told[0],
        "Fatal modules/001-one/openapi: holds a schema that cannot be used: load schema modules/001-one/openapi/values.yaml, \
         at properties.a: refers to the file modules/001-one/openapi/nowhere.yaml, which is not there"
    );
    assert!(
        told[1].contains("config-values.yaml, at x-deckhouse-validations: compile the 'self.' rule: 1:"),
        "{}",
        told[1]
    );
    assert_eq!(told[2], "");
    assert!(
        told[3].starts_with("Fatal modules/004-four/openapi/values.yaml: cannot be read"),
        "{}",
        told[3]
    );

    let tree = Tree::new(&[("global-hooks/openapi/values.yaml", "[]")]);
    let found = tree.read();
    assert_eq!(found.fatal().count(), 1);
}
