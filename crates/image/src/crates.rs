//! The crates that the operator is linked from, with their licences and checksums, as cargo knows them.
//!
//! Nothing is fetched: cargo has already downloaded the sources of everything that was built.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use fs_err as fs;
use serde::Deserialize;
use testbed::process;
use thiserror::Error;

use crate::papers::Crate;

/// The package that is built for the image.
const PROGRAM: &str = "addon-operator";

#[derive(Debug, Error)]
pub enum CratesError {
    #[error("cannot run cargo, which knows the crates of the operator")]
    Start(#[source] io::Error),
    #[error("cargo does not tell the crates of the operator: {0}")]
    Failed(String),
    #[error("cannot understand what cargo tells of the crates of the operator")]
    Syntax(#[from] serde_json::Error),
    #[error("cannot read the lock of crates")]
    Lock(#[from] io::Error),
    #[error("cargo knows no {PROGRAM}")]
    NoProgram,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None for an ordinary dependency, which is linked into the program.
    kind: Option<String>,
}

/// The linked crates of a repository, sorted.
pub fn linked(repository: &Path, target: &str) -> Result<Vec<Crate>, CratesError> {
    let mut command = process::command("cargo");
    command.args(["metadata", "--locked", "--offline", "--format-version=1"]);
    command.args(["--filter-platform", target]).current_dir(repository);
    let output = process::run(command, None).map_err(CratesError::Start)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(CratesError::Failed(said));
    }
    let lock = fs::read_to_string(repository.join("Cargo.lock"))?;
    chosen(&serde_json::from_slice(&output.stdout)?, &checksums(&lock))
}

fn chosen(metadata: &Metadata, checksums: &BTreeMap<(String, String), String>) -> Result<Vec<Crate>, CratesError> {
    let root = metadata.packages.iter().find(|package| package.name == PROGRAM);
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut open = vec![root.ok_or(CratesError::NoProgram)?.id.as_str()];
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if linked.insert(id) {
            let needs = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let needs = needs.filter(|need| need.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            open.extend(needs.map(|need| need.pkg.as_str()));
        }
    }
    let of_them = metadata
        .packages
        .iter()
        .filter(|package| linked.contains(package.id.as_str()));
    let mut crates: Vec<Crate> = of_them
        .map(|package| Crate {
            name: package.name.clone(),
            version: package.version.clone(),
            license: package.license.clone(),
            sha256: checksums.get(&(package.name.clone(), package.version.clone())).cloned(),
        })
        .collect();
    crates.sort();
    Ok(crates)
}

/// Checksums by name and version, from `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, key: &str| {
        let line = block
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    let found = blocks.filter_map(|block| {
        let key = (field(block, "name")?, field(block, "version")?);
        Some((key, field(block, "checksum")?))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_linked_counts() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT"});
        let need = |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let packages = ["addon-operator", "linked", "deep", "build", "test", "other"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"nodes": [
                {"id": "addon-operator", "deps": [need("linked", None), need("test", Some("dev")), need("build", Some("build"))]},
                {"id": "linked", "deps": [need("deep", None)]},
            ]},
        });
        let lock = "[[package]]\nname = \"deep\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n\n[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\n";
        let crates = chosen(&serde_json::from_value(metadata).unwrap(), &checksums(lock)).unwrap();
        let told: Vec<(&str, Option<&str>)> = crates
            .iter()
            .map(|one| (one.name.as_str(), one.sha256.as_deref()))
            .collect();
        assert_eq!(
            told,
            [("addon-operator", None), ("deep", Some("abc")), ("linked", None)]
        );
    }
}
