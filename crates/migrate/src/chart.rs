//! A chart as a set of files: from a record of helm, from an archive, or from a directory.
//!
//! Never takes a path that leads out of the chart, and never more than a limited number of bytes.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use helm_yaml::yaml;
use serde_json::Value;
use thiserror::Error;
use walkdir::WalkDir;

/// The limit of all files of a chart in bytes. A record with more would fit into no Secret.
const LIMIT: u64 = 64 << 20;
/// The file that describes a chart.
const CHART_FILE: &str = "Chart.yaml";

/// Why something is no chart.
#[derive(Debug, Error)]
pub enum ChartError {
    #[error("the chart has no field '{0}'")]
    Lacks(&'static str),
    #[error("the file '{0}' of the chart lies outside of it")]
    Outside(String),
    #[error("the file '{file}' of the chart is not base64")]
    Coded { file: String, source: base64::DecodeError },
    #[error("the chart has more than {LIMIT} bytes")]
    TooLarge,
    #[error("'{0}' is no name of a chart")]
    Name(String),
    #[error("the chart cannot be read")]
    Read(#[from] io::Error),
    #[error("the chart's {CHART_FILE} is not YAML")]
    Described(#[from] yaml::YamlError),
    #[error(
        "helm keeps no copy of the charts inside of chart '{name}' ({inner}): `helm pull` it in version {version} into a directory, and name that with --charts"
    )]
    Incomplete {
        name: String,
        version: String,
        inner: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub name: String,
    pub version: String,
    /// The description, as in `Chart.yaml`.
    pub metadata: Value,
    /// All files by their path in the chart.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Chart {
    /// The chart of a record. Helm stores no charts inside of charts, so a chart that has some is refused.
    pub fn of_record(record: &Value) -> Result<Self, ChartError> {
        let metadata = record["metadata"].clone();
        let inner: Vec<&str> = metadata["dependencies"].as_array().map_or_else(Vec::new, |all| {
            all.iter().filter_map(|one| one["name"].as_str()).collect()
        });
        let (name, version) = described(&metadata)?;
        if !inner.is_empty() {
            let inner = inner.join(", ");
            return Err(ChartError::Incomplete { name, version, inner });
        }
        let mut files = BTreeMap::new();
        for list in ["templates", "files"] {
            for file in record[list].as_array().into_iter().flatten() {
                let path = within(file["name"].as_str().ok_or(ChartError::Lacks("files.name"))?)?;
                let bytes = coded(&path, &file["data"])?;
                files.insert(path, bytes);
            }
        }
        if record["schema"].is_string() {
            let path = "values.schema.json".to_owned();
            let bytes = coded(&path, &record["schema"])?;
            files.insert(path, bytes);
        }
        files.insert(CHART_FILE.to_owned(), yaml::to_string(&metadata).into_bytes());
        // An archive with comments is better, but a record holds only the values themselves.
        let values = record.get("values").filter(|values| values.is_object());
        if let Some(values) = values {
            files.insert("values.yaml".to_owned(), yaml::to_string(values).into_bytes());
        }
        Ok(Self {
            name,
            version,
            metadata,
            files,
        })
    }

    /// The chart in a packed archive, below one directory, as `helm pull` writes it.
    pub fn of_archive(archive: impl Read) -> Result<Self, ChartError> {
        let mut archive = tar::Archive::new(GzDecoder::new(archive).take(LIMIT));
        let (mut files, mut left) = (BTreeMap::new(), LIMIT);
        for entry in archive.entries()? {
            let entry = entry?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path()?.to_string_lossy().into_owned();
            let Some((_, path)) = path.split_once('/') else {
                continue;
            };
            let path = within(path)?;
            let mut bytes = Vec::new();
            entry.take(left + 1).read_to_end(&mut bytes)?;
            left = left.checked_sub(bytes.len() as u64).ok_or(ChartError::TooLarge)?;
            files.insert(path, bytes);
        }
        Self::of_files(files)
    }

    /// The chart in a directory.
    pub fn of_dir(dir: &Path) -> Result<Self, ChartError> {
        let (mut files, mut left) = (BTreeMap::new(), LIMIT);
        for entry in WalkDir::new(dir).sort_by_file_name() {
            let entry = entry.map_err(io::Error::other)?;
            if !entry.file_type().is_file() {
                continue;
            }
            let path = entry.path().strip_prefix(dir).unwrap_or(entry.path());
            let path = within(&path.to_string_lossy())?;
            let mut bytes = Vec::new();
            fs_err::File::open(entry.path())?
                .take(left + 1)
                .read_to_end(&mut bytes)?;
            left = left.checked_sub(bytes.len() as u64).ok_or(ChartError::TooLarge)?;
            files.insert(path, bytes);
        }
        Self::of_files(files)
    }

    fn of_files(files: BTreeMap<String, Vec<u8>>) -> Result<Self, ChartError> {
        let text = files.get(CHART_FILE).ok_or(ChartError::Lacks(CHART_FILE))?;
        let metadata = yaml::from_str_v2(&String::from_utf8_lossy(text))?;
        let (name, version) = described(&metadata)?;
        Ok(Self {
            name,
            version,
            metadata,
            files,
        })
    }

    /// The names of the chart's CRD files. Helm installs them once, and neither changes nor removes them.
    pub fn crd_files(&self) -> impl Iterator<Item = &str> {
        let files = self.files.keys().map(String::as_str);
        files.filter(|path| path.starts_with("crds/") || path.contains("/crds/"))
    }

    /// The text of a file of the chart, by its path.
    pub fn text(&self, path: &str) -> Option<String> {
        let path = within(path).ok()?;
        let bytes = self.files.get(&path)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

fn described(metadata: &Value) -> Result<(String, String), ChartError> {
    let field = |field| {
        let text = metadata[field].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or(ChartError::Lacks(field))
    };
    let (name, version) = (field("name")?, field("version")?);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(ChartError::Name(name));
    }
    Ok((name, version))
}

/// The path in its plain form, if it stays below the chart's directory.
fn within(path: &str) -> Result<String, ChartError> {
    let outside = || ChartError::Outside(path.to_owned());
    if path.contains(['\\', '\0', '\n']) {
        return Err(outside());
    }
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    if parts.is_empty() {
        Err(outside())
    } else {
        Ok(parts.join("/"))
    }
}

fn coded(file: &str, data: &Value) -> Result<Vec<u8>, ChartError> {
    let bytes = STANDARD.decode(data.as_str().unwrap_or_default());
    bytes.map_err(|source| ChartError::Coded {
        file: file.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(file: &str) -> Value {
        json!({
            "metadata": {"name": "web", "version": "1.2.3", "apiVersion": "v2"},
            "templates": [{"name": file, "data": STANDARD.encode("kind: ConfigMap")}],
            "values": {"replicas": 2},
            "schema": STANDARD.encode("{}"),
        })
    }

    #[test]
    fn a_record_holds_templates_values_and_schema() {
        let chart = Chart::of_record(&record("templates/a.yaml")).unwrap();
        let paths: Vec<&String> = chart.files.keys().collect();
        assert_eq!(
            paths,
            ["Chart.yaml", "templates/a.yaml", "values.schema.json", "values.yaml"]
        );
        assert_eq!(chart.text("values.yaml").unwrap(), "replicas: 2\n");
        assert_eq!((chart.name.as_str(), chart.version.as_str()), ("web", "1.2.3"));
    }

    #[test]
    fn crafted_charts_are_refused() {
        for path in ["../a", "/etc/passwd", "a/../../b", "a\\b", "", "a\nb"] {
            let refused = Chart::of_record(&record(path)).unwrap_err();
            assert!(matches!(refused, ChartError::Outside(_)), "{path}: {refused}");
        }
        let mut named = record("templates/a.yaml");
        named["metadata"]["name"] = json!("../web");
        assert!(matches!(Chart::of_record(&named), Err(ChartError::Name(_))));
        named["metadata"]["name"] = json!(null);
        assert!(matches!(Chart::of_record(&named), Err(ChartError::Lacks("name"))));
    }

    #[test]
    fn a_record_without_inner_charts_names_the_command_that_fetches_them() {
        let mut with = record("templates/a.yaml");
        with["metadata"]["dependencies"] = json!([{"name": "redis", "version": "1"}]);
        let refused = Chart::of_record(&with).unwrap_err().to_string();
        assert!(refused.contains("(redis)") && refused.contains("--charts"), "{refused}");
    }

    #[test]
    fn an_archive_gives_the_same_chart_as_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let chart = Chart::of_record(&record("templates/a.yaml")).unwrap();
        for (path, bytes) in &chart.files {
            let path = dir.path().join("web").join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, bytes).unwrap();
        }
        let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut packed = tar::Builder::new(packed);
        packed.append_dir_all("web", dir.path().join("web")).unwrap();
        let packed = packed.into_inner().unwrap().finish().unwrap();
        assert_eq!(Chart::of_archive(packed.as_slice()).unwrap(), chart);
        assert_eq!(Chart::of_dir(&dir.path().join("web")).unwrap(), chart);
    }
}
