//! Gives plans their outer world: the tools of the jobs, of which only those that ask are used.

use std::sync::{Arc, OnceLock};

use addon_core::failure::Failure;
use addon_core::object::patch::Operation;
use addon_core::operator::effect::{HookRun, Job};
use addon_core::operator::event::Finished;
use addon_core::operator::preview::Release;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hooks::trial;
use listeners::Loop;
use plan::planner::{Planner, Tried, World};
use releases::sync::Wanted;
use releases::sync::foresight::{self, Change, Foreseen};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::dispatch::{self, Tools};

/// Makes plans available on the debug socket.
pub(super) fn offer(place: &OnceLock<Planner>, doors: &Loop, tools: &Arc<Tools>, stopping: &CancellationToken) {
    let world = Cluster {
        tools: Arc::clone(tools),
        stopping: stopping.clone(),
    };
    place.get_or_init(|| Planner::new(doors.clone(), world));
}

/// A patch in one line: the operation and the object. Its contents may be secret.
fn line(patch: &Operation) -> String {
    let document = patch.to_document();
    let object = document.get("object").unwrap_or(&document);
    let word = |path: &str| object.pointer(path).and_then(Value::as_str);
    let name = word("/metadata/name").or_else(|| word("/name")).unwrap_or_default();
    let namespace = word("/metadata/namespace").or_else(|| word("/namespace"));
    let namespace = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!(
        "{} {} {namespace}{name}",
        patch.name().as_str(),
        word("/kind").unwrap_or_default()
    )
}

/// The cluster and the programs of modules. During a stop a waiting client gets an error.
struct Cluster {
    tools: Arc<Tools>,
    stopping: CancellationToken,
}

impl World for Cluster {
    fn ask(&self, job: Job) -> BoxFuture<'_, Finished> {
        dispatch::run(job, Arc::clone(&self.tools), self.stopping.child_token()).boxed()
    }

    fn try_out(&self, run: HookRun) -> BoxFuture<'_, Result<Tried, Failure>> {
        async move {
            let tried = trial::try_out(&self.tools.hooks, run, &self.stopping).await?;
            Ok(Tried {
                patches: tried.objects.iter().map(line).collect(),
                ran: tried.ran,
            })
        }
        .boxed()
    }

    fn foresee<'a>(&'a self, release: &'a Release) -> BoxFuture<'a, Result<Foreseen, Failure>> {
        let wanted = Wanted {
            values: &release.values,
            asked: &release.asked,
            maintenance: release.maintenance,
            config: release.config,
            unhealthy: release.unhealthy.clone(),
        };
        let vetting = release.vetting.clone();
        async move {
            let tools = self.tools.releases()?;
            foresight::foresee(tools, &release.module, wanted, vetting, &self.stopping).await
        }
        .boxed()
    }

    fn foresee_removal<'a>(&'a self, release: &'a str) -> BoxFuture<'a, Result<Vec<Change>, Failure>> {
        async move { foresight::foresee_removal(self.tools.releases()?, release, &self.stopping).await }.boxed()
    }
}
