//! The commands by which a person chooses the version of the operator. Each edits the ConfigMap. A rollback also edits
//! the Deployment, so that it works without an operator, and a resume notes there that the image is not held.
//!
//! The ConfigMap is edited first, so that a failure in between leaves no Deployment that contradicts the channel. Must
//! never make a change that was not shown before.

use std::collections::BTreeSet;

use channel_core::channel::{Channel, NoChannel};
use channel_core::reference::{Fault, ImageDigest, Reference, ReferenceError};
use channel_core::settings as release;
use channel_core::settings::ApprovalError;
use command::edit::{self, Edit, EditError};
use command::{Hinted, reach};
use jiff::Timestamp;
use kube_access::Cluster;
use names::{RELEASE_APPROVED, RELEASE_CHANNEL};
use serde_json::Value;
use settings::{Environment, Program, StartArgs};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::deployment::{self, DeploymentError, Seen};
use crate::installation::FORMER_IMAGE;

/// Why nothing, or not everything, was changed.
#[derive(Debug, Error)]
pub enum ChannelError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    #[error(transparent)]
    Digest(#[from] Fault),
    #[error(transparent)]
    Channel(#[from] NoChannel),
    #[error("key '{RELEASE_APPROVED}' of the ConfigMap cannot be read, so that nothing is added to it")]
    Approved(#[from] ApprovalError),
    #[error("Deployment '{name}' names no image that can be read")]
    Image { name: String, source: ReferenceError },
    #[error("Deployment '{name}' does not record the image that it named before")]
    NoFormer { name: String },
    #[error("the image '{image}', which Deployment '{name}' named before, has no digest")]
    FormerByTag { name: String, image: String },
    #[error("the image '{image}' names no tag, so that without {RELEASE_CHANNEL} nothing would be followed")]
    NoTag { image: String },
    #[error("no version is available: the state is {state}")]
    NothingAvailable { state: String },
    #[error("the registry is not asked: {message}")]
    NotChecked { message: String },
    #[error("cannot understand the operator's answer")]
    Answer(#[from] serde_json::Error),
    #[error("{RELEASE_CHANNEL} is set, but the Deployment is not changed")]
    Half(#[source] DeploymentError),
}

impl Hinted for ChannelError {
    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Edit(error) => return error.hints(),
            Self::Deployment(DeploymentError::Request(failure)) => return failure.hints.clone(),
            Self::Deployment(DeploymentError::None { .. } | DeploymentError::Several { .. }) => {
                "--namespace names the namespace to search, and --deployment the Deployment, without regard to its labels"
            }
            Self::Deployment(DeploymentError::Changed { .. }) => {
                "look again, and repeat the command if it is still wanted"
            }
            Self::Deployment(DeploymentError::NoDigest { .. }) => {
                "name the digest: `addon-operator channel pin sha256:…`"
            }
            Self::NoFormer { .. } | Self::FormerByTag { .. } => {
                "name the digest: `addon-operator channel rollback sha256:…`; `kubectl rollout history` may know it"
            }
            Self::NoTag { .. } => "--channel names the tag or range of versions to follow",
            Self::NotChecked { .. } => "`addon-operator channel status` shows the state of the channel",
            Self::NothingAvailable { .. } => {
                "`addon-operator channel status` shows the reason; a digest can be named, too"
            }
            Self::Half(_) => {
                "an operator that runs tries that version by itself; the same command again changes the Deployment"
            }
            Self::Approved(_) => "correct it: write digests with blanks or commas between them, or a list of them",
            Self::Deployment(DeploymentError::Container { .. })
            | Self::Digest(_)
            | Self::Channel(_)
            | Self::Image { .. }
            | Self::Answer(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

/// Whether digests are approved, or their approval is withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    Given,
    TakenBack,
}

/// The version that waits for approval, as the operator reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    pub digest: String,
    /// The version's name for people.
    pub name: String,
}

impl Available {
    /// Reads the version from the JSON of a status.
    pub fn read(status: &str) -> Result<Self, ChannelError> {
        let status: Value = serde_json::from_str(status)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let available = &status["available"];
        let digest = text(&available["digest"]).ok_or_else(|| ChannelError::NothingAvailable {
            state: text(&status["state"]).unwrap_or_else(|| "unknown".to_owned()),
        })?;
        let name = text(&available["version"]).or_else(|| text(&available["tag"]));
        Ok(Self {
            name: name.unwrap_or_else(|| digest.clone()),
            digest,
        })
    }
}

/// The ConfigMap and the Deployment of an operator, whether it runs or not.
#[derive(Debug)]
pub struct Site {
    config_map: String,
    deployment: Option<String>,
    cluster: Cluster,
    runtime: Runtime,
}

/// The planned change of the Deployment.
#[derive(Debug)]
enum Deed {
    Put { seen: Seen, image: String },
    NoteResumed(Seen),
}

/// The planned changes of the ConfigMap and the Deployment.
#[derive(Debug)]
pub struct Plan {
    site: Site,
    edit: Edit,
    deed: Option<Deed>,
    /// Remarks for the person, shown beside the changes.
    remarks: Vec<String>,
}

impl Site {
    /// Finds the site by the settings. The Deployment is the one with the given name, or the only one with the
    /// operator's labels.
    pub fn reach(
        args: &StartArgs,
        environment: &Environment,
        deployment: Option<String>,
    ) -> Result<Self, ChannelError> {
        let (settings, runtime, cluster) = reach::with_runtime(args, environment).map_err(EditError::from)?;
        Ok(Self {
            config_map: edit::config_map(&settings),
            deployment,
            cluster,
            runtime,
        })
    }

    /// Plans the approval of digests, or its withdrawal.
    pub fn approve(self, digests: &[String], approval: Approval) -> Result<Plan, ChannelError> {
        let meant: BTreeSet<ImageDigest> = digests
            .iter()
            .map(|text| ImageDigest::parse(text.trim()))
            .collect::<Result<_, _>>()?;
        let current = self.current(RELEASE_APPROVED)?;
        let before = release::approved(current.as_deref().unwrap_or_default())?;
        let after: BTreeSet<ImageDigest> = match approval {
            Approval::Given => before.union(&meant).cloned().collect(),
            Approval::TakenBack => before.difference(&meant).cloned().collect(),
        };
        let words: Vec<&str> = after.iter().map(ImageDigest::as_str).collect();
        let wanted = match (after == before, words.is_empty()) {
            // The key has the wanted digests already, in another notation.
            (true, _) => current.clone(),
            (false, true) => None,
            (false, false) => Some(words.join("\n")),
        };
        Ok(self.plan(RELEASE_APPROVED, current, wanted))
    }

    /// Plans to hold a digest; without one, the digest that runs.
    pub fn pin(self, digest: Option<&str>) -> Result<Plan, ChannelError> {
        let current = self.current(RELEASE_CHANNEL)?;
        let digest = match digest {
            Some(digest) => ImageDigest::parse(digest.trim())?,
            None => self
                .runtime
                .block_on(deployment::digest_of(&self.cluster, &self.seen()?))?,
        };
        let back = way_back(current.as_deref());
        let mut plan = self.plan(RELEASE_CHANNEL, current, Some(digest.to_string()));
        plan.remarks.push(back);
        Ok(plan)
    }

    /// Plans the end of a hold. The operator then follows `channel`. Without it, the operator follows the present
    /// channel, or the image's tag if a digest was held.
    pub fn resume(self, channel: Option<&str>) -> Result<Plan, ChannelError> {
        let current = self.current(RELEASE_CHANNEL)?;
        let is_digest = current.as_deref().is_some_and(ImageDigest::is_meant);
        let wanted = match channel {
            Some(channel) => Some(Channel::parse(channel)?.to_string()),
            None => current.clone().filter(|_| !is_digest),
        };
        let seen = self.seen();
        let mut remarks = Vec::new();
        let deed = match seen {
            Ok(seen) => {
                let named = image(&seen)?;
                if wanted.is_none() && named.followed_tag().is_none() {
                    return Err(ChannelError::NoTag { image: seen.image });
                }
                Some(Deed::NoteResumed(seen))
            }
            // In most cases the change of the ConfigMap is enough.
            Err(error) => {
                remarks.push(format!(
                    "The Deployment is left alone ({error}): an image that a person put there by its digest is held on"
                ));
                None
            }
        };
        let mut plan = self.plan(RELEASE_CHANNEL, current, wanted);
        (plan.deed, plan.remarks) = (deed, remarks);
        Ok(plan)
    }

    /// Plans to return to a digest, or to the image before the last change, and to hold it.
    pub fn rollback(self, digest: Option<&str>) -> Result<Plan, ChannelError> {
        let current = self.current(RELEASE_CHANNEL)?;
        let seen = self.seen()?;
        let (image, digest) = match digest {
            Some(digest) => {
                let digest = ImageDigest::parse(digest.trim())?;
                image(&seen)?;
                // The new image keeps the notation of the old one, and its tag, which is followed again after the hold.
                let name = seen.image.split_once('@').map_or(seen.image.as_str(), |(name, _)| name);
                (format!("{name}@{digest}"), digest)
            }
            None => former(&seen)?,
        };
        let mut plan = self.plan(RELEASE_CHANNEL, current.clone(), Some(digest.to_string()));
        if image != seen.image {
            plan.deed = Some(Deed::Put { seen, image });
        }
        plan.remarks.push(way_back(current.as_deref()));
        Ok(plan)
    }

    fn current(&self, key: &str) -> Result<Option<String>, ChannelError> {
        let data = edit::read(&self.runtime, &self.cluster, &self.config_map)?;
        Ok(data.get(key).cloned())
    }

    fn seen(&self) -> Result<Seen, DeploymentError> {
        let find =
            deployment::find_deployment(&self.cluster, Program::AddonOperator.name(), self.deployment.as_deref());
        self.runtime.block_on(find)
    }

    fn plan(self, key: &str, current: Option<String>, wanted: Option<String>) -> Plan {
        Plan {
            edit: Edit {
                key: key.to_owned(),
                current,
                wanted,
            },
            site: self,
            deed: None,
            remarks: Vec::new(),
        }
    }
}

fn former(seen: &Seen) -> Result<(String, ImageDigest), ChannelError> {
    let name = || seen.name.clone();
    let image = seen
        .former
        .clone()
        .ok_or_else(|| ChannelError::NoFormer { name: name() })?;
    let read = Reference::parse(&image).map_err(|source| ChannelError::Image { name: name(), source })?;
    match read.digest {
        Some(digest) => Ok((image, digest)),
        None => Err(ChannelError::FormerByTag { name: name(), image }),
    }
}

fn image(seen: &Seen) -> Result<Reference, ChannelError> {
    Reference::parse(&seen.image).map_err(|source| ChannelError::Image {
        name: seen.name.clone(),
        source,
    })
}

/// The command with which a person ends the hold of a digest.
fn way_back(current: Option<&str>) -> String {
    let followed = current.filter(|channel| !ImageDigest::is_meant(channel));
    let channel = followed.map(|channel| format!(" --channel '{}'", channel.trim()));
    format!(
        "It is held until `addon-operator channel resume{}`",
        channel.unwrap_or_default()
    )
}

impl Plan {
    /// Whether nothing has to be changed.
    pub fn is_done(&self) -> bool {
        self.edit.is_done() && self.deed.is_none()
    }

    /// The edit of the ConfigMap.
    pub fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The ConfigMap's name and namespace and the API server, for people.
    pub fn place(&self) -> String {
        edit::place(&self.site.cluster, &self.site.config_map)
    }

    /// The change of the Deployment and the remarks, for people.
    pub fn besides(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.deed {
            Some(Deed::Put { seen, image }) => {
                let (name, now) = (&seen.name, &seen.image);
                lines.push(format!("Deployment '{name}'"));
                lines.push(format!(
                    "  image: '{now}' -> '{image}' ({FORMER_IMAGE} notes the former one)"
                ));
            }
            Some(Deed::NoteResumed(seen)) => {
                let (name, image) = (&seen.name, &seen.image);
                lines.push(format!("Deployment '{name}'"));
                lines.push(format!("  an annotation says that '{image}' is not held"));
            }
            None => {}
        }
        lines.extend(self.remarks.iter().cloned());
        lines
    }

    /// Carries out the plan, unless another writer has changed the ConfigMap or the Deployment since. Returns the new
    /// state for people.
    pub fn carry_out(&self) -> Result<Vec<String>, ChannelError> {
        let Site {
            config_map,
            deployment: _,
            cluster,
            runtime,
        } = &self.site;
        let mut done = Vec::new();
        if !self.edit.is_done() {
            self.edit.carry_out(runtime, cluster, config_map)?;
            done.push(format!("{} is {} now", self.edit.key, self.edit.wanted()));
        }
        match &self.deed {
            Some(Deed::Put { seen, image }) => {
                let why = format!("addon-operator channel rollback: from {}", seen.image);
                let put = runtime.block_on(deployment::put_image(cluster, seen, image, &why));
                put.map_err(ChannelError::Half)?;
                done.push(format!("Deployment '{}' names '{image}' now", seen.name));
            }
            Some(Deed::NoteResumed(seen)) => {
                let at = format!("{:.0}", Timestamp::now());
                runtime.block_on(deployment::note_resumed(cluster, seen, &at))?;
                done.push(format!("Deployment '{}' is followed by others again", seen.name));
            }
            None => {}
        }
        Ok(done)
    }
}
