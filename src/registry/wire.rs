//! One question and its answer over HTTP, with every step bounded in time and every body in size.
//!
//! It follows referrals, and must never show credentials to another host than the one they were for, nor go on without TLS
//! where that was not asked for. Each question has a connection of its own: questions are few, and no connection can
//! be in a state that an earlier one left.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::error::Problem;
use super::place::Host;
use super::url::{Origin, Scheme, Url};
use super::way::{Connection, Nearness, Reach, WayError, Ways};

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A connection: name, proxy and TLS.
    pub connect: Duration,
    /// From a question to the head of its answer.
    pub head: Duration,
    /// A question and the whole of its answer, with all referrals.
    pub whole: Duration,
    /// All requests of one call: tokens, pages, mirrors.
    pub call: Duration,
}

impl Default for Limits {
    /// A manifest is a second's work; who is slower by an order of magnitude is as good as away.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(15),
            whole: Duration::from_secs(30),
            call: Duration::from_mins(2),
        }
    }
}

/// Storage behind a registry takes one or two.
const REFERRALS: usize = 5;
/// More is no head of an answer.
const HEAD: usize = 64 << 10;
/// The part of a refusal that is read, for its text.
const REFUSAL: usize = 8 << 10;

const AGENT: &str = concat!("addon-operator/", env!("CARGO_PKG_VERSION"));

/// A question.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'static str,
    /// Shown to the host of the address alone.
    pub(super) authorization: Option<HeaderValue>,
    /// A form to be sent; then nobody may refer us elsewhere.
    pub(super) form: Option<String>,
    /// How large a good answer may be.
    pub(super) limit: usize,
}

/// An answer that has come in whole. That of a refusal may be cut.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The address that answered in the end.
    pub(super) url: Url,
    /// How near the one is whom we asked.
    pub(super) nearness: Nearness,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends a request to any host.
pub(super) struct Wire {
    pub(super) ways: Ways,
    /// Hosts that are asked without TLS.
    pub(super) plain: BTreeSet<Host>,
    pub(super) limits: Limits,
}

impl Wire {
    /// How a host is asked that a person named.
    pub(super) fn origin(&self, host: &Host) -> Origin {
        let scheme = if self.plain.contains(host) {
            Scheme::Plain
        } else {
            Scheme::Tls
        };
        Origin::new(scheme, &host.server())
    }

    /// Whether a registry may refer us there, by the looks of it.
    pub(super) fn admits(&self, url: &Url) -> bool {
        let is_plain = |host: &Host| Origin::new(Scheme::Plain, host) == url.origin;
        url.origin.scheme == Scheme::Tls || self.plain.iter().any(is_plain)
    }

    pub(super) async fn ask(&self, question: Question, reach: Reach) -> Result<Answer, Problem> {
        let waited = self.limits.whole;
        let late = |_| Problem::Late {
            step: "the whole answer",
            waited,
        };
        timeout(waited, Box::pin(self.follow(question, reach)))
            .await
            .map_err(late)?
    }

    async fn follow(&self, mut question: Question, mut reach: Reach) -> Result<Answer, Problem> {
        let mut first = None;
        for _ in 0..=REFERRALS {
            let mut answer = self.once(&question, reach).await?;
            let nearness = *first.get_or_insert(answer.nearness);
            answer.nearness = nearness;
            let Some(to) = referral(&answer, &question)? else {
                return Ok(answer);
            };
            if !self.admits(&to) {
                let to = to.to_string();
                let why = "it has no TLS, and is not listed as a registry without it";
                return Err(Problem::Astray { to, why });
            }
            if to.origin != question.url.origin {
                question.authorization = None;
            }
            reach = Reach::As(nearness);
            question.url = to;
        }
        let to = question.url.to_string();
        let why = "that is one referral too many";
        Err(Problem::Astray { to, why })
    }

    async fn once(&self, question: &Question, reach: Reach) -> Result<Answer, Problem> {
        let Connection { stream, nearness } = self.ways.connect(&question.url.origin, reach).await?;
        let handshake = http1::Builder::new()
            .max_buf_size(HEAD)
            .handshake(TokioIo::new(stream))
            .await;
        let (mut sender, connection) = handshake.map_err(|source| {
            let host = question.url.origin.authority();
            Problem::Way(WayError::Handshake { host, source })
        })?;
        let request = request(question)?;
        let exchange = async {
            let waited = self.limits.head;
            let late = |_| Problem::Late {
                step: "the head of the answer",
                waited,
            };
            let answer = timeout(waited, sender.send_request(request)).await.map_err(late)?;
            let answer = answer.map_err(Problem::Cut)?;
            read(answer, question, nearness).await
        };
        // This task moves the bytes of the exchange. The exchange itself notices the end of the connection.
        let carry = async {
            drop(connection.await);
            pending().await
        };
        tokio::select! {
            answer = exchange => answer,
            answer = carry => answer,
        }
    }
}

fn request(question: &Question) -> Result<Request<Full<Bytes>>, Problem> {
    let Question {
        method,
        url,
        accept,
        authorization,
        form,
        limit: _,
    } = question;
    let mut builder = Request::builder()
        .method(method)
        .uri(&url.path)
        .header(HOST, url.origin.authority())
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, *accept);
    if let Some(authorization) = authorization {
        builder = builder.header(AUTHORIZATION, authorization);
    }
    if form.is_some() {
        builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let body = Full::from(form.clone().unwrap_or_default());
    builder.body(body).map_err(|_| Problem::Astray {
        to: url.to_string(),
        why: "nobody can be asked for that",
    })
}

async fn read(answer: Response<Incoming>, question: &Question, nearness: Nearness) -> Result<Answer, Problem> {
    let (head, mut body) = answer.into_parts();
    let (limit, is_good) = if head.status.is_success() {
        (question.limit, true)
    } else {
        (REFUSAL, false)
    };
    let large = Problem::Large { limit };
    if is_good && body.size_hint().lower() > limit as u64 {
        return Err(large);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Problem::Cut)?.into_data() else {
            continue;
        };
        let room = limit - bytes.len();
        if data.len() > room && is_good {
            return Err(large);
        }
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            break;
        }
    }
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: bytes.into(),
        url: question.url.clone(),
        nearness,
    })
}

/// Where an answer sends us, if it does.
fn referral(answer: &Answer, question: &Question) -> Result<Option<Url>, Problem> {
    let moved = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    if !moved || question.form.is_some() {
        return Ok(None);
    }
    let Some(place) = answer.headers.get(LOCATION) else {
        return Ok(None);
    };
    let place = String::from_utf8_lossy(place.as_bytes());
    let to = question.url.join(&place).ok_or_else(|| Problem::Astray {
        to: super::said::line(place.split('?').next().unwrap_or_default()),
        why: "that is no address for us",
    })?;
    Ok(Some(to))
}
