//! A module's chart: whether it has one, and a digest of everything that helm would read. Never judges a chart; its
//! errors come from helm.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use addon_core::digest::Digest;
use helm_yaml::yaml;
use thiserror::Error;
use walkdir::{DirEntry, WalkDir};

use super::{Fault, Problem, Severity, look};

/// Directories that are left out of a made chart.
const NO_CHART_DIRS: [&str; 5] = ["crds", "docs", "hooks", "images", "lib"];

/// The kind of a module's chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chart {
    /// The module's directory is a chart.
    Whole,
    /// There are templates without a `Chart.yaml`: a chart is made from the module's files.
    Made,
}

impl Chart {
    /// Whether a directory of this name, at any depth, is left out of the chart.
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

/// The kind of chart that helm gets for a module; `None` if there is none. An unreadable path is an error.
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

/// Whether a template of the module mentions conversion webhooks. An unreadable template does not count, because helm
/// reports it.
pub(super) fn has_conversions(module: &Path) -> bool {
    templates(module).any(|text| text.is_ok_and(|text| text.contains(CONVERSION_WEBHOOK)))
}

/// The texts of a module's templates.
fn templates(module: &Path) -> impl Iterator<Item = std::io::Result<String>> {
    let walk = WalkDir::new(module.join("templates")).follow_links(true);
    let files = walk.into_iter().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file());
    files.map(|file| fs_err::read(file.path()).map(|text| String::from_utf8_lossy(&text).into_owned()))
}

/// Whether the chart itself reads a top-level key of its `values.yaml`: in a template, or for one of its dependencies. A template that
/// cannot be read, or that takes all values, may read any key.
pub(super) fn reads(module: &Path, key: &str) -> bool {
    templates(module).any(|text| text.map_or(true, |text| mentions(&text, key))) || dependencies(module).contains(key)
}

/// Whether a template asks for this value, or for all values.
fn mentions(template: &str, key: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    template.match_indices(VALUES).any(|(at, _)| {
        let rest = &template[at + VALUES.len()..];
        match rest.strip_prefix('.') {
            Some(name) => name.strip_prefix(key).is_some_and(|rest| !rest.starts_with(is_word)),
            None => !rest.starts_with(is_word),
        }
    })
}

const VALUES: &str = ".Values";

/// The names of the charts that this chart declares as dependencies, and of the charts in its folder `charts`.
fn dependencies(module: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in ["Chart.yaml", "requirements.yaml"] {
        let text = fs_err::read_to_string(module.join(file)).unwrap_or_default();
        let document = yaml::from_str_v2(&text).unwrap_or_default();
        for one in document["dependencies"].as_array().into_iter().flatten() {
            let told = [&one["name"], &one["alias"]]
                .into_iter()
                .filter_map(|name| name.as_str());
            names.extend(told.map(str::to_owned));
        }
    }
    let inside = fs_err::read_dir(module.join("charts")).into_iter().flatten();
    for entry in inside.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A package is called NAME-VERSION.tgz.
        let package = name.strip_suffix(".tgz").and_then(|name| name.rsplit_once('-'));
        names.insert(package.map_or(name.clone(), |(name, _)| name.to_owned()));
    }
    names
}

/// The version in a module's `Chart.yaml`, for people. Mistakes in the file are reported by helm.
pub fn chart_version(module: &Path) -> Option<String> {
    let text = fs_err::read_to_string(module.join("Chart.yaml")).ok()?;
    let described = yaml::from_str_v2(&text).ok()?;
    described["version"].as_str().map(str::to_owned)
}

/// Whether a file of the chart contains one of these words. An archive is not searched and counts as containing one.
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

/// A digest of the names and contents of all files of the chart. Templates can read any of them, so every file that
/// helm loads is included. `.helmignore` is ignored, so a change in an ignored file may cost one rendering.
pub fn chart_digest(module: &Path, chart: Chart) -> Result<Digest, ChartError> {
    let walk_error = |source| ChartError::Walk {
        dir: module.to_owned(),
        source,
    };
    let is_part =
        |entry: &DirEntry| entry.depth() == 0 || !entry.file_type().is_dir() || !chart.leaves_out(entry.file_name());
    let mut digest = Digest::builder().part([u8::from(chart == Chart::Made)]);
    // Links are followed, as by helm. A broken link is an error there too.
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
