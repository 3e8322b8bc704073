//! `module logs`: the lines that the pods of a module write, and the output of its hooks from the log of the operator.
//!
//! Must never ask the operator: everything is read with the rights of the person. Must never show a value that its key marks
//! as a secret. A container whose lines cannot be read must never hide those of the others.

mod lines;
mod stream;

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use command::reach::{self, AskError};
use command::{Caller, CommandError, Hinted, Target};
use crontab::duration::parse_duration;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube_access::Cluster;
use kube_access::error::RequestError;
use masking::secret::known::Known;
use names::ModuleName;
use report::Report;
use settings::Program;
use thiserror::Error;

use self::lines::{Filter, Line};
use self::stream::{Choice, Source, Told};
use crate::family::Family;

/// The number of lines of each container, unless the person names another.
const TAIL: usize = 20;

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
    /// Go on with new lines of these containers until Ctrl-C; pods that come later are not shown
    #[arg(short, long)]
    follow: bool,
}

/// Why there are no lines to show.
#[derive(Debug, Error)]
enum NoLines {
    #[error("module '{module}' has no pods, and no output of its hooks is in the operator's log")]
    NoPods { module: ModuleName },
    #[error("no line of the {containers} containers of module '{module}' is to be shown")]
    NoneWanted { module: ModuleName, containers: usize },
}

impl Hinted for NoLines {
    fn hints(&self) -> Vec<String> {
        let hooks = "the output of hooks is found in the log of a running operator that writes JSON (LOG_TYPE=json)";
        let first = match self {
            Self::NoPods { .. } => "`addon-operator module why` tells the state of a module",
            Self::NoneWanted { .. } => "--container, --since, --previous and --tail limit the lines",
        };
        vec![first.to_owned(), hooks.to_owned()]
    }
}

impl Logs {
    pub fn run(self, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(None);
        let (module, _, runtime, cluster) =
            reach::with_module(&args, caller.environment, &self.module).map_err(AskError::from)?;
        let found = runtime.block_on(self.sources(&cluster, &module));
        let (sources, secrets) = found.map_err(AskError::from)?;
        let of_pods = sources.iter().filter(|source| source.filter.is_all()).count();
        let count = runtime.block_on(self.show(&cluster, sources, of_pods, &secrets))?;
        match (count, of_pods) {
            (0, _) if self.follow => Ok(()),
            (0, 0) if self.container.is_none() => Err(NoLines::NoPods { module }.into()),
            (0, containers) => Err(NoLines::NoneWanted { module, containers }.into()),
            _ => Ok(()),
        }
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
                container: Some(container),
                filter: Filter::All,
            }));
        }
        if let Some(wanted) = &self.container {
            sources.retain(|source| source.container.as_ref() == Some(wanted));
        } else {
            sources.extend(operator(cluster, module).await);
        }
        Ok((sources, family.secrets))
    }

    /// Prints the lines, and returns their number. Fails only if not one container of the module's pods could be read.
    async fn show(
        &self,
        cluster: &Cluster,
        sources: Vec<Source>,
        of_pods: usize,
        secrets: &Known,
    ) -> Result<usize, CommandError> {
        let choice = Choice {
            tail: self.tail,
            since: self.since,
            previous: self.previous,
            follow: self.follow,
        };
        let mut told = if self.follow {
            stream::all_at_once(cluster, sources, choice).boxed_local()
        } else {
            stream::one_by_one(cluster, sources, choice).boxed_local()
        };
        let (mut count, mut failures) = (0, 0);
        while let Some(told) = told.next().await {
            match told {
                Told::Line(line) => {
                    count += 1;
                    print(&line, secrets).map_err(CommandError::Print)?;
                }
                Told::Failed { error, is_of_pod } => {
                    failures += usize::from(is_of_pod);
                    if is_of_pod && failures == of_pods {
                        return Err(AskError::from(error).into());
                    }
                    drop(writeln!(io::stderr(), "warning: {}", Report::new(&error).chain()));
                }
            }
        }
        Ok(count)
    }
}

/// The container of the operator that leads, if there is one that the person may see. Without it the lines of the module's own pods
/// are worth showing.
async fn operator(cluster: &Cluster, module: &ModuleName) -> Option<Source> {
    let program = Program::AddonOperator;
    let place = cluster.find_program(program.name(), program.lease(), None).await.ok()?;
    Some(Source {
        api: Api::namespaced(cluster.client(), cluster.namespace()),
        namespace: cluster.namespace().to_owned(),
        container: place.container,
        pod: place.pod,
        filter: Filter::HooksOf(module.clone()),
    })
}

fn print(line: &Line, secrets: &Known) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}  {}", line.place, secrets.masked(&line.text))
}

fn age(text: &str) -> Result<Duration, String> {
    let age = parse_duration(text).and_then(|age| Duration::try_from(age).ok());
    age.ok_or_else(|| "should be a duration such as 5m or 1h30m".to_owned())
}
