//! Collects all documents in the registry that may be signatures of a version.
//!
//! Anyone who may push to the repository can add documents there. So their number and size are limited, and an
//! unreadable document does not hide the others. Must never judge the documents.

use addon_core::failure::Class;
use channel_core::following::Trouble;
use channel_core::reference::ImageDigest;
use registry::documents::Descriptor;
use registry::error::RegistryError;
use registry::place::Reference;
use registry::signatures::{Blob, Document, Evidence, MOST_BYTES, MOST_SIGNATURES, Refusal, Simple, bundle, simple};
use report::Chain;

use super::{Inquiry, present};

impl Inquiry {
    /// The signatures in the form of simple signing.
    pub(super) async fn simple_signatures(&self, digest: &ImageDigest) -> Result<Evidence, Trouble> {
        let mut evidence = Evidence::default();
        let tag = Reference::Tag(simple::tag(digest));
        let manifest = self.registry.manifest(&self.place, &tag).await;
        let Some(manifest) = read(manifest, Document::Manifest, &mut evidence)? else {
            return Ok(evidence);
        };
        match simple::listed(&manifest.bytes) {
            Err(why) => evidence.unread.push(why),
            Ok(listed) => {
                for listed in listed {
                    let payload = self.fetched(&listed.payload, Document::Payload, &mut evidence).await?;
                    evidence.simple.extend(payload.map(|payload| Simple {
                        payload,
                        signature: listed.signature,
                    }));
                }
            }
        }
        Ok(evidence)
    }

    /// Adds the bundles that refer to the version.
    pub(super) async fn add_bundles(&self, digest: &ImageDigest, evidence: &mut Evidence) -> Result<(), Trouble> {
        let referrers = self.registry.referrers(&self.place, digest).await;
        let referrers = read(referrers, Document::Manifest, evidence)?.unwrap_or_default();
        let bundles: Vec<Descriptor> = referrers.into_iter().filter(may_be_bundle).collect();
        if bundles.len() > MOST_SIGNATURES {
            evidence.unread.push(Refusal::TooMany {
                found: bundles.len(),
                most: MOST_SIGNATURES,
            });
        }
        for found in bundles.into_iter().take(MOST_SIGNATURES) {
            let reference = Reference::Digest(found.digest);
            let manifest = self.registry.manifest(&self.place, &reference).await;
            let Some(manifest) = read(manifest, Document::Manifest, evidence)? else {
                continue;
            };
            match bundle::listed(&manifest.bytes) {
                Ok(None) => {}
                Err(why) => evidence.unread.push(why),
                Ok(Some(blob)) => {
                    let bundle = self.fetched(&blob, Document::Bundle, evidence).await?;
                    evidence.bundles.extend(bundle);
                }
            }
        }
        Ok(())
    }

    async fn fetched(&self, blob: &Blob, kind: Document, evidence: &mut Evidence) -> Result<Option<Vec<u8>>, Trouble> {
        match ImageDigest::parse(&blob.digest) {
            Err(fault) => {
                evidence.unread.push(unreadable(kind, &fault.to_string()));
                Ok(None)
            }
            Ok(digest) => {
                let told = self.registry.blob(&self.place, &digest, MOST_BYTES).await;
                Ok(read(told, kind, evidence)?.map(|bytes| bytes.to_vec()))
            }
        }
    }
}

/// Whether a referrer may be a bundle. Some registries do not tell its kind.
fn may_be_bundle(found: &Descriptor) -> bool {
    let kind = found.artifact_type.as_deref().unwrap_or_default();
    kind.is_empty() || kind.starts_with("application/vnd.dev.sigstore.bundle")
}

/// The document; none if it does not exist. An invalid document is recorded as such and is no error of the registry.
fn read<T>(told: Result<T, RegistryError>, kind: Document, evidence: &mut Evidence) -> Result<Option<T>, Trouble> {
    match told {
        Err(error) if error.class() == Class::Invalid => {
            evidence
                .unread
                .push(unreadable(kind, &Chain(&error.problem).to_string()));
            Ok(None)
        }
        told => present(told),
    }
}

fn unreadable(document: Document, problem: &str) -> Refusal {
    let problem = problem.chars().take(200).collect();
    Refusal::Unreadable { document, problem }
}
