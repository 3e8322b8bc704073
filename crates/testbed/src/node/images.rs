//! The images of a node: pulled from the registry, checked against their digests, unpacked once.
//!
//! An unpacked image appears by a rename, complete, and is never written afterwards. The registry is not trusted:
//! content that does not match its digest is an error.

mod pull;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;
use serde::Deserialize;
use thiserror::Error;
use tokio::task::JoinError;

use super::layer;
use super::reference::{Reference, ReferenceError};
use crate::process;
use pull::{Pull, WireError};

/// An image that containers can be started from.
#[derive(Debug)]
pub(crate) struct Image {
    /// The digest that the reference led to: that of the index if there is one, else of the manifest.
    pub(crate) digest: String,
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

/// The settings of an image for its process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Config {
    pub(crate) user: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) env: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) entrypoint: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cmd: Vec<String>,
    pub(crate) working_dir: String,
}

/// Some build tools write `null` for an absent value.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// The image pull policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    IfNotPresent,
    Never,
}

#[derive(Debug, Error)]
pub(crate) enum PullError {
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error("cannot ask the registry for {image}")]
    Wire { image: String, source: WireError },
    #[error("{0} is not there, and the pull policy is Never")]
    Never(String),
    #[error("cannot unpack {image}")]
    Unpack { image: String, source: io::Error },
    #[error("the work on {image} panicked")]
    Panic { image: String, source: JoinError },
}

impl PullError {
    /// The reason for the status of a container.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Reference(_) => "InvalidImageName",
            Self::Never(_) => "ErrImageNeverPull",
            Self::Wire { .. } | Self::Unpack { .. } | Self::Panic { .. } => "ErrImagePull",
        }
    }
}

/// All images of a node.
#[derive(Debug)]
pub(crate) struct Images {
    folder: PathBuf,
    /// The image of each reference when it was last pulled.
    known: Mutex<HashMap<String, Arc<Image>>>,
    /// One pull at a time: two containers that start together usually want the same image.
    turn: tokio::sync::Mutex<()>,
}

impl Images {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) async fn obtain(&self, image: &str, policy: Policy) -> Result<Arc<Image>, PullError> {
        let reference = Reference::parse(image)?;
        let name = reference.to_string();
        let _turn = self.turn.lock().await;
        let present = self.known().get(&name).cloned();
        match (policy, present) {
            (Policy::IfNotPresent | Policy::Never, Some(present)) => return Ok(present),
            (Policy::Never, None) => return Err(PullError::Never(name)),
            (Policy::Always, _) | (Policy::IfNotPresent, None) => {}
        }
        let image = Arc::new(self.pull(&reference, &name).await?);
        self.known().insert(name, Arc::clone(&image));
        Ok(image)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Image>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pull(&self, reference: &Reference, name: &str) -> Result<Image, PullError> {
        let wire = |source| PullError::Wire {
            image: name.to_owned(),
            source,
        };
        let pull = Pull::new(reference);
        let manifest = pull.manifest().await.map_err(wire)?;
        let config = pull.config(&manifest).await.map_err(wire)?;
        let failed = |source| PullError::Unpack {
            image: name.to_owned(),
            source,
        };
        let layers: Vec<&str> = manifest.layers.iter().map(|layer| layer.digest.as_str()).collect();
        let root = self.place(&layers);
        if !root.exists() {
            fs::create_dir_all(&self.folder).map_err(failed)?;
            let site = tempfile::tempdir_in(&self.folder).map_err(failed)?;
            let (count, below) = self.below(&layers);
            let mut files = Vec::new();
            for layer in &layers[count..] {
                files.push(pull.blob(layer, site.path()).await.map_err(wire)?);
            }
            let to = root.clone();
            let unpacked =
                tokio::task::spawn_blocking(move || unpack(site.path(), below.as_deref(), &files, &to)).await;
            let unpacked = unpacked.map_err(|source| PullError::Panic {
                image: name.to_owned(),
                source,
            })?;
            unpacked.map_err(failed)?;
        }
        Ok(Image {
            digest: manifest.digest,
            root,
            config,
        })
    }

    /// The folder for these layers laid over one another. Images with the same layers share it.
    fn place(&self, layers: &[&str]) -> PathBuf {
        self.folder.join(pull::digest_of(layers).replace(':', "-"))
    }

    /// The number of the layers that are already unpacked for another image, and their folder.
    fn below(&self, layers: &[&str]) -> (usize, Option<PathBuf>) {
        let places = (1..layers.len())
            .rev()
            .map(|count| (count, self.place(&layers[..count])));
        let mut there = places.filter(|(_, place)| place.exists());
        there.next().map_or((0, None), |(count, place)| (count, Some(place)))
    }
}

fn unpack(site: &Path, below: Option<&Path>, layers: &[PathBuf], to: &Path) -> io::Result<()> {
    let root = site.join("root");
    if let Some(below) = below {
        // The copies are hard links. A layer above removes a file before it changes it.
        link(below, &root)?;
    } else {
        fs::create_dir(&root)?;
        // Users other than root must be able to enter the folder.
        fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    for file in layers {
        layer::lay(fs::File::open(file)?, &root)?;
        fs::remove_file(file)?;
    }
    fs::rename(root, to)
}

/// A copy of a folder with hard links in place of its files.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    let mut command = process::command("cp");
    command.args(["--archive", "--link"]).args([from, to]);
    let output = process::run(command, None).map_err(io::Error::other)?;
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

impl Config {
    /// The environment variables of the image, with a default `PATH` if it has none.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let set = self.env.iter().filter_map(|line| line.split_once('='));
        let mut environment = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
        environment.extend(set.map(|(name, value)| (name.to_owned(), value.to_owned())));
        environment
    }
}
