//! The troubles of a guard, and the requests at which they are aimed.
//!
//! A spoiled answer is the registry's own up to the point where it is spoiled.
#![expect(
    clippy::disallowed_methods,
    reason = "the guard's own runtime owns every task and ends with it"
)]

use http_body_util::BodyExt as _;
use http_body_util::channel::Channel;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::http::response::Parts;
use hyper::{Request, Response, StatusCode};

use super::{Answer, Broken, Seen, whole};

/// The effect of a trouble on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The answer has this status and this `Retry-After` header.
    Status(u16, Option<&'static str>),
    /// The answer redirects to the same path of another origin, such as `https://localhost:5000`.
    Refer(String),
    /// The answer redirects to exactly this URL.
    ReferTo(String),
    /// The connection is closed without an answer.
    Break,
    /// There is no answer, and the connection stays open.
    Silence,
    /// The connection is closed after this many bytes of the body.
    Cut(usize),
    /// After this many bytes of the body no more come, and the connection stays open.
    Stall(usize),
    /// The body has no end.
    Endless,
    /// One byte of the body is changed.
    Alter,
    /// The answer lacks this header.
    Without(&'static str),
    /// The answer has this `Content-Type`.
    Kind(&'static str),
    /// The registry is asked for another path: the first text in it is replaced by the second.
    Instead(&'static str, &'static str),
}

/// The requests at which a trouble is aimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The method; any if none is given.
    pub method: Option<&'static str>,
    /// A part of the path.
    pub path: &'static str,
    pub trouble: Trouble,
}

impl Aim {
    /// Aims at all requests whose path contains a text.
    pub fn at(path: &'static str, trouble: Trouble) -> Self {
        Self {
            method: None,
            path,
            trouble,
        }
    }

    pub(super) fn hits(&self, seen: &Seen) -> bool {
        self.method.is_none_or(|method| method == seen.method) && seen.path.contains(self.path)
    }
}

impl Trouble {
    /// An answer that is made without asking the registry.
    pub(super) async fn instead(&self, path: &str) -> Option<Result<Answer, Broken>> {
        let header = match self {
            Self::Break => return Some(Err(Broken)),
            Self::Silence => return std::future::pending().await,
            Self::Status(_, again) => again.map(|again| (RETRY_AFTER, again.to_owned())),
            Self::Refer(origin) => Some((LOCATION, format!("{origin}{path}"))),
            Self::ReferTo(address) => Some((LOCATION, address.clone())),
            _ => return None,
        };
        let code = if let Self::Status(code, _) = self { *code } else { 307 };
        let mut answer = Response::new(whole(Bytes::new()));
        *answer.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
        if let Some((name, value)) = header
            && let Ok(value) = HeaderValue::try_from(value)
        {
            answer.headers_mut().insert(name, value);
        }
        Some(Ok(answer))
    }

    /// Changes the request to the registry, if the trouble demands it.
    pub(super) fn before<B>(&self, request: &mut Request<B>) {
        let Self::Instead(asked, instead) = self else { return };
        let path = request.uri().to_string().replace(asked, instead);
        if let Ok(path) = path.parse() {
            *request.uri_mut() = path;
        }
    }

    /// Spoils the registry's answer.
    pub(super) fn on(self, mut head: Parts, body: Bytes) -> Answer {
        let body = match self {
            Self::Cut(length) => part(body.slice(..length.min(body.len())), Ending::Break),
            Self::Stall(length) => part(body.slice(..length.min(body.len())), Ending::Silence),
            Self::Endless => {
                head.headers.remove(CONTENT_LENGTH);
                part(body, Ending::Never)
            }
            Self::Alter => {
                let mut bytes = body.to_vec();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
                whole(bytes.into())
            }
            Self::Without(name) => {
                head.headers.remove(HeaderName::from_static(name));
                whole(body)
            }
            Self::Kind(kind) => {
                head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                whole(body)
            }
            Self::Instead(..) | Self::Status(..) | Self::Refer(_) | Self::ReferTo(_) | Self::Break | Self::Silence => {
                whole(body)
            }
        };
        Response::from_parts(head, body)
    }
}

/// The end of a spoiled body.
enum Ending {
    Break,
    Silence,
    Never,
}

const CHUNK: &[u8] = &[b' '; 64 << 10];

fn part(begin: Bytes, ending: Ending) -> UnsyncBoxBody<Bytes, Broken> {
    let (mut sender, channel) = Channel::new(1);
    tokio::spawn(async move {
        if sender.send_data(begin).await.is_err() {
            return;
        }
        match ending {
            Ending::Break => sender.abort(Broken),
            Ending::Silence => std::future::pending().await,
            // The body goes on until the client closes the connection.
            Ending::Never => while sender.send_data(Bytes::from_static(CHUNK)).await.is_ok() {},
        }
    });
    channel.boxed_unsync()
}
