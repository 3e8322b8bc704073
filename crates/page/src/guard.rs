//! The guard before all routes: the headers of each answer, and the name by which a client on loopback calls the server.
//!
//! A page of another site can make a browser send requests to loopback under a name of its own. Such a request must never get an answer.

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The rules by which a browser loads nothing but our own files.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds the headers to each answer. An answer that says nothing of caches is not to be kept.
pub(crate) async fn headed(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Refuses requests under another name than that of loopback.
pub(crate) async fn on_loopback(request: Request, next: Next) -> Response {
    if is_of_loopback(request.headers()) {
        return next.run(request).await;
    }
    let text = "this page is answered as localhost or 127.0.0.1 alone\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

fn is_of_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    host.to_str().is_ok_and(|host| {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            Some(_) | None => host,
        };
        matches!(name, "localhost" | "127.0.0.1" | "[::1]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_may_be_named() {
        let rows = [
            ("localhost", true),
            ("localhost:8080", true),
            ("127.0.0.1:1", true),
            ("[::1]:9655", true),
            ("[::1]", true),
            ("evil.example", false),
            ("localhost.evil.example:80", false),
            ("127.0.0.1.evil.example", false),
            ("evil.example:localhost", false),
            ("", false),
        ];
        for (host, expected) in rows {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            assert_eq!(is_of_loopback(&headers), expected, "{host}");
        }
        assert!(!is_of_loopback(&HeaderMap::new()));
        let mut two = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        two.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(!is_of_loopback(&two));
    }
}
