//! A place in the image: a path below its root.
//!
//! A place must never lead out of the root, and never have the name of a whiteout.

use std::fmt;

use serde::Deserialize;
use thiserror::Error;

/// A path below the root, stored without its leading slash. The root itself is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ImagePath(String);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlaceError {
    #[error("'{0}' does not begin with a slash")]
    Relative(String),
    #[error("'{0}' has a part that no path of an image may have")]
    Part(String),
}

/// The prefix of whiteouts: files by which a layer deletes files of the layers below it.
const WHITEOUT: &str = ".wh.";

impl ImagePath {
    /// The root of the image.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses a place as people write it, from the root: `/usr/bin/jq`.
    pub fn absolute(text: &str) -> Result<Self, PlaceError> {
        match text.strip_prefix('/') {
            Some(rest) => Self::parts(text, rest.trim_end_matches('/')),
            None => Err(PlaceError::Relative(text.to_owned())),
        }
    }

    /// Parses a place as archives write it: `./usr/bin/`.
    pub fn in_archive(text: &str) -> Result<Self, PlaceError> {
        let rest = text
            .strip_prefix('.')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        Self::parts(text, rest.unwrap_or(text).trim_matches('/'))
    }

    fn parts(whole: &str, inner: &str) -> Result<Self, PlaceError> {
        let odd = |part: &str| matches!(part, "" | "." | "..") || part.starts_with(WHITEOUT);
        if !inner.is_empty() && inner.split('/').any(odd) {
            return Err(PlaceError::Part(whole.to_owned()));
        }
        Ok(Self(inner.to_owned()))
    }

    /// The place with this name or relative path below this one.
    pub fn join(&self, inner: &str) -> Result<Self, PlaceError> {
        let whole = if self.0.is_empty() {
            inner.to_owned()
        } else {
            format!("{}/{inner}", self.0)
        };
        Self::parts(&whole, &whole)
    }

    /// The folder that contains the place; none for the root.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        (!self.0.is_empty()).then(|| Self(parent.to_owned()))
    }

    /// The names of the path, from the root.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Whether the place is `folder` or below it.
    pub fn is_within(&self, folder: &Self) -> bool {
        let rest = self.0.strip_prefix(&folder.0);
        rest.is_some_and(|rest| rest.is_empty() || folder.0.is_empty() || rest.starts_with('/'))
    }

    /// The form in archives of layers, without a leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ImagePath {
    type Error = PlaceError;

    fn try_from(text: String) -> Result<Self, PlaceError> {
        Self::absolute(&text)
    }
}

impl fmt::Display for ImagePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_archives_name_the_same_place() {
        let place = ImagePath::absolute("/usr/bin/jq").unwrap();
        assert_eq!(place.as_str(), "usr/bin/jq");
        assert_eq!(place.to_string(), "/usr/bin/jq");
        for text in ["./usr/bin/jq", "usr/bin/jq", "/usr/bin/jq", "./usr/bin/jq/"] {
            assert_eq!(ImagePath::in_archive(text).unwrap(), place, "{text}");
        }
        for text in ["./", ".", "/", ""] {
            assert_eq!(ImagePath::in_archive(text).unwrap(), ImagePath::root(), "{text}");
        }
        assert_eq!(ImagePath::in_archive(".profile").unwrap().as_str(), ".profile");
    }

    #[test]
    fn nothing_leads_out_and_nothing_deletes() {
        assert_eq!(ImagePath::absolute("usr"), Err(PlaceError::Relative("usr".to_owned())));
        for text in ["/a/../b", "/..", "/a//b", "/a/./b", "/a/.wh.b", "/.wh..wh..opq"] {
            assert_eq!(
                ImagePath::absolute(text),
                Err(PlaceError::Part(text.to_owned())),
                "{text}"
            );
        }
        assert!(ImagePath::root().join("../a").is_err());
    }

    #[test]
    fn a_place_knows_what_it_is_in() {
        let place = ImagePath::absolute("/usr/share/man").unwrap();
        let within = |folder: &str| place.is_within(&ImagePath::absolute(folder).unwrap());
        assert!(within("/usr/share/man") && within("/usr") && within("/"));
        assert!(!within("/usr/sh") && !within("/usr/share/man/man1"));
        assert_eq!(place.parent(), Some(ImagePath::absolute("/usr/share").unwrap()));
        assert_eq!(ImagePath::absolute("/usr").unwrap().parent(), Some(ImagePath::root()));
        assert_eq!(ImagePath::root().parent(), None);
    }
}
