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
        // At most one planned version stays on the disk.
        self.drop_old_files().await;
        let place = self.taker.fetch(&inquiry, &digest).await.map_err(told)?;
        let inputs = self.taker.inputs(&self.source).await.map_err(told)?;
        let prepared = self.taker.check(&inputs, place).await.map_err(told)?;
        let origin = Origin::Source {
            has_former: self.record.has_former(),
        };
        Ok((prepared, origin))
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
