//! Cases that must fail: every expectation with its message, mistakes in cases, and the report for build servers.

use super::stage::Stage;

const HEAD: &str = "hook: hooks/do.sh\non: beforeHelm\n";

/// Plays a case that has to fail, and returns the lines below its name.
fn told(case: &str) -> String {
    let ran = Stage::with_demo().play(case);
    assert!(
        ran.code == 1 && ran.out.ends_with("\n0 passed, 1 failed\n"),
        "{case}\n{}{}",
        ran.out,
        ran.err
    );
    assert_eq!(ran.err, "error: there are cases that fail\n", "{case}");
    let (head, rest) = ran.out.split_once('\n').unwrap();
    assert!(head.starts_with("FAILED demo: "), "{head}");
    rest.to_owned()
}

#[test]
fn every_expectation_can_fail_and_says_how() {
    let set = "config: {do: \"echo '{\\\"op\\\": \\\"add\\\", \\\"path\\\": \\\"/demo/computed\\\", \\\"value\\\": 7}' >$VALUES_JSON_PATCH_PATH\"}\n";
    let metric = "config: {do: \"echo '{\\\"name\\\": \\\"m\\\", \\\"set\\\": 1}' >$METRICS_PATH\"}\n";
    let create = "config: {do: \"echo '{operation: Create, object: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n}}}' >$KUBERNETES_PATCH_PATH\"}\n";
    let rows = [
        (set, "values: {computed: 8}", "values.computed: expected 8, got 7"),
        (set, "values: {none: 1}", "values.none: expected 1, got nothing"),
        (set, "config: {size: 1}", "config.size: expected 1, got nothing"),
        (
            set,
            "valuesPatch: []",
            "valuesPatch:\n    expected nothing\n    got\n      {\"op\":\"add\",\"path\":\"/demo/computed\",\"value\":7}",
        ),
        (
            set,
            "configPatch: [{op: remove, path: /demo/size}]",
            "configPatch:\n    expected\n      {\"op\":\"remove\",\"path\":\"/demo/size\"}\n    got nothing",
        ),
        (
            create,
            "objects: [{kind: Pod, metadata: {name: q}}]",
            "objects[0]: expected {\"kind\":\"Pod\",\"metadata\":{\"name\":\"q\"}}, got only Pod n/p",
        ),
        (
            create,
            "objects: [{kind: Pod, metadata: {name: p}, spec: {a: 1}}]",
            "objects[0] Pod n/p.spec: expected {\"a\":1}, got nothing",
        ),
        (
            create,
            "absent: [{kind: Pod}]",
            "absent[0]: expected nothing, got Pod n/p",
        ),
        (
            create,
            "objectPatches: []",
            "objectPatches:\n    expected nothing\n    got\n      {\"object\"",
        ),
        (
            metric,
            "metrics: []",
            "metrics:\n    expected nothing\n    got\n      {\"action\":\"set\",\"labels\":{},\"name\":\"m\",\"value\":1.0}",
        ),
        (
            metric,
            "metrics: [{name: m, value: 2}]",
            "metrics[0].value: expected 2, got 1.0",
        ),
        (
            metric,
            "metrics: [{name: n}]",
            "metrics[0]: expected {\"name\":\"n\"}, got [{",
        ),
        (
            set,
            "rendered: [{kind: ConfigMap, data: {size: \"2\"}}]",
            "rendered[0] ConfigMap demo.data.size: expected \"2\", got \"1\"",
        ),
        (
            set,
            "rendered: [{kind: ConfigMap, data: {text: \"first\\nthird\\n\"}}]",
            "rendered[0] ConfigMap demo.data.text: - expected, + got\n     first\n    -third\n    +second 1",
        ),
        (
            set,
            "rendered: [{kind: Secret}]",
            "rendered[0]: expected {\"kind\":\"Secret\"}, got only ConfigMap demo",
        ),
        (
            set,
            "notRendered: [{kind: ConfigMap}]",
            "notRendered[0]: expected nothing, got ConfigMap demo",
        ),
        (set, "refused: no", "refused: expected \"no\", got no refusal"),
        (
            "config: {size: many}\n",
            "refused: other",
            "refused:\n    expected other\n    got      key 'demo' of module 'demo': 1 error",
        ),
        (
            "config: {do: \"echo why; echo because >&2; exit 3\"}\n",
            "values: {}",
            "refused: hook 'hooks/do.sh' failed: because",
        ),
        (
            "config: {do: \"echo why; exit 3\"}\n",
            "values: {}",
            "the hook printed:\n    why",
        ),
        (
            "config: {do: \"echo '{\\\"name\\\": \\\"m\\\"}' >$METRICS_PATH\"}\n",
            "values: {}",
            "refused: a metric is not shown: ",
        ),
        ("", "enabled: true", "enabled: expected true, got false"),
        (
            "",
            "{enabled: false, reason: early}",
            "reason: expected \"early\", got \"it is late\"",
        ),
    ];
    for (given, expected, message) in rows {
        let told = told(&format!(
            "{given}{HEAD}expect: {}\n",
            if expected.starts_with('{') {
                expected.to_owned()
            } else {
                format!("{{{expected}}}")
            }
        ));
        assert!(told.contains(&format!("  {message}")), "{expected}: {message}\n{told}");
        assert!(told.starts_with("  modules/010-demo/tests/case.yaml:1\n"), "{told}");
    }
    let review = "config: {do: \"echo '{\\\"allowed\\\": false}' >$VALIDATING_RESPONSE_PATH\"}\nhook: hooks/do.sh\non: check.example.com\nrequest: {}\n";
    let told = told(&format!("{review}expect: {{review: {{allowed: true}}}}\n"));
    assert!(told.contains("  review.allowed: expected true, got false"), "{told}");
}

