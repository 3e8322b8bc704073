//! Makes helm call the operator's binary as its post-renderer. Helm 3 gets the path of a program, helm 4 the name of a
//! plugin, which is made here. Never writes outside of helm's private directory.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs as unix;
use report::secrets::Secrets;
use tempfile::TempPath;

use super::{Chart, Helm, HelmError, outcry};

/// The folder of plugins in helm's private directory.
pub(super) const DIR: &str = "plugins";
const NAME: &str = "labels";
const PROGRAM: &str = "addon-operator";
/// The subcommand of the operator's binary.
const COMMAND: &str = "post-renderer";

/// The plugin's definition. Helm splits the command at blanks before it expands variables, so the plugin's folder has a
/// link to the binary.
const PLUGIN: &str = r#"apiVersion: v1
type: postrenderer/v1
name: labels
version: 1.0.0
runtime: subprocess
runtimeConfig:
  platformCommand:
  - command: "${HELM_PLUGIN_DIR}/addon-operator"
    args: [post-renderer]
"#;

/// The arguments of a helm call for the post-renderer.
#[derive(Debug, Default)]
pub(super) struct Labelling {
    args: Vec<OsString>,
    /// The file for the post-renderer's error, because helm 4 does not show the output of a plugin.
    complaints: Option<TempPath>,
}

impl Labelling {
    pub(super) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The error of the post-renderer; empty if there is none, or if helm shows it.
    pub(super) fn complaint(&self, secrets: &Secrets) -> String {
        let said = self.complaints.as_ref().and_then(|path| fs::read_to_string(path).ok());
        said.map_or_else(String::new, |text| outcry::excerpt(&text, secrets))
    }
}

impl Helm {
    /// The arguments for the post-renderer; none if there is nothing to add or to claim.
    pub(super) async fn labelling(&self, chart: Chart<'_>) -> Result<Labelling, HelmError> {
        let version = self.version().await?;
        let options = self.options();
        if chart.labels.is_empty() && chart.claims.is_none() {
            return Ok(Labelling::default());
        }
        let labels = chart.labels.iter().map(|(key, value)| format!("{key}={value}").into());
        let kept = chart.kept.iter().map(|object| flag("--keep=", object.text()));
        let withheld = chart.withheld.iter().map(|object| flag("--leave-out=", object.text()));
        let words = self
            .claiming(chart)
            .into_iter()
            .chain(kept)
            .chain(withheld)
            .chain(labels);
        if !version.is_4() {
            let words = std::iter::once(COMMAND.into()).chain(words);
            let args = arguments(options.post_renderer.clone().into_os_string(), words);
            return Ok(Labelling { args, complaints: None });
        }
        let make = async || make(&options.dir.join(DIR), &options.post_renderer);
        self.plugin.get_or_try_init(make).await.map_err(HelmError::Prepare)?;
        let complaints = tempfile::Builder::new()
            .prefix("complaints-")
            .tempfile_in(&options.dir)
            .map_err(HelmError::Prepare)?
            .into_temp_path();
        let words = std::iter::once(flag("--complaints=", &complaints)).chain(words);
        Ok(Labelling {
            args: arguments(NAME.into(), words),
            complaints: Some(complaints),
        })
    }

    /// The arguments for claiming the release's objects.
    fn claiming(&self, chart: Chart<'_>) -> Vec<OsString> {
        chart.claims.map_or_else(Vec::new, |claims| {
            vec![
                flag("--claims=", claims.path()),
                flag("--release=", chart.release),
                flag("--namespace=", &self.options().namespace),
            ]
        })
    }
}

fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(value.as_ref());
    flag
}

fn arguments(renderer: OsString, words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words = words.flat_map(|word| ["--post-renderer-args".into(), word]);
    ["--post-renderer".into(), renderer].into_iter().chain(words).collect()
}

fn make(plugins: &Path, program: &Path) -> io::Result<()> {
    let dir = plugins.join(NAME);
    fs::create_dir_all(&dir)?;
    match unix::symlink(program, dir.join(PROGRAM)) {
        // The link is left from an attempt that failed in a later step.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    fs::write(dir.join("plugin.yaml"), PLUGIN)
}
