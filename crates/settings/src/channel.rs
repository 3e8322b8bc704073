//! The settings of the release channel: whether the registry of the operator's image is followed, which registries may
//! be asked, and which keys count.
//!
//! They have variables only. Must never open a file: a path stays a text, and the code that reads it names the
//! variable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use channel_core::reference::Repository;

use super::ConfigurationError;
use super::said::Setting;
use super::words::{Checked, Words};

/// The variable that switches the channel on or off.
pub const CHANNEL: &str = "ADDON_OPERATOR_CHANNEL";
/// The variable with the file of registries' authorities.
pub const AUTHORITY: &str = "ADDON_OPERATOR_CHANNEL_CA";
/// The variable with the file or directory of public keys.
pub const KEYS: &str = "ADDON_OPERATOR_VERIFICATION_KEYS";
/// The variable with the file of the token for announcing a new version.
pub const NOTIFY_TOKEN: &str = "ADDON_OPERATOR_NOTIFY_TOKEN";

const REGISTRIES: &str = "ADDON_OPERATOR_CHANNEL_REGISTRIES";
const MIRRORS: &str = "ADDON_OPERATOR_CHANNEL_MIRRORS";
const PLAIN_HTTP: &str = "ADDON_OPERATOR_CHANNEL_PLAIN_HTTP";
const POD: &str = "ADDON_OPERATOR_POD";
const HOSTS: &str = "addresses of registries such as registry.example:5000, joined by commas";

/// All settings about registries and signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSettings {
    /// Whether the registry is followed.
    pub follow: Follow,
    /// Registries that may be asked in addition to the one of the operator's image.
    pub registries: BTreeSet<String>,
    /// Mirrors of registries, in the order in which they are asked.
    pub mirrors: BTreeMap<String, Vec<MirrorAt>>,
    /// Registries and mirrors that are asked without TLS.
    pub plain: BTreeSet<String>,
    /// Authorities that are trusted in addition to the machine's.
    pub authority: Option<PathBuf>,
    /// Public keys, one of which must have signed a version: a file, or all files of a directory.
    pub keys: Option<PathBuf>,
    /// The file of the token for announcing a new version.
    pub notify_token: Option<PathBuf>,
}

/// Whether the registry is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    /// The registry is followed. The text is the name of the operator's pod.
    As(String),
    /// A setting forbids the operator to follow the registry.
    Refused,
    /// The operator's pod is unknown, so its image is unknown.
    NoPod,
}

/// A mirror: another registry with the same images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorAt {
    /// The host of the registry.
    pub host: String,
    /// The folder of the images, if they are not at the root of the registry.
    pub below: Option<String>,
}

impl Words<'_> {
    pub(super) fn channel(&self) -> Checked<Box<ChannelSettings>> {
        let said = |variable| Setting::look_up(self.environment, "", None, &[variable]);
        let hosts = |variable| -> Checked<BTreeSet<String>> {
            let listed = said(variable)?.parsed(HOSTS, |text| list(text, host))?;
            Ok(listed.unwrap_or_default().into_iter().collect())
        };
        let mut mirrors: BTreeMap<String, Vec<MirrorAt>> = BTreeMap::new();
        let listed = said(MIRRORS)?.parsed(
            "REGISTRY=MIRROR or REGISTRY=MIRROR/FOLDER such as docker.io=mirror.example/hub, joined by commas",
            |text| list(text, mirror),
        )?;
        for (of, mirror) in listed.unwrap_or_default() {
            mirrors.entry(of).or_default().push(mirror);
        }
        Ok(Box::new(ChannelSettings {
            follow: self.follow()?,
            registries: hosts(REGISTRIES)?,
            mirrors,
            plain: hosts(PLAIN_HTTP)?,
            authority: said(AUTHORITY)?.path(),
            keys: said(KEYS)?.path(),
            notify_token: said(NOTIFY_TOKEN)?.path(),
        }))
    }

    fn follow(&self) -> Checked<Follow> {
        let wanted = Setting::look_up(self.environment, "", None, &[CHANNEL])?;
        let wanted = wanted.parsed("true or false", super::boolean::parse)?;
        match (wanted, self.pod_name()?) {
            (Some(false), _) => Ok(Follow::Refused),
            (Some(true) | None, Some(pod)) => Ok(Follow::As(pod)),
            (Some(true), None) => Err(ConfigurationError::Needed { name: POD, by: CHANNEL }),
            (None, None) => Ok(Follow::NoPod),
        }
    }
}

fn list<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(read).collect()
}

/// The name of a registry in references to images.
fn host(text: &str) -> Option<String> {
    let repository = Repository::parse(&format!("{text}/image")).ok()?;
    // A name without a dot or a port would be taken for a folder of Docker Hub.
    let is_meant = !text.contains('/') && repository.path().ends_with("image") && !repository.path().starts_with(text);
    is_meant.then(|| repository.registry().to_ascii_lowercase())
}

fn mirror(text: &str) -> Option<(String, MirrorAt)> {
    let (of, place) = text.split_once('=')?;
    let (address, below) = match place.split_once('/') {
        Some((address, below)) => {
            Repository::parse(place).ok()?;
            (address, Some(below.to_owned()))
        }
        None => (place, None),
    };
    let mirror = MirrorAt {
        host: host(address)?,
        below,
    };
    Some((host(of)?, mirror))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_an_address_as_images_have_it() {
        for (text, read) in [
            ("registry.example", Some("registry.example")),
            ("Registry.example:5000", Some("registry.example:5000")),
            ("localhost", Some("localhost")),
            ("127.0.0.1:5000", Some("127.0.0.1:5000")),
            ("[::1]:5000", Some("[::1]:5000")),
            ("docker.io", Some("docker.io")),
            ("index.docker.io", Some("docker.io")),
            ("registry", None),
            ("registry.example/team", None),
            ("https://registry.example", None),
            ("registry.example:no", None),
            ("a b", None),
        ] {
            assert_eq!(host(text).as_deref(), read, "{text}");
        }
    }

    #[test]
    fn a_mirror_may_have_a_folder() {
        let read = |text: &str| {
            let (of, MirrorAt { host, below }) = mirror(text)?;
            Some(format!("{of} {host} {}", below.unwrap_or_default()))
        };
        for (text, shown) in [
            ("docker.io=mirror.example", Some("docker.io mirror.example ")),
            (
                "docker.io=mirror.example:5000/hub/a",
                Some("docker.io mirror.example:5000 hub/a"),
            ),
            ("docker.io", None),
            ("docker.io=", None),
            ("docker.io=mirror", None),
            ("docker.io=mirror.example/", None),
            ("docker.io=mirror.example/Hub", None),
        ] {
            assert_eq!(read(text).as_deref(), shown, "{text}");
        }
    }
}
