//! Assembles an OCI layout from the definition and the files that it names.
//!
//! Everything that shapes the image is an argument. This module must never take a time, a path or a user from the
//! machine that it runs on.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use channel_core::footing;
use fs_err as fs;
use serde_json::{Value, json};
use thiserror::Error;
use walkdir::WalkDir;

use crate::debian::archive::{self, ArchiveError};
use crate::definition::{self, Definition, Program};
use crate::layer::Written;
use crate::layout::{self, CONFIG, Descriptor, Draft, LAYER, LayoutError, MANIFEST, Manifest, Platform};
use crate::manifest;
use crate::papers::{self, Origin, Parts};
use crate::place::{ImagePath, PlaceError};
use crate::tree::{Content, Node, Taken, Tree, TreeError};

/// The files and facts that the definition refers to.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    pub repository: &'a Path,
    /// The name that OCI images and Debian use, as in `amd64`.
    pub architecture: &'a str,
    /// The `.deb` files of all packages, by package name.
    pub packages: &'a BTreeMap<String, PathBuf>,
    pub programs: &'a BTreeMap<Program, PathBuf>,
    /// Files that go into a layer of their own on top. They may replace files of the layers below.
    pub added: &'a [Added],
    pub origin: &'a Origin,
    /// The contents that the papers list.
    pub parts: &'a Parts,
}

/// A file or folder that the definition does not name.
#[derive(Clone, Debug)]
pub struct Added {
    pub source: PathBuf,
    pub place: ImagePath,
}

/// An image that was assembled.
#[derive(Clone, Debug)]
pub struct Assembled {
    pub manifest: Descriptor,
    /// The layers from the bottom to the top, each with its name.
    pub layers: Vec<(String, Written)>,
}

