//! All that lies beside a version in its registry and may be a signature of it.
//!
//! Strangers may lay there whatever they want: it is bounded, and one of their documents that cannot be read keeps no other one
//! from being looked at. Must never judge any of it.

use addon_core::artifact::following::Trouble;
use addon_core::artifact::reference::ImageDigest;
use addon_core::failure::Class;

use super::{Inquiry, present};
use crate::registry::documents::Descriptor;
use crate::registry::error::RegistryError;
use crate::registry::place::Reference;
use crate::report::Chain;
use crate::signatures::{Blob, Document, Evidence, MOST_BYTES, MOST_SIGNATURES, Refusal, Simple, bundle, simple};

impl Inquiry {
    /// The signatures in the form of simple signing, from the registry.
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

    /// Those that refer to the version.
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

/// Some registries do not name the kind of a referrer.
fn may_be_bundle(found: &Descriptor) -> bool {
    let kind = found.artifact_type.as_deref().unwrap_or_default();
    kind.is_empty() || kind.starts_with("application/vnd.dev.sigstore.bundle")
}

/// The document, or nothing if it does not exist. One that is not proper is the fault of its maker, and not of the
/// registry.
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
