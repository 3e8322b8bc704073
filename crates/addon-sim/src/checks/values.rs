//! V3 and V5: who may change which values, and that jobs get the current values.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::hook::cause::Cause;
use addon_core::operator::effect::{Effect, HookRun, Job, JobId, Notice};
use addon_core::operator::event::{Event, Finished, HookRan, Saved};
use addon_core::operator::query::ModuleReport;
use names::ModuleName;
use serde_json::{Value, json};

use super::jobs::lane;
use super::{SimStep, Violation, ensure};
use crate::flat::{self, Flat};
use crate::life::Seen;
use crate::setup::{Deed, key_of};
use crate::world::{Misdeed, asked_of, document, job_name, owner_name};

/// V3, V5, V7: the end of a hook changes at most the patches of its owner. A hook with a forbidden values patch changes
/// none, and saves only its config patch.
pub(super) fn check(step: &SimStep<'_>, misdeed: Option<Misdeed>, lives: &Lives) -> Result<(), Violation> {
    let Event::JobFinished(Finished::HookRan(ticket, Ok(HookRan { output, .. }))) = step.event else {
        return Ok(());
    };
    let Some(Job::RunHook(run @ HookRun { hook, .. }, _)) = step.ended else {
        return Ok(());
    };
    let owner = owner_name(&hook.owner);
    let is_asked = asked_of(run).is_some();
    let saves = |effect: &&Effect| matches!(effect, Effect::StartJob(Job::SaveConfig { .. }));
    let saved = step.effects.iter().find(saves);
    let may_save = !output.config.is_empty() && misdeed != Some(Misdeed::BreakConfig);
    let name = match misdeed {
        None => "V5",
        Some(Misdeed::Trespass) => "V3",
        Some(Misdeed::BreakValues | Misdeed::BreakConfig) => "V7",
    };
    ensure(misdeed.is_none() || saved.is_none() || may_save, name, || {
        format!("{hook} did what it may not, and still {saved:?}")
    })?;
    let passes =
        |effect: &&Effect| matches!(effect, Effect::Tell(Notice::HookSucceeded { hook: told, .. }) if told == hook);
    let off = |seen: &Seen| {
        seen.modules
            .get(&owner)
            .is_some_and(|module| !module.enabled || is_over(module))
    };
    let passed = step.effects.iter().find(passes);
    ensure(
        misdeed.is_none()
            || passed.is_none()
            || off(step.before)
            || off(step.after)
            || lives.outlived.contains(&ticket.id()),
        name,
        || format!("{hook} did what it may not, and still {passed:?}"),
    )?;
    for (whose, before) in &step.before.patches {
        let after = step.after.patches.get(whose);
        // A removal forgets what the module's hooks had set, if it ends in the same step or is given up for a new life. So
        // does a new life with other files.
        let given_up = step
            .before
            .modules
            .get(whose)
            .is_some_and(|module| module.state == "Deleting");
        let forgotten =
            after == Some(&Value::Null) && (given_up || step.effects.iter().any(|effect| ends_life(whose, effect)));
        if (*whose == owner && misdeed.is_none() && !is_asked) || forgotten {
            continue;
        }
        ensure(after == Some(before), name, || {
            format!("{hook} changed the patches of {whose} from {before} to {after:?}")
        })?;
    }
    Ok(())
}

/// The running hooks whose module has ended its life since they began, even if another life has begun. Their output does
/// not count.
#[derive(Debug, Default)]
pub(super) struct Lives {
    outlived: BTreeSet<JobId>,
}

impl Lives {
    pub(super) fn note(&mut self, step: &SimStep<'_>) {
        let ended = |owner: &str| {
            let removed = step.effects.iter().any(|effect| ends_life(owner, effect));
            removed || new_lives(step).any(|(name, _)| name == owner)
        };
        let running = step.life.running.iter();
        let of_ended = running.filter(|(_, running)| owner_of(&running.job).is_some_and(|owner| ended(&owner)));
        self.outlived.extend(of_ended.map(|(id, _)| *id));
    }
}

/// The modules that were being removed and are wanted again.
fn new_lives<'a>(step: &SimStep<'a>) -> impl Iterator<Item = (&'a String, &'a ModuleReport)> {
    let before = step.before;
    let was_removed = |name: &String| before.modules.get(name).is_some_and(|was| was.state == "Deleting");
    let modules = step.after.modules.iter();
    modules.filter(move |(name, is)| is.enabled && is.state != "Deleting" && was_removed(name))
}

