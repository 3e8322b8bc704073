//! The names of images and their versions: hosts, repositories, tags and digests, each validated once.
//!
//! A valid name can be used in a URL without escaping. Must never guess: a name is either valid or refused.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use channel_core::reference::{ImageDigest, Tag};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The error for an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is no {kind}: it should be {should}")]
pub struct BadName {
    text: String,
    kind: &'static str,
    should: &'static str,
}

/// The name of Docker Hub in references to images.
const DOCKER: &str = "docker.io";
/// The host that serves Docker Hub, and another name of it.
const DOCKER_SERVER: &str = "registry-1.docker.io";
const DOCKER_INDEX: &str = "index.docker.io";

/// A host with its port, in lower case, in the form before the first `/` of an image reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

impl FromStr for Host {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let bad = || BadName {
            text: text.to_owned(),
            kind: "host",
            should: "a DNS name or an address, as in registry.example:5000",
        };
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (text, None),
        };
        let digits = |port: &str| port.bytes().all(|letter| letter.is_ascii_digit());
        let port = match port {
            None => None,
            Some(port) => Some(
                port.parse()
                    .ok()
                    .filter(|&number| number > 0 && digits(port))
                    .ok_or_else(bad)?,
            ),
        };
        let name = name.to_ascii_lowercase();
        if !is_address(&name) && !is_domain(&name) {
            return Err(bad());
        }
        if port.is_none() && [DOCKER_SERVER, DOCKER_INDEX].contains(&name.as_str()) {
            let name = DOCKER.to_owned();
            return Ok(Self { name, port });
        }
        Ok(Self { name, port })
    }
}

fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
}

fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        let within = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
        !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && label.bytes().all(within)
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

impl Host {
    /// The name or address without the port; an IPv6 address is in brackets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port, if there is one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The host that serves this registry's images.
    #[must_use]
    pub fn server(&self) -> Self {
        if self.name == DOCKER && self.port.is_none() {
            let name = DOCKER_SERVER.to_owned();
            return Self { name, port: None };
        }
        self.clone()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The name of a repository at its registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository(String);

impl FromStr for Repository {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let within = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"._-".contains(&letter);
        let ends = |part: &str| part.starts_with(is_plain) && part.ends_with(is_plain);
        let is_good = text.len() <= 255 && text.split('/').all(|part| ends(part) && part.bytes().all(within));
        is_good.then(|| Self(text.to_owned())).ok_or_else(|| BadName {
            text: text.to_owned(),
            kind: "repository",
            should: "names of small letters, digits, '.', '_' and '-' with '/' between them",
        })
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

impl Repository {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The repository below another one, as some mirrors have it.
    #[must_use]
    pub fn within(&self, outer: &Self) -> Self {
        Self(format!("{outer}/{self}"))
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A repository at a registry, which has all versions of an image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImagePlace {
    /// The registry.
    pub host: Host,
    pub repository: Repository,
}

impl FromStr for ImagePlace {
    type Err = BadName;

    /// Parses a full name: Docker Hub is `docker.io`, and its official images are in `library`.
    fn from_str(text: &str) -> Result<Self, BadName> {
        let (host, repository) = text.split_once('/').ok_or_else(|| BadName {
            text: text.to_owned(),
            kind: "place of an image",
            should: "a host, '/' and a repository, as in registry.example/team/app",
        })?;
        Ok(Self {
            host: host.parse()?,
            repository: repository.parse()?,
        })
    }
}

impl fmt::Display for ImagePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)
    }
}

/// The digest of a content.
pub fn digest_of(content: &[u8]) -> ImageDigest {
    digest(Sha256::digest(content).into())
}

/// The digest of all that can be read.
pub(super) fn digest_of_all(mut content: impl Read) -> io::Result<ImageDigest> {
    let mut sum = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match content.read(&mut piece)? {
            0 => return Ok(digest(sum.finalize().into())),
            length => sum.update(&piece[..length]),
        }
    }
}

fn digest(sum: [u8; 32]) -> ImageDigest {
    let halves = sum.into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits: String = halves.filter_map(|half| char::from_digit(half.into(), 16)).collect();
    ImageDigest::parse(&format!("sha256:{digits}")).expect("a SHA-256 has 64 digits")
}

/// The referrers tag of a version, for registries without the referrers API.
pub fn tag_of(digest: &ImageDigest) -> Tag {
    Tag::parse(&digest.as_str().replace(':', "-")).expect("a digest without its colon is a tag")
}

/// A reference to a version of an image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// The version to which a tag leads at present.
    Tag(Tag),
    /// Exactly the version with this digest.
    Digest(ImageDigest),
}

impl Reference {
    /// The form in a URL.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tag(tag) => tag.as_str(),
            Self::Digest(digest) => digest.as_str(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, "tag '{tag}'"),
            Self::Digest(digest) => write!(f, "{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses_with_or_without_a_port() {
        for (text, shown) in [
            ("Registry.Example", "registry.example"),
            ("registry.example:5000", "registry.example:5000"),
            ("127.0.0.1:5000", "127.0.0.1:5000"),
            ("[::1]:5000", "[::1]:5000"),
            ("[::1]", "[::1]"),
            ("index.docker.io", "docker.io"),
            ("registry-1.docker.io", "docker.io"),
        ] {
            assert_eq!(text.parse::<Host>().unwrap().to_string(), shown, "{text}");
        }
        let bad = [
            "", ":5000", "a:", "a:0", "a:+5", "a:65536", "a/b", "a@b", "a b", "a..b", "-a", "::1", "[a]", "a?b", "a#",
        ];
        for text in bad {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
        let docker: Host = "docker.io".parse().unwrap();
        assert_eq!(docker.server().to_string(), "registry-1.docker.io");
    }

    #[test]
    fn what_could_lead_elsewhere_in_an_address_is_no_name() {
        for text in ["a", "team/app", "a--b/c_d/e.f"] {
            assert_eq!(text.parse::<Repository>().unwrap().as_str(), text);
        }
        for text in ["", "/a", "a/", "a//b", "a/../b", "A", "a?n=1", "a b", "a%2f", "-a"] {
            assert!(text.parse::<Repository>().is_err(), "{text}");
        }
        let place: ImagePlace = "registry.example:5000/team/app".parse().unwrap();
        assert_eq!((place.host.port(), place.repository.as_str()), (Some(5000), "team/app"));
        for text in ["app", "registry.example", "registry.example/", "/app", "a b/c"] {
            assert!(text.parse::<ImagePlace>().is_err(), "{text}");
        }
    }

    #[test]
    fn digests_are_those_of_sha256() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest_of(b"").as_str(), empty);
        assert_eq!(tag_of(&digest_of(b"")).as_str(), empty.replace(':', "-"));
    }
}
