//! How helm comes to call our own binary as its post-renderer: helm 3 is given a program, helm 4 the name of a plugin,
//! which we make. Never writes outside of helm's private directory.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs as unix;
use tempfile::TempPath;

use super::{Chart, Helm, HelmError, outcry};
use crate::secrets::Secrets;

/// Where helm looks for plugins, in its private directory.
pub(super) const DIR: &str = "plugins";
const NAME: &str = "labels";
const PROGRAM: &str = "addon-operator";
/// Our subcommand.
const COMMAND: &str = "post-renderer";

/// Helm splits the command at blanks before it expands the variable: so a link beside this file stands for our binary,
/// wherever that is.
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

/// The arguments of one call of helm about our post-renderer.
#[derive(Debug, Default)]
pub(super) struct Labelling {
    args: Vec<OsString>,
    /// The file for the error of the post-renderer: helm 4 does not show the output of a plugin.
    complaints: Option<TempPath>,
}

impl Labelling {
    pub(super) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The error of the post-renderer, empty without one or if helm shows it itself.
    pub(super) fn complaint(&self, secrets: &Secrets) -> String {
        let said = self.complaints.as_ref().and_then(|path| fs::read_to_string(path).ok());
        said.map_or_else(String::new, |text| outcry::excerpt(&text, secrets))
    }
}

impl Helm {
    /// Nothing at all where there is nothing to add and nothing to claim.
    pub(super) async fn labelling(&self, chart: Chart<'_>) -> Result<Labelling, HelmError> {
        let version = self.version().await?;
        let options = self.options();
        if chart.labels.is_empty() && chart.claims.is_none() {
            return Ok(Labelling::default());
        }
        let labels = chart.labels.iter().map(|(key, value)| format!("{key}={value}").into());
        let kept = chart.kept.iter().map(|object| flag("--keep=", object.text()));
        let words = self.claiming(chart).into_iter().chain(kept).chain(labels);
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

    /// The release for which objects are claimed.
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
        // From an attempt that failed at what follows.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    fs::write(dir.join("plugin.yaml"), PLUGIN)
}
