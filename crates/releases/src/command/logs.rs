//! `module logs`: the lines that the pods of a module write, and the output of its hooks from the log of the operator.
//!
//! Must never ask the operator: everything is read with the rights of the person. Must never show a value that its key marks
//! as a secret.

mod lines;

use std::io::{self, Write as _};
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use command::reach::{self, AskError};
use command::{Caller, CommandError, Hinted, Target};
use crontab::duration::parse_duration;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use kube_access::Cluster;
use kube_access::error::RequestError;
use masking::secret::known::Known;
use names::ModuleName;
use settings::Program;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::lines::{Filter, Line};
use super::family::Family;

/// The number of lines of each container, unless the person names another.
const TAIL: usize = 20;
/// The number of the operator's records among which the output of hooks is looked for.
const RECORDS: i64 = 5_000;

/// The arguments: the module, and the choice of lines.
#[derive(Debug, Args)]
pub struct Logs {
    /// Name of the module
    module: String,
    /// Largest number of lines of each container; the newest are shown
    #[arg(long, value_name = "NUMBER", default_value_t = TAIL)]
    tail: usize,
    /// Largest age of the lines, such as 5m; without it lines of any age are shown
    #[arg(long, value_name = "DURATION", value_parser = age)]
    since: Option<Duration>,
    /// Name of the containers whose lines are shown; without it those of all
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Show the lines of the containers before their last restart
    #[arg(long, conflicts_with = "follow")]
    previous: bool,
    /// Go on with new lines until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

/// Why there are no lines to show.
#[derive(Debug, Error)]
enum NoLines {
    #[error("module '{module}' has no pods, and its hooks have written nothing")]
    None { module: ModuleName },
}

impl Hinted for NoLines {
    fn hints(&self) -> Vec<String> {
        vec!["`addon-operator module why` tells the state of a module".to_owned()]
    }
}

/// A container whose lines are wanted.
struct Source {
    api: Api<Pod>,
    namespace: String,
    pod: String,
    container: String,
    filter: Filter,
}

impl Logs {
    pub fn run(self, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(None);
        let (module, _, runtime, cluster) =
            reach::with_module(&args, caller.environment, &self.module).map_err(AskError::from)?;
        let found = runtime.block_on(self.sources(&cluster, &module));
        let (sources, secrets) = found.map_err(AskError::from)?;
        let shown = runtime.block_on(self.show(&cluster, sources, &secrets));
        let count = shown.map_err(AskError::from)?;
        if count == 0 && !self.follow {
            return Err(NoLines::None { module }.into());
        }
        Ok(())
    }

    /// The containers of the module's pods, and the operator's. Returns the secrets of the release, too.
    async fn sources(&self, cluster: &Cluster, module: &ModuleName) -> Result<(Vec<Source>, Known), RequestError> {
        let family = Family::of(cluster, module.as_str()).await?;
        let mut sources = Vec::new();
        for (namespace, name) in family.pods() {
            let api: Api<Pod> = Api::namespaced(cluster.client(), namespace);
            let attempt = cluster.attempt_in(Some(namespace), "get", "pods", name);
            let pod = match cluster.ask(attempt, api.get(name)).await {
                Err(error) if error.is_not_found() => continue,
                pod => pod?,
            };
            let spec = pod.spec.unwrap_or_default();
            let first = spec.init_containers.unwrap_or_default().into_iter();
            let containers = first.chain(spec.containers).map(|container| container.name);
            sources.extend(containers.map(|container| Source {
                api: api.clone(),
                namespace: namespace.to_owned(),
                pod: name.to_owned(),
                container,
                filter: Filter::All,
            }));
        }
        if let Some(operator) = operator(cluster, module).await {
            sources.push(operator);
        }
        if let Some(wanted) = &self.container {
            sources.retain(|source| source.container == *wanted);
        }
        Ok((sources, family.secrets))
    }

