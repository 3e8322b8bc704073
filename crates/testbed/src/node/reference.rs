//! A reference to an image: registry, repository, and tag or digest.

use std::fmt;

use thiserror::Error;

/// As in `127.0.0.1:5000/team/app:1.2` or `…/app@sha256:…`. With both a tag and a digest, the digest counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) registry: String,
    pub(crate) repository: String,
    pub(crate) version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    Tag(String),
    Digest(String),
}

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ReferenceError {
    #[error("`{0}` names no registry on this machine, and there is no way to any other")]
    Elsewhere(String),
    #[error("`{0}` is no reference to an image")]
    Malformed(String),
}

impl Reference {
    pub(crate) fn parse(text: &str) -> Result<Self, ReferenceError> {
        let malformed = || ReferenceError::Malformed(text.to_owned());
        let (registry, rest) = text
            .split_once('/')
            .filter(|(host, _)| *host == "localhost" || host.contains([':', '.']))
            .ok_or_else(|| ReferenceError::Elsewhere(text.to_owned()))?;
        let (name, digest) = match rest.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (rest, None),
        };
        let (repository, tag) = name.split_once(':').unwrap_or((name, "latest"));
        let version = match digest {
            Some(digest) if is_digest(digest) => Version::Digest(digest.to_owned()),
            Some(_) => return Err(malformed()),
            None => Version::Tag(tag.to_owned()),
        };
        let plain = |text: &str, more: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|letter| letter.is_ascii_alphanumeric() || more.as_bytes().contains(&letter))
        };
        if !plain(repository, "-_./") || repository.split('/').any(|part| part.is_empty() || part == "..") {
            return Err(malformed());
        }
        if !plain(tag, "-_.") {
            return Err(malformed());
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            version,
        })
    }

    /// Whether the tag is `latest`, for which the default pull policy is `Always`.
    pub(crate) fn is_latest(&self) -> bool {
        self.version == Version::Tag("latest".to_owned())
    }

    /// The reference to the same image by digest, as the status of a pod names it.
    pub(crate) fn by_digest(&self, digest: &str) -> String {
        format!("{}/{}@{digest}", self.registry, self.repository)
    }
}

impl Version {
    /// The form for the URL of a manifest.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Tag(text) | Self::Digest(text) => text,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.version {
            Version::Tag(_) => ':',
            Version::Digest(_) => '@',
        };
        write!(
            out,
            "{}/{}{sign}{}",
            self.registry,
            self.repository,
            self.version.as_str()
        )
    }
}

/// Whether the text is a SHA-256 digest, the only kind that registries use.
pub(crate) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|letter| letter.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn tags_digests_and_neither() {
        let read = |text: &str| Reference::parse(text).unwrap();
        assert!(read("127.0.0.1:5000/team/app").is_latest());
        assert_eq!(
            read("localhost/app:1.2-b_3").version,
            Version::Tag("1.2-b_3".to_owned())
        );
        let both = read(&format!("127.0.0.1:5000/app:1@{DIGEST}"));
        assert_eq!(both.to_string(), format!("127.0.0.1:5000/app@{DIGEST}"));
        assert_eq!(both.by_digest(DIGEST), both.to_string());
    }

    #[test]
    fn what_is_somewhere_else_or_nowhere_is_refused() {
        let refused = |text: &str| Reference::parse(text).unwrap_err();
        assert!(matches!(refused("nginx"), ReferenceError::Elsewhere(_)));
        assert!(matches!(refused("library/nginx:1"), ReferenceError::Elsewhere(_)));
        for text in [
            "localhost/",
            "localhost/a@sha256:1",
            "localhost/../b",
            "localhost/a:",
            "localhost/a b",
        ] {
            assert!(matches!(refused(text), ReferenceError::Malformed(_)), "{text}");
        }
    }
}
