//! The kind of a package by its manifest, and the layers with its files.
//!
//! Must never guess: content of an unknown type is refused by its name.

use channel_core::reference::ImageDigest;
use registry::documents::{Descriptor, Manifest};
use thiserror::Error;

use super::unpack::Compression;
use super::{BLOB, IMAGE, MODULE, UNPACKED};

/// The configuration of a chart that Helm or werf pushed.
const CHART: &str = "application/vnd.cncf.helm.config.v1+json";
/// The configuration of an image.
const IMAGES: [&str; 2] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];
/// The provenance file of a chart, which is no part of the module.
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
/// The most layers of a package. An image that is built from one directory has one.
const MOST: usize = 127;

/// The kind of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    /// Our own artifact: the files of a module.
    Module,
    /// An image whose files are those of a module.
    Image,
    /// A chart of Helm, in a folder with its name.
    Chart,
}

impl PackageKind {
    /// The name of the kind for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Image => "image",
            Self::Chart => "chart",
        }
    }
}

/// A layer of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPlace {
    pub digest: ImageDigest,
    pub compression: Compression,
    /// Its size in bytes, within the bounds.
    pub size: usize,
}

/// The size limits of layers as they are in a registry, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    one: u64,
    together: u64,
}

impl Bounds {
    /// Those of a package, which is held in memory.
    pub const PACKAGE: Self = Self {
        one: BLOB as u64,
        together: UNPACKED,
    };
    /// Those of an image, whose layers go through a file one by one.
    pub const IMAGE: Self = Self {
        one: IMAGE / 8,
        together: IMAGE / 2,
    };
}

/// Why a manifest is not the manifest of a package.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoPackage {
    #[error("its type is '{0}': a module, an image or a chart of Helm is needed")]
    Kind(String),
    #[error("a layer has the type '{0}': only tar and tar+gzip can be unpacked")]
    Layer(String),
    #[error("the layer {digest} has {size} bytes: {most} are the most")]
    Large { digest: ImageDigest, size: u64, most: u64 },
    #[error("it has {0} layers: {MOST} are the most")]
    Many(usize),
    #[error("its layers have {size} bytes: {most} are the most")]
    LargeTogether { size: u64, most: u64 },
    #[error("it has no layer, so there are no files")]
    Empty,
}

/// The kind of a package and its layers, the lowest first.
pub fn layers(manifest: &Manifest, bounds: Bounds) -> Result<(PackageKind, Vec<LayerPlace>), NoPackage> {
    let config = manifest.config.as_ref().map(|config| config.media_type.as_str());
    let kind = kind(manifest.artifact_type.as_deref(), config.unwrap_or_default())?;
    let files = manifest.layers.iter().filter(|layer| layer.media_type != PROVENANCE);
    let layers = files.map(|file| layer(file, bounds)).collect::<Result<Vec<_>, _>>()?;
    let together: u64 = layers.iter().map(|layer| layer.size as u64).sum();
    if together > bounds.together {
        return Err(NoPackage::LargeTogether {
            size: together,
            most: bounds.together,
        });
    }
    match layers.len() {
        0 => Err(NoPackage::Empty),
        1..=MOST => Ok((kind, layers)),
        many => Err(NoPackage::Many(many)),
    }
}

fn kind(artifact: Option<&str>, config: &str) -> Result<PackageKind, NoPackage> {
    if artifact == Some(MODULE) || config == MODULE {
        return Ok(PackageKind::Module);
    }
    match config {
        CHART => Ok(PackageKind::Chart),
        image if IMAGES.contains(&image) => Ok(PackageKind::Image),
        other => Err(NoPackage::Kind(artifact.unwrap_or(other).to_owned())),
    }
}

fn layer(layer: &Descriptor, bounds: Bounds) -> Result<LayerPlace, NoPackage> {
    let Descriptor {
        media_type,
        digest,
        size,
        ..
    } = layer;
    // Docker's types end with `.gzip`, Helm's old one with `.tar`, all others with `+gzip`.
    let compression = match media_type.rsplit(['.', '+']).next().unwrap_or_default() {
        "gzip" => Compression::Gzip,
        "tar" => Compression::None,
        _ => return Err(NoPackage::Layer(media_type.clone())),
    };
    let large = || NoPackage::Large {
        digest: digest.clone(),
        size: *size,
        most: bounds.one,
    };
    Ok(LayerPlace {
        digest: digest.clone(),
        compression,
        size: usize::try_from(*size)
            .ok()
            .filter(|size| *size as u64 <= bounds.one)
            .ok_or_else(large)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn judge(artifact: &Value, config: &str, layers: &[(&str, u64)]) -> Result<(&'static str, usize), String> {
        let layer = |(kind, size): &(&str, u64)| json!({"mediaType": kind, "digest": DIGEST, "size": size});
        let layers: Vec<Value> = layers.iter().map(layer).collect();
        let manifest = json!({
            "artifactType": artifact, "config": {"mediaType": config, "digest": DIGEST}, "layers": layers,
        });
        let manifest: Manifest = serde_json::from_value(manifest).unwrap();
        let found = super::layers(&manifest, Bounds::PACKAGE).map(|(kind, layers)| (kind.name(), layers.len()));
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn the_kind_is_that_of_artifact_or_configuration() {
        let gzip = ("application/vnd.oci.image.layer.v1.tar+gzip", 9);
        let docker = ("application/vnd.docker.image.rootfs.diff.tar.gzip", 9);
        let plain = ("application/vnd.oci.image.layer.v1.tar", 9);
        let chart = ("application/vnd.cncf.helm.chart.content.v1.tar+gzip", 9);
        let empty = "application/vnd.oci.empty.v1+json";
        for (artifact, config, layers, wanted) in [
            (json!(MODULE), empty, vec![gzip], ("module", 1)),
            (Value::Null, MODULE, vec![gzip], ("module", 1)),
            (Value::Null, IMAGES[0], vec![gzip, plain], ("image", 2)),
            (Value::Null, IMAGES[1], vec![docker], ("image", 1)),
            (Value::Null, CHART, vec![chart, (PROVENANCE, 9)], ("chart", 1)),
        ] {
            assert_eq!(judge(&artifact, config, &layers), Ok(wanted));
        }
    }

    #[test]
    fn other_content_is_refused_by_its_type() {
        let gzip = "application/vnd.oci.image.layer.v1.tar+gzip";
        let zstd = "application/vnd.oci.image.layer.v1.tar+zstd";
        let many = vec![(gzip, 1); MOST + 1];
        for (config, layers, wanted) in [
            ("application/x", vec![(gzip, 1)], "its type is 'application/x': "),
            (
                MODULE,
                vec![(zstd, 1)],
                "a layer has the type 'application/vnd.oci.image.layer.v1.tar+zstd': ",
            ),
            (MODULE, vec![(gzip, BLOB as u64 + 1)], "the layer sha256:e3b0"),
            (MODULE, many, "it has 128 layers: "),
            (
                MODULE,
                vec![(gzip, BLOB as u64); 5],
                "its layers have 335544320 bytes: ",
            ),
            (MODULE, vec![], "it has no layer"),
        ] {
            let error = judge(&Value::Null, config, &layers).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