    /// Prints the lines, and returns their number.
    async fn show(&self, cluster: &Cluster, sources: Vec<Source>, secrets: &Known) -> Result<usize, RequestError> {
        let mut count = 0;
        for source in &sources {
            for line in self.last_lines(cluster, source).await? {
                count += 1;
                // A reader of the output that went away, such as `head`, has seen enough.
                if tell(&line, secrets).is_err() {
                    return Ok(count);
                }
            }
        }
        if self.follow {
            let (told, mut lines) = mpsc::channel(64);
            let mut tasks = JoinSet::new();
            for source in sources {
                tasks.spawn(follow(source, told.clone()));
            }
            drop(told);
            while let Some(line) = lines.recv().await {
                if tell(&line, secrets).is_err() {
                    return Ok(count);
                }
            }
        }
        Ok(count)
    }

    /// The newest lines of a container. One that has not started yet has none.
    async fn last_lines(&self, cluster: &Cluster, source: &Source) -> Result<Vec<Line>, RequestError> {
        let params = LogParams {
            container: Some(source.container.clone()),
            previous: self.previous && source.filter.is_all(),
            since_seconds: self
                .since
                .map(|since| i64::try_from(since.as_secs().max(1)).unwrap_or(i64::MAX)),
            tail_lines: Some(match source.filter {
                Filter::All => i64::try_from(self.tail).unwrap_or(i64::MAX),
                Filter::HooksOf(_) => RECORDS,
            }),
            ..LogParams::default()
        };
        let attempt = cluster.attempt_in(Some(&source.namespace), "get", "pods/log", &source.pod);
        let text = match cluster.ask(attempt, source.api.logs(&source.pod, &params)).await {
            Err(error) if matches!(error.code(), Some(400 | 404)) => return Ok(Vec::new()),
            // The lines of the module's own pods are worth showing without those of its hooks.
            Err(error) if error.is_forbidden() && !source.filter.is_all() => return Ok(Vec::new()),
            text => text?,
        };
        let mut lines: Vec<Line> = text.lines().filter_map(|line| source.line(line)).collect();
        lines.drain(..lines.len().saturating_sub(self.tail));
        Ok(lines)
    }
}

/// The container of the operator that leads, if the person may see it.
async fn operator(cluster: &Cluster, module: &ModuleName) -> Option<Source> {
    let program = Program::AddonOperator;
    let place = cluster.find_program(program.name(), program.lease(), None).await.ok()?;
    Some(Source {
        api: Api::namespaced(cluster.client(), cluster.namespace()),
        namespace: cluster.namespace().to_owned(),
        container: place.container.unwrap_or_default(),
        pod: place.pod,
        filter: Filter::HooksOf(module.clone()),
    })
}

impl Source {
    /// The line as it is shown, if it is one of the wanted.
    fn line(&self, text: &str) -> Option<Line> {
        self.filter.read(text).map(|(author, text)| Line {
            place: author.unwrap_or_else(|| format!("{}/{}", self.pod, self.container)),
            text,
        })
    }
}

/// Sends the new lines of a container until it ends or nobody listens.
async fn follow(source: Source, told: mpsc::Sender<Line>) {
    let params = LogParams {
        container: Some(source.container.clone()),
        follow: true,
        tail_lines: Some(0),
        ..LogParams::default()
    };
    let Ok(stream) = source.api.log_stream(&source.pod, &params).await else {
        return;
    };
    let mut lines = pin!(stream.lines());
    while let Some(Ok(text)) = lines.next().await {
        if let Some(line) = source.line(&text)
            && told.send(line).await.is_err()
        {
            return;
        }
    }
}

fn tell(line: &Line, secrets: &Known) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}  {}", line.place, secrets.masked(&line.text))
}

fn age(text: &str) -> Result<Duration, String> {
    let age = parse_duration(text).and_then(|age| Duration::try_from(age).ok());
    age.ok_or_else(|| "should be a duration such as 5m or 1h30m".to_owned())
}
