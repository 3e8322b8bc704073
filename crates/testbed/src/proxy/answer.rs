//! Answers that the proxy itself makes.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::Broken;

pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

pub(super) fn refusal(code: u16, again: Option<u32>) -> Answer {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let mut answer = told(status_object(code, reason).to_string());
    *answer.status_mut() = status;
    if let Some(seconds) = again {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// The answer 410 (Gone). A watch begins normally and then gets it as an event; any other request is refused with it.
pub(super) fn gone(is_watch: bool) -> Answer {
    if !is_watch {
        return refusal(410, None);
    }
    let event = serde_json::json!({ "type": "ERROR", "object": status_object(410, "Expired") });
    told(format!("{event}\n"))
}

fn status_object(code: u16, reason: &str) -> serde_json::Value {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "said by the proxy of a test", "reason": reason, "code": code,
    })
}

fn told(text: String) -> Answer {
    let mut answer = Response::new(whole(Bytes::from(text)));
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// A body whose bytes are all known.
pub(super) fn whole(bytes: Bytes) -> UnsyncBoxBody<Bytes, Broken> {
    Full::new(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}
