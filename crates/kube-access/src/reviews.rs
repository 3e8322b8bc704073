//! Reviews of other clients' tokens. The operator needs the right to create `tokenreviews` and `subjectaccessreviews`.
//!
//! Must never put a token into an error or a log.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;

use crate::Cluster;
use crate::error::RequestError;

/// The standing of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its owner has the right that was asked for.
    Permitted,
    /// Its owner lacks that right.
    Forbidden,
    /// The API server does not know the token.
    Unknown,
}

/// A right: a verb on a resource of the operator's namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    pub verb: &'static str,
    /// The group of the resource.
    pub group: &'static str,
    /// The plural name of the resource.
    pub resource: &'static str,
}

impl Cluster {
    /// Whether the owner of this token has a right. A review changes nothing, so that a standby asks, too.
    pub async fn standing_of(&self, token: String, right: Right) -> Result<Standing, RequestError> {
        let Some(user) = self.owner_of(token).await? else {
            return Ok(Standing::Unknown);
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(self.namespace().to_owned()),
                    verb: Some(right.verb.to_owned()),
                    group: Some(right.group.to_owned()),
                    resource: Some(right.resource.to_owned()),
                    ..ResourceAttributes::default()
                }),
                non_resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.open());
        let attempt = self.attempt_in(None, "create", "subjectaccessreviews", "");
        let answer = self.ask(attempt, api.create(&PostParams::default(), &review)).await?;
        let is_allowed = answer
            .status
            .is_some_and(|status| status.allowed && status.denied != Some(true));
        Ok(if is_allowed {
            Standing::Permitted
        } else {
            Standing::Forbidden
        })
    }

    async fn owner_of(&self, token: String) -> Result<Option<UserInfo>, RequestError> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.open());
        let attempt = self.attempt_in(None, "create", "tokenreviews", "");
        let answer = self.ask(attempt, api.create(&PostParams::default(), &review)).await?;
        let status = answer.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }
}
