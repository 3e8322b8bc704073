//! The description of a version: its platforms, and its annotations.
//!
//! Annotations are on an index or on its manifests, and some tools write them only into the configuration. Must never
//! mix the annotations of two versions.

use std::collections::BTreeMap;

use channel_core::candidate::VERSION;
use channel_core::following::Trouble;
use channel_core::footing::{LOWEST_CHART_KEY, STATE_FORMATS_KEY};
use channel_core::platform::Platform;
use channel_core::reference::ImageDigest;
use registry::documents::{Content, Document, Index, Manifest};
use registry::place::Reference;
use serde::Deserialize;

use super::{Inquiry, says, trouble};

/// The largest configuration that is read; usual ones have some kilobytes.
const LARGEST: usize = 1 << 20;
/// If an index has all of these annotations, no manifest has to be read for them.
const NOTES: [&str; 3] = [VERSION, LOWEST_CHART_KEY, STATE_FORMATS_KEY];
/// The annotation of an index entry that is no image but a document about an image.
const PAPER: &str = "vnd.docker.reference.type";

type Annotations = BTreeMap<String, String>;

pub(super) struct Described {
    pub(super) manifests: BTreeMap<Platform, ImageDigest>,
    pub(super) annotations: Annotations,
}

/// The parts of a configuration that describe an image.
#[derive(Deserialize)]
struct Configuration {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    variant: Option<String>,
    config: Option<Labelled>,
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(rename = "Labels")]
    labels: Option<Annotations>,
}

impl Inquiry {
    pub(super) async fn described(&self, document: &Document) -> Result<Described, Trouble> {
        match self.content(document)? {
            Content::Index(index) => self.described_index(index).await,
            Content::Manifest(manifest) => {
                let (platform, annotations) = self.described_manifest(*manifest).await?;
                let manifests = platform.map(|platform| (platform, document.digest.clone()));
                Ok(Described {
                    manifests: manifests.into_iter().collect(),
                    annotations,
                })
            }
        }
    }

    async fn described_index(&self, index: Index) -> Result<Described, Trouble> {
        let mut manifests = BTreeMap::new();
        for listed in &index.manifests {
            let platform = listed.platform.as_ref().filter(|platform| platform.os != "unknown");
            let platform = platform.and_then(|platform| Platform::parse(&platform.to_string()).ok());
            if let Some(platform) = platform.filter(|_| !listed.annotations.contains_key(PAPER)) {
                // The first manifest for a platform counts, as it does for nodes that pull the image.
                manifests.entry(platform).or_insert_with(|| listed.digest.clone());
            }
        }
        let is_complete = NOTES.iter().all(|key| index.annotations.contains_key(*key));
        // All manifests come from one build, so one of them describes all.
        let first = manifests.values().next().filter(|_| !is_complete);
        let mut annotations = Annotations::new();
        if let Some(digest) = first {
            let reference = Reference::Digest(digest.clone());
            let document = self.registry.manifest(&self.place, &reference).await.map_err(trouble)?;
            if let Content::Manifest(manifest) = self.content(&document)? {
                (_, annotations) = self.described_manifest(*manifest).await?;
            }
        }
        annotations.extend(index.annotations);
        Ok(Described { manifests, annotations })
    }

    /// The platform and the annotations of a manifest. Only the manifest's configuration names the platform.
    async fn described_manifest(&self, manifest: Manifest) -> Result<(Option<Platform>, Annotations), Trouble> {
        let Some(config) = manifest.config else {
            return Ok((None, manifest.annotations));
        };
        let blob = self.registry.blob(&self.place, &config.digest, LARGEST).await;
        let blob = blob.map_err(trouble)?;
        let read = serde_json::from_slice(&blob);
        let Configuration {
            os,
            architecture,
            variant,
            config: labelled,
        } = read.map_err(|error| {
            let (digest, place) = (&config.digest, &self.place);
            says(format!(
                "cannot understand the configuration {digest} of {place}: {error}"
            ))
        })?;
        let variant = variant.filter(|variant| !variant.is_empty());
        let variant = variant.map(|variant| format!("/{variant}")).unwrap_or_default();
        let platform = Platform::parse(&format!("{os}/{architecture}{variant}")).ok();
        let mut annotations = labelled.and_then(|labelled| labelled.labels).unwrap_or_default();
        annotations.extend(manifest.annotations);
        Ok((platform, annotations))
    }

    fn content(&self, document: &Document) -> Result<Content, Trouble> {
        document.read().map_err(|error| {
            let (digest, place) = (&document.digest, &self.place);
            says(format!("cannot understand {digest} of {place}: {error}"))
        })
    }
}
