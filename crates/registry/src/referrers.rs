//! The documents that refer to a version: from the registry's own list, or from the tag that lists them.
//!
//! A list that is longer than any valid one must never be cut: it is an error.

use std::sync::Arc;

use channel_core::reference::ImageDigest;

use super::admission::Server;
use super::documents::{Descriptor, Index, Kind};
use super::error::Problem;
use super::place::{Reference, tag_of};
use super::{MANIFEST, PAGES, Registry, paging, question};

/// The limit of referrers. An image has a few signatures and other documents for each build.
const REFERRERS: usize = 1_000;

impl Registry {
    /// The referrers at one server. An empty list counts as absent, so that after a mirror the registry is asked too.
    pub(super) async fn referrers_at(
        &self,
        server: Arc<Server>,
        digest: &ImageDigest,
    ) -> Result<Vec<Descriptor>, Problem> {
        let listed = if let Some(listed) = self.listed_referrers(&server, digest).await? {
            listed
        } else {
            let tag = Reference::Tag(tag_of(digest));
            let document = self.manifest_at(server, &tag).await?;
            let index: Index = serde_json::from_slice(&document.bytes).map_err(Problem::Syntax)?;
            index.manifests
        };
        match listed.len() {
            0 => Err(Problem::Absent),
            1..=REFERRERS => Ok(listed),
            _ => Err(Problem::too_many("things that refer to it", REFERRERS)),
        }
    }

    /// The list of the referrers API; `None` if the registry does not have it.
    async fn listed_referrers(
        &self,
        server: &Server,
        digest: &ImageDigest,
    ) -> Result<Option<Vec<Descriptor>>, Problem> {
        let mut question = question(server, "referrers", digest.as_str(), MANIFEST);
        let mut listed = Vec::new();
        for _ in 0..PAGES {
            let answer = match self.admission.ask(server, question.clone()).await {
                Ok(answer) => answer,
                Err(
                    Problem::Absent
                    | Problem::Status {
                        status: 400..=499 | 501,
                        ..
                    },
                ) => return Ok(None),
                Err(problem) => return Err(problem),
            };
            if answer.header("content-type").and_then(Kind::of) != Some(Kind::Index) {
                return Ok(None);
            }
            let page: Index = serde_json::from_slice(&answer.body).map_err(Problem::Syntax)?;
            listed.extend(page.manifests);
            match paging::next(&answer.headers, &question.url)? {
                Some(next) if listed.len() <= REFERRERS => question.url = next,
                _ => break,
            }
        }
        Ok(Some(listed))
    }
}