#[test]
fn a_mistake_in_a_case_names_file_line_and_field() {
    let rows = [
        (
            "hook: hooks/do.sh\nexpected: {}\n",
            "2: expected: there is no such field of a case",
        ),
        (
            "hook: hooks/do.sh\nexpect:\n  value: {}\n",
            "2: expect.value: there is no such expectation",
        ),
        (
            "hook: hooks/other.sh\nexpect: {}\n",
            "1: hook: there is no hook 'hooks/other.sh', only: hooks/do.sh",
        ),
        (
            "hook: hooks/do.sh\nexpect: {}\n",
            "1: on: the hook has several bindings, name one of them: beforeHelm, afterHelm, hourly, pods, quiet, check",
        ),
        (
            "hook: hooks/do.sh\non: nodes\nexpect: {}\n",
            "2: on: the hook has no binding 'nodes', only: beforeHelm",
        ),
        (
            "on: pods\nexpect: {}\n",
            "1: on: without 'hook' it should be one of onStartup, beforeHelm",
        ),
        (
            "on: onStartup\nexpect: {}\n",
            "1: on: no hook has the binding onStartup",
        ),
        (
            "name: nothing\n",
            "1: expect: without a hook there has to be an expectation",
        ),
        (
            "hook: hooks/do.sh\non: quiet\n",
            "1: event: it is missing, because binding 'quiet' has no first run",
        ),
        (
            "hook: hooks/do.sh\non: pods\nevent: {type: Modified, object: {apiVersion: v1, kind: Pod, metadata: {name: a}}}\n",
            "3: event.type: binding 'pods' does not react to Modified",
        ),
        (
            "hook: hooks/do.sh\non: pods\nevent: {type: Added, object: {apiVersion: v1, kind: Pod, metadata: {name: a}}}\n",
            "3: event.object: binding 'pods' does not select it",
        ),
        (
            "hook: hooks/do.sh\non: pods\nevent: {type: Created, object: {}}\n",
            "3: event.type: unknown variant",
        ),
        (
            "hook: hooks/do.sh\non: beforeHelm\nevent: {type: Added, object: {kind: Pod}}\n",
            "3: event: this binding is not about objects",
        ),
        (
            "hook: hooks/do.sh\non: check.example.com\n",
            "1: request: it is missing",
        ),
        (
            "hook: hooks/do.sh\non: beforeHelm\nobjects: [{kind: Pod}]\n",
            "3: objects[0]: it has no apiVersion",
        ),
        (
            "hook: hooks/do.sh\non: beforeHelm\nobjects: [{}]\n",
            "3: objects[0]: it has no kind",
        ),
        (
            "hook: hooks/do.sh\non: beforeHelm\nexpect: {objectPatches: [{operation: Erase}]}\n",
            "3: expect.objectPatches: ",
        ),
        ("expect: {valuesPatch: []}\n", "1: expect.valuesPatch: it needs a hook"),
        (
            "hook: hooks/do.sh\non: pods\ncontexts: [{}]\n",
            "2: on: it has no effect beside 'contexts'",
        ),
        (
            "expect: {enabled: true, reason: x}\n",
            "1: expect.reason: it needs 'enabled: false' beside it",
        ),
        ("a: [\n", "YAML: "),
        ("- a\n", "1: case: it should be a map"),
    ];
    for (case, message) in rows {
        let told = told(case);
        let told = told.lines().next().unwrap();
        assert!(
            told.starts_with("  modules/010-demo/tests/case.yaml:") && told.contains(message),
            "{message}\n{told}"
        );
    }
}

