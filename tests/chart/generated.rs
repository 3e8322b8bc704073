//! The output of `rbac generate` for modules and for global hooks. No API server is needed.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use testbed::part::Part;

use super::tool::root;

/// Runs `rbac generate` with these arguments.
fn run(modules: &Path, arguments: &[&str]) -> Output {
    run_with(&root().join("frameworks/shell"), modules, arguments)
}

/// Runs `rbac generate` with the shell framework in this folder.
fn run_with(framework: &Path, modules: &Path, arguments: &[&str]) -> Output {
    let mut command = testbed::process::command(env!("CARGO_BIN_EXE_addon-operator"));
    command
        .args(["rbac", "generate"])
        .arg(modules)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("FRAMEWORK_DIR", framework)
        .env("HELM_BIN", testbed::shared::program(Part::Helm3))
        .current_dir(root());
    testbed::process::run(command, None).unwrap()
}

/// Standard output and standard error of `rbac generate`.
fn generate(modules: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(modules, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// The rules as JSON, and standard error.
fn rules(modules: &Path, arguments: &[&str]) -> (Value, String) {
    let (printed, said) = generate(modules, &[&["--output=json"], arguments].concat());
    (serde_json::from_str(&printed).unwrap(), said)
}

#[test]
fn what_a_module_does_by_an_account_of_its_own_is_not_granted_to_the_operator() {
    let modules = tempfile::tempdir().unwrap();
    let guest = root().join("tests/installed/trial/story/040-guest");
    std::os::unix::fs::symlink(guest, modules.path().join("040-guest")).unwrap();
    let (rules, said) = rules(modules.path(), &[]);
    assert_eq!(said, "");
    assert_eq!(
        rules["rbac"]["moduleRules"],
        json!({
            "cluster": [],
            "release": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["guest"], "verbs": ["create"]},
            ],
            "namespaces": [],
        })
    );
}

#[test]
fn rights_of_global_hooks_that_cannot_be_used_are_told_by_file_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let hooks = dir.path().to_str().unwrap();
    let arguments = [format!("--global-hooks-dir={hooks}")];
    let arguments = arguments.each_ref().map(String::as_str);
    let say = |text: &str| fs_err::write(dir.path().join("rights.yaml"), text).unwrap();
    say("rights: [{apiGroups: [''], resources: [pods], verb: get}]");
    let output = run(dir.path(), &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    let told = format!("{hooks}/rights.yaml: global hooks: rights[0] is no rule: unknown field `verb`");
    assert!(said.contains(&told), "{said}");

    say("rights: [{apiGroups: [''], resources: [pods], verbs: [get], inRelease: true}]");
    let modules = root().join("tests/installed/trial/story");
    let (text, _) = generate(&modules, &arguments);
    let rule = "# global hooks\n      - apiGroups: [\"\"]\n        resources: [pods]\n        verbs: [get]\n";
    assert!(text.contains(rule), "{text}");
}

/// Before a stored version is removed from a CRD, all its objects in all namespaces are written anew.
#[test]
fn a_crd_takes_rights_to_itself_and_to_all_its_objects() {
    let modules = tempfile::tempdir().unwrap();
    let crds = modules.path().join("010-mice/crds");
    fs_err::create_dir_all(&crds).unwrap();
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mice.example.com}\nspec: {}\n";
    fs_err::write(crds.join("mice.yaml"), crd).unwrap();
    let (found, said) = rules(modules.path(), &[]);
    assert_eq!(said, "");
    let extensions = "apiextensions.k8s.io";
    assert_eq!(
        found["rbac"]["moduleRules"]["cluster"],
        json!([
            {"apiGroups": [extensions], "resources": ["customresourcedefinitions"], "verbs": ["create"]},
            {"apiGroups": [extensions], "resources": ["customresourcedefinitions"], "resourceNames": ["mice.example.com"],
                "verbs": ["get", "list", "patch", "watch"]},
            {"apiGroups": [extensions], "resources": ["customresourcedefinitions/status"],
                "resourceNames": ["mice.example.com"], "verbs": ["patch"]},
            {"apiGroups": ["example.com"], "resources": ["mice"], "verbs": ["get", "list", "update"]},
        ])
    );
}