/// V10: a module that is wanted again during its removal begins a new life without the patches of the old one, and so does
/// a module with other files.
pub(super) fn check_new_lives(step: &SimStep<'_>) -> Result<(), Violation> {
    for effect in step.effects {
        if let Effect::Tell(Notice::ModuleRenewed { module }) = effect {
            let patches = step
                .after
                .patches
                .get(module.as_str())
                .filter(|patches| !patches.is_null());
            ensure(patches.is_none(), "V10", || {
                format!("{module} begins a new life with what hooks set in the last one: {patches:?}")
            })?;
        }
    }
    let mut begun = new_lives(step);
    let haunted = begun.find(|(name, _)| step.after.patches.get(*name).is_some_and(|patches| !patches.is_null()));
    ensure(haunted.is_none(), "V10", || {
        let patches = haunted.and_then(|(name, _)| step.after.patches.get(name));
        format!("{haunted:?} begins a new life with what hooks set in the last one: {patches:?}")
    })
}

/// Whether the tasks of the module's hooks were dropped.
fn is_over(module: &ModuleReport) -> bool {
    ["Disabled", "Ensuring", "Configuring", "Starting", "Deleting"].contains(&module.state.as_str())
}

/// E1: our write of a section changes the keys that its hooks write, and nothing that people wrote.
pub fn check_edits_kept(key: &str, before: Option<&str>, after: Option<&str>) -> Result<(), Violation> {
    let peoples = |text: Option<&str>| {
        let section = text.map_or_else(|| Some(Flat::new()), |text| flat::read(text, key == "global"));
        let kept = |section: Flat| {
            section
                .into_iter()
                .filter(|(key, _)| !key.starts_with('c'))
                .collect::<Flat>()
        };
        section.map(kept)
    };
    let (was, is) = (peoples(before), peoples(after));
    ensure(was.is_some() && was == is, "E1", || {
        format!("our write to section {key} made {after:?} of {before:?}")
    })
}

/// Whether each key has one of three values: from before the step, from our write that ended with the step, or from
/// after the step. The job was started in the middle of the step.
fn is_between(own: &Value, before: Option<&Value>, written: &Flat, after: Option<&Value>) -> bool {
    let keys = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (own, before, after) = (keys(Some(own)), keys(before), keys(after));
    let known = own.iter().all(|(key, value)| {
        let is_written = written.get(key).is_some_and(|written| *value == json!(written));
        is_written || before.get(key) == Some(value) || after.get(key) == Some(value)
    });
    known
        && before
            .keys()
            .filter(|key| after.contains_key(*key))
            .all(|key| own.contains_key(key))
}

/// The section of this owner whose write ended with this step.
fn written(step: &SimStep<'_>, owner: &str) -> Flat {
    match (step.event, step.ended) {
        (
            Event::JobFinished(Finished::ConfigSaved(_, Ok(Saved::Written { .. }))),
            Some(Job::SaveConfig { key, text, .. }),
        ) if *key == key_of(owner) => flat::read(text, false).unwrap_or_default(),
        _ => Flat::new(),
    }
}

/// The keys that the hook before this job in its queue set, if the hook has just succeeded and both have the same owner.
fn set_ahead_of(step: &SimStep<'_>, job: &Job) -> Vec<String> {
    let owner = owner_of(job).filter(|_| step.ended.is_some_and(|ended| lane(step, ended) == lane(step, job)));
    let set = owner.map(|owner| set_by(step, &owner)).unwrap_or_default();
    set.into_iter().map(|(key, _)| key).collect()
}

/// The values between the end of a hook and the end of its module's removal, if both came in this step: the values
/// before the step, with the values that the hook set.
fn before_removal(step: &SimStep<'_>, module: &str) -> Option<Value> {
    let mut values = step.before.values.get(module).cloned()?;
    let report = step.before.modules.get(module);
    // A hook in a queue of its own does not count if its module was off already.
    let of_run = |run: &HookRun| !matches!(run.labels.cause, Cause::Schedule | Cause::Objects);
    let in_run = matches!(step.ended, Some(Job::RunHook(run, _)) if of_run(run));
    if in_run || report.is_some_and(|report| report.enabled && !is_over(report)) {
        for (key, value) in set_by(step, module) {
            values[key] = value;
        }
    }
    Some(values)
}

/// The values, by key, that were set by a hook of this owner that succeeded in this step.
fn set_by(step: &SimStep<'_>, owner: &str) -> Vec<(String, Value)> {
    let (Event::JobFinished(Finished::HookRan(_, Ok(HookRan { output, .. }))), Some(ended)) = (step.event, step.ended)
    else {
        return Vec::new();
    };
    let succeeded = |effect: &Effect| matches!(effect, Effect::Tell(Notice::HookSucceeded { .. }));
    if owner_of(ended).as_deref() != Some(owner) || !step.effects.iter().any(succeeded) {
        return Vec::new();
    }
    let patches = [&output.values, &output.config].map(|patch| json!(patch));
    let operations = patches.iter().filter_map(Value::as_array).flatten();
    let set = |operation: &Value| {
        let key = operation["path"].as_str()?.split('/').nth(2)?;
        Some((key.to_owned(), operation["value"].clone()))
    };
    operations.filter_map(set).collect()
}

