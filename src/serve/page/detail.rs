//! The facts about one module.
//!
//! Must never hand over the contents of a recorded run: these are shown at the debug socket alone.

use std::collections::BTreeMap;

use addon_core::operator::query::{
    ConfigValuesQuery, DefaultsQuery, PatchesQuery, QueuesQuery, Secrets as Wanted, ValuesQuery,
};
use hooks::answers::snapshots;
use hooks::past::LastRun;
use hooks::records::Entry;
use listeners::Unanswered;
use names::{ModuleName, Owner};
use page::facts::{self, Detail};
use releases::answers::history;
use releases::drift::lookout::object_healths::ObjectHealth;

use super::{Facts, queue};

impl Facts {
    /// The facts about one module; none if there is no such module.
    pub(super) async fn detail(self, name: &str) -> Result<Option<Detail>, Unanswered> {
        let Ok(module) = ModuleName::parse(name) else {
            return Ok(None);
        };
        let (with_global, secrets) = (false, Wanted::Masked);
        let of = || Some(module.clone());
        let values = ValuesQuery {
            module: of(),
            with_global,
            secrets,
        };
        let Ok(values) = listeners::ask(&self.doors, values).await? else {
            return Ok(None);
        };
        let section = ConfigValuesQuery {
            module: of(),
            with_global,
            secrets,
        };
        let section = listeners::ask(&self.doors, section).await?.unwrap_or_default();
        let defaults = listeners::ask(&self.doors, DefaultsQuery(module.clone()))
            .await?
            .unwrap_or_default();
        let patches = PatchesQuery { module: of(), secrets };
        let patches = listeners::ask(&self.doors, patches).await?.unwrap_or_default();
        let hooks = snapshots::hooks(&self.doors, Owner::Module(module.clone()))
            .await?
            .unwrap_or_default();
        let watched = hooks.into_iter().map(|(hook, bindings)| {
            let names = bindings.into_iter().map(|(binding, _)| binding.to_string());
            (hook.to_string(), names.collect())
        });
        let queues = listeners::ask(&self.doors, QueuesQuery).await?;
        let ours = queues
            .iter()
            .filter(|queue| queue.tasks.iter().any(|task| task.module == name));
        let detail = Detail {
            values,
            section,
            defaults,
            patches,
            hooks: watched.collect(),
            last_runs: self.last_runs(&Owner::Module(module)),
            queues: ours.map(queue).collect(),
            objects: self.objects(name).await,
            history: self.history(name).await,
            runs: self.runs(name).await,
        };
        Ok(Some(self.masked(detail)))
    }

    async fn objects(&self, module: &str) -> Vec<facts::Object> {
        let Some(lookout) = self.lookout.get() else {
            return Vec::new();
        };
        lookout.objects_of(module).await.into_iter().map(object).collect()
    }

    async fn history(&self, module: &str) -> Vec<facts::Revision> {
        let Some(charts) = self.charts.get() else {
            return Vec::new();
        };
        let kept = history::history(&charts.cluster, module).await.into_iter();
        let told = kept.map(|kept| facts::Revision {
            number: kept.revision,
            status: kept.status.to_owned(),
            written: kept.written.try_into().unwrap_or_default(),
            config: kept.config,
        });
        told.collect()
    }

    fn last_runs(&self, owner: &Owner) -> BTreeMap<String, facts::LastRun> {
        let all = self.past.of(owner).into_iter();
        all.map(|(hook, run)| (hook.name.to_string(), last_run(run))).collect()
    }

    /// The recorded runs of the module's hooks, without the contents of the records: these are shown at the debug socket alone.
    async fn runs(&self, module: &str) -> Vec<facts::Run> {
        let recorder = self.recorder.clone();
        let entries = blocking::run(move || recorder.entries()).await.unwrap_or_default();
        entries.into_iter().filter_map(|entry| run(entry, module)).collect()
    }
}

fn object(object: ObjectHealth) -> facts::Object {
    facts::Object {
        kind: object.kind,
        namespace: object.namespace,
        name: object.name,
        health: object.health.to_owned(),
        sentence: object.sentence,
    }
}

fn last_run(run: LastRun) -> facts::LastRun {
    facts::LastRun {
        binding: run.binding,
        began: run.began.as_second(),
        seconds: run.took.as_secs_f64(),
        end: run.end.to_string(),
        failure: run.failure.unwrap_or_default(),
        output: run.output,
    }
}

/// The record of a run, if it is one of the module's hooks.
fn run(entry: Entry, module: &str) -> Option<facts::Run> {
    let run = entry.run.filter(|run| run.module.as_deref() == Some(module))?;
    Some(facts::Run {
        id: entry.id,
        hook: run.hook,
        binding: run.binding,
        began: run.began,
        seconds: run.seconds,
        end: run.end.to_string(),
        failure: run.failure,
    })
}
