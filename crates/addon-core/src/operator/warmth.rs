//! What a standby finds out before its time, so that little is left to do once it leads: what the hooks of the modules
//! bind to that would run, and the objects that hooks watch.
//!
//! Files and the flags of the ConfigMap say which modules these are; nothing is run but `--config`, and what changes is
//! told to nobody. Nothing of this is begun before another one is known to lead: who is about to lead does everything in
//! its order, as hooks may see. Must never hold up who leads: what is ready is taken, what is under way is waited for where
//! it would have to be done, what failed is the leader's, who says so.

mod warming;

use std::collections::BTreeMap;

use super::effect::JobId;
use super::event::ConfigRead;
use super::modules::Unit;
use super::task::Lane;
use crate::hook::config::HookConfig;
use crate::module::enabling::Opinions;
use crate::name::{HookId, HookName, ModuleName, Owner};
use crate::time::Tick;
use crate::values::section::{ConfigDocument, Entry};

/// What was found out, until it is taken or dropped.
#[derive(Debug, Default)]
pub(super) struct Warmth {
    /// Another one leads.
    has_time: bool,
    /// The flags of the ConfigMap; nothing before it was read.
    flags: Option<BTreeMap<ModuleName, bool>>,
    /// Of every module that has a watch, too: monitors are of use only with the answer that named them.
    answers: BTreeMap<ModuleName, Answer>,
    watches: BTreeMap<HookId, Watch>,
    /// The lanes whose heads took over jobs that were begun before their time.
    taken_over: BTreeMap<JobId, Lane>,
}

/// What the hooks of a module say that they want.
#[derive(Debug)]
enum Answer {
    Asked(JobId),
    Known(Vec<(HookName, HookConfig)>),
    Refused,
}

/// How the monitors of a hook stand that are started before their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    Due { at: Tick, failures: u32 },
    Starting { job: JobId, failures: u32 },
    Watching,
}

impl Watch {
    /// One that was not tried.
    const FRESH: Self = Self::Due {
        at: Tick::ZERO,
        failures: 0,
    };

    fn is_due(self, now: Tick) -> bool {
        matches!(self, Self::Due { at, .. } if at <= now)
    }

    fn failures(self) -> u32 {
        match self {
            Self::Due { failures, .. } | Self::Starting { failures, .. } => failures,
            Self::Watching => 0,
        }
    }
}

impl Warmth {
    /// Another one leads.
    pub(super) fn begin(&mut self) {
        self.has_time = true;
    }

    /// Something may be found out beforehand.
    pub(super) fn has_time(&self) -> bool {
        self.has_time
    }

    /// The ConfigMap was read. As for who leads, what is gone or cannot be understood changes nothing.
    pub(super) fn hear(&mut self, read: &ConfigRead) {
        let known = self.flags.take().unwrap_or_default();
        let ConfigRead::Present { data, .. } = read else {
            self.flags = Some(known);
            return;
        };
        let sections = ConfigDocument::parse(data).sections.into_iter();
        let flags = sections.filter_map(|(name, section)| {
            let flag = match section.enabled {
                Entry::Good(on) => Some(on),
                Entry::Bad => known.get(&name).copied(),
                Entry::Absent => None,
            };
            Some((name, flag?))
        });
        self.flags = Some(flags.collect());
    }

    /// The module has hooks that would run, if nobody but files and the ConfigMap has anything to say.
    fn expects(&self, unit: &Unit) -> bool {
        let Some(flags) = &self.flags else { return false };
        let found = &unit.found;
        let opinions = Opinions {
            fixed: found.enabled,
            dynamic: None,
            config: flags.get(&found.name).copied(),
        };
        // To act as somebody else takes a token, and who asks for one is noticed.
        found.has_hooks && !found.has_account && found.broken.is_none() && opinions.verdict().enabled
    }

    /// The monitors of this hook were started before their time, and nobody has taken them yet.
    pub(super) fn holds(&self, hook: &HookId) -> bool {
        self.watches.contains_key(hook)
    }

    /// A job that was begun before its time ended: the lane whose head waits for it by now, if one does.
    pub(super) fn awaited_by(&mut self, id: JobId) -> Option<Lane> {
        self.taken_over.remove(&id)
    }

    fn is_asking(&self) -> bool {
        self.answers.values().any(|answer| matches!(answer, Answer::Asked(_)))
    }

    /// What the hooks of modules have answered.
    fn answered(&self) -> impl Iterator<Item = &HookConfig> {
        let known = self.answers.values().filter_map(|answer| match answer {
            Answer::Known(hooks) => Some(hooks),
            Answer::Asked(_) | Answer::Refused => None,
        });
        known.flatten().map(|(_, config)| config)
    }

    fn config_of(&self, hook: &HookId) -> Option<&HookConfig> {
        let Some(Answer::Known(hooks)) = self.answers.get(hook.owner.module()?) else {
            return None;
        };
        let (_, config) = hooks.iter().find(|(name, _)| *name == hook.name)?;
        Some(config)
    }

    /// The monitors of these hooks are to be started.
    fn expect_watches<'a>(&mut self, hooks: impl Iterator<Item = (HookId, &'a HookConfig)>) {
        let watching = hooks.filter(|(_, config)| !config.kubernetes.is_empty());
        self.watches.extend(watching.map(|(hook, _)| (hook, Watch::FRESH)));
    }

    /// Somebody took something of this owner. With the last watch the answer has no use any more.
    fn taken(&mut self, owner: &Owner) {
        let is_left = self.watches.keys().any(|hook| hook.owner == *owner);
        if let Some(module) = owner.module().filter(|_| !is_left) {
            self.answers.remove(module);
        }
    }
}
