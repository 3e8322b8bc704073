//! The head of a request: the length of its body, and its time limit.

use std::time::Duration;

use addon_core::review::CONVERSION_TIMEOUT;
use axum::http::{HeaderMap, Uri, header};

/// The length of the body, as far as the head states it.
pub(super) fn announced(headers: &HeaderMap) -> usize {
    let said = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    said.and_then(|said| said.parse().ok()).unwrap_or(0)
}

/// Whether the content type is JSON, by the original's rules: an absent type is not.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if value(header::CONTENT_LENGTH) == Some("0") {
        return true;
    }
    let kind = value(header::CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The time limit of a review: a little less than the API server's own, so that a late hook is reported by the
/// operator.
pub(super) fn patience(uri: &Uri) -> Duration {
    let parameters = uri.query().unwrap_or_default().split('&');
    let said = parameters.filter_map(|parameter| parameter.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    let waits = said.map(Duration::from_secs).find(|waits| !waits.is_zero());
    let waits = waits.unwrap_or(CONVERSION_TIMEOUT).min(CONVERSION_TIMEOUT);
    waits.saturating_sub((waits / 10).min(Duration::from_millis(500)))
}
