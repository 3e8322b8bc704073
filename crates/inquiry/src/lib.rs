//! Questions to registries about versions: tags, digests, the description of a version, its signatures. The channel and
//! the sources of modules ask in the same way.
//!
//! A document that could not be read must never count as absent, and a signature that could not be fetched never as
//! bad.
//!
//! ```text
//!   settings, files, mirrors, keys --> office --> Inquiry   one repository
//!   pull secrets of the pod ------------^            | answer(Question)
//!                                                    v
//!                                                registry
//! ```
//!
//! Begin with `Inquiry`.

mod description;
mod evidence;
pub mod office;
pub mod pod_credentials;

use std::time::Duration;

use addon_core::failure::Failure;
use channel_core::candidate::{Candidate, Notes, Signature};
use channel_core::following::{Answer, Question, Trouble};
use channel_core::reference::ImageDigest;
use registry::Registry;
use registry::error::RegistryError;
use registry::place::{ImagePlace, Reference};
use registry::signatures::{Keys, Verdict};
use tokio::time::timeout;

/// The time limit for all documents of one version. The description has some ten small documents; the signatures may be
/// some more.
const LONGEST: Duration = Duration::from_mins(3);

/// One repository and the keys by which its versions must be signed, if any are set.
#[derive(Debug)]
pub struct Inquiry {
    registry: Registry,
    place: ImagePlace,
    keys: Option<Keys>,
}

impl Inquiry {
    /// An inquiry that has not asked yet.
    pub fn new(registry: Registry, place: ImagePlace, keys: Option<Keys>) -> Self {
        Self { registry, place, keys }
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The repository.
    pub fn place(&self) -> &ImagePlace {
        &self.place
    }

    /// The answer to a question, or the reason why there is none.
    pub async fn answer(&self, question: &Question) -> Result<Answer, Trouble> {
        let (registry, place) = (&self.registry, &self.place);
        let by_digest = |digest: &ImageDigest| Reference::Digest(digest.clone());
        match question {
            Question::Tags => registry.tags(place).await.map(Answer::Tags).map_err(trouble),
            Question::Digest(tag) => {
                let found = present(registry.head(place, &Reference::Tag(tag.clone())).await)?;
                Ok(Answer::Digest(found.map(|found| found.digest)))
            }
            Question::Presence(digest) => {
                let found = present(registry.head(place, &by_digest(digest)).await)?;
                Ok(Answer::Presence(found.is_some()))
            }
            Question::Candidate(digest) => {
                let late = |_| {
                    let waited = LONGEST.as_secs();
                    says(format!("looking at {digest} of {place} took longer than {waited} s"))
                };
                let found = timeout(LONGEST, Box::pin(self.candidate(digest)))
                    .await
                    .map_err(late)??;
                Ok(Answer::Candidate(found.map(Box::new)))
            }
        }
    }

    async fn candidate(&self, digest: &ImageDigest) -> Result<Option<Candidate>, Trouble> {
        let reference = Reference::Digest(digest.clone());
        let Some(document) = present(self.registry.manifest(&self.place, &reference).await)? else {
            return Ok(None);
        };
        let described = self.described(&document).await?;
        Ok(Some(Candidate {
            digest: digest.clone(),
            manifests: described.manifests,
            notes: Notes::read(&described.annotations),
            signature: self.signature(digest).await?,
        }))
    }

    /// The signature of a version. One good signature is enough, so bundles, which need more requests, are only fetched
    /// if the signature's tag has no good one.
    pub async fn signature(&self, digest: &ImageDigest) -> Result<Signature, Trouble> {
        let Some(keys) = &self.keys else {
            return Ok(Signature::NotAsked);
        };
        let mut evidence = self.simple_signatures(digest).await?;
        if let Verdict::Verified { key: _ } = keys.judge(digest, &evidence) {
            return Ok(Signature::Good);
        }
        self.add_bundles(digest, &mut evidence).await?;
        Ok(match keys.judge(digest, &evidence) {
            Verdict::Verified { key: _ } => Signature::Good,
            Verdict::NotSigned => Signature::Bad("no signature lies beside it in the registry".to_owned()),
            Verdict::Refused { why } => Signature::Bad(why.to_string()),
        })
    }
}

/// The result as an option: "not found" is an answer and no error.
fn present<T>(told: Result<T, RegistryError>) -> Result<Option<T>, Trouble> {
    match told {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(trouble(error)),
    }
}

fn trouble(error: RegistryError) -> Trouble {
    let pause = error.pause();
    let Failure { report, hints, .. } = Failure::from(error);
    let text = std::iter::once(report).chain(hints).collect::<Vec<String>>().join("; ");
    Trouble { text, pause }
}

fn says(text: String) -> Trouble {
    Trouble { text, pause: None }
}
