//! Why a signature does not count, in a sentence for people.
//!
//! Text from others is shortened and escaped before it is shown: it must never fill a log or move a cursor.

use std::fmt;

use thiserror::Error;

/// The number of characters of a signed document's text that an error shows.
const SHOWN: usize = 120;

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A document is larger than necessary.
    #[error("the {document} has {size} bytes; more than {most} are not read")]
    TooLarge {
        document: Document,
        /// The size of the document, in bytes.
        size: usize,
        /// The allowed size.
        most: usize,
    },
    /// There are more signatures than necessary.
    #[error("there are {found} signatures in one place; more than {most} are not read")]
    TooMany {
        /// The number of signatures.
        found: usize,
        /// The allowed number.
        most: usize,
    },
    /// A document cannot be parsed.
    #[error("cannot understand the {document}: {problem}")]
    Unreadable {
        document: Document,
        /// The parser's error.
        problem: String,
    },
    /// The bundle has an unknown media type.
    #[error("the bundle is of the kind {found}; only application/vnd.dev.sigstore.bundle.v0.3+json is checked")]
    OtherBundle {
        /// The media type of the bundle.
        found: String,
    },
    /// A bundle must have exactly one signature, as in cosign.
    #[error("the bundle has {0} signatures, and must have one")]
    NotOne(usize),
    /// The bundle signs bytes, not an image.
    #[error("the bundle signs a file (messageSignature); only a signed statement about an image is checked")]
    OfFile,
    /// The bundle was signed with a certificate (keyless).
    #[error("it is signed with a certificate, not by a key that we know")]
    Certificate,
    /// None of our keys has signed the image.
    #[error("it is not signed by a key that we know, or it was changed after it was signed")]
    NotByOurKeys,
    /// The signature is valid, but its statement is not that the image is ours.
    #[error("the signed document is no signature of an image: its {field} is {found}, not '{wanted}'")]
    OtherKind {
        /// The field that shows the mismatch.
        field: &'static str,
        /// The value of the field.
        found: String,
        /// The expected value.
        wanted: &'static str,
    },
    /// The signature is valid and belongs to another image.
    #[error("the signature is of {found}, not of this image")]
    OtherImage {
        /// The digest of the image that the signature is of.
        found: String,
    },
}

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A manifest with references to signatures.
    Manifest,
    /// The payload of simple signing.
    Payload,
    /// The signature itself.
    Signature,
    Bundle,
    /// The statement in a bundle.
    Statement,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifest => "manifest of the signatures",
            Self::Payload => "signed payload",
            Self::Signature => "signature",
            Self::Bundle => "bundle",
            Self::Statement => "signed statement",
        })
    }
}

impl Refusal {
    pub(super) fn unreadable(document: Document, error: &dyn fmt::Display) -> Self {
        let problem: String = error.to_string().chars().take(SHOWN).collect();
        let problem = problem.escape_debug().to_string();
        Self::Unreadable { document, problem }
    }

    pub(super) fn other_bundle(found: &str) -> Self {
        Self::OtherBundle { found: shown(found) }
    }

    pub(super) fn other_image<'a>(found: impl IntoIterator<Item = &'a str>) -> Self {
        let found: Vec<String> = found.into_iter().take(3).map(shown).collect();
        let found = if found.is_empty() {
            "nothing".to_owned()
        } else {
            found.join(", ")
        };
        Self::OtherImage { found }
    }

    /// Checks that a field has the expected value.
    pub(super) fn unless(field: &'static str, found: &str, wanted: &'static str) -> Result<(), Self> {
        if found == wanted {
            return Ok(());
        }
        Err(Self::OtherKind {
            field,
            found: shown(found),
            wanted,
        })
    }

    /// How near the signature came to a valid one. Of several reasons the one with the highest value is the most
    /// useful.
    pub(super) fn progress(&self) -> u8 {
        match self {
            Self::TooLarge { .. } | Self::TooMany { .. } | Self::Unreadable { .. } => 0,
            Self::OtherBundle { .. } | Self::NotOne(_) | Self::OfFile => 1,
            Self::Certificate => 2,
            Self::NotByOurKeys => 3,
            Self::OtherKind { .. } => 4,
            Self::OtherImage { .. } => 5,
        }
    }
}

/// The beginning of a signed document's text, with its special characters escaped.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("'{}{more}'", cut.escape_debug())
}
