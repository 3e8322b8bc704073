//! `module new`: writes the files of a new module, as an example or around an existing chart.
//!
//! Must never write into a directory that exists already.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use command::Hinted;
use handlebars::{Handlebars, no_escape};
use helm_yaml::yaml;
use names::{ModuleName, NameError, parse_module_dir};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use walkdir::WalkDir;

/// A file of a new module: its path and its template.
type Draft = (&'static str, &'static str);

/// The files of an example.
const EXAMPLE: [Draft; 9] = [
    ("Chart.yaml", include_str!("draft/Chart.yaml")),
    (".helmignore", include_str!("draft/helmignore")),
    ("values.yaml", include_str!("draft/values.yaml")),
    (
        "openapi/config-values.yaml",
        include_str!("draft/openapi/config-values.yaml"),
    ),
    ("openapi/values.yaml", include_str!("draft/openapi/values.yaml")),
    (
        "templates/config-map.yaml",
        include_str!("draft/templates/config-map.yaml"),
    ),
    ("hooks/count-nodes.sh", include_str!("draft/hooks/count-nodes.sh")),
    ("tests/hook.yaml", include_str!("draft/tests/hook.yaml")),
    ("tests/chart.yaml", include_str!("draft/tests/chart.yaml")),
];
/// The files around a chart.
const WRAPPED: [Draft; 5] = [
    ("Chart.yaml", include_str!("draft/wrapped/Chart.yaml")),
    (".helmignore", include_str!("draft/helmignore")),
    ("values.yaml", include_str!("draft/wrapped/values.yaml")),
    (
        "openapi/config-values.yaml",
        include_str!("draft/wrapped/config-values.yaml"),
    ),
    ("tests/chart.yaml", include_str!("draft/wrapped/chart.yaml")),
];
/// The directory of a chart with resource definitions. The operator applies only those of the module itself.
const CRDS: &str = "crds";
const EXECUTABLE: u32 = 0o755;

/// A module to write.
#[derive(Debug)]
pub struct NewModule<'a> {
    pub name: &'a str,
    /// The directory of modules.
    pub dir: &'a Path,
    pub order: u32,
    /// The chart to wrap; none for an example.
    pub chart: Option<&'a Path>,
}

/// Why a module cannot be written.
#[derive(Debug, Error)]
pub enum DraftError {
    #[error("'{name}' cannot be the name of a module")]
    Name { name: String, source: NameError },
    #[error("the module '{name}' is there already: {}", path.display())]
    Exists { name: String, path: PathBuf },
    #[error("the directory is there already: {}", path.display())]
    Taken { path: PathBuf },
    #[error(
        "'{name}' cannot wrap a chart: inside of the chart the name would be '{key}', and Kubernetes refuses capital letters in names of objects"
    )]
    Capitals { name: String, key: String },
    #[error("{} is no chart: {problem}", path.display())]
    NoChart { path: PathBuf, problem: String },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Hinted for DraftError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Name { .. } => {
                vec!["a name has small letters, digits and dashes, and begins with a letter".to_owned()]
            }
            Self::Capitals { name, .. } => vec![format!(
                "a name without dashes has no capitals: {}",
                name.replace('-', "")
            )],
            Self::NoChart { .. } => {
                vec!["a chart is a directory with a Chart.yaml; `helm pull --untar` unpacks one".to_owned()]
            }
            Self::Exists { .. } | Self::Taken { .. } | Self::Write { .. } => Vec::new(),
        }
    }
}

/// The chart to wrap, by its own description.
struct Chart {
    path: PathBuf,
    name: String,
    version: String,
}

/// Writes the module, and returns the paths of its files.
pub fn write(new: &NewModule<'_>) -> Result<Vec<PathBuf>, DraftError> {
    let dir_name = format!("{:03}-{}", new.order, new.name);
    let (_, name) = parse_module_dir(&dir_name, new.order).map_err(|source| DraftError::Name {
        name: new.name.to_owned(),
        source,
    })?;
    check_free(new.dir, &name)?;
    let chart = new.chart.map(|path| Chart::read(path, &name)).transpose()?;
    let target = new.dir.join(dir_name);
    let failed = |source| DraftError::Write {
        path: target.clone(),
        source,
    };
    fs_err::create_dir_all(new.dir).map_err(failed)?;
    match fs_err::create_dir(&target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(DraftError::Taken { path: target }),
        made => made.map_err(failed)?,
    }
    let written = fill(&target, &name, chart.as_ref());
    if written.is_err() {
        // An incomplete module would be taken for a complete one.
        drop(fs_err::remove_dir_all(&target));
    }
    written.map_err(failed)
}

