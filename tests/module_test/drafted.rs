//! `module new`: what it writes passes `module lint` and its own cases, with both versions of helm.

use testbed::part::Part;

use super::stage::Stage;

const CHART: &str = "apiVersion: v2\nname: web-server\nversion: 1.2.3\n";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}\n\
     spec: {replicas: {{ .Values.replicas }}, zone: {{ .Values.global.zone | default \"none\" }}}\n";

#[test]
fn a_new_module_has_no_findings_and_passes_its_cases() {
    let stage = Stage::empty();
    let ran = stage.run(&["module", "new", "node-counter", "--order", "42"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.starts_with("modules/042-node-counter/Chart.yaml\n"),
        "{}",
        ran.out
    );
    assert_eq!(
        ran.err,
        "hint: `addon-operator module test modules/042-node-counter` plays its cases\n"
    );
    for helm in [Part::Helm3, Part::Helm4] {
        let lint = stage.run_with(helm, &["module", "lint", "modules"]);
        // The value that the hook computes is a warning, and there is nothing else.
        assert!(
            lint.code == 0 && lint.out.matches(": warning: renders only with values").count() == 1,
            "{}",
            lint.out
        );
        let test = stage.run_with(helm, &["module", "test", "modules"]);
        assert!(
            test.code == 0 && test.out.ends_with("\n5 passed, 0 failed\n"),
            "{}",
            test.out
        );
    }
}

/// The first commands that a newcomer types for a module.
#[test]
fn the_commands_of_the_readme_make_a_module_that_passes() {
    let readme = include_str!("../../README.md");
    let commands = readme
        .lines()
        .filter_map(|line| line.strip_prefix("target/debug/addon-operator module "));
    let stage = Stage::empty();
    let mut ran = 0;
    for command in commands {
        let words = command.split('#').next().unwrap_or_default();
        let words: Vec<&str> = ["module"].into_iter().chain(words.split_whitespace()).collect();
        let outcome = stage.run(&words);
        assert_eq!(outcome.code, 0, "{words:?}: {}{}", outcome.out, outcome.err);
        ran += 1;
    }
    assert_eq!(ran, 3);
}

#[test]
fn a_wrapped_chart_finds_its_values_below_the_key_of_the_module() {
    let stage = Stage::empty();
    for (path, text) in [
        ("Chart.yaml", CHART),
        ("values.yaml", "replicas: 1\n"),
        ("templates/deployment.yaml", DEPLOYMENT),
        (
            "templates/tests/test.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: tested}\n",
        ),
        (
            "crds/gadgets.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.com}\n",
        ),
        (".git/config", ""),
    ] {
        stage.put(&format!("chart/{path}"), text);
    }
    let ran = stage.run(&["module", "new", "shop", "--from-chart", "chart", "--dir", "mine"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let module = stage.path().join("mine/100-shop");
    assert!(module.join("crds/gadgets.yaml").exists() && !module.join("charts/web-server/.git").exists());
    stage.put(
        "mine/100-shop/tests/more.yaml",
        "name: values\nconfig: {replicas: 3}\nglobal: {zone: a}\nexpect:\n  rendered:\n    - {kind: Deployment, metadata: {name: shop-shop}, \
         spec: {replicas: 3, zone: a}}\n    - {kind: Pod, metadata: {name: tested}}\n",
    );
    for helm in [Part::Helm3, Part::Helm4] {
        let lint = stage.run_with(helm, &["module", "lint", "mine/100-shop"]);
        assert_eq!((lint.code, lint.out.as_str()), (0, ""), "{}", lint.err);
        assert_eq!(lint.err, "1 module, 0 hooks: fine\n");
        let test = stage.run_with(helm, &["module", "test", "mine/100-shop"]);
        assert!(
            test.code == 0 && test.out.ends_with("\n2 passed, 0 failed\n"),
            "{}",
            test.out
        );
    }
}

#[test]
fn nothing_is_overwritten_and_no_name_is_bent() {
    let stage = Stage::empty();
    stage.put("chart/Chart.yaml", CHART);
    stage.put("library/Chart.yaml", &format!("{CHART}type: library\n"));
    stage.put("empty/Chart.yaml", "apiVersion: v2\n");
    stage.put("modules/050-there/values.yaml", "");
    let rows: [(&[&str], &str); 7] = [
        (
            &["there"],
            "error: the module 'there' is there already: modules/050-there\n",
        ),
        (&["Shop"], "error: 'Shop' cannot be the name of a module: "),
        (
            &["web-shop", "--from-chart", "chart"],
            "hint: a name without dashes has no capitals: webshop\n",
        ),
        (&["shop", "--from-chart", "modules"], "error: modules is no chart: "),
        (
            &["shop", "--from-chart", "library"],
            "error: library is no chart: it is a library",
        ),
        (
            &["shop", "--from-chart", "empty"],
            "error: empty is no chart: its Chart.yaml has no name\n",
        ),
        (
            &["shop", "--dir", "chart/Chart.yaml"],
            "error: cannot write chart/Chart.yaml/100-shop: ",
        ),
    ];
    for (args, message) in rows {
        let ran = stage.run(&[&["module", "new"], args].concat());
        assert!(ran.code == 1 && ran.out.is_empty(), "{args:?} {}", ran.out);
        assert!(ran.err.contains(message), "{args:?} {}", ran.err);
    }
    assert_eq!(fs_err::read_dir(stage.path().join("modules")).unwrap().count(), 1);
}
