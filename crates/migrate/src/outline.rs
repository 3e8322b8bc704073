//! The known facts about a release before its contents are read: its names, its record, its order.
//!
//! Must never hold the contents of a release: a cluster may have thousands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

/// The program that looks after a release until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// People or pipelines that call helm
    Helm,
    /// HelmReleases of Flux
    Flux,
    /// Applications of Argo CD
    Argocd,
}

/// Namespace and name of an object, or of a release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    pub namespace: String,
    pub name: String,
}

impl Place {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The newest record of a release in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub revision: u32,
    /// The word of helm, as in `deployed`.
    pub status: String,
    /// The Secret's name.
    pub secret: String,
    /// Whether the operator manages the release already.
    pub is_ours: bool,
}

/// The records of a cluster, by the namespace of the Secret and the release's name.
pub type Records = BTreeMap<Place, Record>;

/// Where the values of an Application or a HelmRelease come from, besides its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesSource {
    pub is_secret: bool,
    pub place: Place,
    pub key: String,
    /// The path at which the whole text is set; none for a file of values.
    pub target: Option<String>,
}

/// The chart that an Application names. Charts of helm's records need none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartName {
    pub name: String,
    pub version: String,
    pub repository: String,
}

/// The facts that are read from an Application of Argo CD.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Application {
    pub chart: Option<ChartName>,
    /// Files of values inside of the chart, the last counts most.
    pub files: Vec<String>,
    pub ignores_missing_files: bool,
    /// The values over those of the files.
    pub values: Value,
    /// Paths that are set over them, each with its value.
    pub parameters: Vec<(String, Value)>,
    /// The objects that Argo CD names, as in `apps/Deployment/shop/web`.
    pub objects: BTreeSet<String>,
}

/// The facts that are read from a HelmRelease of Flux.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HelmRelease {
    /// The values that stand in the HelmRelease itself.
    pub values: Value,
    pub sources: Vec<ValuesSource>,
    pub corrects_drift: bool,
}

/// The facts of one origin.
#[derive(Debug, Clone, PartialEq)]
pub enum Facts {
    Helm,
    Flux(HelmRelease),
    Argocd(Box<Application>),
}

/// A release that may be taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The object that names the release: a HelmRelease, an Application, or the release itself.
    pub place: Place,
    /// The release's name, as charts see it.
    pub release: String,
    /// The namespace of the release, as charts see it.
    pub namespace: String,
    /// The place of the release's record, and the record; none for Argo CD.
    pub record: Option<(Place, Record)>,
    /// The objects of the same kind that come before.
    pub needs: BTreeSet<Place>,
    /// The wave of Argo CD; the lowest comes first.
    pub wave: i64,
    pub facts: Facts,
    /// Sentences for people about settings that mean nothing to the operator.
    pub remarks: Vec<String>,
}

/// A release that is not taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    pub namespace: String,
    pub name: String,
    pub reason: String,
}

impl Left {
    pub fn new(place: &Place, reason: impl fmt::Display) -> Self {
        Self {
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            reason: reason.to_string(),
        }
    }
}

/// Why there is nothing to take over, in words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unfit {
    /// Nothing has to be done about it.
    #[error("{0}")]
    Needless(String),
    /// It cannot be taken over.
    #[error("{0}")]
    Refused(String),
}

impl From<String> for Unfit {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

impl Record {
    /// Whether a release with this newest record can be taken over.
    pub fn check(&self) -> Result<(), Unfit> {
        let Self {
            revision,
            status,
            is_ours,
            secret: _,
        } = self;
        if *is_ours {
            return Err(Unfit::Needless("an addon-operator manages it already".to_owned()));
        }
        match status.as_str() {
            "deployed" => Ok(()),
            "uninstalled" => Err(Unfit::Needless("helm has removed it and kept its history".to_owned())),
            _ => Err(Unfit::Refused(format!(
                "its newest revision {revision} is {status}: upgrade it, or roll it back, until it is deployed"
            ))),
        }
    }
}

/// The outline of a release of helm itself.
pub fn of_helm(place: &Place, record: &Record) -> Result<Outline, Unfit> {
    record.check()?;
    Ok(Outline {
        place: place.clone(),
        release: place.name.clone(),
        namespace: place.namespace.clone(),
        record: Some((place.clone(), record.clone())),
        needs: BTreeSet::new(),
        wave: 0,
        facts: Facts::Helm,
        remarks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_deployed_release_of_another_owner_is_taken() {
        let rows = [
            ("deployed", false, ""),
            ("deployed", true, "manages it already"),
            ("uninstalled", false, "removed it"),
            ("pending-upgrade", false, "revision 2 is pending-upgrade"),
            ("failed", false, "revision 2 is failed"),
            ("", false, "revision 2 is :"),
        ];
        for (status, is_ours, expected) in rows {
            let record = Record {
                revision: 2,
                status: status.to_owned(),
                secret: "s".to_owned(),
                is_ours,
            };
            let told =
                of_helm(&Place::new("a", "b"), &record).map_or_else(|unfit| unfit.to_string(), |_| String::new());
            assert!(
                told.contains(expected) && told.is_empty() == expected.is_empty(),
                "{status}: {told}"
            );
        }
    }
}
