//! Parses names of images as pods have them: registry, repository, tag, digest.
//!
//! A value of these types is always valid, so that callers need no checks. Must never guess the meaning of an invalid text.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The registry of an image name that names no registry.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Other names of the default registry `docker.io`.
const DEFAULT_REGISTRY_ALIASES: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];
/// The folder of an image name at the default registry that names no folder.
const DEFAULT_FOLDER: &str = "library/";
/// The tag of a name that has neither tag nor digest.
const DEFAULT_TAG: &str = "latest";
const DIGEST_PREFIX: &str = "sha256:";
const DIGEST_DIGITS: usize = 64;
const LONGEST_REPOSITORY: usize = 255;
const LONGEST_TAG: usize = 128;

/// The error for a text that is no name of an image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is no name of an image: {fault}")]
pub struct ReferenceError {
    /// The text that is no name of an image.
    pub text: String,
    /// The mistake in the text.
    pub fault: Fault,
}

/// A mistake in a name of an image, or in a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text has no repository, but only a digest.
    #[error("it is the id of an image on one machine, and names no repository")]
    OnlyId,
    /// The part before the first slash is no valid address.
    #[error("'{0}' should be the address of a registry, as in registry.example.com:5000")]
    Registry(String),
    /// The path is no valid path of a repository.
    #[error(
        "'{0}' should be the path of a repository: small letters and digits, with single dots, underscores and dashes \
         between them, and slashes between folders"
    )]
    Path(String),
    /// The name is longer than registries accept.
    #[error("its repository is longer than {LONGEST_REPOSITORY} characters")]
    Long,
    /// The tag is invalid.
    #[error(
        "'{0}' should be a tag: at most {LONGEST_TAG} letters, digits, underscores, dots and dashes, with neither a dot \
         nor a dash at its beginning"
    )]
    Tag(String),
    /// The digest is invalid.
    #[error("'{0}' should be a digest: sha256: and {DIGEST_DIGITS} digits of 0-9 and a-f")]
    Digest(String),
}

/// The digest of a manifest or an index: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageDigest(Arc<str>);

impl ImageDigest {
    /// Reads a digest.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let digits = text.strip_prefix(DIGEST_PREFIX).unwrap_or_default().as_bytes();
        let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if digits.len() == DIGEST_DIGITS && digits.iter().all(is_digit) {
            Ok(Self(text.into()))
        } else {
            Err(Fault::Digest(text.to_owned()))
        }
    }

    /// Whether a text begins like a digest, so that an error should say what is wrong with the digest.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(DIGEST_PREFIX)
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The tag of an image.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(Arc<str>);

impl Tag {
    /// Reads a tag.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_tag = text.len() <= LONGEST_TAG
            && text.bytes().next().is_some_and(is_word)
            && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte));
        if is_tag {
            Ok(Self(text.into()))
        } else {
            Err(Fault::Tag(text.to_owned()))
        }
    }

    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A repository with its registry, both in full: `docker.io/library/alpine`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Repository {
    registry: Arc<str>,
    path: Arc<str>,
}

impl Repository {
    /// Reads a repository, with or without its registry.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::Empty);
        }
        let is_address = |first: &str| {
            let is_name = first.chars().any(|c| ".:[".contains(c) || c.is_ascii_uppercase());
            is_name || first == "localhost"
        };
        let (registry, path) = match text.split_once('/') {
            Some((first, rest)) if is_address(first) => (first, rest),
            Some(_) | None => (DEFAULT_REGISTRY, text),
        };
        let registry = if DEFAULT_REGISTRY_ALIASES.contains(&registry) {
            DEFAULT_REGISTRY
        } else {
            registry
        };
        let path = if registry == DEFAULT_REGISTRY && !path.contains('/') {
            format!("{DEFAULT_FOLDER}{path}")
        } else {
            path.to_owned()
        };
        if !is_registry(registry) {
            return Err(Fault::Registry(registry.to_owned()));
        }
        if !path.split('/').all(is_folder) {
            return Err(Fault::Path(path));
        }
        if registry.len() + 1 + path.len() > LONGEST_REPOSITORY {
            return Err(Fault::Long);
        }
        Ok(Self {
            registry: registry.into(),
            path: path.into(),
        })
    }

    /// The registry with its port, if it has one.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path of the repository in its registry.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Whether a text is a host, with or without a port: a name, an IPv4 address, or an IPv6 address in brackets.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_host = if text.starts_with('[') {
        host.parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        host.split('.').all(|label| {
            let ends = label.bytes().next().into_iter().chain(label.bytes().next_back());
            let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !label.is_empty()
                && ends.into_iter().all(|byte| byte.is_ascii_alphanumeric())
                && label.bytes().all(is_inside)
        })
    };
    let is_port = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok();
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// Whether a text is a valid part of a path: words of lower-case letters and digits, with one dot, one or two underscores
/// or any number of dashes between them.
fn is_folder(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_between = |between: &str| matches!(between, "." | "_" | "__") || between.chars().all(|c| c == '-');
    let mut rest = text;
    loop {
        let Some(end) = rest.find(|c| !is_letter(c)) else {
            return !rest.is_empty();
        };
        let tail = &rest[end..];
        let next = tail.find(is_letter);
        let Some(next) = next.filter(|next| end > 0 && is_between(&tail[..*next])) else {
            return false;
        };
        rest = &tail[next..];
    }
}

/// The name of an image: a repository, and perhaps a tag and a digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The repository.
    pub repository: Repository,
    /// The tag, if the image name has one.
    pub tag: Option<Tag>,
    /// The digest, if the image name has one. Then the tag has no effect on a pull.
    pub digest: Option<ImageDigest>,
}

impl Reference {
    /// Reads the image of a container: `[registry/]repository[:tag][@sha256:…]`.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::read(text).map_err(|fault| ReferenceError {
            text: text.to_owned(),
            fault,
        })
    }

    /// Reads the `imageID` of a container: the name of an image behind the prefix of a container runtime.
    pub fn parse_image_id(text: &str) -> Result<Self, ReferenceError> {
        let name = text.split_once("://").map_or(text, |(_, name)| name);
        let read = if ImageDigest::is_meant(name) {
            Err(Fault::OnlyId)
        } else {
            Self::read(name)
        };
        read.map_err(|fault| ReferenceError {
            text: text.to_owned(),
            fault,
        })
    }

    fn read(text: &str) -> Result<Self, Fault> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(ImageDigest::parse(digest)?)),
            None => (text, None),
        };
        // A colon before a slash belongs to a port.
        let colon = name.rfind(':').filter(|colon| !name[*colon..].contains('/'));
        let (name, tag) = match colon {
            Some(colon) => (&name[..colon], Some(Tag::parse(&name[colon + 1..])?)),
            None => (name, None),
        };
        Ok(Self {
            repository: Repository::parse(name)?,
            tag,
            digest,
        })
    }

    /// The tag that the image follows: its own, or `latest` if it has neither tag nor digest. `None` if it has only a digest.
    pub fn followed_tag(&self) -> Option<Tag> {
        let default = || self.digest.is_none().then(|| Tag(DEFAULT_TAG.into()));
        self.tag.clone().or_else(default)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

/// The conversions between a checked type and plain texts.
macro_rules! as_text {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl TryFrom<String> for $name {
            type Error = Fault;

            fn try_from(text: String) -> Result<Self, Fault> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.to_string()
            }
        }
    };
}

as_text!(ImageDigest);
as_text!(Tag);
as_text!(Repository);

impl fmt::Display for ImageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
