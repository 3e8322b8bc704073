//! Many broken modules at once: the operator names each with its mistake and the place, and installs the good modules
//! between them.

use std::os::unix::fs::symlink;

use addon_core::digest::Digest;
use fs_err as fs;
use serde_json::json;

use super::stage::{CONVERGED, Operator, Stage, assert_says};

pub(super) const ENDED: &str = "some modules still fail";
pub(super) const ASKED: &str =
    "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n";

/// Nested maps: `{a: {a: … 1}}`.
pub(super) fn deep(levels: usize) -> String {
    format!("{}1{}", "{a: ".repeat(levels), "}".repeat(levels))
}

/// Text that does not compress.
fn dense(length: usize) -> String {
    let mut text = String::new();
    let mut digest = Digest::of_bytes(b"seed");
    while text.len() < length {
        digest = Digest::of_bytes(digest.to_string().as_bytes());
        text.push_str(&digest.to_string());
    }
    text
}

/// Broken modules, each with its enabled script.
const SCRIPTS: &[(&str, &str)] = &[
    (
        "talking",
        "head -c 20000000 /dev/zero | tr '\\0' x; echo true >$MODULE_ENABLED_RESULT",
    ),
    ("sleepy", "sleep 1000"),
    ("shot", "kill -9 $$"),
    (
        "wordy",
        "head -c 20000000 /dev/zero | tr '\\0' x >$MODULE_ENABLED_RESULT",
    ),
];

/// Broken modules, each with the body of a `beforeHelm` hook.
const HOOKS: &[(&str, &str)] = &[
    ("line", "head -c 9000000 /dev/zero | tr '\\0' x"),
    ("lines", "yes 'a line of a hook that says far too much' | head -n 5000"),
    ("errors", "head -c 9000000 /dev/zero | tr '\\0' x >&2"),
    ("forking", "sleep 1000 & (sleep 1000 & sleep 1000) & echo forked"),
    ("leaving", "setsid sleep 7 & echo left"),
    ("closing", "exec >&- 2>&- <&-"),
    ("bytes", "printf '\\377\\376\\000\\033[31m\\n{\"level\":'"),
    ("hanging", "trap '' TERM; sleep 1000"),
    ("killed", "kill -9 $$"),
    ("failing", "head -c 9000000 /dev/zero | tr '\\0' x >&2; exit 3"),
    (
        "missing",
        "echo '{\"op\": \"add\", \"path\": \"/missing/a/b/c\", \"value\": \"s3cr3t\"}' >$VALUES_JSON_PATCH_PATH",
    ),
    (
        "removing",
        "echo '{\"op\": \"remove\", \"path\": \"/removing/absent\"}' >$CONFIG_VALUES_JSON_PATCH_PATH",
    ),
    (
        "scalar",
        "echo '{\"op\": \"add\", \"path\": \"/scalar\", \"value\": \"s3cr3t\"}' >$VALUES_JSON_PATCH_PATH",
    ),
    (
        "endless",
        "yes '[' | head -c 3000000 | tr -d '\\n' >$VALUES_JSON_PATCH_PATH",
    ),
    ("zeros", "head -c 3000000 /dev/zero >$VALUES_JSON_PATCH_PATH"),
    (
        "huge",
        "(printf '{\"op\": \"add\", \"path\": \"/huge/data\", \"value\": \"'; head -c 1200000 /dev/zero | tr '\\0' x; \
              echo '\"}') >$CONFIG_VALUES_JSON_PATCH_PATH",
    ),
    (
        "deeper",
        "path=/deeper; steps=$(head -c 100 /dev/zero | sed 's|\\x0|/a|g'); \
                open=$(head -c 100 /dev/zero | sed 's/\\x0/{\"a\":/g'); close=$(head -c 100 /dev/zero | tr '\\0' '}'); \
                for i in $(seq 1 30); do path=$path$steps; \
                printf '{\"op\": \"add\", \"path\": \"%s\", \"value\": %s{}%s}\\n' \"$path\" \"$open\" \"$close\"; \
                done >$VALUES_JSON_PATCH_PATH",
    ),
    (
        "unlinking",
        "rm -f $VALUES_JSON_PATCH_PATH $CONFIG_VALUES_JSON_PATCH_PATH; mkdir $VALUES_JSON_PATCH_PATH",
    ),
];

fn switch_on(stage: &Stage, names: &[&str]) {
    let flags = ["good", "victim"]
        .iter()
        .chain(names)
        .map(|name| format!("{name}Enabled: true\n"))
        .collect::<Vec<_>>()
        .concat();
    stage.write("modules/values.yaml", &flags);
}

