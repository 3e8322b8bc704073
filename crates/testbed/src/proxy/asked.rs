//! The properties of a request by which faults and traps are chosen: its client and the kind of the request.
//!
//! They come from the method, the path and the headers alone. Must never look into a body.

use hyper::header::USER_AGENT;
use hyper::{Method, Request};

use super::fault::{Of, On};

/// The properties of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    kind: Kind,
    agent: String,
    is_lease: bool,
    /// The number of the request among all requests.
    pub(super) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Watch,
    List,
    Write,
    Discovery,
    Other,
}

impl Asked {
    pub(super) fn of<B>(request: &Request<B>, number: u64) -> Self {
        Self {
            kind: kind(request),
            agent: agent(request).to_owned(),
            is_lease: kind(request) == Kind::Write && request.uri().path().contains("/leases"),
            number,
        }
    }

    pub(super) fn is_by(&self, of: Of) -> bool {
        match of {
            Of::All => true,
            Of::Agent(name) => self.agent.starts_with(name),
            Of::Others(name) => !self.agent.starts_with(name),
        }
    }

    pub(super) fn is_among(&self, on: On) -> bool {
        match on {
            On::Everything => true,
            On::Watches => self.kind == Kind::Watch,
            On::Others => self.kind != Kind::Watch,
            On::Lists => self.kind == Kind::List,
            On::Writes => self.kind == Kind::Write,
            On::Discovery => self.kind == Kind::Discovery,
        }
    }

    /// Whether the request creates or updates a lease.
    pub(super) fn is_for_a_lease(&self) -> bool {
        self.is_lease
    }

    pub(super) fn is_watch(&self) -> bool {
        self.kind == Kind::Watch
    }
}

/// The user agent; empty if the client sends none.
pub(super) fn agent<B>(request: &Request<B>) -> &str {
    let agent = request.headers().get(USER_AGENT);
    agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default()
}

/// Whether the request changes something. Review requests are sent by POST and change nothing.
pub(super) fn is_write<B>(request: &Request<B>) -> bool {
    let asks = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    !asks && !request.uri().path().starts_with("/apis/authorization.k8s.io/")
}

fn kind<B>(request: &Request<B>) -> Kind {
    let query = request.uri().query().unwrap_or_default();
    if query.split('&').any(|part| part == "watch=true" || part == "watch=1") {
        return Kind::Watch;
    }
    if is_write(request) {
        return Kind::Write;
    }
    let segments: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    // After the group and version there may be a namespace; then the kind follows, and for one object its name.
    let behind = match segments[..] {
        ["openapi" | "version", ..] | ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _] => {
            return Kind::Discovery;
        }
        ["api", _, ref behind @ ..] | ["apis", _, _, ref behind @ ..] => behind,
        _ => return Kind::Other,
    };
    match behind {
        ["namespaces", _, _] | [_] => Kind::List,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_requests_are_told_apart() {
        for (method, path, kind) in [
            (Method::GET, "/api", Kind::Discovery),
            (Method::GET, "/apis", Kind::Discovery),
            (Method::GET, "/apis/apps/v1?timeout=32s", Kind::Discovery),
            (Method::GET, "/openapi/v3", Kind::Discovery),
            (Method::GET, "/version", Kind::Discovery),
            (Method::GET, "/api/v1/namespaces", Kind::List),
            (Method::GET, "/api/v1/namespaces/a", Kind::Other),
            (Method::GET, "/api/v1/namespaces/a/secrets?limit=1", Kind::List),
            (Method::GET, "/apis/apps/v1/namespaces/a/deployments", Kind::List),
            (Method::GET, "/apis/apps/v1/namespaces/a/deployments/b", Kind::Other),
            (
                Method::GET,
                "/apis/apps/v1/deployments?labelSelector=a&watch=true",
                Kind::Watch,
            ),
            (Method::PATCH, "/api/v1/namespaces/a/secrets/b", Kind::Write),
            (
                Method::POST,
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                Kind::List,
            ),
            (Method::GET, "/readyz", Kind::Other),
        ] {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            assert_eq!(Asked::of(&request, 0).kind, kind, "{path}");
        }
    }

    #[test]
    fn clients_are_told_apart_by_their_user_agents() {
        let request = |agent: &str| Request::builder().header(USER_AGENT, agent).body(()).unwrap();
        let helm = Asked::of(&request("Helm/3.22.0"), 0);
        let nameless = Asked::of(&Request::new(()), 0);
        for (of, hits_helm, hits_nameless) in [
            (Of::All, true, true),
            (Of::Agent("Helm/"), true, false),
            (Of::Others("Helm/"), false, true),
        ] {
            assert_eq!(
                (helm.is_by(of), nameless.is_by(of)),
                (hits_helm, hits_nameless),
                "{of:?}"
            );
        }
    }
}