#[test]
fn a_command_that_plays_nothing_fails() {
    let stage = Stage::with_demo();
    let error = |args: &[&str]| {
        let ran = stage.run(&[&["module", "test"], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
        ran.err
    };
    let none = error(&["modules"]);
    assert!(
        none.starts_with("error: there are no cases in modules: a case is a YAML file"),
        "{none}"
    );
    stage.put(
        "modules/010-demo/tests/a.yaml",
        "name: first\nexpect: {enabled: false}\n---\nname: second\nexpect: {enabled: false}\n",
    );
    assert_eq!(
        error(&["modules", "--case", "third"]),
        "error: no case has 'third' in its name\n"
    );
    assert!(error(&["nowhere"]).starts_with("error: cannot look at nowhere: "));
    let one = stage.run(&["module", "test", "modules/010-demo", "--case", "sec"]);
    assert_eq!(one.out, "ok demo: second\n1 passed, 0 failed\n");
    stage.put("modules/010-demo/hooks/broken.sh", "#!/bin/sh\nexit 4\n");
    let broken = stage.play("hook: hooks/broken.sh\nexpect: {}\n").out;
    assert!(
        broken.contains("case.yaml:1: hook: ") && broken.contains("exit status 4"),
        "{broken}"
    );
    stage.put("modules/010-demo/openapi/values.yaml", "type: [\n");
    assert!(error(&["modules"]).contains("module 'demo' cannot be tested, because its files have mistakes"));
}

#[test]
fn build_servers_get_a_report() {
    let stage = Stage::with_demo();
    let cases = "name: good\nexpect: {enabled: false}\n---\nname: <bad>\nexpect: {enabled: true}\n---\nname: odd\nexpects: {}\n";
    stage.put("modules/010-demo/tests/case.yaml", cases);
    let ran = stage.run(&["module", "test", "modules", "--junit", "report.xml"]);
    assert!(
        ran.code == 1 && ran.out.ends_with("1 passed, 2 failed\n"),
        "{}",
        ran.out
    );
    let report = fs_err::read_to_string(stage.path().join("report.xml")).unwrap();
    for part in [
        "<testsuites tests=\"3\" failures=\"1\" errors=\"1\" ",
        "<testcase classname=\"demo\" name=\"good\" file=\"modules/010-demo/tests/case.yaml\" line=\"1\" ",
        "name=\"&lt;bad&gt;\"",
        "<failure message=\"enabled: expected true, got false\">",
        "<error message=\"modules/010-demo/tests/case.yaml:8: expects: there is no such field of a case\">",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    let ran = stage.run(&["module", "test", "modules", "--junit", "no/report.xml"]);
    assert!(
        ran.code == 1 && ran.err.starts_with("error: cannot write no/report.xml"),
        "{}",
        ran.err
    );
}