/// Refuses a name that another module of the directory has.
fn check_free(dir: &Path, name: &ModuleName) -> Result<(), DraftError> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let is_same = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str());
        file.and_then(|file| parse_module_dir(file, 1).ok())
            .is_some_and(|(_, other)| other == *name)
    };
    match entries.map(|entry| entry.path()).find(is_same) {
        Some(path) => Err(DraftError::Exists {
            name: name.as_str().to_owned(),
            path,
        }),
        None => Ok(()),
    }
}

impl Chart {
    /// Reads the description of a chart, and checks that a module of this name can wrap it.
    fn read(path: &Path, module: &ModuleName) -> Result<Self, DraftError> {
        let no_chart = |problem: String| DraftError::NoChart {
            path: path.to_owned(),
            problem,
        };
        let text = fs_err::read_to_string(path.join("Chart.yaml")).map_err(|error| no_chart(error.to_string()))?;
        let described = yaml::from_str_v2(&text).map_err(|error| no_chart(error.to_string()))?;
        let field = |key: &str| match &described[key] {
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err(no_chart(format!("its Chart.yaml has no {key}"))),
        };
        if described["type"] == "library" {
            return Err(no_chart("it is a library, which renders nothing".to_owned()));
        }
        let key = module.values_key();
        if key != module.as_str() {
            let name = module.as_str().to_owned();
            return Err(DraftError::Capitals { name, key });
        }
        Ok(Self {
            path: fs_err::canonicalize(path).map_err(|error| no_chart(error.to_string()))?,
            name: field("name")?,
            version: field("version")?,
        })
    }
}

/// The words of the templates. Templates of helm have braces of their own, which are words here.
#[derive(Debug, Serialize)]
struct Words {
    name: String,
    /// The key of the module's values.
    key: String,
    /// The name of the wrapped chart.
    chart: String,
    /// The version of the wrapped chart, as YAML.
    version: String,
    open: &'static str,
    close: &'static str,
}

impl Words {
    fn of(name: &ModuleName, chart: Option<&Chart>) -> Self {
        let version = |chart: &Chart| yaml::to_string(&Value::from(chart.version.as_str()));
        Self {
            name: name.to_string(),
            key: name.values_key(),
            chart: chart.map(|chart| chart.name.clone()).unwrap_or_default(),
            version: chart.map(version).unwrap_or_default().trim_end().to_owned(),
            open: "{{",
            close: "}}",
        }
    }
}

fn fill(target: &Path, name: &ModuleName, chart: Option<&Chart>) -> io::Result<Vec<PathBuf>> {
    let drafts: &[Draft] = if chart.is_some() { &WRAPPED } else { &EXAMPLE };
    let words = Words::of(name, chart);
    let mut templates = Handlebars::new();
    templates.set_strict_mode(true);
    // The files are no HTML.
    templates.register_escape_fn(no_escape);
    let mut written = Vec::new();
    for (path, text) in drafts {
        let path = target.join(path);
        let text = templates.render_template(text, &words).map_err(io::Error::other)?;
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(&path, text)?;
        if path.extension().is_some_and(|end| end == "sh") {
            fs_err::set_permissions(&path, Permissions::from_mode(EXECUTABLE))?;
        }
        written.push(path);
    }
    if let Some(chart) = chart {
        written.extend(copied(&chart.path, &target.join("charts").join(&chart.name))?);
        let crds = chart.path.join(CRDS);
        if crds.is_dir() {
            written.extend(copied(&crds, &target.join(CRDS))?);
        }
    }
    Ok(written)
}

/// Copies a directory with the files that links lead to, and returns their new paths.
fn copied(from: &Path, to: &Path) -> io::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let is_part = |entry: &walkdir::DirEntry| entry.depth() == 0 || entry.file_name() != ".git";
    let walk = WalkDir::new(from).follow_links(true).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(is_part) {
        let entry = entry?;
        let path = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&path)?;
        } else if entry.file_type().is_file() {
            fs_err::copy(entry.path(), &path)?;
            written.push(path);
        }
    }
    Ok(written)
}
