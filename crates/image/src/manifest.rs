//! The manifest of a folder of modules. From it the operator knows at its start whether all modules are present.
//! `addon-operator module manifest` writes the same manifest for a folder on a disk.

use std::collections::BTreeMap;
use std::io;

use fs_err as fs;
use serde_json::json;

use crate::layer::sha256;
use crate::place::{ImagePath, PlaceError};
use crate::tree::{Content, Node, Tree};

/// The file name of the manifest, at the root of a folder of modules.
const FILE: &str = ".addon-operator-manifest.json";
/// The manifest has this file without a checksum, because people mount a file of their own over it.
const COMMON: &str = "values.yaml";

/// The manifest's place and text for a folder of the image. None for a folder that has files but no modules. An empty
/// folder gets a manifest, because it is meant to be empty.
pub(crate) fn of(folder: &ImagePath, tree: &Tree) -> io::Result<Option<(ImagePath, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    for (place, node) in tree.nodes().filter(|(place, _)| place.is_within(folder)) {
        let Node::File { content, .. } = node else { continue };
        let inner = place.names().skip(folder.names().count()).collect::<Vec<_>>();
        if inner.first().is_none_or(|name| name.starts_with('.')) || inner.contains(&"__pycache__") {
            continue;
        }
        let inner = inner.join("/");
        let sum = (inner != COMMON).then(|| sum_of(content)).transpose()?;
        files.insert(inner, sum);
    }
    let is_module = |file: &String| {
        let numbered = |(number, _): (&str, &str)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let dir = file.split_once('/').map(|(dir, _)| dir);
        dir.and_then(|dir| dir.split_once('-')).is_some_and(numbered)
    };
    let is_empty_folder = files.is_empty() && tree.nodes().any(|(place, _)| place == folder);
    if !is_empty_folder && !files.keys().any(is_module) {
        return Ok(None);
    }
    let place = folder.join(FILE).map_err(|error: PlaceError| io::Error::other(error))?;
    let text = format!("{:#}\n", json!({"version": 1, "files": files}));
    Ok(Some((place, text.into_bytes())))
}

fn sum_of(content: &Content) -> io::Result<String> {
    let sum = match content {
        Content::Bytes(bytes) => sha256(bytes),
        Content::OnDisk(file) => sha256(&fs::read(file)?),
    };
    Ok(format!("sha256:{sum}"))
}
