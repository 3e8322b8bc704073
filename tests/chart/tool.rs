//! Runs helm as a person does, and reads its rendering.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;

use helm_yaml::yaml;
use serde_json::Value;
use testbed::part::Part;
use testbed::process;

/// Both supported major versions of helm.
pub(crate) const HELMS: [Part; 2] = [Part::Helm3, Part::Helm4];
/// The version to render for. A helm built from its Go module does not know its default Kubernetes version.
const KUBE_VERSION: &str = "--kube-version=1.33.0";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn chart() -> PathBuf {
    root().join("charts/addon-operator")
}

/// The setting with the image's repository, without which the chart renders nothing.
pub(crate) fn image_said() -> String {
    format!("--values={}", root().join("tests/chart/values/default.yaml").display())
}

/// Runs helm with a kubeconfig, or without one.
pub(crate) fn helm<A: AsRef<OsStr>>(
    helm: Part,
    kubeconfig: Option<&Path>,
    arguments: impl IntoIterator<Item = A>,
) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = process::command(testbed::shared::program(helm));
    command
        .env_clear()
        .env("HOME", home.path())
        .env("KUBECONFIG", kubeconfig.unwrap_or(Path::new("/dev/null")))
        .args(arguments);
    process::run(command, None).unwrap()
}

/// The error text of a helm call that has to fail.
pub(crate) fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The output of a helm call that has to succeed.
pub(crate) fn printed(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The manifests that helm renders for the release `ao` in the namespace `addons`.
pub(crate) fn rendered(with: Part, arguments: &[&str]) -> String {
    let (chart, image) = (chart(), image_said());
    let own = [
        "template",
        "ao",
        chart.to_str().unwrap(),
        &image,
        "--namespace=addons",
        KUBE_VERSION,
    ];
    printed(helm(with, None, own.iter().chain(arguments)))
}

/// The objects in a rendering.
pub(crate) fn objects(rendered: &str) -> Vec<Value> {
    let documents = yaml::documents_v2(rendered).unwrap();
    documents.into_iter().filter(Value::is_object).collect()
}
