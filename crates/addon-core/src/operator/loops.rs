//! Loops: hooks whose deeds cause their own next runs, and the waits that slow them down.
//!
//! A deed is a write of an object or a change of values. This machine remembers which hooks' deeds caused a run, and
//! counts how often in a row a hook repeats a deed because of that deed. Knows neither the lanes nor the values: the
//! ways put runs aside and queue them again. Must never delay a run that a change by others causes.

mod aside;
mod chains;
mod lineage;
mod streak;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub(super) use self::lineage::Lineage;
use clock::Tick;
use names::{HookId, ModuleName};

use self::streak::{Again, Streak};
use super::event::ObjectWritten;
use super::task::{HookTask, Lane, Reason, RunReason};
use crate::digest::Digest;
use crate::object::ObjectName;

/// The number of written versions that are remembered. Their changes are usually reported within milliseconds.
const WRITES: usize = 4096;
/// The number of deleted objects that are remembered.
const DELETIONS: usize = 256;
/// The number of objects whose writes by one run are counted. A run that writes more objects makes no tight loop.
const DEEDS: usize = 512;
/// The time after the end of a release's job in which changes of its objects count as its consequences.
const AFTERMATH: Duration = Duration::from_secs(10);
/// The time after the report of a change within which the hook that wrote the object may still end.
const DOUBT: Duration = Duration::from_millis(300);

/// The memory of deeds, and the runs that wait because of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Loops {
    /// The lineages of the versions of objects that hooks wrote.
    writes: BTreeMap<u64, Lineage>,
    deletions: VecDeque<(Digest, Lineage)>,
    records: BTreeMap<HookId, Record>,
    /// The hooks that run now, by lane.
    under_way: BTreeMap<Lane, UnderWay>,
    /// The hooks that changed values in the run or converge at the head of a lane.
    changers: BTreeMap<Lane, BTreeSet<HookId>>,
    /// The lineages of runs of modules that wait in their lanes.
    asked: BTreeMap<ModuleName, Lineage>,
    /// The last run of each module, with the end of its release's job.
    running: BTreeMap<ModuleName, (Lineage, Option<Tick>)>,
    /// The lineage of the waiting converge, and the lineage of the running converge.
    converges: (Lineage, Lineage),
    aside: BTreeMap<HookId, Aside>,
}

/// The deeds of a hook.
#[derive(Debug, Clone, Default)]
struct Record {
    /// The number of runs.
    runs: u64,
    deeds: BTreeMap<Deed, Streak>,
    /// The end of the wait that people were told of.
    told: Option<Tick>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    /// A write of the object with this digest of its name.
    Object(Digest),
    Values,
}

/// A hook that runs.
#[derive(Debug, Clone)]
struct UnderWay {
    hook: HookId,
    lineage: Lineage,
    /// Whether a schedule or a start caused the run, and not a change.
    is_neutral: bool,
    origins: Vec<Origin>,
    /// The first value that the hook's patches name.
    path: Option<String>,
    /// Objects that a tool wrote while the hook ran, and that the hook watches.
    echoes: Vec<ObjectName>,
}

/// The origin of a change of an object, as far as it is known when the change is reported.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The version of the object after the change.
    version: u64,
    object: Digest,
    /// Whether the object was deleted.
    gone: bool,
    /// The lineage of the last run of the release's module, if the object is part of a release.
    release: Lineage,
    /// The time of the report.
    told: Tick,
}

/// The requests that wait until a hook may repeat its deed.
#[derive(Debug, Clone)]
struct Aside {
    until: Tick,
    requests: Vec<Request>,
}

/// A request that waits.
#[derive(Debug, Clone)]
pub(super) enum Request {
    /// A run of the hook itself.
    Hook(Lane, Box<HookTask>),
    /// A run of a module.
    Run(ModuleName, RunReason, Lineage),
    /// A converge.
    Converge(Reason, Lineage),
}

/// A wait of a hook, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) until: Tick,
    /// The deed, as the end of the sentence "the hook ...".
    pub(super) deed: String,
    pub(super) times: u32,
}

/// Deeds.
impl Loops {
    /// Notes that a hook begins to run at the head of a lane.
    pub(super) fn hook_begins(
        &mut self,
        lane: &Lane,
        hook: &HookId,
        lineage: Lineage,
        is_neutral: bool,
        origins: Vec<Origin>,
    ) {
        let record = self.records.entry(hook.clone()).or_default();
        if !is_neutral {
            let last = record.runs;
            record.deeds.retain(|_, streak| streak.is_recent(last + 1));
            record.runs += 1;
        }
        let under_way = UnderWay {
            hook: hook.clone(),
            lineage,
            is_neutral,
            origins,
            path: None,
            echoes: Vec::new(),
        };
        self.under_way.insert(lane.clone(), under_way);
    }

    /// Moves the run of a hook at the head of one lane to the head of another lane.
    pub(super) fn run_moves(&mut self, from: &Lane, to: &Lane) {
        if let Some(under_way) = self.under_way.remove(from) {
            self.under_way.insert(to.clone(), under_way);
        }
    }

