//! The files of versions on disk, each in a directory with the name of its digest.
//!
//! A directory appears as a whole or not at all. Must never remove a directory that is in use.

use std::io;
use std::path::{Path, PathBuf};

use channel_core::reference::ImageDigest;
use names::ModuleName;
use thiserror::Error;

use authoring::draft::{self, DraftError, NewModule};
use package::layers::PackageKind;
use package::pulling::{Package, PullError};

/// The name of the directory below the one for temporary files.
const DIR: &str = "module-sources";
/// The entries that only the directory of a module has.
const OF_MODULES: [&str; 4] = ["module.yaml", "hooks", "openapi", "enabled"];

/// Why the files of a version were not written.
#[derive(Debug, Error)]
pub(super) enum ShelfError {
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("cannot make a module of the chart")]
    Wrap(#[from] DraftError),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The directory with the files of all sources.
#[derive(Debug, Clone)]
pub(super) struct Library {
    root: PathBuf,
}

impl Library {
    /// The library below the directory for temporary files.
    pub(super) fn below(tmp_dir: &Path) -> Self {
        Self {
            root: tmp_dir.join(DIR),
        }
    }

    /// The directory of a version, whether it is there or not.
    pub(super) fn place(&self, module: &ModuleName, digest: &ImageDigest) -> PathBuf {
        let digits = digest.as_str().rsplit(':').next().unwrap_or_default();
        self.root.join(module.as_str()).join(digits)
    }

    /// The directory of a version, if it is there.
    pub(super) fn find(&self, module: &ModuleName, digest: &ImageDigest) -> Option<PathBuf> {
        Some(self.place(module, digest)).filter(|place| place.is_dir())
    }

    /// Unpacks the files of a version. A chart that was not made for a module gets a chart around it.
    pub(super) async fn put(&self, module: &ModuleName, package: Package) -> Result<PathBuf, ShelfError> {
        let (kind, place) = (package.kind, self.place(module, &package.digest));
        if place.is_dir() {
            return Ok(place);
        }
        if kind != PackageKind::Chart {
            package.unpack(place.clone()).await?;
            return Ok(place);
        }
        let parent = self.root.join(module.as_str());
        let failed = |source| ShelfError::Write {
            path: parent.clone(),
            source,
        };
        fs_err::create_dir_all(&parent).map_err(failed)?;
        let aside = tempfile::Builder::new()
            .prefix(".chart-")
            .tempdir_in(&parent)
            .map_err(failed)?;
        let chart = aside.path().join("chart");
        package.unpack(chart.clone()).await?;
        let (name, to) = (module.clone(), place.clone());
        blocking::run(move || made(&name, &chart, aside.path(), &to)).await?;
        Ok(place)
    }

    /// Removes the directories of versions and modules that nothing needs.
    pub(super) fn sweep(&self, is_needed: impl Fn(&str, &str) -> bool) {
        for module in entries(&self.root) {
            let name = module
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default()
                .to_owned();
            for version in entries(&module) {
                let digits = version.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if !is_needed(&name, &format!("sha256:{digits}"))
                    && let Err(error) = fs_err::remove_dir_all(&version)
                {
                    tracing::warn!(%error, "cannot remove the files of an old version of a module");
                }
            }
            // A directory with versions stays.
            drop(fs_err::remove_dir(&module));
        }
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Makes the directory of a module from a chart: the chart itself if it was made for the module, or a chart around it.
fn made(module: &ModuleName, chart: &Path, aside: &Path, to: &Path) -> Result<(), ShelfError> {
    let from = if is_module(module, chart) {
        chart.to_owned()
    } else {
        let dir = aside.join("wrapped");
        let new = NewModule {
            name: module.as_str(),
            dir: &dir,
            order: 1,
            chart: Some(chart),
        };
        draft::write(&new)?;
        entries(&dir).pop().unwrap_or(dir)
    };
    fs_err::rename(&from, to).map_err(|source| ShelfError::Write {
        path: to.to_owned(),
        source,
    })
}

/// Whether a chart was made for a module: it has files that only modules have, or its values are below the module's
/// key.
fn is_module(module: &ModuleName, chart: &Path) -> bool {
    let has_parts = OF_MODULES.iter().any(|entry| chart.join(entry).exists());
    let values = fs_err::read_to_string(chart.join("values.yaml")).unwrap_or_default();
    let values = helm_yaml::yaml::from_str_v2(&values).unwrap_or_default();
    has_parts
        || values
            .as_object()
            .is_some_and(|values| values.contains_key(&module.values_key()))
}
