//! The chart that is made from a module's files if it has templates but no `Chart.yaml`, as in the original. Never
//! writes into a module's directory.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use fs_err as fs;
use tempfile::TempDir;
use walkdir::WalkDir;

const CHART_FILE: &str = "Chart.yaml";
/// The file with helm's ignore rules. It is left out, so that no file of a made chart is ignored.
const IGNORE_FILE: &str = ".helmignore";
/// The version of every made chart, the same as in the original.
pub const VERSION: &str = "0.2.0";

/// Copies the module's files into a chart with its name. Dropping the result deletes it. It blocks.
pub fn make(module: &str, files: &Path, leaves_out: impl Fn(&OsStr) -> bool, tmp: &Path) -> io::Result<TempDir> {
    let made = tempfile::Builder::new()
        .prefix(&format!("{module}.chart-"))
        .tempdir_in(tmp)?;
    let walk = WalkDir::new(files).follow_links(true).into_iter();
    for entry in
        walk.filter_entry(|entry| entry.depth() == 0 || !entry.file_type().is_dir() || !leaves_out(entry.file_name()))
    {
        let entry = entry?;
        let target = made
            .path()
            .join(entry.path().strip_prefix(files).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs::create_dir_all(target)?;
        } else if entry.file_type().is_file() && (entry.depth() > 1 || entry.file_name() != IGNORE_FILE) {
            fs::copy(entry.path(), target)?;
        }
    }
    fs::write(
        made.path().join(CHART_FILE),
        format!("apiVersion: v2\nname: {module}\nversion: {VERSION}\n"),
    )?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_chart_has_the_modules_files_but_for_some_folders() {
        let module = tempfile::tempdir().unwrap();
        for name in [
            "templates/a.yaml",
            "templates/lib/b.tpl",
            "values.yaml",
            ".helmignore",
            "hooks/a.sh",
            "charts/sub/Chart.yaml",
        ] {
            let path = module.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let tmp = tempfile::tempdir().unwrap();
        let made = make(
            "one",
            module.path(),
            |name| name == "hooks" || name == "lib",
            tmp.path(),
        )
        .unwrap();
        let mut names: Vec<_> = WalkDir::new(made.path())
            .into_iter()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(made.path()).unwrap().display().to_string())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["Chart.yaml", "charts/sub/Chart.yaml", "templates/a.yaml", "values.yaml"]
        );
        let text = fs::read_to_string(made.path().join("Chart.yaml")).unwrap();
        assert_eq!(text, "apiVersion: v2\nname: one\nversion: 0.2.0\n");
        drop(made);
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    }
}
