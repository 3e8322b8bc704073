//! How helm comes to call our own binary as its post-renderer: helm 3 is given a program, helm 4 the name of a plugin,
//! which we make. Never writes outside of helm's private directory.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs as unix;
use tempfile::TempPath;

use super::{Helm, HelmError, outcry};

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

/// What one call of helm is told about our post-renderer.
#[derive(Debug, Default)]
pub(super) struct Labelling {
    args: Vec<OsString>,
    /// Where the post-renderer leaves its error: helm 4 tells nobody what a plugin prints.
    complaints: Option<TempPath>,
}

impl Labelling {
    pub(super) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// What went wrong in the post-renderer, empty if nothing did or helm tells it itself.
    pub(super) fn complaint(&self) -> String {
        let said = self.complaints.as_ref().and_then(|path| fs::read_to_string(path).ok());
        said.map_or_else(String::new, |text| outcry::excerpt(&text))
    }
}

impl Helm {
    /// Nothing at all where there are no labels to add.
    pub(super) async fn labelling(&self) -> Result<Labelling, HelmError> {
        let version = self.version().await?;
        let options = self.options();
        if options.labels.is_empty() {
            return Ok(Labelling::default());
        }
        let labels = options
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}").into());
        if !version.is_4() {
            let words = std::iter::once(COMMAND.into()).chain(labels);
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
        let mut named = OsString::from("--complaints=");
        named.push(&complaints);
        Ok(Labelling {
            args: arguments(NAME.into(), std::iter::once(named).chain(labels)),
            complaints: Some(complaints),
        })
    }
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
