//! Why a signature does not count, in a sentence for people.
//!
//! Text of unknown origin is cut and escaped before it is shown: it must never fill a log or move a cursor.

use std::fmt;

use thiserror::Error;

/// How many characters of a stranger's text are shown.
const SHOWN: usize = 120;

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// More bytes than anybody needs.
    #[error("the {document} has {size} bytes; more than {most} are not read")]
    TooLarge {
        /// Of which document.
        document: Document,
        /// How many it has.
        size: usize,
        /// How many it may have.
        most: usize,
    },
    /// More signatures than anybody needs.
    #[error("there are {found} signatures in one place; more than {most} are not read")]
    TooMany {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// It is not what it should be.
    #[error("cannot understand the {document}: {problem}")]
    Unreadable {
        /// Which document.
        document: Document,
        /// What the parser says.
        problem: String,
    },
    /// The bundle is of a kind that we do not know.
    #[error("the bundle is of the kind {found}; only application/vnd.dev.sigstore.bundle.v0.3+json is checked")]
    OtherBundle {
        /// Its media type.
        found: String,
    },
    /// A bundle must have one signature, as cosign wants it.
    #[error("the bundle has {0} signatures, and must have one")]
    NotOne(usize),
    /// The bundle is about bytes, not about an image.
    #[error("the bundle signs a file (messageSignature); only a signed statement about an image is checked")]
    OfFile,
    /// Keyless: somebody with a certificate has signed it.
    #[error("it is signed with a certificate, not by a key that we know")]
    Certificate,
    /// No key of ours fits.
    #[error("it is not signed by a key that we know, or it was changed after it was signed")]
    NotByOurKeys,
    /// The signature is good, and says something else than that an image is ours.
    #[error("the signed document is no signature of an image: its {field} is {found}, not '{wanted}'")]
    OtherKind {
        /// The field by which we know.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it must hold.
        wanted: &'static str,
    },
    /// The signature is good, and is of another image.
    #[error("the signature is of {found}, not of this image")]
    OtherImage {
        /// What it is of.
        found: String,
    },
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// The manifest that leads to signatures.
    Manifest,
    /// What simple signing signs.
    Payload,
    /// The signature itself.
    Signature,
    /// A bundle.
    Bundle,
    /// What a bundle signs.
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

    /// Nothing if the field holds what it must.
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

    /// How near it came to a good signature: of several reasons the one that came nearest says most.
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

/// A stranger's text, as it may be shown.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("'{}{more}'", cut.escape_debug())
}