    /// Notes the writes of the hook that ran at the head of a lane. `path`: the first value that its patches name.
    pub(super) fn hook_wrote(&mut self, lane: &Lane, wrote: &[ObjectWritten], path: Option<&str>, now: Tick) {
        let Some(mut under_way) = self.under_way.remove(lane) else {
            return;
        };
        under_way.path = path.map(str::to_owned);
        if !under_way.origins.is_empty() {
            // The hook that wrote an object may have ended only after this run began.
            under_way.lineage = self.of_changes(&under_way.origins);
        }
        for object in std::mem::take(&mut under_way.echoes) {
            let text = format!("writes {object} each time that it changes");
            self.did(&under_way, (Deed::Object(key(&object)), text), None, now);
        }
        let lineage = under_way.lineage.with(&under_way.hook);
        let mut counted = 0;
        for ObjectWritten {
            object,
            version,
            content,
        } in wrote
        {
            let named = key(object);
            match version {
                // An object that keeps its version was not changed.
                Some(version) if under_way.origins.iter().any(|origin| origin.version == *version) => continue,
                Some(version) => self.remember(*version, &lineage),
                None => {
                    self.deletions.push_back((named, lineage.clone()));
                    if self.deletions.len() > DELETIONS {
                        self.deletions.pop_front();
                    }
                }
            }
            counted += 1;
            if counted <= DEEDS {
                let text = format!("writes {object} each time that it changes");
                self.did(&under_way, (Deed::Object(named), text), Some(*content), now);
            }
        }
        self.under_way.insert(lane.clone(), under_way);
    }

    /// Notes that a tool wrote an object that the hook watches. If the hook is running, it has called the tool, and the
    /// lineage of the change is returned.
    pub(super) fn tool_wrote(&mut self, hook: &HookId, object: &ObjectName) -> Option<Lineage> {
        let run = self.under_way.values_mut().find(|run| run.hook == *hook)?;
        if run.echoes.len() < DEEDS && !run.echoes.contains(object) {
            run.echoes.push(object.clone());
        }
        Some(run.lineage.with(hook))
    }

    /// Notes that a section of the ConfigMap was written for a hook.
    pub(super) fn section_written(&mut self, lane: &Lane, version: u64) {
        let lineage = self.under_way.get(lane).map(|run| run.lineage.with(&run.hook));
        if let Some(lineage) = lineage {
            self.remember(version, &lineage);
        }
    }

    fn remember(&mut self, version: u64, lineage: &Lineage) {
        self.writes.insert(version, lineage.clone());
        if self.writes.len() > WRITES {
            self.writes.pop_first();
        }
    }

    /// Notes the end of the hook at the head of a lane, and whether it changed values. Returns the lineage of the work
    /// that follows from the run.
    pub(super) fn hook_over(&mut self, lane: &Lane, values_changed: bool, now: Tick) -> Lineage {
        let Some(under_way) = self.under_way.remove(lane) else {
            return Lineage::FOREIGN;
        };
        if values_changed {
            let path = under_way.path.as_deref().unwrap_or_default();
            let text = format!("changes the value {path} in each of its runs");
            self.did(&under_way, (Deed::Values, text), None, now);
            self.changers
                .entry(lane.clone())
                .or_default()
                .insert(under_way.hook.clone());
        }
        under_way.lineage.with(&under_way.hook)
    }

    fn did(&mut self, run: &UnderWay, (deed, text): (Deed, String), content: Option<Digest>, now: Tick) {
        let Some(record) = self.records.get_mut(&run.hook) else {
            return;
        };
        if run.is_neutral {
            return;
        }
        let is_contested = |origin: &Origin| deed == Deed::Object(origin.object);
        let again = if run.lineage.has(&run.hook) {
            Again::Yes
        } else if run.origins.iter().any(is_contested) {
            Again::IfSame
        } else {
            Again::No
        };
        let streak = match record.deeds.remove(&deed) {
            Some(streak) => streak.then(record.runs, again, content, now),
            None => Streak::first(text, record.runs, content, now),
        };
        record.deeds.insert(deed, streak);
    }

    /// The wait of a hook that repeats its deeds; `None` if it need not wait.
    pub(super) fn wait_of(&self, hook: &HookId, now: Tick) -> Option<Wait> {
        let record = self.records.get(hook)?;
        let last = record.deeds.values().filter(|streak| streak.is_recent(record.runs + 1));
        let waits = last.filter_map(|streak| Some((streak.until()?, streak)));
        let (until, streak) = waits
            .filter(|(until, _)| *until > now)
            .max_by_key(|(until, _)| *until)?;
        Some(Wait {
            until,
            deed: streak.text.clone(),
            times: streak.times,
        })
    }

    /// Whether the hook and other writers change the objects of all these changes by turns, and the hook writes the
    /// same contents each time.
    pub(super) fn is_contest(&self, hook: &HookId, origins: &[Origin]) -> bool {
        let Some(record) = self.records.get(hook) else {
            return false;
        };
        let streak = |origin: &Origin| record.deeds.get(&Deed::Object(origin.object));
        let waits = |origin: &Origin| {
            streak(origin).is_some_and(|streak| {
                streak.is_recent(record.runs + 1) && streak.is_contest() && streak.until().is_some()
            })
        };
        !origins.is_empty() && origins.iter().all(waits)
    }
}

fn key(object: &ObjectName) -> Digest {
    Digest::of_bytes(object.to_string().as_bytes())
}
