//! Copies of charts for helm: the chart that is made from a module's files if it has templates but no `Chart.yaml`, as
//! in the original, and the chart that refuses to be rendered with fewer APIs than the operator knows. Never writes into
//! a module's directory.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use fs_err as fs;
use tempfile::TempDir;
use walkdir::{DirEntry, WalkDir};

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
    copy(files, made.path(), |entry| {
        if entry.file_type().is_dir() {
            !leaves_out(entry.file_name())
        } else {
            entry.depth() > 1 || entry.file_name() != IGNORE_FILE
        }
    })?;
    fs::write(
        made.path().join(CHART_FILE),
        format!("apiVersion: v2\nname: {module}\nversion: {VERSION}\n"),
    )?;
    Ok(made)
}

/// The template that is added to a guarded chart. It renders nothing.
const GUARD: &str = "templates/addon-operator-served-apis.yaml";
/// The words of a guarded chart that helm renders with fewer APIs.
pub(super) const FEWER_APIS: &str = "the API server told helm of fewer APIs than the operator";

/// Copies a chart, and adds a template that fails if helm does not know one of these API versions. Helm ignores groups
/// that the API server cannot list in this moment, and would delete what a template renders for them. Dropping the
/// result deletes it. It blocks.
pub fn guard<'a>(chart: &Path, versions: impl IntoIterator<Item = &'a str>, tmp: &Path) -> io::Result<TempDir> {
    let guarded = tempfile::Builder::new().prefix("guarded.chart-").tempdir_in(tmp)?;
    copy(chart, guarded.path(), |_| true)?;
    let file = guarded.path().join(GUARD);
    fs::create_dir_all(file.parent().unwrap_or(guarded.path()))?;
    let versions: Vec<String> = versions.into_iter().map(|version| format!("{version:?}")).collect();
    let versions = versions.join(" ");
    let template = format!(
        "{{{{- range list {versions} }}}}{{{{- if not ($.Capabilities.APIVersions.Has .) }}}}\
         {{{{- fail (printf \"{FEWER_APIS}: %s is missing\" .) }}}}{{{{- end }}}}{{{{- end }}}}\n"
    );
    fs::write(file, template)?;
    Ok(guarded)
}

fn copy(from: &Path, to: &Path, takes: impl Fn(&DirEntry) -> bool) -> io::Result<()> {
    let walk = WalkDir::new(from).follow_links(true).into_iter();
    for entry in walk.filter_entry(|entry| entry.depth() == 0 || takes(entry)) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs::create_dir_all(target)?;
        } else if entry.file_type().is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
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

    #[test]
    fn a_guarded_chart_has_one_template_more_and_leaves_the_chart_alone() {
        let chart = tempfile::tempdir().unwrap();
        fs::write(chart.path().join("Chart.yaml"), "name: one").unwrap();
        fs::write(chart.path().join(".helmignore"), "x").unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let guarded = guard(chart.path(), ["v1", "apps/v1"], tmp.path()).unwrap();
        let names = |dir: &Path| fs::read_dir(dir).unwrap().count();
        assert_eq!((names(chart.path()), names(guarded.path())), (2, 3));
        let template = fs::read_to_string(guarded.path().join(GUARD)).unwrap();
        assert!(
            template.starts_with("{{- range list \"v1\" \"apps/v1\" }}{{- if not"),
            "{template}"
        );
        assert!(template.contains(FEWER_APIS), "{template}");
    }
}
