//! The documents that describe images: manifests, and indexes of manifests for several platforms.
//!
//! Fields that are not needed are ignored. The type of a document must never be taken from anything but its bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use channel_core::reference::ImageDigest;
use hyper::body::Bytes;
use serde::{Deserialize, Deserializer};

/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// The `Accept` header with all supported types.
pub(super) const KINDS: &str = "application/vnd.oci.image.index.v1+json, \
                                application/vnd.oci.image.manifest.v1+json, \
                                application/vnd.docker.distribution.manifest.list.v2+json, \
                                application/vnd.docker.distribution.manifest.v2+json";

/// The type of a document that describes a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An index of manifests for several platforms.
    Index,
    /// One manifest.
    Manifest,
}

impl Kind {
    /// The type for a media type of Docker or OCI.
    pub fn of(media_type: &str) -> Option<Self> {
        match media_type.split(';').next().unwrap_or_default().trim() {
            INDEX | DOCKER_INDEX => Some(Self::Index),
            MANIFEST | DOCKER_MANIFEST => Some(Self::Manifest),
            _ => None,
        }
    }
}

/// A manifest or an index, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The digest of the bytes.
    pub digest: ImageDigest,
    pub kind: Kind,
    pub media_type: String,
    pub bytes: Bytes,
}

impl Document {
    /// Parses the bytes.
    pub fn read(&self) -> Result<Content, serde_json::Error> {
        Ok(match self.kind {
            Kind::Index => Content::Index(serde_json::from_slice(&self.bytes)?),
            Kind::Manifest => Content::Manifest(serde_json::from_slice(&self.bytes)?),
        })
    }
}

/// The content of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Index(Index),
    Manifest(Box<Manifest>),
}

impl Content {
    /// The annotations of this document.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Index(index) => &index.annotations,
            Self::Manifest(manifest) => &manifest.annotations,
        }
    }
}

/// An index of manifests for several platforms, or for other related images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Index {
    #[serde(deserialize_with = "readable")]
    pub manifests: Vec<Descriptor>,
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

impl Index {
    /// The manifest for a platform.
    pub fn for_platform(&self, wanted: &Platform) -> Option<&Descriptor> {
        let is_wanted = |listed: &&Descriptor| listed.platform.as_ref().is_some_and(|found| found.is(wanted));
        self.manifests.iter().find(is_wanted)
    }
}

/// The manifest of an image, or of another artifact such as a signature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Manifest {
    pub artifact_type: Option<String>,
    pub config: Option<Descriptor>,
    #[serde(deserialize_with = "readable")]
    pub layers: Vec<Descriptor>,
    /// The image version to which an artifact such as a signature refers.
    pub subject: Option<Descriptor>,
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

/// A reference to content by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: ImageDigest,
    #[serde(default)]
    pub size: u64,
    pub artifact_type: Option<String>,
    pub platform: Option<Platform>,
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

/// Some tools write `null` for an absent list.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Descriptors, without those that cannot be parsed because their digest is of another type.
fn readable<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Descriptor>, D::Error> {
    let all: Vec<serde_json::Value> = or_default(from)?;
    let readable = all.into_iter().filter_map(|one| serde_json::from_value(one).ok());
    Ok(readable.collect())
}

/// A platform of an image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    #[serde(default)]
    pub variant: Option<String>,
}

/// The error for a text that is no platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no platform: it should be as linux/amd64 or linux/arm/v7")]
pub struct BadPlatform(String);

impl FromStr for Platform {
    type Err = BadPlatform;

