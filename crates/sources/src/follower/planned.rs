//! A version that a plan asks for: its files are fetched and checked as those of a version on its way into use.
//!
//! Must never bring the version into use, nor read a version whose signature is bad, nor fill the disk with planned versions.

use addon_core::module::Origin;
use channel_core::candidate::Signature;
use channel_core::following::{Answer, Question};
use channel_core::reference::{ImageDigest, Tag};
use inquiry::Inquiry;
use report::Chain;

use super::Follower;
use crate::requests::ReadVersion;

impl Follower {
    /// The files of a version, which is a tag or a digest.
    pub(super) async fn read_version(&mut self, version: &str) -> ReadVersion {
        let inquiry = self.inquiry().map_err(|trouble| trouble.text)?;
        let digest = digest_of(&inquiry, version).await?;
        match inquiry.signature(&digest).await.map_err(|trouble| trouble.text)? {
            Signature::Good | Signature::NotAsked => {}
            Signature::Bad(why) => return Err(format!("the signature of {version} ({digest}) is not good: {why}")),
        }
        let told = |error| Chain(&error).to_string();
        self.drop_planned().await;
        self.planned = Some(digest.clone());
        let place = self.taker.fetch(&inquiry, &digest).await.map_err(told)?;
        let inputs = self.taker.inputs(&self.source).await.map_err(told)?;
        let prepared = self.taker.check(&inputs, place).await.map_err(told)?;
        let origin = Origin::Source {
            has_former: self.record.has_former(),
        };
        Ok((prepared, origin))
    }
}

impl Follower {
    /// Removes the files of the version that was planned last, unless they came into use.
    async fn drop_planned(&mut self) {
        let Some(planned) = self.planned.take() else { return };
        let (library, record, name) = (
            self.taker.library.clone(),
            self.record.clone(),
            self.taker.module.clone(),
        );
        let is_needed = move |module: &str, digest: &str| {
            module != name.as_str() || digest != planned.as_str() || record.needs(digest)
        };
        blocking::run(move || library.sweep(is_needed)).await;
    }
}

async fn digest_of(inquiry: &Inquiry, version: &str) -> Result<ImageDigest, String> {
    if let Ok(digest) = ImageDigest::parse(version) {
        return Ok(digest);
    }
    let tag = Tag::parse(version).map_err(|error| Chain(&error).to_string())?;
    match inquiry.answer(&Question::Digest(tag)).await {
        Ok(Answer::Digest(Some(digest))) => Ok(digest),
        Ok(_) => Err(format!("{} has no tag {version}", inquiry.place())),
        Err(trouble) => Err(trouble.text),
    }
}
