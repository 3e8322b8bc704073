//! The lock of a guard, and the tokens that the guard issues.
//!
//! A token is for one repository, and valid until it expires or is revoked. The guard must never accept a token that it
//! did not issue.

use std::collections::BTreeMap;

use hyper::Response;
use hyper::body::Bytes;
use hyper::header::WWW_AUTHENTICATE;
use serde_json::json;

use super::Seen;

/// The credentials that a guard demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lock {
    #[default]
    Open,
    /// This value of the header `Authorization`, which may be a login.
    Login(&'static str),
    /// A token, which the guard issues for the login, or to every client if there is no login.
    Tokens {
        login: Option<&'static str>,
        /// A refresh token, for which tokens are issued in the place of a login.
        refresh: Option<&'static str>,
        /// The origin that the challenge names as issuer; by default the guard itself.
        issuer: Option<String>,
        /// The lifetime of a token that the guard states, in seconds.
        life: u32,
    },
}

impl Lock {
    /// Tokens of a few minutes, for every client or for those with the login.
    pub fn tokens(login: Option<&'static str>) -> Self {
        Self::Tokens {
            login,
            refresh: None,
            issuer: None,
            life: 300,
        }
    }
}

/// The lock, and the tokens that were issued for it.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    lock: Lock,
    /// The valid tokens, each with its one scope.
    tokens: BTreeMap<String, String>,
    issued: u32,
}

const ISSUER: &str = "/token";
const SERVICE: &str = "testbed registry";

impl Keeper {
    pub(super) fn new(lock: Lock) -> Self {
        Self {
            lock,
            ..Self::default()
        }
    }

    pub(super) fn expire(&mut self) {
        self.tokens.clear();
    }

    /// The answer to a request for a token, or to one without valid credentials; none if the request may pass.
    pub(super) fn meet(&mut self, seen: &Seen, form: &str, has_tls: bool) -> Option<Response<Bytes>> {
        let shown = seen.authorization.as_deref();
        match self.lock.clone() {
            Lock::Open => None,
            Lock::Login(login) => (shown != Some(login)).then(|| refusal(401, "Basic realm=\"testbed\"")),
            Lock::Tokens {
                login,
                refresh,
                issuer,
                life,
            } => {
                if seen.path.starts_with(ISSUER) {
                    let knows = match refresh {
                        Some(refresh) => {
                            seen.method == "POST" && fields(form).any(|field| field == ("refresh_token", refresh))
                        }
                        None => seen.method == "GET" && login.is_none_or(|login| shown == Some(login)),
                    };
                    return Some(if knows {
                        self.issue(seen, form, life)
                    } else {
                        refusal(401, "Basic")
                    });
                }
                let scope = scope(&seen.method, &seen.path);
                let token = shown.and_then(|shown| shown.strip_prefix("Bearer "));
                // A token for writing may read, too.
                let is_good = token
                    .and_then(|token| self.tokens.get(token))
                    .is_some_and(|granted| granted.starts_with(&scope));
                let scheme = if has_tls { "https" } else { "http" };
                let issuer = issuer.unwrap_or_else(|| format!("{scheme}://{}", seen.host));
                let challenge = format!("Bearer realm=\"{issuer}{ISSUER}\",service=\"{SERVICE}\",scope=\"{scope}\"");
                (!is_good).then(|| refusal(401, &challenge))
            }
        }
    }

    fn issue(&mut self, seen: &Seen, form: &str, life: u32) -> Response<Bytes> {
        let query = seen.path.split_once('?').map_or("", |(_, query)| query);
        let asked = fields(query).chain(fields(form)).find(|(key, _)| *key == "scope");
        let scope = asked.map(|(_, scope)| scope.replace("%3A", ":").replace("%2F", "/").replace("%2C", ","));
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        self.tokens.insert(token.clone(), scope.unwrap_or_default());
        Response::new(Bytes::from(json!({ "token": token, "expires_in": life }).to_string()))
    }
}

fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('&').filter_map(|field| field.split_once('='))
}

/// The scope that a request for `/v2/NAME/KIND/…` needs.
fn scope(method: &str, path: &str) -> String {
    let bare = path.split('?').next().unwrap_or_default();
    let inner = bare.strip_prefix("/v2/").unwrap_or_default();
    let kinds = ["/manifests/", "/blobs/", "/tags/", "/referrers/"];
    let name = kinds
        .into_iter()
        .find_map(|kind| inner.rsplit_once(kind))
        .map_or(inner, |(name, _)| name);
    let actions = match method {
        "GET" | "HEAD" => "pull",
        _ => "pull,push",
    };
    format!("repository:{name}:{actions}")
}

fn refusal(status: u16, challenge: &str) -> Response<Bytes> {
    let body = json!({ "errors": [{ "code": "UNAUTHORIZED", "message": "who is there?" }] });
    let mut answer = Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    if let Ok(challenge) = challenge.parse() {
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, authorization: Option<&str>) -> Seen {
        Seen {
            host: "127.0.0.1:1".to_owned(),
            method: "GET".to_owned(),
            path: path.to_owned(),
            authorization: authorization.map(str::to_owned),
        }
    }

    #[test]
    fn a_token_opens_one_repository_until_it_is_void() {
        let mut keeper = Keeper::new(Lock::tokens(Some("Basic x")));
        let mut meet = |path: &str, shown: Option<&str>| keeper.meet(&asked(path, shown), "", true);
        let status = |answer: Option<Response<Bytes>>| answer.map(|answer| answer.status().as_u16());
        assert_eq!(status(meet("/v2/a/b/tags/list", None)), Some(401));
        assert_eq!(status(meet("/token?scope=repository%3Aa%2Fb%3Apull", None)), Some(401));
        let issued = meet("/token?service=s&scope=repository%3Aa%2Fb%3Apull", Some("Basic x")).unwrap();
        assert_eq!(issued.body().as_ref(), br#"{"expires_in":300,"token":"token-1"}"#);
        assert_eq!(status(meet("/v2/a/b/tags/list?n=1", Some("Bearer token-1"))), None);
        assert_eq!(status(meet("/v2/a/c/manifests/1", Some("Bearer token-1"))), Some(401));
        let mut written = asked("/v2/a/b/manifests/1", Some("Bearer token-1"));
        written.method = "PUT".to_owned();
        assert_eq!(status(keeper.meet(&written, "", true)), Some(401), "it is for reading");
        keeper.expire();
        assert!(
            keeper
                .meet(&asked("/v2/a/b/tags/list", Some("Bearer token-1")), "", true)
                .is_some()
        );
    }
}
