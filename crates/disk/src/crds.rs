//! A module's CRDs: their files, and the documents in each. Never asks a cluster, and an unreadable file never counts
//! as one without CRDs.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use helm_yaml::yaml::document::Kind;
use helm_yaml::yaml::{self, YamlError};
use serde_json::Value;
use thiserror::Error;
use walkdir::{DirEntry, WalkDir};

use super::{Fault, Problem, Severity, look};

const DIR: &str = "crds";

/// The largest document, which is more than the API server accepts.
const LARGEST: usize = 2 * 1024 * 1024;

/// A CRD in a file of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Crd {
    /// The number of its document in the file, from 1.
    pub document: usize,
    pub name: String,
    pub manifest: Value,
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum CrdFileError {
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    #[error("it is not valid UTF-8")]
    NotText,
    #[error("document {document} has {size} bytes, which is more than {LARGEST}")]
    TooLarge { document: usize, size: usize },
    #[error("document {document} is not YAML")]
    NotYaml { document: usize, source: YamlError },
    #[error("document {document} should be a map, but holds {found}")]
    NotAMap { document: usize, found: Kind },
    #[error("document {document} is {found}, and not a CustomResourceDefinition of apiextensions.k8s.io/v1")]
    NotACrd { document: usize, found: String },
    #[error("document {document} is a CustomResourceDefinition without {lacking}")]
    Incomplete { document: usize, lacking: &'static str },
}

/// The files of a module that may have CRDs, sorted by path. Files whose names begin with one of the prefixes are left
/// out, and so are links to directories.
pub(super) fn find(module: &Path, left_out: &[String]) -> Result<Vec<PathBuf>, Problem> {
    let dir = module.join(DIR);
    let is_there = look::is_dir(&dir).map_err(|fault| Problem::new(Severity::Fatal, &dir, fault))?;
    if !is_there {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(&dir).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(&dir).to_owned();
            Problem::new(Severity::Fatal, path, Fault::Unreadable(error.into()))
        })?;
        if is_candidate(&entry, left_out) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

fn is_candidate(entry: &DirEntry, left_out: &[String]) -> bool {
    let name = entry.file_name().as_encoded_bytes();
    let is_left_out = left_out.iter().any(|prefix| name.starts_with(prefix.as_bytes()));
    entry.path().extension() == Some(OsStr::new("yaml")) && !is_left_out && !entry.path().is_dir()
}

/// All CRDs of a file; the error is about the first document that is no CRD. It blocks.
pub fn read(file: &Path) -> Result<Vec<Crd>, CrdFileError> {
    let text = fs_err::read(file).map_err(CrdFileError::Read)?;
    parse(&String::from_utf8(text).map_err(|_| CrdFileError::NotText)?)
}

fn parse(text: &str) -> Result<Vec<Crd>, CrdFileError> {
    let starts = starts(text);
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(text.len(), |next| next.byte);
        let size = end - start.byte;
        if size > LARGEST {
            let document = index + 1;
            return Err(CrdFileError::TooLarge { document, size });
        }
    }
    let documents = yaml::documents_v2(text).map_err(|source| {
        let before = starts.iter().filter(|start| start.line <= source.line).count();
        let document = before.max(1);
        CrdFileError::NotYaml { document, source }
    })?;
    let mut crds = Vec::new();
    for (index, manifest) in documents.into_iter().enumerate() {
        if !manifest.is_null() {
            crds.push(crd(index + 1, manifest)?);
        }
    }
    Ok(crds)
}

/// The position of a document's beginning.
struct Start {
    byte: usize,
    line: usize,
}

/// The beginnings of all documents. Comments before the first separator are no document.
fn starts(text: &str) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    let (mut byte, mut has_content) = (0, false);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_separator = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim_start() != rest || rest.is_empty());
        let is_content = !line.trim_start().is_empty() && !line.trim_start().starts_with(['#', '%']);
        if is_separator || (is_content && !has_content) {
            starts.push(Start { byte, line: index + 1 });
            has_content = true;
        }
        byte += line.len();
    }
    starts
}

