//! The lines of containers as they are read from the API server.
//!
//! Must never end the lines of one container because of another one, and never because of bytes that are no text.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use futures::{AsyncBufRead, AsyncBufReadExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use kube_access::Cluster;
use kube_access::error::RequestError;

use super::lines::{Filter, Line};

/// The number of the operator's records among which the output of hooks is looked for.
const RECORDS: i64 = 5_000;

/// A container whose lines are wanted.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) api: Api<Pod>,
    pub(super) namespace: String,
    pub(super) pod: String,
    /// The container; none for the only one.
    pub(super) container: Option<String>,
    pub(super) filter: Filter,
}

/// The wanted lines of each container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    /// The largest number of lines that are there already.
    pub(super) tail: usize,
    /// The largest age of a line.
    pub(super) since: Option<Duration>,
    /// Whether the lines before the last restart are wanted.
    pub(super) previous: bool,
    /// Whether new lines are wanted.
    pub(super) follow: bool,
}

/// A line, or the reason why a container has no more.
#[derive(Debug)]
pub(super) enum Told {
    Line(Line),
    Failed {
        error: RequestError,
        /// Whether the container is one of the module's pods.
        is_of_pod: bool,
    },
}

/// The lines of one container after the other.
pub(super) fn one_by_one(
    cluster: &Cluster,
    sources: Vec<Source>,
    choice: Choice,
) -> impl Stream<Item = Told> + use<'_> {
    let last = stream::iter(sources).then(move |source| source.last_lines(cluster, choice));
    last.flat_map(stream::iter)
}

/// The lines of all containers as they come.
pub(super) fn all_at_once(
    cluster: &Cluster,
    sources: Vec<Source>,
    choice: Choice,
) -> impl Stream<Item = Told> + use<'_> {
    let each = sources.into_iter().map(move |source| {
        if source.filter.is_all() {
            return source.told(cluster, choice).boxed_local();
        }
        // Of the operator's records few are wanted, so that the API server cannot count them.
        let last = source.clone().last_lines(
            cluster,
            Choice {
                follow: false,
                ..choice
            },
        );
        let new = source.told(cluster, Choice { tail: 0, ..choice });
        stream::once(last).flat_map(stream::iter).chain(new).boxed_local()
    });
    stream::select_all(each)
}

impl Source {
    /// The newest lines.
    async fn last_lines(self, cluster: &Cluster, choice: Choice) -> VecDeque<Told> {
        let mut told = pin!(self.told(cluster, choice));
        let mut last = VecDeque::new();
        while let Some(told) = told.next().await {
            if last.len() >= choice.tail && matches!(told, Told::Line(_)) {
                last.pop_front();
            }
            if choice.tail > 0 || matches!(told, Told::Failed { .. }) {
                last.push_back(told);
            }
        }
        last
    }

    /// The lines, or the reason why they cannot be read. A container that is gone has none, and neither has one that was not
    /// restarted, if the lines before that are wanted.
    fn told(self, cluster: &Cluster, choice: Choice) -> impl Stream<Item = Told> + use<'_> {
        let opened = async move {
            let params = self.params(choice);
            let attempt = cluster.attempt_in(Some(&self.namespace), "get", "pods/log", &self.pod);
            match cluster.ask(attempt, self.api.log_stream(&self.pod, &params)).await {
                Ok(bytes) => self.lines(bytes).map(Told::Line).boxed_local(),
                Err(error) if error.is_not_found() => stream::empty().boxed_local(),
                Err(error) if choice.previous && error.code() == Some(400) => stream::empty().boxed_local(),
                // Without the operator's log only the output of hooks is missing.
                Err(error) if error.is_forbidden() && !self.filter.is_all() => stream::empty().boxed_local(),
                Err(error) => {
                    let is_of_pod = self.filter.is_all();
                    stream::iter([Told::Failed { error, is_of_pod }]).boxed_local()
                }
            }
        };
        stream::once(opened).flatten()
    }

    fn params(&self, choice: Choice) -> LogParams {
        LogParams {
            container: self.container.clone(),
            follow: choice.follow,
            previous: choice.previous && self.filter.is_all(),
            since_seconds: choice
                .since
                .map(|since| i64::try_from(since.as_secs().max(1)).unwrap_or(i64::MAX)),
            tail_lines: Some(match self.filter {
                Filter::All => i64::try_from(choice.tail).unwrap_or(i64::MAX),
                Filter::HooksOf(_) if choice.tail == 0 => 0,
                Filter::HooksOf(_) => RECORDS,
            }),
            ..LogParams::default()
        }
    }

    /// Each wanted line. A connection that breaks ends them.
    fn lines(self, bytes: impl AsyncBufRead) -> impl Stream<Item = Line> {
        let state = (self, Box::pin(bytes), Vec::new());
        stream::unfold(state, async |(source, mut bytes, mut line)| {
            loop {
                line.clear();
                let Ok(1..) = bytes.read_until(b'\n', &mut line).await else {
                    return None;
                };
                if let Some(wanted) = source.line(&line) {
                    return Some((wanted, (source, bytes, line)));
                }
            }
        })
    }

    /// The line as it is shown, if it is one of the wanted.
    fn line(&self, bytes: &[u8]) -> Option<Line> {
        let text = String::from_utf8_lossy(bytes);
        let (author, text) = self.filter.read(text.trim_end_matches(['\r', '\n']))?;
        let place = author.unwrap_or_else(|| self.place());
        Some(Line { place, text })
    }

    fn place(&self) -> String {
        match &self.container {
            Some(container) => format!("{}/{container}", self.pod),
            None => self.pod.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::io::Cursor;

    use super::*;

    #[tokio::test]
    async fn bytes_that_are_no_text_end_nothing() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let source = Source {
            api: Api::namespaced(kube::Client::try_from(config).unwrap(), "ns"),
            namespace: "ns".to_owned(),
            pod: "web-0".to_owned(),
            container: Some("main".to_owned()),
            filter: Filter::All,
        };
        let bytes = Cursor::new(b"one\r\ncaf\xe9\n\nlast".to_vec());
        let lines = source.lines(bytes).map(|line| format!("{}  {}", line.place, line.text));
        let seen: Vec<String> = lines.collect().await;
        let expected = ["one", "caf\u{fffd}", "", "last"].map(|text| format!("web-0/main  {text}"));
        assert_eq!(seen, expected);
    }
}
