//! One API group of which the API server says less than it knows, as it does while it starts or cannot ask an aggregated API.
//!
//! Must never touch what is said about any other group.

use std::sync::{Mutex, PoisonError};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH,
};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::{Answer, Broken, Shared, forward};

/// How the list of groups speaks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Not at all.
    LeftOut,
    /// Its versions are stale, and nothing is known to be in them.
    Stale,
}

/// How its own addresses answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    Answer,
    /// As paths that lead nowhere.
    NotFound,
}

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    pub group: String,
    pub listing: Listing,
    pub addresses: Addresses,
}

/// The omission that is in force.
#[derive(Debug, Default)]
pub(super) struct Omissions(Mutex<Option<Omission>>);

/// The list of all groups.
const LIST: &str = "/apis";

impl Omissions {
    pub(super) fn set(&self, omission: Option<Omission>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = omission;
    }

    /// The one that concerns a request.
    pub(super) fn meet<B>(&self, request: &Request<B>) -> Option<Omission> {
        let omission = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let path = request.uri().path();
        let is_own = path.strip_prefix("/apis/").is_some_and(|rest| {
            let rest = rest.strip_prefix(&omission.group);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let concerned = path == LIST || is_own && omission.addresses == Addresses::NotFound;
        concerned.then_some(omission)
    }
}

/// The answer instead.
pub(super) async fn answer(
    mut request: Request<Incoming>,
    omission: &Omission,
    shared: &Shared,
) -> Result<Answer, Broken> {
    if request.uri().path() != LIST {
        return Ok(nowhere());
    }
    // An answer that is to be altered must be readable, and must not come from a client's cache.
    request.headers_mut().remove(ACCEPT_ENCODING);
    request.headers_mut().remove(IF_NONE_MATCH);
    let (mut head, body) = forward(request, shared).await.map_err(|_| Broken)?.into_parts();
    let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let mut list: Value = serde_json::from_slice(&body).map_err(|_| Broken)?;
    omission.alter(&mut list);
    for header in [CONTENT_LENGTH, CONTENT_ENCODING, ETAG] {
        head.headers.remove(header);
    }
    Ok(Response::from_parts(head, whole(list.to_string())))
}

impl Omission {
    /// Of both forms in which groups are listed.
    fn alter(&self, list: &mut Value) {
        for (groups, name) in [("groups", "/name"), ("items", "/metadata/name")] {
            let Some(groups) = list.get_mut(groups).and_then(Value::as_array_mut) else {
                continue;
            };
            let is_it = |group: &Value| group.pointer(name).is_some_and(|name| *name == self.group);
            match self.listing {
                Listing::LeftOut => groups.retain(|group| !is_it(group)),
                Listing::Stale => groups.iter_mut().filter(|group| is_it(group)).for_each(make_stale),
            }
        }
    }
}

fn make_stale(group: &mut Value) {
    let versions = group.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        version["freshness"] = json!("Stale");
        version["resources"] = json!([]);
    }
}

/// An API server's answer about a path that it does not know.
fn nowhere() -> Answer {
    let mut answer = Response::new(whole("404 page not found\n".to_owned()));
    *answer.status_mut() = StatusCode::NOT_FOUND;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}

fn whole(text: String) -> http_body_util::combinators::UnsyncBoxBody<Bytes, Broken> {
    Full::new(Bytes::from(text))
        .map_err(|never: std::convert::Infallible| match never {})
        .boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn omission(listing: Listing) -> Omission {
        Omission {
            group: "a.example.com".to_owned(),
            listing,
            addresses: Addresses::NotFound,
        }
    }

    #[test]
    fn only_what_is_said_of_that_group_is_altered() {
        let list = json!({"items": [
            {"metadata": {"name": "a.example.com"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [1]}]},
            {"metadata": {"name": "apps"}, "versions": []}]});
        let mut without = list.clone();
        omission(Listing::LeftOut).alter(&mut without);
        assert_eq!(without, json!({"items": [list["items"][1]]}));
        let mut stale = list.clone();
        omission(Listing::Stale).alter(&mut stale);
        let versions = json!([{"version": "v1", "freshness": "Stale", "resources": []}]);
        assert_eq!(stale["items"][0]["versions"], versions);
        assert_eq!(stale["items"][1], list["items"][1]);
    }

    #[test]
    fn its_addresses_are_its_own_and_no_others() {
        let omissions = Omissions::default();
        omissions.set(Some(omission(Listing::LeftOut)));
        let met = |path: &str| {
            let request = Request::builder().uri(path).body(()).unwrap();
            omissions.meet(&request).is_some()
        };
        for path in ["/apis", "/apis/a.example.com", "/apis/a.example.com/v1/things?watch=1"] {
            assert!(met(path), "{path}");
        }
        for path in ["/api", "/apis/a.example.community", "/apis/apps/v1/deployments"] {
            assert!(!met(path), "{path}");
        }
        omissions.set(None);
        assert!(!met("/apis"));
    }
}