    fn from_str(text: &str) -> Result<Self, BadPlatform> {
        let parts: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match parts.as_slice() {
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant)),
            _ => return Err(BadPlatform(text.to_owned())),
        };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(BadPlatform(text.to_owned()));
        }
        Ok(Self {
            os: (*os).to_owned(),
            architecture: (*architecture).to_owned(),
            variant: variant.map(|variant| (*variant).to_owned()),
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        let variant = self.variant.as_ref();
        variant.map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl Platform {
    /// The platform of the pods on a machine such as this one.
    pub fn own() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            os: "linux".to_owned(),
            architecture: architecture.to_owned(),
            variant: None,
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.os == other.os && self.architecture == other.architecture && self.level() == other.level()
    }

    /// The variant, or the default one of the architecture.
    fn level(&self) -> &str {
        let usual = match self.architecture.as_str() {
            "arm64" => "v8",
            "arm" => "v7",
            "amd64" => "v1",
            _ => "",
        };
        self.variant
            .as_deref()
            .filter(|variant| !variant.is_empty())
            .unwrap_or(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::digest_of;
    use serde_json::json;

    use super::*;

    fn document(kind: Kind, content: &serde_json::Value) -> Document {
        let bytes = Bytes::from(content.to_string());
        Document {
            digest: digest_of(&bytes),
            kind,
            media_type: String::new(),
            bytes,
        }
    }

    #[test]
    fn an_index_has_a_manifest_for_each_platform() {
        let listed = |number: u8, os: &str, architecture: &str, variant: Option<&str>| {
            json!({
                "mediaType": MANIFEST, "digest": digest_of(&[number]).as_str(), "size": 7,
                "platform": { "os": os, "architecture": architecture, "variant": variant, "os.version": "x" },
            })
        };
        let content = json!({
            "schemaVersion": 2,
            "annotations": { "org.opencontainers.image.version": "1.4.2" },
            "manifests": [
                { "mediaType": MANIFEST, "digest": "sha512:00", "size": 1 },
                listed(1, "unknown", "unknown", None),
                listed(2, "linux", "amd64", None),
                listed(3, "linux", "amd64", Some("v3")),
                listed(4, "linux", "arm64", Some("v8")),
                listed(5, "linux", "arm", Some("v6")),
                listed(6, "linux", "arm", Some("v7")),
            ],
        });
        let Content::Index(index) = document(Kind::Index, &content).read().unwrap() else {
            unreachable!()
        };
        for (platform, number) in [
            ("linux/amd64", Some(2)),
            ("linux/amd64/v3", Some(3)),
            ("linux/arm64", Some(4)),
            ("linux/arm64/v8", Some(4)),
            ("linux/arm/v6", Some(5)),
            ("linux/arm", Some(6)),
            ("windows/amd64", None),
            ("linux/s390x", None),
        ] {
            let found = index.for_platform(&platform.parse().unwrap());
            let digest = found.map(|found| found.digest.clone());
            assert_eq!(digest, number.map(|number| digest_of(&[number])), "{platform}");
        }
        assert_eq!(index.annotations["org.opencontainers.image.version"], "1.4.2");
    }

    #[test]
    fn a_manifest_may_have_null_where_there_is_nothing() {
        let content = json!({
            "config": { "mediaType": "x", "digest": digest_of(b"c").as_str(), "size": 1 },
            "layers": null, "annotations": null, "artifactType": "y",
            "subject": { "mediaType": MANIFEST, "digest": digest_of(b"s").as_str(), "size": 3 },
        });
        let Content::Manifest(manifest) = document(Kind::Manifest, &content).read().unwrap() else {
            unreachable!()
        };
        assert_eq!(manifest.artifact_type.as_deref(), Some("y"));
        assert_eq!(manifest.subject.unwrap().digest, digest_of(b"s"));
        assert!(manifest.layers.is_empty() && manifest.annotations.is_empty());
    }

    #[test]
    fn kinds_are_those_of_both_specifications() {
        assert_eq!(Kind::of(&format!("{INDEX}; charset=utf-8")), Some(Kind::Index));
        assert_eq!(Kind::of(DOCKER_INDEX), Some(Kind::Index));
        assert_eq!(Kind::of(DOCKER_MANIFEST), Some(Kind::Manifest));
        assert_eq!(Kind::of("text/html"), None);
        assert!(KINDS.split(", ").all(|kind| Kind::of(kind).is_some()));
        for text in ["linux", "linux//v7", "a/b/c/d", ""] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
        assert_eq!("linux/arm/v7".parse::<Platform>().unwrap().to_string(), "linux/arm/v7");
    }
}
