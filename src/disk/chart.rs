//! A module's chart: whether there is one, and a digest of all that helm would read of it.
//! Never judges a chart; its errors come from helm.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use addon_core::digest::Digest;
use addon_core::yaml;
use thiserror::Error;
use walkdir::{DirEntry, WalkDir};

use super::{Fault, Problem, Severity, look};

/// Directories of a module that are no part of the chart that is made of it.
const NO_CHART_DIRS: [&str; 5] = ["crds", "docs", "hooks", "images", "lib"];

/// The inputs of helm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chart {
    /// The module's directory is a chart.
    Whole,
    /// There are templates without a `Chart.yaml`: a chart is made of the module's files.
    Made,
}

impl Chart {
    /// Whether a directory of the module, at any depth, is left out of the chart.
    pub fn leaves_out(self, dir_name: &OsStr) -> bool {
        match self {
            Self::Whole => false,
            Self::Made => NO_CHART_DIRS.iter().any(|name| dir_name == *name),
        }
    }
}

#[derive(Debug, Error)]
pub enum ChartError {
    #[error("cannot read the chart in {}", dir.display())]
    Walk { dir: PathBuf, source: walkdir::Error },
    #[error("cannot read the chart in {}", dir.display())]
    Read { dir: PathBuf, source: std::io::Error },
}

/// The chart that helm is given of a module, `None` if there is none. A path that cannot be looked at is not taken for absent.
pub(super) fn find(module: &Path) -> Result<Option<Chart>, Problem> {
    let described = module.join("Chart.yaml");
    match look::at(&described) {
        Ok(Some(found)) if found.is_file() => return Ok(Some(Chart::Whole)),
        Ok(Some(_)) => return Err(Problem::new(Severity::Fatal, described, Fault::NoFile)),
        Ok(None) => {}
        Err(fault) => return Err(Problem::new(Severity::Fatal, described, fault)),
    }
    let templates = module.join("templates");
    match look::is_dir(&templates) {
        Ok(is_there) => Ok(is_there.then_some(Chart::Made)),
        Err(fault) => Err(Problem::new(Severity::Fatal, templates, fault)),
    }
}

/// The kind of objects that configure the conversion of a CRD's versions.
pub const CONVERSION_WEBHOOK: &str = "ConversionWebhook";

/// Whether a template of the module speaks of conversion webhooks. An unreadable template counts as one that does not:
/// helm reports it.
pub(super) fn has_conversions(module: &Path) -> bool {
    let templates = WalkDir::new(module.join("templates")).follow_links(true);
    let files = templates.into_iter().filter_map(Result::ok);
    let mut files = files.filter(|entry| entry.file_type().is_file());
    files.any(|file| {
        fs_err::read(file.path()).is_ok_and(|text| String::from_utf8_lossy(&text).contains(CONVERSION_WEBHOOK))
    })
}

/// The version in a module's `Chart.yaml`, for people. Helm reports mistakes of the file.
pub fn chart_version(module: &Path) -> Option<String> {
    let text = fs_err::read_to_string(module.join("Chart.yaml")).ok()?;
    let described = yaml::from_str_v2(&text).ok()?;
    described["version"].as_str().map(str::to_owned)
}

/// Whether a file of the chart holds one of these words. An archive is not searched and may hold one.
pub fn chart_mentions(module: &Path, chart: Chart, words: &[&str]) -> bool {
    let is_part =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_type().is_dir() || !chart.leaves_out(entry.file_name());
    let mentions = |entry: DirEntry| {
        let text = fs_err::read(entry.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        entry.path().extension().is_some_and(|name| name == "tgz") || words.iter().any(|word| text.contains(word))
    };
    let files = WalkDir::new(module)
        .follow_links(true)
        .into_iter()
        .filter_entry(is_part);
    let mut files = files.filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
    files.any(mentions)
}

/// Names and contents of all files that the chart consists of. Templates can read any of them, so none is left out that
/// helm loads; `.helmignore` is not looked at, so a change that does not matter may cost one rendering.
pub fn chart_digest(module: &Path, chart: Chart) -> Result<Digest, ChartError> {
    let walk_error = |source| ChartError::Walk {
        dir: module.to_owned(),
        source,
    };
    let is_part =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_type().is_dir() || !chart.leaves_out(entry.file_name());
    let mut digest = Digest::builder().part([u8::from(chart == Chart::Made)]);
    // Helm follows links, too. A link to nothing fails here as it does there.
    for entry in WalkDir::new(module)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(is_part)
    {
        let entry = entry.map_err(walk_error)?;
        if entry.file_type().is_file() {
            let relative = entry.path().strip_prefix(module).unwrap_or(entry.path());
            let content = fs_err::read(entry.path()).map_err(|source| ChartError::Read {
                dir: module.to_owned(),
                source,
            })?;
            digest = digest.part(relative.as_os_str().as_bytes()).part(content);
        }
    }
    Ok(digest.finish())
}