/// Checks that one log record about each module has all of its words, and that `why` repeats them for the modules that
/// still fail.
#[track_caller]
fn assert_told(operator: &Operator<'_>, rows: &[(&str, &[&str])]) {
    for (module, words) in rows {
        let name = format!("\"module\":\"{module}\"");
        let all: Vec<&str> = words.iter().copied().chain([name.as_str()]).collect();
        operator.wait_for(&all);
        assert_says(&operator.ask(&format!("module why {module}")), words);
    }
}

/// Checks that the other modules go on: the operator is ready and applies an edit.
#[track_caller]
fn assert_others_go_on(stage: &Stage, operator: &Operator<'_>, sizes: &str) {
    operator.wait_for_answer("/readyz", 200, &[]);
    stage.configure(&json!({"good": "size: edited"}));
    stage.wait_for_sizes(sizes);
}

#[test]
fn charts_that_are_none() {
    let stage = Stage::installed("charts");
    let names = [
        "noyaml", "circle", "endless", "dangling", "loop", "needy", "nested", "notes", "object", "typed", "linked",
        "huge",
    ];
    switch_on(&stage, &names);
    for name in names {
        stage.add_module(&format!("030-{name}"));
    }
    let module = |name: &str, file: &str| format!("modules/030-{name}/{file}");
    stage.write(&module("noyaml", "Chart.yaml"), "name: [\n");
    let circle = "{{ define \"c\" }}{{ include \"c\" . }}{{ end }}{{ include \"c\" . }}\n";
    stage.write(&module("circle", "templates/c.yaml"), circle);
    stage.write(
        &module("endless", "templates/e.yaml"),
        &circle.replace("include", "template"),
    );
    symlink(
        "/nowhere/at/all.yaml",
        stage.path(&module("dangling", "templates/d.yaml")),
    )
    .unwrap();
    symlink("..", stage.path(&module("loop", "templates/l"))).unwrap();
    let needy = "apiVersion: v2\nname: needy\nversion: 0.1.0\ndependencies: [{name: absent, version: 1.0.0}]\n";
    stage.write(&module("needy", "Chart.yaml"), needy);
    stage.write(&module("nested", "templates/n.yaml"), &deep(20_000));
    stage.write(&module("notes", "templates/n.yaml"), "\tno: yaml\n");
    stage.write(&module("object", "templates/o.yaml"), "just: a map\n");
    let typed = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t, annotations: {number: 5}}\n";
    stage.write(&module("typed", "templates/t.yaml"), typed);
    // A link to a valid file outside of the chart is allowed; it is the author's responsibility.
    stage.write("elsewhere.yaml", "# nothing\n");
    symlink(
        stage.path("elsewhere.yaml"),
        stage.path(&module("linked", "templates/l.yaml")),
    )
    .unwrap();
    stage.write(
        &module("huge", "values.yaml"),
        &format!("huge: {{size: small, data: {}}}\n", dense(3 << 20)),
    );

    let operator = stage.start();
    operator.wait_for(&[ENDED]);
    assert_told(
        &operator,
        &[
            ("noyaml", &["Chart.yaml"]),
            ("circle", &["circle/templates/c.yaml"]),
            ("endless", &["endless/templates/e.yaml"]),
            ("dangling", &["templates/d.yaml", "No such file"]),
            ("loop", &["templates/l"]),
            ("needy", &["absent", "missing in charts"]),
            ("nested", &["nested/templates/n.yaml"]),
            ("notes", &["notes/templates/n.yaml", "no kind"]),
            ("object", &["object/templates/o.yaml", "no kind"]),
            (
                "typed",
                &[
                    "typed/templates/t.yaml",
                    "ConfigMap/t",
                    "metadata.annotations.number",
                    "a number",
                ],
            ),
            ("huge", &["'huge'", "bytes packed", "1048576"]),
        ],
    );
    assert_others_go_on(&stage, &operator, "good:edited linked:small victim:small");
    operator.stop();
    stage.assert_installed(&["good", "linked", "victim"]);
}

