//! Omissions: the API server shows less of one API group than it has, as it does while it starts or cannot reach an
//! aggregated API server.
//!
//! Must never change the answers about any other group.

use std::sync::{Mutex, PoisonError};

use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::answer::{Answer, whole};
use super::discovery::{self, Change};
use super::{Broken, Shared, forward};

/// The group's entry in the list of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// There is no entry.
    LeftOut,
    /// The entry is stale and has no resources.
    Stale,
}

/// The answers at the group's own paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    Answer,
    /// 404 (not found).
    NotFound,
}

/// An omission of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    pub group: String,
    pub listing: Listing,
    pub addresses: Addresses,
}

/// The current omission.
#[derive(Debug, Default)]
pub(super) struct Omissions(Mutex<Option<Omission>>);

/// The path of the list of all groups.
const LIST: &str = "/apis";

impl Omissions {
    pub(super) fn set(&self, omission: Option<Omission>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = omission;
    }

    /// The current omission, if it concerns the request.
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

/// The answer that replaces the API server's.
pub(super) async fn answer(
    mut request: Request<Incoming>,
    omission: &Omission,
    shared: &Shared,
) -> Result<Answer, Broken> {
    if request.uri().path() != LIST {
        return Ok(nowhere());
    }
    discovery::prepare(&mut request);
    let answer = forward(request, shared).await.map_err(|_| Broken)?;
    let change = match omission.listing {
        Listing::LeftOut => Change::Lost(omission.group.clone()),
        Listing::Stale => Change::Stale(omission.group.clone()),
    };
    discovery::changed(answer, &change).await.map_err(|_| Broken)
}

/// The API server's answer for an unknown path.
fn nowhere() -> Answer {
    let mut answer = Response::new(whole(Bytes::from_static(b"404 page not found\n")));
    *answer.status_mut() = StatusCode::NOT_FOUND;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
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
