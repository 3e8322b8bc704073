//! The review of each request's bearer token, for a page that is served outside of loopback.
//!
//! The program asks the API server. A verdict is kept for a few seconds, so that a page with its files is one review. Must never let a
//! request through without a verdict of the last seconds, and never keep a token.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The time for which a verdict counts.
const COUNTS: Duration = Duration::from_secs(10);
/// The largest number of verdicts that are kept.
const MOST: usize = 256;
/// The largest number of questions to the API server at once. Further requests are refused.
const AT_ONCE: usize = 8;
/// The longest token, in bytes.
const LONGEST: usize = 16 << 10;

/// The verdict of the API server on a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The owner of the token may read modules.
    Permitted,
    /// The owner of the token may not read modules.
    Forbidden,
    /// The token belongs to nobody.
    Unknown,
}

/// Asks the API server about a token; the error is a reason for people.
pub type Ask = dyn Fn(String) -> BoxFuture<'static, Result<Verdict, String>> + Send + Sync;

type TokenDigest = [u8; 32];

/// Reviews tokens.
pub struct Reviewer {
    ask: Box<Ask>,
    verdicts: Mutex<BTreeMap<TokenDigest, (Verdict, Instant)>>,
    questions: Semaphore,
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    NoToken,
    Unknown,
    Forbidden,
    Busy,
    Unreviewed(String),
}

impl Reviewer {
    /// A reviewer that asks with this function.
    pub fn new(ask: Box<Ask>) -> Self {
        Self {
            ask,
            verdicts: Mutex::default(),
            questions: Semaphore::new(AT_ONCE),
        }
    }

    async fn review(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let token = token(headers).ok_or(Refusal::NoToken)?;
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        let verdict = match self.known(&digest) {
            Some(verdict) => verdict,
            None => self.asked(token, digest).await?,
        };
        match verdict {
            Verdict::Permitted => Ok(()),
            Verdict::Forbidden => Err(Refusal::Forbidden),
            Verdict::Unknown => Err(Refusal::Unknown),
        }
    }

    fn known(&self, digest: &TokenDigest) -> Option<Verdict> {
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, at) = verdicts.get(digest)?;
        (at.elapsed() < COUNTS).then_some(*verdict)
    }

    async fn asked(&self, token: &str, digest: TokenDigest) -> Result<Verdict, Refusal> {
        let _place = self.questions.try_acquire().map_err(|_| Refusal::Busy)?;
        // The verdict counts from the time of the question.
        let at = Instant::now();
        let verdict = (self.ask)(token.to_owned()).await.map_err(Refusal::Unreviewed)?;
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.retain(|_, (_, at)| at.elapsed() < COUNTS);
        if verdicts.len() < MOST {
            verdicts.insert(digest, (verdict, at));
        }
        Ok(verdict)
    }
}

/// The bearer token of a request with exactly one.
fn token(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let fits = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST;
    fits.then_some(token)
}

/// Lets a request through if its token is permitted.
pub(crate) async fn permitted(State(reviewer): State<Arc<Reviewer>>, request: Request, next: Next) -> Response {
    match reviewer.review(request.headers()).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let unauthorized = |text: &'static str| {
            (
                StatusCode::UNAUTHORIZED,
                [(WWW_AUTHENTICATE, "Bearer realm=\"addon-operator\"")],
                text,
            )
                .into_response()
        };
        match self {
            Self::NoToken => {
                unauthorized("a bearer token of the cluster is needed; a proxy that signs people in adds it\n")
            }
            Self::Unknown => unauthorized("the API server does not know this token\n"),
            Self::Forbidden => {
                let text =
                    "the owner of this token may not get modules.addon-operator.io in the operator's namespace\n";
                (StatusCode::FORBIDDEN, text).into_response()
            }
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "too many tokens are under review\n").into_response(),
            Self::Unreviewed(reason) => {
                tracing::warn!(error = reason, "A token of a client of the page could not be reviewed");
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the API server cannot review the token now\n",
                )
                    .into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::HeaderValue;
    use tokio::time::advance;

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    fn reviewer() -> (Reviewer, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let ask = move |token: String| -> BoxFuture<'static, Result<Verdict, String>> {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                match token.as_str() {
                    "good" => Ok(Verdict::Permitted),
                    "weak" => Ok(Verdict::Forbidden),
                    "lost" => Err("no answer".to_owned()),
                    _ => Ok(Verdict::Unknown),
                }
            })
        };
        (Reviewer::new(Box::new(ask)), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_verdict_counts_for_ten_seconds() {
        let (reviewer, asked) = reviewer();
        for _ in 0..5 {
            assert_eq!(reviewer.review(&headers("Bearer good")).await, Ok(()));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        advance(COUNTS).await;
        assert_eq!(reviewer.review(&headers("bearer good")).await, Ok(()));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_request_without_a_permitted_token_is_refused() {
        let (reviewer, asked) = reviewer();
        let mut two = headers("Bearer good");
        two.append(AUTHORIZATION, HeaderValue::from_static("Bearer good"));
        let rows = [
            (HeaderMap::new(), Refusal::NoToken),
            (two, Refusal::NoToken),
            (headers("Basic good"), Refusal::NoToken),
            (headers("Bearer "), Refusal::NoToken),
            (
                headers(&format!("Bearer {}", "x".repeat(LONGEST + 1))),
                Refusal::NoToken,
            ),
            (headers("Bearer weak"), Refusal::Forbidden),
            (headers("Bearer other"), Refusal::Unknown),
            (headers("Bearer lost"), Refusal::Unreviewed("no answer".to_owned())),
        ];
        for (headers, expected) in rows {
            assert_eq!(reviewer.review(&headers).await, Err(expected));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3, "without a token nothing is asked");
    }

    #[tokio::test]
    async fn few_verdicts_are_kept() {
        let (reviewer, _) = reviewer();
        for number in 0..MOST * 2 {
            assert!(reviewer.review(&headers(&format!("Bearer t{number}"))).await.is_err());
        }
        assert_eq!(reviewer.verdicts.lock().unwrap().len(), MOST);
    }
}
