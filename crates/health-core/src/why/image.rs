//! The reason why an image cannot be pulled, in a few words.
//!
//! Container runtimes wrap the answer of a registry in several layers of text. Must never read a word of the image's
//! own name as the reason.

use crate::text::{NAME, harmless};

/// The reasons for which no image of a registry can be pulled, whatever its name.
const REGISTRY_AWAY: [&str; 4] = [
    "connection refused",
    "too many requests",
    "timeout",
    "the registry is unavailable",
];

/// Words of runtimes and registries, and the reason in short. The first row that fits is taken.
const REASONS: [(&str, &str); 17] = [
    ("502 bad gateway", "the registry is unavailable"),
    ("503 service unavailable", "the registry is unavailable"),
    ("504 gateway timeout", "the registry is unavailable"),
    ("may require authorization", "not found, or no access"),
    ("may require 'docker login'", "not found, or no access"),
    ("no such host", "the name of the registry is unknown"),
    ("connection refused", "connection refused"),
    ("x509", "the certificate of the registry is not trusted"),
    ("http response to https client", "the registry does not speak TLS"),
    ("too many requests", "too many requests"),
    ("toomanyrequests", "too many requests"),
    ("no match for platform", "no image for the platform of the node"),
    ("no space left", "no space left on the node"),
    ("not found", "not found"),
    ("manifest unknown", "not found"),
    ("timeout", "timeout"),
    ("deadline exceeded", "timeout"),
];

/// Words for a refusal. They come last, because a registry says them of a missing image, too.
const REFUSALS: [&str; 4] = ["unauthorized", "authentication required", "denied", "forbidden"];

/// The reason in a message about an image; empty if the message tells none.
pub(super) fn reason(message: &str, image: &str) -> String {
    let rest = if image.is_empty() {
        message.to_owned()
    } else {
        message.replace(image, "")
    };
    let lower = rest.to_lowercase();
    if let Some((_, reason)) = REASONS.iter().find(|(word, _)| lower.contains(word)) {
        return (*reason).to_owned();
    }
    if REFUSALS.iter().any(|word| lower.contains(word)) {
        return "unauthorized".to_owned();
    }
    if is_only_a_delay(&rest) {
        return String::new();
    }
    let last = rest.rsplit(": ").find(|clause| !clause.trim().is_empty());
    harmless(last.unwrap_or_default(), NAME)
}

/// Whether a sentence of this crate tells of an image whose registry does not answer.
pub(super) fn is_registry_away(sentence: &str) -> bool {
    REGISTRY_AWAY
        .iter()
        .any(|reason| sentence.ends_with(&format!("cannot be pulled ({reason})")))
}

/// Whether a message only says that the kubelet waits before the next try.
fn is_only_a_delay(message: &str) -> bool {
    message.starts_with("Back-off pulling image") && !message.contains(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_registries_are_told_in_short() {
        let told = |message: &str| reason(message, "registry.example/denied/timeout:x509");
        for (message, short) in [
            (
                "rpc error: code = NotFound desc = failed to pull and unpack image: not found",
                "not found",
            ),
            ("Back-off pulling image \"registry.example/denied/timeout:x509\"", ""),
            (
                "Back-off pulling image \"registry.example/denied/timeout:x509\": ErrImagePull: a: manifest unknown",
                "not found",
            ),
            (
                "dial tcp 127.0.0.1:5000: connect: connection refused",
                "connection refused",
            ),
            (
                "failed to authorize: unexpected status: 401 Unauthorized",
                "unauthorized",
            ),
            ("unexpected status from HEAD request: 403 Forbidden", "unauthorized"),
            (
                "pull access denied, repository does not exist or may require authorization",
                "not found, or no access",
            ),
            (
                "dial tcp: lookup r.example on 10.0.0.10:53: no such host",
                "the name of the registry is unknown",
            ),
            (
                "tls: failed to verify certificate: x509: signed by unknown authority",
                "the certificate of the registry is not trusted",
            ),
            ("dial tcp 10.0.0.1:443: i/o timeout", "timeout"),
            (
                "unexpected status from HEAD request: 503 Service Unavailable",
                "the registry is unavailable",
            ),
            ("something: quite\nnew", "quite new"),
            ("", ""),
        ] {
            assert_eq!(told(message), short, "{message}");
        }
    }

    #[test]
    fn a_registry_that_does_not_answer_is_told_from_an_image_that_is_not_there() {
        let of = |message: &str| {
            let reason = reason(message, "");
            is_registry_away(&format!("Deployment web: image r/a:1 cannot be pulled ({reason})"))
        };
        assert!(of("dial tcp 127.0.0.1:5000: connect: connection refused"));
        assert!(of("unexpected status from GET request: 429 Too Many Requests"));
        assert!(of("unexpected status from HEAD request: 502 Bad Gateway"));
        assert!(!of("dial tcp: lookup r.example on 10.0.0.10:53: no such host"));
        assert!(!of("not found"));
        assert!(!is_registry_away("Deployment web: a probe failed: connection refused"));
    }
}
