//! One HTTP request and its answer, with a time limit for every step and a size limit for every body.
//!
//! It follows redirects. Credentials must never be sent to another origin than their own, and plain HTTP must never be
//! used where it was not asked for. Each request has a new connection: requests are few, and no connection can be in a
//! bad state from an earlier one.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::error::Problem;
use super::place::Host;
use super::url::{Origin, Scheme, Url};
use super::way::{Connection, Nearness, Reach, WayError, Ways};

/// The time limits of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The limit for a connection: name resolution, proxy and TLS.
    pub connect: Duration,
    /// The limit from a request to the head of its answer.
    pub head: Duration,
    /// The limit for a request and its whole answer, with all redirects.
    pub whole: Duration,
    /// The limit for all requests of one call: tokens, pages, mirrors.
    pub call: Duration,
}

impl Default for Limits {
    /// Limits for normal registries: a manifest takes a second, and a server that is ten times slower counts as
    /// unreachable.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(15),
            whole: Duration::from_secs(30),
            call: Duration::from_mins(2),
        }
    }
}

/// The largest number of redirects. A registry's storage needs one or two.
const REFERRALS: usize = 5;
/// The size limit of an answer's head, in bytes.
const HEAD: usize = 64 << 10;
/// The number of bytes of a refusal's body that are read for its text.
const REFUSAL: usize = 8 << 10;

const AGENT: &str = concat!("addon-operator/", env!("CARGO_PKG_VERSION"));

/// A request.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'static str,
    /// Sent only to the URL's own origin.
    pub(super) authorization: Option<HeaderValue>,
    /// The body. With a body no redirect is followed.
    pub(super) body: Option<Body>,
    /// The size limit of a successful answer.
    pub(super) limit: usize,
    /// The file for the body of a successful answer; none to keep it in memory. A former content is lost.
    pub(super) into: Option<PathBuf>,
}

/// The body of a request.
#[derive(Clone)]
pub(super) struct Body {
    /// The media type.
    pub(super) kind: HeaderValue,
    pub(super) bytes: Bytes,
}

/// A complete answer. The body of a refusal may be cut.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The URL that answered after all redirects.
    pub(super) url: Url,
    /// The nearness of the server that answered.
    pub(super) nearness: Nearness,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends requests to registries, and to the hosts that they redirect to.
pub(super) struct Wire {
    pub(super) ways: Ways,
    /// Hosts that are asked without TLS.
    pub(super) plain: BTreeSet<Host>,
    pub(super) limits: Limits,
}

impl Wire {
    /// The origin of a host that a person named.
    pub(super) fn origin(&self, host: &Host) -> Origin {
        let scheme = if self.plain.contains(host) {
            Scheme::Plain
        } else {
            Scheme::Tls
        };
        Origin::new(scheme, &host.server())
    }

    /// Whether a registry may redirect to this URL, as far as the URL shows.
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
        // This future moves the bytes. The request itself notices the end of the connection.
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
        body,
        limit: _,
        into: _,
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
    if let Some(Body { kind, .. }) = body {
        builder = builder.header(CONTENT_TYPE, kind);
    }
    let bytes = body.as_ref().map(|body| body.bytes.clone());
    builder
        .body(Full::new(bytes.unwrap_or_default()))
        .map_err(|_| Problem::Astray {
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
    let mut kept = match &question.into {
        Some(path) if is_good => Kept::File(File::create(path).await.map_err(Problem::Unkept)?),
        _ => Kept::Memory(Vec::new()),
    };
    let mut room = limit;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Problem::Cut)?.into_data() else {
            continue;
        };
        if data.len() > room && is_good {
            return Err(large);
        }
        let taken = &data[..data.len().min(room)];
        kept.take(taken).await.map_err(Problem::Unkept)?;
        room -= taken.len();
        if taken.len() < data.len() {
            break;
        }
    }
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: kept.end().await.map_err(Problem::Unkept)?,
        url: question.url.clone(),
        nearness,
    })
}

/// The body of an answer, as far as it is read.
enum Kept {
    Memory(Vec<u8>),
    File(File),
}

impl Kept {
    async fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(kept) => kept.extend_from_slice(bytes),
            Self::File(file) => file.write_all(bytes).await?,
        }
        Ok(())
    }

    /// The bytes; none if they are in a file.
    async fn end(self) -> io::Result<Bytes> {
        match self {
            Self::Memory(kept) => Ok(kept.into()),
            Self::File(mut file) => file.flush().await.map(|()| Bytes::new()),
        }
    }
}

/// The target of a redirect, if the answer is one.
fn referral(answer: &Answer, question: &Question) -> Result<Option<Url>, Problem> {
    let moved = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    if !moved || question.body.is_some() {
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
