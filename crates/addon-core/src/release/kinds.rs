//! The lifetimes of Kubernetes' own kinds, and the judgement whether a version of Kubernetes still serves a kind.
//!
//! A kind that neither the table nor the API server calls outdated must never count as outdated.

mod table;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use table::{OWN, TABLE};

/// The newest version of Kubernetes whose announcements the table contains.
pub const NEWEST: KubeVersion = KubeVersion(37);

/// A version of Kubernetes 1: the number after `1.`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubeVersion(u16);

/// Why a text is no version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is no version of Kubernetes: write it as 1.38")]
pub struct BadKubeVersion {
    text: String,
}

impl FromStr for KubeVersion {
    type Err = BadKubeVersion;

    /// Parses `1.38`, also with a leading `v`, a patch number, or the suffix of a vendor.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadKubeVersion { text: text.to_owned() };
        let rest = text.strip_prefix('v').unwrap_or(text);
        let rest = rest.strip_prefix("1.").ok_or_else(bad)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (minor, after) = rest.split_at(end);
        if !(after.is_empty() || after.starts_with(['.', '+', '-'])) {
            return Err(bad());
        }
        minor.parse().map(Self).map_err(|_| bad())
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

impl Serialize for KubeVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KubeVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A kind in one version of its API, as manifests name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindName {
    /// `v1`, `apps/v1`, …
    pub api_version: String,
    /// The kind, as in `ConfigMap`.
    pub kind: String,
}

impl KindName {
    /// The kind with this API version.
    pub fn new(api_version: &str, kind: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// The group of the API version; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

impl Serialize for KindName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KindName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (api_version, kind) = text
            .split_once(' ')
            .ok_or_else(|| de::Error::custom(format_args!("'{text}' is no API version and kind")))?;
        Ok(Self::new(api_version, kind))
    }
}

/// The announced end of one of Kubernetes' own kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetime {
    /// The version in which the kind was deprecated.
    pub deprecated: KubeVersion,
    /// The first version without the kind; `None` if Kubernetes has announced none.
    pub gone: Option<KubeVersion>,
    /// The kind to use in its place.
    pub replacement: Option<KindName>,
}

/// The announced end of a kind; `None` for a kind without one, and for kinds that Kubernetes does not define.
pub fn lifetime(kind: &KindName) -> Option<Lifetime> {
    let row = TABLE
        .iter()
        .find(|row| row.api_version == kind.api_version && row.kinds.split(' ').any(|listed| listed == kind.kind))?;
    let replacement = (!row.replacement.is_empty()).then(|| match row.replacement.split_once(' ') {
        Some((api_version, other)) => KindName::new(api_version, other),
        None => KindName::new(row.replacement, &kind.kind),
    });
    Some(Lifetime {
        deprecated: KubeVersion(row.deprecated),
        gone: row.gone.map(KubeVersion),
        replacement,
    })
}

/// The group to which Kubernetes has moved the objects of a kind.
pub fn moved_to(kind: &KindName) -> Option<String> {
    let replacement = lifetime(kind)?.replacement?;
    let is_moved = replacement.kind == kind.kind && replacement.group() != kind.group();
    is_moved.then(|| replacement.group().to_owned())
}

/// A kind as the running API server knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// Whether the kind is certainly not served.
    pub is_gone: bool,
    /// The warning that the API server gives at a request for the kind.
    pub warning: Option<String>,
    /// The kind in the API version that the API server prefers, if that is another version.
    pub preferred: Option<KindName>,
}

/// Whether a kind can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindState {
    /// The kind is not served.
    Gone,
    /// The kind is served, but Kubernetes will or may take it away.
    Deprecated,
}

impl KindState {
    /// The state in one word, as in the label of a metric.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Deprecated => "deprecated",
        }
    }
}

/// The judgement about a kind that a chart should not use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outdated {
    /// Whether the kind can still be used.
    pub state: KindState,
    /// The version in which Kubernetes deprecated the kind; `None` if its CRD did.
    pub deprecated: Option<KubeVersion>,
    /// The first version of Kubernetes without the kind, as far as it is announced.
    pub gone: Option<KubeVersion>,
    /// The kind to use in its place.
    pub replacement: Option<KindName>,
    /// The API server's warning about the kind.
    pub warning: Option<String>,
}

/// Whether Kubernetes defines the kinds of a group.
pub fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.') || OWN.contains(&group)
}

/// An outdated kind in a release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InUse {
    /// The module of the release.
    pub module: String,
    /// The kind.
    pub kind: KindName,
    /// Whether the kind can still be used.
    pub state: KindState,
    /// The number of the release's objects of this kind.
    pub objects: usize,
}

/// Judges a kind for a version of Kubernetes; `None` if the kind can be used. `served` is the answer of an API server
/// of that version. Without `served`, only the table decides.
pub fn judge(kind: &KindName, version: KubeVersion, served: Option<&Served>) -> Option<Outdated> {
    let lifetime = lifetime(kind);
    let has_come = |at: Option<KubeVersion>| at.is_some_and(|at| at <= version);
    let deprecated = lifetime.as_ref().map(|lifetime| lifetime.deprecated);
    let gone = lifetime.as_ref().and_then(|lifetime| lifetime.gone);
    let is_gone = served.map_or(has_come(gone), |served| served.is_gone);
    let is_warned_of = served.is_some_and(|served| served.warning.is_some());
    let state = if is_gone {
        KindState::Gone
    } else if has_come(deprecated) || is_warned_of {
        KindState::Deprecated
    } else {
        return None;
    };
    let preferred = served.and_then(|served| served.preferred.clone());
    Some(Outdated {
        state,
        deprecated,
        gone,
        replacement: lifetime.and_then(|lifetime| lifetime.replacement).or(preferred),
        warning: served.and_then(|served| served.warning.clone()),
    })
}

#[cfg(test)]
mod tests;
