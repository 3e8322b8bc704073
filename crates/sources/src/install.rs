//! Brings the files of one version into use: from the disk, from a kept copy or from the registry, checked before they
//! count.
//!
//! Must never hand files to the core that `module lint` refuses.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use addon_core::failure::Failure;
use addon_core::module::{Edition, Origin};
use addon_core::operator::event::Event;
use channel_core::reference::ImageDigest;
use channel_core::source::ModuleSource;
use disk::{Found, FoundModule, Layer, Problem};
use inquiry::Inquiry;
use intake::{Desk, Prepared, Unfit};
use names::ModuleName;
use package::pack;
use package::pulling::{self, Package, PullError};
use registry::place::Reference;
use report::Chain;
use thiserror::Error;
use tracing::warn;

use super::library::{Library, ShelfError};
use crate::copies::{self, Copies, Keeping, LARGEST};

/// Why a version was not brought into use.
#[derive(Debug, Error)]
pub(super) enum TakeError {
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("{0}")]
    Cluster(Failure),
    #[error("there is no ConfigMap '{0}' with values in the namespace of the operator")]
    NoValues(String),
    #[error("{0}")]
    Registry(String),
    #[error("the record of the source was not written, so the version is not used yet")]
    NotWritten,
    #[error("the main loop does not answer")]
    Loop,
}

impl TakeError {
    /// Whether the version itself is at fault, so that another attempt has the same end until something else changes.
    pub(super) fn is_of_version(&self) -> bool {
        match self {
            Self::Shelf(_) | Self::Unfit(Unfit::Mistakes(_) | Unfit::Section { .. } | Unfit::Absent { .. }) => true,
            Self::Pull(error) => !matches!(error, PullError::Registry(_)),
            Self::Unfit(Unfit::Unchecked(_))
            | Self::Cluster(_)
            | Self::NoValues(_)
            | Self::Registry(_)
            | Self::NotWritten
            | Self::Loop => false,
        }
    }
}

/// Brings versions of one module into use.
#[derive(Clone)]
pub(super) struct Taker {
    pub(super) module: ModuleName,
    pub(super) library: Library,
    pub(super) copies: Copies,
    pub(super) desk: Arc<Desk>,
}

/// The parts of a source that change how its files are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    order: Option<u32>,
    env: BTreeMap<String, String>,
    layers: Vec<Layer>,
}

impl Inputs {
    /// The same files with the variables of the source.
    fn give(&self, mut prepared: Prepared) -> Prepared {
        let variables = self.env.iter().map(|(name, value)| (name.into(), value.into()));
        prepared.files.env = variables.collect();
        prepared
    }
}

impl Taker {
    /// The directory of a version that is on disk or kept in Secrets.
    pub(super) async fn kept(&self, digest: &ImageDigest) -> Result<Option<PathBuf>, TakeError> {
        if let Some(place) = self.library.find(&self.module, digest) {
            return Ok(Some(place));
        }
        let copy = self.copies.files(&self.module, digest).await;
        let copy = copy.map_err(|error| TakeError::Cluster(Failure::from(error)))?;
        let Some(packed) = copy else { return Ok(None) };
        let package = Package::of_copy(digest.clone(), packed);
        Ok(Some(self.library.put(&self.module, package).await?))
    }

    /// The directory of a version, from the registry if need be.
    pub(super) async fn fetch(&self, inquiry: &Inquiry, digest: &ImageDigest) -> Result<PathBuf, TakeError> {
        if let Some(place) = self.library.find(&self.module, digest) {
            return Ok(place);
        }
        let package = pulling::pull(inquiry.registry(), inquiry.place(), &Reference::Digest(digest.clone())).await?;
        Ok(self.library.put(&self.module, package).await?)
    }

    /// The inputs of the source, with the values files of its ConfigMap as they are now.
    pub(super) async fn inputs(&self, source: &ModuleSource) -> Result<Inputs, TakeError> {
        let mut layers = Vec::new();
        if let Some(name) = &source.values {
            let read = copies::values_files(&self.copies.cluster, name).await;
            let read = read.map_err(|error| TakeError::Cluster(Failure::from(error)))?;
            let files = read.ok_or_else(|| TakeError::NoValues(name.clone()))?;
            layers.extend(files.into_iter().map(|(key, text)| Layer {
                place: format!("ConfigMap {name}, key {key}"),
                text,
            }));
        }
        Ok(Inputs {
            order: source.order,
            env: source.env.clone(),
            layers,
        })
    }

    /// Reads a directory with these inputs.
    async fn read(&self, inputs: &Inputs, place: PathBuf) -> FoundModule {
        let layers = inputs.layers.clone();
        let (layout, name) = (self.desk.layout.clone(), self.module.clone());
        let order = inputs.order.unwrap_or(layout.unnumbered_order);
        let (found, problems) = blocking::run(move || disk::read_alone(&layout, &name, order, place, &layers)).await;
        for Problem { path, fault, .. } in &problems {
            warn!(module = self.module.as_str(), path = %path.display(), problem = %Chain(fault), "Found a problem in the files of a source");
        }
        found
    }

    /// The files of a version with these inputs, unchecked.
    pub(super) async fn prepare(&self, inputs: &Inputs, place: PathBuf) -> Prepared {
        let module = self.read(inputs, place).await;
        let found = self.around().await;
        let prepared = Prepared::unchecked(module, found.flags.get(&self.module).copied());
        inputs.give(prepared)
    }

    /// The files of a version with these inputs, checked.
    pub(super) async fn check(&self, inputs: &Inputs, place: PathBuf) -> Result<Prepared, TakeError> {
        let module = self.read(inputs, place).await;
        let found = self.around().await;
        let checked = self.desk.checked(&found, module).await;
        Ok(inputs.give(checked.map_err(|_| TakeError::Loop)??))
    }

    /// The modules directories, which hold the flags of all modules.
    async fn around(&self) -> Found {
        let layout = self.desk.layout.clone();
        blocking::run(move || disk::read(&layout)).await
    }

    /// Hands the files of a version to the core.
    pub(super) fn hand_over(&self, prepared: Prepared, has_former: bool) -> Result<Edition, TakeError> {
        let Prepared { module, files, .. } = prepared;
        let edition = self.desk.editions.keep(&self.module, files);
        let event = Event::ModuleRead(edition, Origin::Source { has_former }, Box::new(module));
        self.desk.doors.post(event).map_err(|_| TakeError::Loop)?;
        Ok(edition)
    }

    /// Keeps the files of a version in Secrets, if they are small enough.
    pub(super) async fn keep(&self, digest: &ImageDigest) -> Result<(), Failure> {
        let Some(place) = self.library.find(&self.module, digest) else {
            return Ok(());
        };
        if self.copies.keeping == Keeping::Nowhere {
            return Ok(());
        }
        if self.copies.files(&self.module, digest).await?.is_some() {
            return Ok(());
        }
        let packed = blocking::run(move || pack::pack(&place)).await;
        match packed {
            Ok(packed) if packed.len() <= LARGEST => Ok(self.copies.keep_files(&self.module, digest, &packed).await?),
            Ok(packed) => {
                let (module, bytes) = (self.module.as_str(), packed.len());
                warn!(
                    module,
                    bytes,
                    limit = LARGEST,
                    "The files of a module are too large to be kept in the cluster"
                );
                Ok(())
            }
            Err(error) => {
                warn!(module = self.module.as_str(), error = %Chain(&error), "The files of a module cannot be kept in the cluster");
                Ok(())
            }
        }
    }
}
