//! Helm after the operator has replaced the Deployment's image: helm 4, which uses server-side apply, and helm 3.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::path::{Path, PathBuf};

use channel::installation::patching::{self, FIELD_MANAGER, Outcome};
use fs_err as fs;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process;

use super::stage::{Stage, deployment, image};

/// A chart of the Deployment, whose image is a value.
fn chart(dir: &Path) -> PathBuf {
    let templates = dir.join("chart/templates");
    fs::create_dir_all(&templates).unwrap();
    let text = deployment(1).to_string().replace(&image(1), "{{ .Values.image }}");
    fs::write(templates.join("a.yaml"), text).unwrap();
    let about = "apiVersion: v2\nname: ao\nversion: 0.1.0\n";
    fs::write(dir.join("chart/Chart.yaml"), about).unwrap();
    dir.join("chart")
}

/// Installs or upgrades the chart; the error is helm's output.
fn helm(stage: &Stage, part: Part, chart: &Path, image: &str) -> Result<(), String> {
    let mut command = process::command(testbed::shared::program(part));
    command.env_clear().env("HOME", chart.parent().unwrap());
    command.args(["upgrade", "--install", "ao"]).arg(chart);
    command.args(["--set", &format!("image={image}")]);
    command.args(["--namespace", stage.world.namespace.name(), "--kubeconfig"]);
    command.arg(stage.world.namespace.kubeconfig(User::Admin));
    let output = process::run(command, None).unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_upgrades_a_deployment_whose_image_we_have_replaced() {
    for part in [Part::Helm3, Part::Helm4] {
        let stage = Stage::new("upgrade", 0).await;
        let dir = tempfile::tempdir().unwrap();
        let chart = chart(dir.path());
        helm(&stage, part, &chart, &image(1)).unwrap();
        stage.roll_out(1, 1);
        let found = stage.installation(&stage.pods()[0]).await;
        let done = patching::patch_image(stage.cluster(), &found, &image(1), &image(2))
            .await
            .unwrap();
        assert_eq!(done, Outcome::Done);
        stage.roll_out(1, 2);
        // The current image, and another one.
        for wanted in [image(2), image(3)] {
            helm(&stage, part, &chart, &wanted).unwrap();
            assert_eq!(stage.image(), wanted, "{part:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_4_refuses_a_deployment_of_whose_image_another_manager_has_an_entry() {
    let stage = Stage::new("owned", 0).await;
    let dir = tempfile::tempdir().unwrap();
    let chart = chart(dir.path());
    helm(&stage, Part::Helm4, &chart, &image(1)).unwrap();
    let set = format!(
        "set image deployment/ao addon-operator={} --field-manager={FIELD_MANAGER}",
        image(2)
    );
    stage.kubectl(&set);
    let refused = helm(&stage, Part::Helm4, &chart, &image(3)).unwrap_err();
    assert!(
        refused.contains("conflict") && refused.contains(FIELD_MANAGER),
        "{refused}"
    );
    assert_eq!(stage.image(), image(2));
}
