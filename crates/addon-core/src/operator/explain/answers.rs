//! Every question with its answer. A question that is not here cannot be asked.

use std::collections::BTreeMap;

use names::{HookName, ModuleName, Owner};
use serde_json::{Value, json};

use super::super::pulse::Pulse;
use super::super::query::{
    ChannelQuery, ChannelReport, ConfigValuesQuery, ConvergesQuery, DefaultsQuery, GlobalHooksQuery, HookMonitors,
    ModuleReport, ModulesQuery, MonitorsQuery, NamedSource, NoSuchModule, PastConverge, PatchesQuery, PulseQuery,
    QueueReport, QueuesQuery, ReleaseValuesQuery, Secrets, SlotReport, SlotsQuery, SourcesQuery, Status, StatusQuery,
    ValuesQuery,
};
use super::super::survey::Survey;
use super::Query;
use crate::values::HookDocument;

impl Query for StatusQuery {
    type Answer = Status;

    fn answer(&self, survey: &Survey<'_>) -> Status {
        survey.status()
    }
}

impl Query for ConvergesQuery {
    type Answer = Vec<PastConverge>;

    fn answer(&self, survey: &Survey<'_>) -> Vec<PastConverge> {
        survey.of.converge.past().cloned().collect()
    }
}

impl Query for PulseQuery {
    type Answer = Pulse;

    fn answer(&self, survey: &Survey<'_>) -> Pulse {
        survey.pulse()
    }
}

impl Query for QueuesQuery {
    type Answer = Vec<QueueReport>;

    fn answer(&self, survey: &Survey<'_>) -> Vec<QueueReport> {
        survey.queue_reports()
    }
}

impl Query for SlotsQuery {
    type Answer = Vec<SlotReport>;

    fn answer(&self, survey: &Survey<'_>) -> Self::Answer {
        survey.of.jobs.slots(&survey.of.cx.policy)
    }
}

impl Query for ModulesQuery {
    type Answer = Vec<ModuleReport>;

    fn answer(&self, survey: &Survey<'_>) -> Vec<ModuleReport> {
        survey.module_reports()
    }
}

impl Query for ValuesQuery {
    type Answer = Result<Value, NoSuchModule>;

    fn answer(&self, survey: &Survey<'_>) -> Result<Value, NoSuchModule> {
        survey.document(self.module.as_ref(), self.with_global, |owner| {
            survey.section_shown(owner, &survey.of.values.effective(owner), self.secrets)
        })
    }
}

impl Query for ConfigValuesQuery {
    type Answer = Result<Value, NoSuchModule>;

    fn answer(&self, survey: &Survey<'_>) -> Result<Value, NoSuchModule> {
        survey.document(self.module.as_ref(), self.with_global, |owner| {
            let section = survey.of.values.config_section(owner);
            section.map_or(Value::Null, |section| {
                survey.section_shown(owner, &section, self.secrets)
            })
        })
    }
}

impl Query for DefaultsQuery {
    type Answer = Result<Value, NoSuchModule>;

    fn answer(&self, survey: &Survey<'_>) -> Result<Value, NoSuchModule> {
        survey.document(Some(&self.0), false, |owner| {
            survey.section_shown(owner, &survey.of.values.defaults(owner), Secrets::Masked)
        })
    }
}

impl Query for ReleaseValuesQuery {
    type Answer = Result<HookDocument, NoSuchModule>;

    fn answer(&self, survey: &Survey<'_>) -> Result<HookDocument, NoSuchModule> {
        survey.release_values(&self.0).ok_or(NoSuchModule)
    }
}

impl Query for PatchesQuery {
    type Answer = Result<Value, NoSuchModule>;

    fn answer(&self, survey: &Survey<'_>) -> Result<Value, NoSuchModule> {
        survey.document(self.module.as_ref(), false, |owner| {
            let patches = survey.of.values.patches(owner);
            match self.secrets {
                _ if patches.is_empty() => Value::Null,
                Secrets::Shown => json!(patches),
                Secrets::Masked => survey.of.values.masked_patches(owner),
            }
        })
    }
}

impl Query for ChannelQuery {
    type Answer = ChannelReport;

    fn answer(&self, survey: &Survey<'_>) -> ChannelReport {
        ChannelReport {
            settings: survey.of.config.channel_settings(),
            activity: survey.activity(),
        }
    }
}

impl Query for SourcesQuery {
    type Answer = Option<BTreeMap<ModuleName, NamedSource>>;

    fn answer(&self, survey: &Survey<'_>) -> Self::Answer {
        let sources = survey.of.config.module_sources()?.into_iter();
        let named = sources.map(|(name, source)| {
            let naming = survey.of.supply.naming(&name);
            (name, NamedSource { source, naming })
        });
        Some(named.collect())
    }
}

impl Query for GlobalHooksQuery {
    type Answer = Vec<HookName>;

    fn answer(&self, survey: &Survey<'_>) -> Vec<HookName> {
        let hooks = survey.of.bindings.of_owner(&Owner::Global);
        hooks.map(|(id, _)| id.name.clone()).collect()
    }
}

impl Query for MonitorsQuery {
    type Answer = Result<HookMonitors, NoSuchModule>;

    fn answer(&self, survey: &Survey<'_>) -> Result<HookMonitors, NoSuchModule> {
        let (Self(owner), of) = (self, survey.of);
        if owner.module().is_some_and(|name| !of.modules.contains(name)) {
            return Err(NoSuchModule);
        }
        let hooks = of.bindings.of_owner(owner);
        Ok(hooks
            .map(|(id, _)| (id.name.clone(), of.monitors.watched(&of.bindings, id)))
            .collect())
    }
}

impl Survey<'_> {
    fn section_shown(&self, owner: &Owner, section: &Value, secrets: Secrets) -> Value {
        match secrets {
            Secrets::Shown => section.clone(),
            Secrets::Masked => self.of.values.masked(owner, section),
        }
    }

    fn document(
        &self,
        module: Option<&ModuleName>,
        with_global: bool,
        part: impl Fn(&Owner) -> Value,
    ) -> Result<Value, NoSuchModule> {
        let owner = match module {
            None => Owner::Global,
            Some(name) if self.of.modules.contains(name) => Owner::Module(name.clone()),
            Some(_) => return Err(NoSuchModule),
        };
        let own = part(&owner);
        if !with_global || owner == Owner::Global {
            return Ok(own);
        }
        Ok(json!({ "global": part(&Owner::Global), owner.values_key(): own }))
    }
}