#[test]
fn files_of_modules_that_are_none() {
    let stage = Stage::installed("files");
    let rows = [
        (
            "schema",
            "openapi/values.yaml",
            "type: 5\n".to_owned(),
            "openapi/values.yaml",
        ),
        (
            "pointer",
            "openapi/config-values.yaml",
            "$ref: '#/definitions/x'\n".to_owned(),
            "openapi/config-values.yaml",
        ),
        (
            "rule",
            "openapi/values.yaml",
            "type: object\nx-deckhouse-validations: [{expression: 'self.', message: m}]\n".to_owned(),
            "openapi/values.yaml",
        ),
        (
            "deepvalues",
            "values.yaml",
            format!("deepvalues: {}\n", deep(5000)),
            "values.yaml",
        ),
        (
            "deepneeds",
            "module.yaml",
            format!("dependsOn: {}\n", deep(5000)),
            "module.yaml",
        ),
        ("deepschema", "openapi/values.yaml", deep(5000), "openapi/values.yaml"),
        ("listvalues", "values.yaml", "- 1\n".to_owned(), "values.yaml"),
        (
            "binary",
            "values.yaml",
            "binary: \u{0}\u{1}\u{7}\n".to_owned(),
            "values.yaml",
        ),
        ("laughs", "values.yaml", laughs("laughs"), "values.yaml"),
        ("deepcrd", "crds/c.yaml", deep(5000), "crds/c.yaml"),
    ];
    let names: Vec<&str> = rows.iter().map(|row| row.0).chain(["latin"]).collect();
    switch_on(&stage, &names);
    for (name, file, text, _) in &rows {
        stage.add_module(&format!("030-{name}"));
        stage.write(&format!("modules/030-{name}/{file}"), text);
    }
    stage.add_module("040-latin");
    fs::write(
        stage.path("modules/040-latin/values.yaml"),
        b"latin: {size: \xe9t\xe9}\n",
    )
    .unwrap();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    for (name, _, _, word) in &rows {
        assert_told(&operator, &[(name, &[word])]);
    }
    assert_told(&operator, &[("latin", &["040-latin/values.yaml", "UTF-8"])]);
    assert_others_go_on(&stage, &operator, "good:edited victim:small");
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// YAML aliases that expand to a billion texts.
pub(super) fn laughs(key: &str) -> String {
    let levels = (1..10)
        .map(|level| {
            format!(
                "  l{level}: &l{level} [{}]\n",
                vec![format!("*l{}", level - 1); 10].join(", ")
            )
        })
        .collect::<Vec<_>>()
        .concat();
    format!("{key}:\n  l0: &l0 ha\n{levels}")
}

#[test]
fn scripts_and_hooks_that_misbehave() {
    let mut stage = Stage::installed("scripts");
    stage.set("ADDON_OPERATOR_HOOK_TIMEOUT", "4s");
    stage.set("ADDON_OPERATOR_ENABLED_SCRIPT_TIMEOUT", "4s");
    for (name, script) in HOOKS {
        stage.add_module(&format!("030-{name}"));
        stage.write(&format!("modules/030-{name}/hooks/h.sh"), &format!("{ASKED}{script}\n"));
    }
    for (name, script) in SCRIPTS {
        stage.add_module(&format!("040-{name}"));
        stage.write(
            &format!("modules/040-{name}/enabled"),
            &format!("#!/bin/sh\n{script}\n"),
        );
    }
    let names: Vec<&str> = HOOKS.iter().chain(SCRIPTS).map(|row| row.0).collect();
    switch_on(&stage, &names);

    let operator = stage.start();
    operator.wait_for(&[ENDED]);
    let hook = "hooks/h.sh";
    assert_told(
        &operator,
        &[
            ("hanging", &[hook, "did not end within 4s"]),
            ("killed", &[hook, "signal: killed"]),
            ("failing", &[hook, "xxx", "bytes more"]),
            ("missing", &[hook, "nothing at the parent of '/missing/a/b/c'"]),
            ("removing", &[hook, "nothing to remove at '/removing/absent'"]),
            ("scalar", &[hook, "should be a map or a list"]),
            ("endless", &[hook, "bad json patch for values", "line 1"]),
            ("zeros", &[hook, "bad json patch for values", "line 1"]),
            ("huge", &["'huge'", "ConfigMap", "1048576"]),
            ("deeper", &[hook, "deeper than 400 levels"]),
            ("unlinking", &[hook]),
        ],
    );
    for (module, words) in [
        ("sleepy", "did not end within 4s"),
        ("shot", "signal: killed"),
        ("wordy", "MODULE_ENABLED_RESULT"),
    ] {
        operator.wait_for(&["enabled script", module, words]);
        assert_says(
            &operator.ask(&format!("module why {module}")),
            &["EnabledScript", words],
        );
    }
    let fine = [
        "bytes", "closing", "errors", "forking", "good", "leaving", "line", "lines", "talking", "victim",
    ];
    let sizes = |good: &str| {
        let pair = |name: &&str| format!("{name}:{}", if *name == "good" { good } else { "small" });
        fine.iter().map(pair).collect::<Vec<_>>().join(" ")
    };
    assert_others_go_on(&stage, &operator, &sizes("edited"));
    let said = operator.said();
    assert!(!said.contains("s3cr3t"), "a value is told");
    // An endless line is shortened.
    assert!(
        said.lines().all(|line| line.len() < 3 << 20),
        "a line that nobody can read"
    );
    operator.stop();
    stage.assert_installed(&fine);
}