#[derive(Debug, Error)]
pub enum AssemblyError {
    #[error("cannot unpack {package}")]
    Package { package: String, source: ArchiveError },
    #[error("no {0:?} was given, and the definition names it")]
    NoProgram(Program),
    #[error("cannot put {what} into the image")]
    Put { what: String, source: TreeError },
    #[error("cannot find a place for {} in the image", .0.display())]
    ImagePath(PathBuf, #[source] PlaceError),
    #[error("cannot read what goes into the image")]
    Read(#[from] io::Error),
    #[error("cannot list {}", .0.display())]
    Walk(PathBuf, #[source] walkdir::Error),
    #[error("{0} is neither a file, a folder nor a link")]
    Odd(PathBuf),
    #[error("{0} has no files to bundle")]
    EmptyBundle(ImagePath),
    #[error("cannot write the image")]
    Layout(#[from] LayoutError),
}

/// Assembles the image and writes its layout to `folder`.
pub fn assemble(definition: &Definition, inputs: &Inputs<'_>, folder: &Path) -> Result<Assembled, AssemblyError> {
    let draft = Draft::new(folder)?;
    let mut tree = Tree::default();
    let mut trees = Vec::new();
    for layer in &definition.layers {
        let lower = tree.clone();
        put_layer(layer, definition, inputs, &mut tree)?;
        put_manifests(modules_dirs(definition), &mut tree)?;
        trees.push((layer.name.clone(), tree.over(&lower)));
    }
    if !inputs.added.is_empty() {
        let lower = tree.clone();
        for added in inputs.added {
            copy(&added.source, &added.place, Taken::Replaced, &mut tree)?;
        }
        let added = inputs.added.iter().map(|added| added.place.clone());
        put_manifests(modules_dirs(definition).chain(added), &mut tree)?;
        trees.push(("added".to_owned(), tree.over(&lower)));
    }
    let layers = write_all(&draft, trees)?;
    let config = draft.document(CONFIG, &config(definition, inputs, &layers))?;
    let blob = |written: &Written| layout::descriptor(LAYER, &written.sha256, written.packed);
    let manifest = Manifest {
        schema_version: 2,
        media_type: MANIFEST.to_owned(),
        artifact_type: None,
        subject: None,
        config,
        layers: layers.iter().map(|(_, written)| blob(written)).collect(),
        annotations: labels(definition, inputs.origin),
    };
    let mut manifest = draft.document(MANIFEST, &json!(manifest))?;
    manifest.platform = Some(Platform {
        architecture: inputs.architecture.to_owned(),
        os: "linux".to_owned(),
    });
    let papers = papers::of(&manifest.digest, inputs.architecture, inputs.origin, inputs.parts);
    let papers: Result<Vec<Descriptor>, LayoutError> = papers
        .iter()
        .map(|paper| draft.paper(paper.kind, &paper.document, &manifest))
        .collect();
    draft.finish(manifest.clone(), papers?)?;
    Ok(Assembled { manifest, layers })
}

/// Writes all layers side by side: nearly all of their time is compression.
fn write_all(draft: &Draft, trees: Vec<(String, Tree)>) -> Result<Vec<(String, Written)>, LayoutError> {
    thread::scope(|scope| {
        let write = |(name, tree): (String, Tree)| (name, scope.spawn(move || draft.layer(&tree)));
        let writers: Vec<_> = trees.into_iter().map(write).collect();
        let written = writers.into_iter().map(|(name, writer)| match writer.join() {
            Ok(written) => Ok((name, written?)),
            Err(panic) => resume_unwind(panic),
        });
        written.collect()
    })
}

fn put_layer(
    layer: &definition::Layer,
    definition: &Definition,
    inputs: &Inputs<'_>,
    tree: &mut Tree,
) -> Result<(), AssemblyError> {
    let definition::Layer {
        name: _,
        folders,
        links,
        packages,
        files,
        bundles,
        programs,
        copies,
    } = layer;
    for (place, mode) in folders {
        put(tree, place, Node::Folder { mode: mode.0 })?;
    }
    for (place, target) in links {
        put(tree, place, Node::Link { target: target.clone() })?;
    }
    if !packages.is_empty() {
        for (name, file) in inputs.packages {
            let unpacked = archive::unpack(file, name, &definition.debian, tree);
            unpacked.map_err(|source| AssemblyError::Package {
                package: name.clone(),
                source,
            })?;
        }
    }
    for (place, text) in files {
        put(tree, place, Node::file(text.clone().into_bytes()))?;
    }
    for (place, folder) in bundles {
        let bundled = bundle(folder, tree)?;
        put(tree, place, Node::file(bundled))?;
    }
    for (place, program) in programs {
        let file = inputs.programs.get(program).ok_or(AssemblyError::NoProgram(*program))?;
        put(tree, place, Node::program(Content::OnDisk(file.clone())))?;
    }
    for (place, source) in copies {
        copy(&source.within(inputs.repository), place, Taken::Refused, tree)?;
    }
    Ok(())
}

/// The folders in which the operator of the image looks for modules.
fn modules_dirs(definition: &Definition) -> impl Iterator<Item = ImagePath> {
    let dirs = definition.run.environment.get("MODULES_DIR");
    let dirs = dirs.into_iter().flat_map(|dirs| dirs.split(':'));
    dirs.filter_map(|dir| ImagePath::absolute(dir).ok())
}

/// Writes into each folder of modules the manifest that lists its files.
fn put_manifests(folders: impl Iterator<Item = ImagePath>, tree: &mut Tree) -> Result<(), AssemblyError> {
    for folder in folders {
        let Some((place, text)) = manifest::of(&folder, tree)? else {
            continue;
        };
        let put = tree.put(&place, Node::file(text), Taken::Replaced);
        put.map_err(|source| AssemblyError::Put {
            what: place.to_string(),
            source,
        })?;
    }
    Ok(())
}

fn put(tree: &mut Tree, place: &ImagePath, node: Node) -> Result<(), AssemblyError> {
    let put = tree.put(place, node, Taken::Refused);
    put.map_err(|source| AssemblyError::Put {
        what: place.to_string(),
        source,
    })
}

/// The concatenation of all files below a folder of the image, sorted by path.
fn bundle(folder: &ImagePath, tree: &Tree) -> Result<Vec<u8>, AssemblyError> {
    let mut bundled = Vec::new();
    for (_, node) in tree.nodes().filter(|(place, _)| place.is_within(folder)) {
        match node {
            Node::File {
                content: Content::Bytes(bytes),
                ..
            } => {
                bundled.extend_from_slice(bytes);
                if !bundled.ends_with(b"\n") {
                    bundled.push(b'\n');
                }
            }
            Node::File {
                content: Content::OnDisk(file),
                ..
            } => bundled.extend(fs::read(file)?),
            Node::Folder { .. } | Node::Link { .. } => {}
        }
    }
    if bundled.is_empty() {
        return Err(AssemblyError::EmptyBundle(folder.clone()));
    }
    Ok(bundled)
}

/// Copies a file or a folder of the disk, with everything in it. Of the mode only one bit is kept: whether a file is
/// executable.
fn copy(source: &Path, place: &ImagePath, taken: Taken, tree: &mut Tree) -> Result<(), AssemblyError> {
    let entries = WalkDir::new(source)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.file_name() != ".git");
    for entry in entries {
        let entry = entry.map_err(|error| AssemblyError::Walk(source.to_owned(), error))?;
        let inner = entry.path().strip_prefix(source).unwrap_or(Path::new(""));
        let inner = inner.to_string_lossy();
        let at = if inner.is_empty() {
            Ok(place.clone())
        } else {
            place.join(&inner)
        };
        let at = at.map_err(|source| AssemblyError::ImagePath(entry.path().to_owned(), source))?;
        let kind = entry.file_type();
        let node = if kind.is_dir() {
            Node::FOLDER
        } else if kind.is_symlink() {
            Node::Link {
                target: fs::read_link(entry.path())?.to_string_lossy().into_owned(),
            }
        } else if kind.is_file() {
            let content = fs::read(entry.path())?;
            let runs = fs::metadata(entry.path())?.permissions().mode() & 0o111 != 0;
            if runs {
                Node::program(content)
            } else {
                Node::file(content)
            }
        } else {
            return Err(AssemblyError::Odd(entry.path().to_owned()));
        };
        let put = tree.put(&at, node, taken);
        put.map_err(|source| AssemblyError::Put {
            what: entry.path().display().to_string(),
            source,
        })?;
    }
    Ok(())
}

fn config(definition: &Definition, inputs: &Inputs<'_>, layers: &[(String, Written)]) -> Value {
    let run = &definition.run;
    let environment: Vec<String> = run
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let created = &inputs.origin.created;
    let history: Vec<Value> = layers
        .iter()
        .map(|(name, _)| json!({ "created": created, "created_by": format!("layer {name}") }))
        .collect();
    let diffs: Vec<String> = layers
        .iter()
        .map(|(_, written)| format!("sha256:{}", written.diff_sha256))
        .collect();
    json!({
        "architecture": inputs.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "User": run.user,
            "WorkingDir": run.directory,
            "Entrypoint": run.entrypoint,
            "Env": environment,
            "Labels": labels(definition, inputs.origin),
        },
        "rootfs": { "type": "layers", "diff_ids": diffs },
        "history": history,
    })
}

/// The labels of the image. An operator also reads them before it changes to this image.
fn labels(definition: &Definition, origin: &Origin) -> BTreeMap<String, String> {
    let Origin {
        version,
        revision,
        created,
    } = origin;
    let known = [
        ("version", Some(version)),
        ("revision", revision.as_ref()),
        ("created", created.as_ref()),
    ];
    let known = known
        .into_iter()
        .filter_map(|(name, value)| Some((format!("org.opencontainers.image.{name}"), value?.clone())));
    let footing = footing::annotations().map(|(key, value)| (key.to_owned(), value));
    let labels = definition.labels.clone().into_iter();
    labels.chain(known).chain(footing).collect()
}

#[cfg(test)]
mod tests;
