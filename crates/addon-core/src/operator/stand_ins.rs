//! Stand-ins: the values of a global hook's last good run, which serve while the hook fails and all modules would wait for it.
//!
//! Knows the values that each global hook has given, in this life and before, and the hooks that a stand-in serves for. Must
//! never serve for a hook that has never succeeded: nothing is known of its values.

use std::collections::BTreeMap;

use jiff::Timestamp;
use names::HookName;

use crate::values::Given;
use crate::values::patch::Accepted;

/// The values of global hooks, by hook.
type All = BTreeMap<HookName, Given>;

/// The values that global hooks have given, and the hooks that fail.
#[derive(Debug, Clone, Default)]
pub(super) struct StandIns {
    /// The values given in earlier lives.
    before: All,
    /// The values given in this life, and the values of stand-ins.
    given: All,
    /// The hooks that a stand-in serves for.
    served: BTreeMap<HookName, Served>,
    /// The values in the state Secret.
    kept: All,
    /// `wanted`: the values to write to the state Secret. `keeping`: the values that a job is writing there.
    wanted: All,
    keeping: Option<All>,
    /// Whether `wanted` and `kept` differ. The answer is kept, because both may be large and the question comes after
    /// each event.
    differs: bool,
}

/// A hook that a stand-in serves for.
#[derive(Debug, Clone)]
struct Served {
    as_of: Timestamp,
    /// Whether the hook has succeeded since the stand-in began to serve.
    has_succeeded: bool,
}

/// The time without its fraction, as people read it.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The values, and their way into the state Secret and out of it.
impl StandIns {
    /// Takes the contents of the state Secret.
    pub(super) fn restore(&mut self, kept: All) {
        self.before.clone_from(&kept);
        self.wanted.clone_from(&kept);
        self.kept = kept;
    }

    /// Notes that a global hook has succeeded. Its values from earlier lives may still have to serve, if the hook fails
    /// at its next binding.
    pub(super) fn succeeded(&mut self, hook: &HookName, at: Timestamp) {
        let given = || Given::nothing(whole_seconds(at));
        self.given.entry(hook.clone()).or_insert_with(given);
        if let Some(served) = self.served.get_mut(hook) {
            served.has_succeeded = true;
        }
    }

    /// Notes the committed patch of a global hook.
    pub(super) fn gave(&mut self, hook: &HookName, patch: Accepted, at: Timestamp) {
        let at = whole_seconds(at);
        let given = self.given.entry(hook.clone()).or_insert_with(|| Given::nothing(at));
        given.add(patch, at);
    }

    /// Notes that a converge has finished, so that the current values are to be saved. `exists` tells which hooks
    /// exist.
    pub(super) fn remember(&mut self, exists: impl Fn(&HookName) -> bool) {
        self.before.retain(|hook, _| !self.given.contains_key(hook));
        let all = self.before.iter().chain(&self.given);
        let known = all.filter(|(hook, _)| exists(hook));
        // A hook that gives the same in each life causes no write.
        let same = |hook, given| self.kept.get(hook).filter(|kept: &&Given| kept.is_same(given));
        let known = known.map(|(hook, given)| (hook.clone(), same(hook, given).unwrap_or(given).clone()));
        self.wanted = known.collect();
        self.differs = self.wanted != self.kept;
    }

    /// Whether the state Secret may lack the values that it should hold.
    pub(super) fn unsaved(&self) -> bool {
        // After a save without an answer it is unknown whether the Secret was written.
        self.differs || self.keeping.is_some()
    }

    pub(super) fn begin_save(&mut self) -> All {
        self.keeping = Some(self.wanted.clone());
        self.wanted.clone()
    }

    pub(super) fn saved(&mut self) {
        self.kept = self.keeping.take().unwrap_or_default();
        self.differs = self.wanted != self.kept;
    }

    /// Notes that the API server refused the save.
    pub(super) fn not_saved(&mut self) {
        self.keeping = None;
    }
}

/// The hooks that fail.
impl StandIns {
    /// Whether values may serve for the hook: it has succeeded, in this life or before.
    pub(super) fn are_known(&self, hook: &HookName) -> bool {
        self.before.contains_key(hook) || self.given.contains_key(hook)
    }

    /// The values of earlier lives that have to be committed for the hook. Values that the hook has given in this life
    /// take precedence.
    pub(super) fn of_before(&self, hook: &HookName) -> Option<Given> {
        let before = self.before.get(hook)?;
        let given = self.given.get(hook);
        Some(given.map_or_else(|| before.clone(), |given| before.under(given)))
    }

    /// Lets the hook's values serve for it. Returns the time of these values; `None` if they serve already.
    pub(super) fn serve(&mut self, hook: &HookName) -> Option<Timestamp> {
        if self.serves(hook) {
            return None;
        }
        let given = self.of_before(hook).or_else(|| self.given.get(hook).cloned())?;
        self.before.remove(hook);
        let as_of = given.at;
        let served = Served {
            as_of,
            has_succeeded: false,
        };
        self.given.insert(hook.clone(), given);
        self.served.insert(hook.clone(), served);
        Some(as_of)
    }

    /// Forgets values of earlier lives that the operator cannot take over.
    pub(super) fn forget(&mut self, hook: &HookName) {
        self.before.remove(hook);
    }

    /// Whether a stand-in serves for the hook.
    pub(super) fn serves(&self, hook: &HookName) -> bool {
        self.served.contains_key(hook)
    }

    /// The hooks that stand-ins serve for, each with the time at which its values were given.
    pub(super) fn served(&self) -> impl ExactSizeIterator<Item = (&HookName, Timestamp)> {
        self.served.iter().map(|(hook, served)| (hook, served.as_of))
    }

    /// Ends the stand-ins for hooks that have succeeded and have no waiting task any more. Returns these hooks.
    pub(super) fn end(&mut self, waits: impl Fn(&HookName) -> bool) -> Vec<HookName> {
        let is_over = |hook: &HookName, served: &mut Served| served.has_succeeded && !waits(hook);
        let over = self.served.extract_if(.., |hook, served| is_over(hook, served));
        over.map(|(hook, _)| hook).collect()
    }
}
