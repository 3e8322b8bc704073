//! Directories of an image, such as those with the modules of another version of the operator.
//!
//! Must never hold a layer in memory, which may belong to an operating system, nor run anything of the image.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use blocking::threads;
use channel_core::reference::{self, ImageDigest};
use registry::documents::{Descriptor, Platform};
use registry::place::{ImagePlace, Reference};
use registry::{Registry, Rights};
use serde::Deserialize;
use settings::Environment;

use crate::layers::{self, Bounds, PackageKind};
use crate::pulling::{PullError, manifest};
use crate::transfer::{PackageError, Reach, registry, target};
use crate::unpack::ImagePart;

/// The size limit of an image's configuration, in bytes.
const CONFIG: usize = 4 << 20;

/// The configuration of an image, as far as it names places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// The variables of its programs.
    pub environment: BTreeMap<String, String>,
    /// The directory in which its programs start.
    pub working_dir: PathBuf,
}

/// Directories of an image, unpacked.
#[derive(Debug)]
pub struct Unpacked {
    pub digest: ImageDigest,
    /// In the order in which they were wanted.
    pub directories: Vec<Directory>,
}

/// A directory of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Its path in the image.
    pub path: PathBuf,
    /// Its place here; nothing is there if the image does not have it.
    pub here: PathBuf,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    config: Option<Run>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Run {
    env: Option<Vec<String>>,
    working_dir: Option<PathBuf>,
}

impl ImageConfig {
    fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let Run { env, working_dir } = serde_json::from_slice::<Written>(bytes)?.config.unwrap_or_default();
        let pairs = env.iter().flatten().filter_map(|pair| pair.split_once('='));
        Ok(Self {
            environment: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            working_dir: Path::new("/").join(working_dir.unwrap_or_default()),
        })
    }
}

/// Unpacks the directories that are wanted of an image into a folder. `wanted` finds them, as paths in the image.
pub fn fetch(
    text: &str,
    platform: &Platform,
    wanted: impl FnOnce(&ImageConfig) -> Vec<PathBuf>,
    folder: &Path,
    reach: &Reach,
    environment: &Environment,
) -> Result<Unpacked, PackageError> {
    let (place, reference) = target(&reference::Reference::parse(text)?)?;
    let registry = registry(&place.host, reach, Rights::Pull, environment)?;
    let fetched = pull(&registry, &place, (&reference, platform), wanted, folder);
    Ok(threads::runtime()?.block_on(fetched)?)
}

async fn pull(
    registry: &Registry,
    place: &ImagePlace,
    (reference, platform): (&Reference, &Platform),
    wanted: impl FnOnce(&ImageConfig) -> Vec<PathBuf>,
    folder: &Path,
) -> Result<Unpacked, PullError> {
    let (digest, manifest) = manifest(registry, place, reference, platform).await?;
    let places = layers::layers(&manifest, Bounds::IMAGE);
    let config = manifest.config.as_ref();
    let (places, config) = match (places, config) {
        (Ok((PackageKind::Image, places)), Some(config)) => (places, config),
        (Err(source), _) => return Err(PullError::NoPackage { digest, source }),
        (Ok(_), _) => return Err(PullError::NoImage { digest }),
    };
    let config = read_config(registry, place, config).await?;
    let wanted = wanted(&config).into_iter();
    let wanted: Vec<PathBuf> = wanted.map(|path| config.working_dir.join(path)).collect();
    let below: Vec<PathBuf> = wanted.iter().map(|path| below_root(path)).collect();
    let (root, file) = (folder.join("root"), folder.join("layer"));
    fs_err::create_dir(&root).map_err(|source| PullError::Make {
        path: root.clone(),
        source,
    })?;
    let mut part = ImagePart::new(&below, &root);
    for layer in places {
        registry.blob_into(&file, place, &layer.digest, layer.size).await?;
        part.layer(&file, layer.compression)
            .map_err(|source| PullError::Unpack {
                digest: digest.clone(),
                source,
            })?;
    }
    let directories = wanted.into_iter().zip(below).map(|(path, below)| Directory {
        path,
        here: root.join(below),
    });
    let directories = directories.collect();
    Ok(Unpacked { digest, directories })
}

/// A path of the image relative to its root, without steps upwards.
fn below_root(path: &Path) -> PathBuf {
    let mut below = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => below.push(part),
            Component::ParentDir => drop(below.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    below
}

async fn read_config(registry: &Registry, place: &ImagePlace, config: &Descriptor) -> Result<ImageConfig, PullError> {
    let bytes = registry.blob(place, &config.digest, CONFIG).await?;
    ImageConfig::read(&bytes).map_err(|source| PullError::Config {
        digest: config.digest.clone(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_never_leaves_the_image() {
        for (path, wanted) in [("/a/./b", "a/b"), ("/a/../b", "b"), ("/../../b", "b"), ("/", "")] {
            assert_eq!(below_root(Path::new(path)), Path::new(wanted));
        }
    }

    #[test]
    fn a_configuration_names_variables_and_the_directory_of_the_start() {
        let text = br#"{"os":"linux","config":{"Env":["A=b=c","MODULES_DIR=/m"],"WorkingDir":"/app"}}"#;
        let config = ImageConfig::read(text).unwrap();
        assert_eq!(config.environment["A"], "b=c");
        assert_eq!(config.environment["MODULES_DIR"], "/m");
        assert_eq!(config.working_dir, Path::new("/app"));
        // Docker writes null for an absent list.
        for text in [r#"{"config":{"Env":null,"WorkingDir":""}}"#, r#"{"config":null}"#, "{}"] {
            let config = ImageConfig::read(text.as_bytes()).unwrap();
            assert_eq!((config.environment.len(), config.working_dir), (0, PathBuf::from("/")));
        }
    }
}
