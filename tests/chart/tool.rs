//! Helm, as a person calls it, and what it renders.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;

use addon_core::yaml;
use serde_json::Value;
use testbed::part::Part;
use testbed::process;

/// Every helm that people have.
pub(crate) const HELMS: [Part; 2] = [Part::Helm3, Part::Helm4];
/// One built from its module does not know which Kubernetes it was built for.
const KUBE_VERSION: &str = "--kube-version=1.33.0";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn chart() -> PathBuf {
    root().join("charts/addon-operator")
}

/// Says where the image is, without which the chart renders to nothing.
pub(crate) fn image_said() -> String {
    format!("--values={}", root().join("tests/chart/values/default.yaml").display())
}

/// Runs helm with a kubeconfig, or with none.
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

/// What helm said of a call that failed.
pub(crate) fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What helm printed when all went well.
pub(crate) fn printed(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the chart renders to as release `ao` in the namespace `addons`.
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

/// The objects of a rendering.
pub(crate) fn objects(rendered: &str) -> Vec<Value> {
    let documents = yaml::documents_v2(rendered).unwrap();
    documents.into_iter().filter(Value::is_object).collect()
}
