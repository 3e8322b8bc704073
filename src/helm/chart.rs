//! The chart of a module: where helm finds it, and a digest of all its files.
//!
//! A module with templates but without a `Chart.yaml` gets a chart made of its files, as in the original. Never writes
//! into a module's directory.

use std::io;
use std::path::{Path, PathBuf};

use addon_core::digest::Digest;
use fs_err as fs;
use thiserror::Error;
use walkdir::{DirEntry, WalkDir};

const CHART_FILE: &str = "Chart.yaml";
const TEMPLATES: &str = "templates";
/// What a made chart leaves out, at any level.
const LEFT_OUT: [&str; 5] = ["crds", "docs", "hooks", "images", "lib"];

/// Why a chart cannot be read.
#[derive(Debug, Error)]
pub enum ChartError {
    #[error("cannot read the files of the chart")]
    Walk(#[from] walkdir::Error),
    #[error("cannot read the chart")]
    Read(#[from] io::Error),
}

/// What of a module's directory is its chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The directory is one.
    Real,
    /// One has to be made of some of its files.
    Made,
}

/// The files of one module's chart.
#[derive(Debug, Clone)]
pub struct Source {
    dir: PathBuf,
    shape: Shape,
}

/// A directory that helm can be called with; a made one is removed when this is dropped.
#[derive(Debug)]
pub struct Ready {
    dir: PathBuf,
    _made: Option<tempfile::TempDir>,
}

impl Ready {
    /// The directory with the `Chart.yaml`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Source {
    /// The chart in a module's directory, `None` if there is nothing for helm to install.
    pub fn find(module_dir: &Path) -> Option<Self> {
        let shape = if module_dir.join(CHART_FILE).is_file() {
            Shape::Real
        } else if module_dir.join(TEMPLATES).is_dir() {
            Shape::Made
        } else {
            return None;
        };
        Some(Self { dir: module_dir.to_owned(), shape })
    }

    /// Changes with the name or the content of any file that helm may read. Blocking.
    ///
    /// What `.helmignore` excludes counts too: at worst the chart is rendered once more than needed.
    pub fn digest(&self) -> Result<Digest, ChartError> {
        let mut digest = Digest::builder().part(match self.shape {
            Shape::Real => "real",
            Shape::Made => "made",
        });
        for entry in self.files() {
            let entry = entry?;
            let name = entry.path().strip_prefix(&self.dir).unwrap_or(entry.path());
            digest = digest.part(name.as_os_str().as_encoded_bytes()).part(fs::read(entry.path())?);
        }
        Ok(digest.finish())
    }

    /// Makes the chart if it has to be made. Blocking.
    pub fn ready(&self, module: &str, tmp: &Path) -> Result<Ready, ChartError> {
        match self.shape {
            Shape::Real => Ok(Ready { dir: self.dir.clone(), _made: None }),
            Shape::Made => {
                let made = tempfile::Builder::new().prefix(&format!("{module}.chart-")).tempdir_in(tmp)?;
                let dir = made.path().to_owned();
                for entry in self.files() {
                    let entry = entry?;
                    let name = entry.path().strip_prefix(&self.dir).unwrap_or(entry.path());
                    let target = dir.join(name);
                    if let Some(parent) = target.parent() {
                        fs::create_dir_all(parent)?;
                    }
                    fs::copy(entry.path(), target)?;
                }
                fs::write(dir.join(CHART_FILE), format!("apiVersion: v2\nname: {module}\nversion: 0.2.0\n"))?;
                Ok(Ready { dir, _made: Some(made) })
            }
        }
    }

    /// All regular files in a fixed order, links followed as helm follows them.
    fn files(&self) -> impl Iterator<Item = Result<DirEntry, walkdir::Error>> + use<> {
        let shape = self.shape;
        WalkDir::new(&self.dir)
            .follow_links(true)
            .sort_by_file_name()
            .into_iter()
            .filter_entry(move |entry| entry.depth() == 0 || belongs(entry, shape))
            .filter(|entry| entry.as_ref().map_or(true, |entry| entry.file_type().is_file()))
    }
}

fn belongs(entry: &DirEntry, shape: Shape) -> bool {
    if !entry.file_type().is_dir() {
        return true;
    }
    let name = entry.file_name();
    match shape {
        // A python environment is large, full of links, and nothing that a template reads.
        Shape::Real => name != "venv" || entry.path().parent().is_none_or(|parent| !parent.ends_with("hooks")),
        Shape::Made => !LEFT_OUT.iter().any(|left_out| name == *left_out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn a_module_without_chart_and_templates_has_nothing_to_install() {
        assert!(Source::find(module(&[("values.yaml", ""), ("hooks/a.sh", "")]).path()).is_none());
    }

    #[test]
    fn a_real_chart_is_used_where_it_lies() {
        let dir = module(&[("Chart.yaml", "name: x"), ("templates/a.yaml", "")]);
        let ready = Source::find(dir.path()).unwrap().ready("one", &std::env::temp_dir()).unwrap();
        assert_eq!(ready.dir(), dir.path());
    }

    #[test]
    fn a_made_chart_has_the_modules_files_but_for_some_folders() {
        let dir = module(&[
            ("templates/a.yaml", "a"),
            ("templates/lib/b.tpl", "b"),
            ("values.yaml", "x: 1"),
            ("openapi/values.yaml", ""),
            ("hooks/a.sh", ""),
            ("crds/c.yaml", ""),
            ("charts/sub/Chart.yaml", ""),
        ]);
        let tmp = tempfile::tempdir().unwrap();
        let ready = Source::find(dir.path()).unwrap().ready("one", tmp.path()).unwrap();
        let mut names: Vec<_> = WalkDir::new(ready.dir())
            .into_iter()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(ready.dir()).unwrap().display().to_string())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["Chart.yaml", "charts/sub/Chart.yaml", "openapi/values.yaml", "templates/a.yaml", "values.yaml"]
        );
        let text = fs::read_to_string(ready.dir().join("Chart.yaml")).unwrap();
        assert!(text.contains("name: one\nversion: 0.2.0"), "{text}");
        drop(ready);
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_digest_follows_names_and_contents() {
        let digest = |files: &[(&str, &str)]| Source::find(module(files).path()).unwrap().digest().unwrap();
        let base = digest(&[("Chart.yaml", "x"), ("templates/a.yaml", "1")]);
        assert_eq!(base, digest(&[("Chart.yaml", "x"), ("templates/a.yaml", "1")]));
        assert_eq!(base, digest(&[("Chart.yaml", "x"), ("templates/a.yaml", "1"), ("hooks/venv/bin/python", "x")]));
        assert_ne!(base, digest(&[("Chart.yaml", "x"), ("templates/a.yaml", "2")]));
        assert_ne!(base, digest(&[("Chart.yaml", "x"), ("templates/b.yaml", "1")]));
        assert_ne!(base, digest(&[("Chart.yaml", "x"), ("templates/a.yaml", "1"), ("files/new", "")]));
    }
}
