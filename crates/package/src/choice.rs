//! `package choose`: the versions that packages should have, by the tags of their repositories.
//!
//! One repository with one login is asked once, however many packages follow it, and each registry gets a bounded
//! number of questions a second. The list that one login gets must never answer for a package with another login. A
//! silent registry must never lead to a version.

mod asking;
mod pace;

use std::collections::BTreeMap;
use std::time::Duration;

use blocking::threads;
use channel_core::channel::{Channel, NoChannel};
use channel_core::reference::{Fault, ImageDigest, Repository, Tag};
use channel_core::selection::wish;
use command::Hinted;
use futures::StreamExt as _;
use futures::stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use settings::Environment;
use thiserror::Error;

use super::transfer::{PackageError, Reach};
use asking::{Errand, answers};

/// The number of registries that are asked side by side.
const SIDE_BY_SIDE: usize = 16;

/// A package whose version is wanted.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FollowedPackage {
    /// Any value that identifies the package; the answer has it, too.
    #[serde(default)]
    pub id: Value,
    pub repository: String,
    /// A tag, a mask, a range or a digest.
    pub version: String,
    /// The version that runs.
    #[serde(default)]
    pub running: Option<RunningVersion>,
    /// The login for this repository. Without it the logins of the command count.
    #[serde(default)]
    pub login: Option<NameAndPassword>,
}

/// The version of a package that runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningVersion {
    pub tag: Option<String>,
    pub digest: Option<String>,
}

/// A name and a password for a registry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameAndPassword {
    pub username: String,
    pub password: String,
}

impl std::fmt::Debug for NameAndPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NameAndPassword").finish_non_exhaustive()
    }
}

/// The answer for a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Value::is_null")]
    pub id: Value,
    #[serde(flatten)]
    pub found: Found,
}

/// The version for a package, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Found {
    Chosen {
        /// The tag; `None` if the version is named by its digest.
        #[serde(skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
        /// The number of the version, if the tag is a version number.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        digest: ImageDigest,
        /// Why the running version stays although the registry shows only lower ones.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
    },
    Failed {
        error: String,
        #[serde(flatten)]
        again: Again,
    },
}

/// When a question should be repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Again {
    /// The pause in seconds that the registry asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_seconds: Option<u64>,
    /// The registry was not asked, because the time was over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

/// The bounds of all questions.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// Questions a second to one registry.
    pub per_second: u32,
    /// The time after which no more questions are begun.
    pub within: Duration,
}

/// Why no package could be asked about.
#[derive(Debug, Error)]
pub enum ChooseError {
    #[error("cannot read the packages")]
    Unread(#[source] std::io::Error),
    #[error("cannot understand the packages: write a JSON list of objects with repository and version")]
    Input(#[source] serde_json::Error),
    #[error(transparent)]
    Reach(#[from] PackageError),
    #[error("{0}")]
    Failed(String),
}

impl Hinted for ChooseError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Reach(error) => error.hints(),
            _ => Vec::new(),
        }
    }
}

/// Why one package cannot be asked about.
#[derive(Debug, Error)]
enum BadPackage {
    #[error("repository '{text}': {fault}")]
    Repository { text: String, fault: Fault },
    #[error("version: {0}")]
    Version(#[from] NoChannel),
    #[error("running.digest: {0}")]
    Digest(Fault),
}

/// Reads a batch of packages.
pub fn read(text: &str) -> Result<Vec<FollowedPackage>, ChooseError> {
    serde_json::from_str(text).map_err(ChooseError::Input)
}

/// Chooses versions. The answers have the order of the packages.
pub fn choose(
    packages: Vec<FollowedPackage>,
    reach: &Reach,
    manners: Manners,
    environment: &Environment,
) -> Result<Vec<Answer>, ChooseError> {
    let mut found: Vec<Answer> = Vec::new();
    // One errand for each registry, repository and login.
    let mut errands: BTreeMap<String, BTreeMap<(Repository, Option<NameAndPassword>), Errand>> = BTreeMap::new();
    for (place, package) in packages.into_iter().enumerate() {
        found.push(Answer {
            id: package.id.clone(),
            found: failed("it was not asked about".to_owned()),
        });
        match understood(&package) {
            Err(bad) => found[place].found = failed(bad.to_string()),
            Ok((repository, wanted)) => {
                let host = errands.entry(repository.registry().to_owned()).or_default();
                let errand = host.entry((repository, package.login)).or_default();
                errand.push(place, wanted);
            }
        }
    }
    let runtime = threads::runtime().map_err(PackageError::from)?;
    let all = stream::iter(
        errands
            .into_values()
            .map(|errands| answers(errands, reach, manners, environment)),
    );
    let all: Vec<_> = runtime.block_on(all.buffer_unordered(SIDE_BY_SIDE).collect());
    for (place, answer) in all.into_iter().flatten() {
        found[place].found = answer;
    }
    Ok(found)
}

/// The version that a package should have, and the one that it has.
#[derive(Debug, Clone)]
struct Wanted {
    channel: Channel,
    tag: Option<Tag>,
    digest: Option<ImageDigest>,
}

fn understood(package: &FollowedPackage) -> Result<(Repository, Wanted), BadPackage> {
    let text = &package.repository;
    let repository = Repository::parse(text).map_err(|fault| BadPackage::Repository {
        text: text.clone(),
        fault,
    })?;
    let running = package.running.as_ref();
    // The running tag comes from another program. If it is not a valid tag, nothing is known about it.
    let tag = running.and_then(|running| Tag::parse(running.tag.as_deref()?).ok());
    let digest = running.and_then(|running| running.digest.as_deref());
    let wanted = Wanted {
        channel: wish(&package.version)?,
        tag,
        digest: digest.map(ImageDigest::parse).transpose().map_err(BadPackage::Digest)?,
    };
    Ok((repository, wanted))
}

fn failed(error: String) -> Found {
    let again = Again::default();
    Found::Failed { error, again }
}