/// The values that hooks of this module may set.
fn set_by_any(step: &SimStep<'_>, module: &str, values: &Value) -> Flat {
    let hooks = step.life.told.knows(module).into_iter().flat_map(|spec| &spec.hooks);
    let keys = hooks.flat_map(|hook| &hook.does).filter_map(|deed| match deed {
        Deed::Set { key, .. } | Deed::Tick { key } => Some(key),
        Deed::SetConfig { .. } | Deed::Flag { .. } | Deed::FlagFrom { .. } => None,
    });
    keys.filter_map(|key| Some((key.clone(), values.get(key)?.as_i64()?)))
        .collect()
}

fn owner_of(job: &Job) -> Option<String> {
    match job {
        Job::RunHook(run, _) => Some(owner_name(&run.hook.owner)),
        _ => None,
    }
}

/// Whether the effect reports the end of the module's removal.
fn is_removal_of(whose: &str, effect: &Effect) -> bool {
    matches!(effect, Effect::Tell(Notice::ModuleDeleted { module }) if module.as_str() == whose)
}

/// Whether the effect reports the end of a life of the module: it was removed, or another life begins with other files.
fn ends_life(whose: &str, effect: &Effect) -> bool {
    let renewed = |module: &ModuleName| module.as_str() == whose;
    is_removal_of(whose, effect) || matches!(effect, Effect::Tell(Notice::ModuleRenewed { module }) if renewed(module))
}

/// The states of the global values in a life, and the first of them that each module's run may have seen.
#[derive(Debug, Default)]
pub(super) struct Globals {
    states: Vec<Value>,
    since: BTreeMap<String, usize>,
}

impl Globals {
    /// Notes the state after a step.
    pub(super) fn note(&mut self, step: &SimStep<'_>) {
        if let Some(now) = step.after.values.get("global")
            && self.states.last() != Some(now)
        {
            self.states.push(now.clone());
        }
    }

    /// Notes the end of a module's run: the next one begins later than now.
    pub(super) fn effect(&mut self, effect: &Effect) {
        let Effect::Tell(
            Notice::ModuleReady { module, .. } | Notice::ModuleFailed { module, .. } | Notice::ModuleDeleted { module },
        ) = effect
        else {
            return;
        };
        let last = self.states.len().saturating_sub(1);
        self.since.insert(module.to_string(), last);
    }

    /// V6: a starting job gets the current values. A run of a module sees one state of the global values from start to
    /// end. `later` are the effects after it in the same step.
    pub(super) fn job(&self, step: &SimStep<'_>, job: &Job, later: &[Effect]) -> Result<(), Violation> {
        let (owner, given, in_run) = match job {
            Job::RunHook(run, _) => {
                let in_run = run.hook.owner.module().is_some() && run.labels.cause.key() != "schedule";
                let in_run = in_run && asked_of(run).is_none();
                (owner_name(&run.hook.owner), document(&run.values), in_run)
            }
            Job::SyncRelease { module, values, .. } => (module.to_string(), document(values), true),
            _ => return Ok(()),
        };
        let since = self.since.get(&owner).copied().unwrap_or_default();
        let shown = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
        let global = given.get("global");
        let seen = in_run && self.states[since..].iter().any(|state| Some(state) == global);
        let now = step.after.values.get("global");
        ensure(seen || global == now, "V6", || {
            format!(
                "{} is given {} as global, but in force is {}",
                job_name(job),
                shown(global),
                shown(now)
            )
        })?;
        if owner == "global" {
            return Ok(());
        }
        // A removal that ends in the step forgets what hooks had set, but the job was started before that.
        let removed = later.iter().any(|effect| is_removal_of(&owner, effect));
        let at_removal = removed.then(|| before_removal(step, &owner)).flatten();
        let wanted = at_removal.as_ref().or(step.after.values.get(&owner));
        let own = given.get(key_of(&owner));
        // A hook in another queue may have begun a moment before a waiting section was applied, but only after the hook
        // before it in its queue.
        let beside = matches!(job, Job::RunHook(run, _) if run.labels.queue != "main");
        let before = step.before.values.get(&owner);
        let mut written = written(step, &owner);
        if removed && !written.is_empty() {
            // The values of hooks that waited for that write were applied before the removal, which forgot these
            // values.
            written.extend(own.map(|own| set_by_any(step, &owner, own)).unwrap_or_default());
        }
        let just_before = |own: &Value| {
            let set = set_ahead_of(step, job);
            beside
                && is_between(own, before, &written, wanted)
                && set
                    .iter()
                    .all(|key| own.get(key) == wanted.and_then(|all| all.get(key)))
        };
        let just_before = own.is_some_and(just_before);
        ensure(own.is_some() && (own == wanted || just_before), "V6", || {
            format!(
                "{} is given {}, but in force is {}",
                job_name(job),
                shown(own),
                shown(wanted)
            )
        })
    }
}
