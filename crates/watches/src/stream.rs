//! Lists and watches as bytes: pages, and lines as they arrive.
//!
//! kube's own watcher hides facts that are needed here: it hides the end of a watch, the pause that the server asks for
//! and the time of the last event, and it builds a tree of every object. So requests are made with kube's client, its
//! credentials and connections, and the answers are read here. Must never hold more than a page or a line.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::core::Status;
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use kube_access::pace::within;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::heard::unusable;
use super::selection::{Built, Selection};
use super::trouble::{Trouble, WatchError, jittered};

/// Objects in one page of a list.
const PAGE: u32 = 500;
/// The longest duration of a watch in seconds. The server ends it then, and a new one continues.
const LIFE: Duration = Duration::from_secs(290);
/// The size to which the line buffer is shrunk after an unusually long line.
const SPARE: usize = 256 * 1024;
/// The longest error text.
const LONGEST_WORD: usize = 512;

/// The source of the objects of a selection.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) cluster: Cluster,
    pub(super) selection: Selection,
    /// The timeout for the beginning of an answer.
    pub(super) patience: Duration,
    /// The timeout of the request that checks a silent watch, whose connection may be dead too.
    pub(super) doubt: Duration,
}

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMeta {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) next: String,
}

/// A line of a watch.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// The lines of a running watch.
pub(super) struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// The beginning of the bytes that were not returned yet.
    begin: usize,
    attempt: Attempt,
}

impl Source {
    pub(super) fn attempt(&self, verb: &'static str) -> Attempt {
        let Selection {
            resource, namespace, ..
        } = &self.selection;
        self.cluster
            .attempt_in(namespace.as_deref(), verb, &resource.plural, "")
    }

    /// One page as sent; `next` is the token from the previous page.
    pub(super) async fn page(&self, next: &str) -> Result<Vec<u8>, Trouble> {
        // The timeout is for the whole page, because an answer that stops in the middle is useless.
        let patience = if self.selection.is_read {
            self.patience
        } else {
            self.patience * 2
        };
        let attempt = self.attempt("list");
        let mut params = self.selection.list_params();
        params.limit = Some(PAGE);
        params.continue_token = (!next.is_empty()).then(|| next.to_owned());
        let request = self.selection.list(&params);
        let read = async {
            let body = self.send(&attempt, request).await?;
            let collected = body.collect().await;
            let bytes = collected.map_err(|error| failed(attempt.clone(), error))?.to_bytes();
            Ok(Vec::from(bytes))
        };
        self.within(&attempt, patience, read).await
    }

    /// The server's present version. A list of one object costs it almost nothing.
    pub(super) async fn present(&self) -> Result<String, Trouble> {
        let attempt = self.attempt("list");
        let mut params = self.selection.list_params();
        params.limit = Some(1);
        let read = async {
            let body = self.send(&attempt, self.selection.list(&params)).await?;
            let collected = body.collect().await;
            Ok(collected.map_err(|error| failed(attempt.clone(), error))?.to_bytes())
        };
        let bytes = self.within(&attempt, self.doubt, read).await?;
        let page: Page<'_> = serde_json::from_slice(&bytes).map_err(|error| unusable(&attempt, &error.to_string()))?;
        Ok(page.metadata.resource_version)
    }

    /// All changes after this resource version. Without a version: all objects, and then the changes.
    pub(super) async fn watch(&self, version: Option<&str>) -> Result<Lines, Trouble> {
        let attempt = self.attempt("watch");
        let mut params = self.selection.watch_params();
        params.send_initial_events = version.is_none();
        params.timeout = u32::try_from(jittered(LIFE).as_secs()).ok();
        let request = self.selection.watch(&params, version.unwrap_or_default());
        let request = request.map(|mut request| {
            // A compressed stream of a newer server could not be read line by line.
            let plain = "identity".parse().expect("a header value of letters");
            request.headers_mut().insert("accept-encoding", plain);
            request
        });
        let body = self
            .within(&attempt, self.patience, self.send(&attempt, request))
            .await?;
        Ok(Lines {
            body,
            buffer: Vec::new(),
            begin: 0,
            attempt,
        })
    }

    async fn within<T>(
        &self,
        attempt: &Attempt,
        waited: Duration,
        answer: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let silent = || {
            let attempt = attempt.clone();
            Trouble::of(RequestError::Silent { attempt, waited })
        };
        within(waited, answer).await.ok_or_else(silent)?
    }

    async fn send(&self, attempt: &Attempt, request: Built) -> Result<Body, Trouble> {
        let broken = |error| failed(attempt.clone(), kube::Error::BuildRequest(error));
        let request = request.map_err(broken)?.map(Body::from);
        let sent = self.cluster.client().send(request).await;
        let response = sent.map_err(|error| failed(attempt.clone(), error))?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let code = response.status().as_u16();
        let header = response.headers().get("retry-after");
        let asked = header.and_then(|value| value.to_str().ok()?.parse().ok());
        let collected = response.into_body().collect().await;
        let text = collected.map_err(|error| failed(attempt.clone(), error))?.to_bytes();
        let mut status = read_status(&text);
        // The HTTP status counts, not the code in the body.
        status.code = code;
        let in_body = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let retry_after = asked.or((in_body > 0).then(|| u64::from(in_body)));
        Err(Trouble {
            retry_after: retry_after.map(Duration::from_secs),
            ..failed(attempt.clone(), kube::Error::Api(status.boxed()))
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selection {
            resource,
            namespace,
            labels,
            fields,
            metadata_only: _,
            is_read: _,
        } = &self.selection;
        write!(f, "{}", resource.plural)?;
        if !resource.group.is_empty() {
            write!(f, ".{}", resource.group)?;
        }
        let parts = [("in", namespace), ("with labels", labels), ("with fields", fields)];
        let told = parts
            .into_iter()
            .filter_map(|(word, part)| Some((word, part.as_ref()?)));
        for (word, part) in told {
            write!(f, " {word} {part}")?;
        }
        Ok(())
    }
}

impl Lines {
    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The next line, without its end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<&[u8], Trouble> {
        let line = self.find().await?;
        Ok(&self.buffer[line])
    }

    async fn find(&mut self) -> Result<Range<usize>, Trouble> {
        let mut searched = self.begin;
        loop {
            if let Some(length) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.begin..searched + length;
                self.begin = line.end + 1;
                return Ok(line);
            }
            self.buffer.drain(..self.begin);
            self.begin = 0;
            searched = self.buffer.len();
            if self.buffer.is_empty() {
                self.buffer.shrink_to(SPARE);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.buffer.extend_from_slice(bytes);
                    }
                }
                Some(Err(error)) => return Err(failed(self.attempt.clone(), error)),
                None => return Err(self.ended()),
            }
        }
    }

    fn ended(&self) -> Trouble {
        let (kind, problem) = if self.buffer.is_empty() {
            (WatchError::Eof, "the server ended the watch")
        } else {
            (WatchError::UnexpectedEof, "it ended within a line")
        };
        let error = RequestError::Unusable {
            attempt: self.attempt.clone(),
            problem: problem.to_owned(),
        };
        Trouble {
            kind,
            ..Trouble::of(error)
        }
    }
}

pub(super) fn failed(attempt: Attempt, error: kube::Error) -> Trouble {
    let source = Box::new(error);
    Trouble::of(RequestError::Failed { attempt, source })
}

/// The error status in an answer; for an answer without one, the answer's text.
pub(super) fn read_status(text: &[u8]) -> Status {
    serde_json::from_slice(text).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(text);
        let said: String = text.trim().chars().take(LONGEST_WORD).collect();
        Status::failure(&said, "")
    })
}