fn crd(document: usize, manifest: Value) -> Result<Crd, CrdFileError> {
    if !manifest.is_object() {
        let found = Kind::of(&manifest);
        return Err(CrdFileError::NotAMap { document, found });
    }
    let word = |key: &str| manifest[key].as_str().unwrap_or("nothing");
    let (api_version, kind) = (word("apiVersion"), word("kind"));
    if (api_version, kind) != ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
        let found = format!("kind {kind} of {api_version}");
        return Err(CrdFileError::NotACrd { document, found });
    }
    let lacking = |lacking| CrdFileError::Incomplete { document, lacking };
    if !manifest["spec"].is_object() {
        return Err(lacking("a spec"));
    }
    let name = manifest["metadata"]["name"].as_str().filter(|name| !name.is_empty());
    Ok(Crd {
        document,
        name: name.ok_or_else(|| lacking("a name"))?.to_owned(),
        manifest,
    })
}

#[cfg(test)]
mod tests {
    use report::Chain;

    use super::*;

    const GOOD: &str =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {}\n";

    #[test]
    fn documents_are_counted_as_yaml_counts_them_and_empty_ones_are_passed_over() {
        for (text, documents) in [
            (String::new(), vec![]),
            ("# a remark\n".to_owned(), vec![]),
            (GOOD.to_owned(), vec![1]),
            (
                format!("# a remark\n---\n{GOOD}---\n# nothing\n---\n{GOOD}"),
                vec![1, 3],
            ),
            (format!("{GOOD}...\n---\n{GOOD}"), vec![1, 2]),
        ] {
            let crds = parse(&text).unwrap();
            let numbers: Vec<_> = crds.iter().map(|crd| crd.document).collect();
            assert_eq!(numbers, documents, "{text}");
        }
    }

    #[test]
    fn what_is_no_crd_is_told_with_its_document() {
        let large = format!("{GOOD}---\na: {}\n", "x".repeat(LARGEST));
        for (text, said) in [
            (
                format!("{GOOD}---\n- 1\n"),
                "document 2 should be a map, but holds a list",
            ),
            (format!("---\n{GOOD}---\na: [1\n"), "document 2 is not YAML: line "),
            ("a: b: c\n".to_owned(), "document 1 is not YAML: line 1"),
            (
                "apiVersion: v1\nkind: ConfigMap\n".to_owned(),
                "document 1 is kind ConfigMap of v1, and not a CustomResourceDefinition",
            ),
            (
                GOOD.replace("/v1", "/v1beta1"),
                "document 1 is kind CustomResourceDefinition of apiextensions.k8s.io/v1beta1",
            ),
            ("a: 1\n".to_owned(), "document 1 is kind nothing of nothing"),
            (
                GOOD.replace("{name: a}", "{}"),
                "document 1 is a CustomResourceDefinition without a name",
            ),
            (
                GOOD.replace("spec: {}", "spec: 1"),
                "document 1 is a CustomResourceDefinition without a spec",
            ),
            (large, "document 2 has 2097"),
        ] {
            let error = Chain(&parse(&text).unwrap_err()).to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn files_are_found_at_any_depth_and_left_out_by_their_names() {
        let module = tempfile::tempdir().unwrap();
        let crds = module.path().join("crds");
        assert_eq!(find(module.path(), &[]).unwrap(), Vec::<PathBuf>::new());
        fs_err::create_dir_all(crds.join("deep/er")).unwrap();
        for file in [
            "b.yaml",
            "a.yml",
            "doc-a.yaml",
            "_x.yaml",
            "deep/er/a.yaml",
            "README.md",
        ] {
            fs_err::write(crds.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(crds.join("deep"), crds.join("linked.yaml")).unwrap();
        let names = |left_out: &[&str]| {
            let left_out: Vec<_> = left_out.iter().map(ToString::to_string).collect();
            let found = find(module.path(), &left_out).unwrap();
            let names = found
                .iter()
                .map(|path| path.strip_prefix(&crds).unwrap().display().to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&["doc-", "_"]), "b.yaml deep/er/a.yaml");
        assert_eq!(names(&[]), "_x.yaml b.yaml deep/er/a.yaml doc-a.yaml");
    }
}