#[test]
fn a_webhook_takes_rights_to_see_the_endpoints_that_it_calls() {
    let modules = tempfile::tempdir().unwrap();
    let templates = modules.path().join("010-judge/templates");
    fs_err::create_dir_all(&templates).unwrap();
    let chart = modules.path().join("010-judge/Chart.yaml");
    fs_err::write(chart, "apiVersion: v2\nname: judge\nversion: 1.0.0\n").unwrap();
    let webhook = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: judge}\n\
                   webhooks:\n- {name: a, clientConfig: {service: {namespace: judges, name: a}}}\n\
                   - {name: b, clientConfig: {service: {namespace: '{{ .Release.Namespace }}', name: b}}}\n";
    fs_err::write(templates.join("webhook.yaml"), webhook).unwrap();
    let (found, said) = rules(modules.path(), &["--namespace=addons"]);
    assert_eq!(said, "");
    let slices =
        json!([{"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]);
    let found = &found["rbac"]["moduleRules"];
    assert_eq!(found["release"], slices);
    assert_eq!(found["namespaces"], json!([{"name": "judges", "rules": slices}]));
}

/// On another machine the framework's folder cannot be guessed.
#[test]
fn a_framework_that_is_not_there_is_told_with_the_variable_that_names_it() {
    let output = run_with(Path::new("/nowhere"), Path::new("modules"), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(
        said.contains("modules/200-registry-secret-copier/hooks/copy.sh: "),
        "{said}"
    );
    let failed = said.matches(" with --config failed: ").count();
    assert!(failed > 0, "{said}");
    assert_eq!(said.matches("\n  FRAMEWORK_DIR has to name").count(), failed, "{said}");
}

/// A chart that needs values of hooks is reported, not skipped, and a person who knows the values can give them.
#[test]
fn a_chart_that_cannot_be_rendered_is_told_by_module_and_file() {
    let examples = Path::new("examples/modules");
    let (guessed, said) = rules(examples, &[]);
    let place = "examples/modules/100-guestbook/templates/page.yaml:7: warning: module 'guestbook': the chart cannot be rendered";
    assert!(said.starts_with(place), "{said}");
    let values = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(values.path(), "guestbook: {internal: {pages: 1}}\n").unwrap();
    let (known, said) = rules(examples, &[&format!("--values={}", values.path().display())]);
    assert_eq!(said, "");
    assert_eq!(guessed, known);
    assert!(known.to_string().contains("configmaps"), "{known}");
}

#[test]
fn the_shipped_modules_need_what_is_written_down() {
    let (text, said) = generate(Path::new("modules"), &[]);
    assert_eq!(said, "");
    let file = root().join("charts/shipped-modules.yaml");
    if std::env::var_os("UPDATE").is_some() {
        fs_err::write(&file, &text).unwrap();
    }
    let written = fs_err::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, written, "UPDATE=1 renews {}", file.display());
}

/// A person who switches on one module need not give rights for the others.
#[test]
fn rights_can_be_asked_for_by_module() {
    let (some, said) = generate(
        Path::new("modules"),
        &["--module", "sysctl-tuner", "--module=sysctl-audit"],
    );
    assert_eq!(said, "");
    assert!(
        some.contains("nodes") && some.contains("# sysctl-audit, sysctl-tuner"),
        "{some}"
    );
    assert!(!some.contains("secrets") && !some.contains("copier"), "{some}");
    let (one, _) = generate(Path::new("modules"), &["--module=registry-secret-copier"]);
    assert!(
        one.contains("secrets") && !one.contains("sysctl") && one.contains("release: []"),
        "{one}"
    );
    let output = run(
        Path::new("modules"),
        &["--module=sysctl-tuner", "--module=sysctl-tunes"],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("there is no module 'sysctl-tunes'"), "{said}");
}
