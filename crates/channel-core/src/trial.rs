//! A trial: a new version runs beside the old one, and pods of the old version judge it.
//!
//! Every replica of both versions drives one state machine of this kind. The replica passes in sights of the cluster
//! and its own wishes, asks for the next action, carries it out, and reports the outcome. The next action follows from
//! objects that all replicas see. A machine keeps only clocks for itself, which start at zero in each life. So any
//! replica may die at any moment, and another one continues. Must never take a missing sight for an absent object.

pub mod action;
mod course;
mod hands;
mod health;
mod memory;
pub mod news;
pub mod record;
pub mod replica;
pub mod sight;
pub mod stage;
pub mod watch;
mod words;

use std::collections::BTreeSet;
use std::time::Duration;

use clock::{Backoff, Now, Tick};

use self::action::{Action, Move, Outcome};
use self::news::TrialNews;
use self::record::{Remembered, Report, Trial};
use self::replica::{Lead, Me, Wish};
use self::sight::{Deployment, Glance, Known, LeaseSight, Replica, Sight, TrialSet};
use self::stage::{Hold, Lacking, Stage};
use self::watch::Watch;
use super::reference::{ImageDigest, Reference};

/// The age up to which a sight is used for actions.
pub const FRESH: Duration = Duration::from_secs(15);
/// The pause before another look at the cluster. It also follows an action for which the cluster differed from the last
/// sight.
const LOOK: Duration = Duration::from_secs(2);
/// The time for which an action is not repeated while its effect has not been seen.
const SEEN_BY: Duration = Duration::from_secs(5);

/// The state machine by which one replica takes part in trials.
#[derive(Debug, Clone)]
pub struct Trials {
    me: Me,
    sight: Option<Sight>,
    wish: Wish,
    clocks: Clocks,
    /// The last action that was done, and its time.
    last: Option<(Action, Tick)>,
    /// An action with an unknown outcome.
    unheard: Option<Action>,
    /// The time before which no action is done.
    pause: Option<Tick>,
    backoff: Backoff,
    trouble: Option<String>,
    stage: Stage,
    news: Vec<TrialNews>,
}

/// Times that only the state machine of this replica knows.
#[derive(Debug, Clone, Default)]
struct Clocks {
    watch: Option<Watch>,
    /// The time since which the replica has led.
    leads: Option<Tick>,
    /// The time since which parts of a trial have existed without a record.
    unowned: Option<Tick>,
    /// The time since which a passed version has waited for its promotion into the Deployment.
    passed: Option<Tick>,
    /// The time since which the pin has waited for a quiet moment.
    restless: Option<Tick>,
    /// Whether this state machine has recorded in the cluster that it hands over the lease, or that another writer has
    /// put back an image.
    has_noted: bool,
}

/// A sight of the cluster in which every part is known.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    deployment: &'a Deployment,
    replicas: &'a [Replica],
    set: Option<&'a TrialSet>,
    lease: &'a LeaseSight,
    trial: Option<&'a Trial>,
    report: Option<&'a Report>,
    remembered: &'a Remembered,
    heard: Tick,
}

/// The plan for the next step, before pauses are applied.
#[derive(Debug)]
struct Plan {
    stage: Stage,
    action: Option<Action>,
    /// The time at which another step may be due by time alone.
    due: Option<Tick>,
}

impl Plan {
    fn act(stage: Stage, action: Action) -> Self {
        Self {
            stage,
            action: Some(action),
            due: None,
        }
    }

    fn wait(stage: Stage, due: Option<Tick>) -> Self {
        Self {
            stage,
            action: None,
            due,
        }
    }

    fn rest(stage: Stage) -> Self {
        Self::wait(stage, None)
    }
}

impl Trials {
    /// A state machine that has not seen the cluster yet.
    pub fn new(me: Me) -> Self {
        Self {
            me,
            sight: None,
            wish: Wish::nothing(),
            clocks: Clocks::default(),
            last: None,
            unheard: None,
            pause: None,
            backoff: Backoff::new(),
            trouble: None,
            stage: Stage::Unknown(Lacking::Deployment),
            news: Vec::new(),
        }
    }

    /// Updates what is known about the replica's version.
    pub fn know(&mut self, me: Me) {
        self.me = me;
    }

    /// Takes a `Sight`: the objects of the cluster as the replica saw them.
    pub fn see(&mut self, sight: Sight) {
        if let Ok(view) = view(&sight) {
            self.clocks.note(view);
        }
        // The lease is kept as it was seen. The election may learn of it later than this state machine acts.
        self.sight = Some(sight);
        if let Some(deed) = self.unheard.take() {
            self.recognize(deed);
        }
        if self.trouble.is_none() {
            self.pause = None;
        }
    }

    /// Takes the replica's wishes.
    pub fn wish(&mut self, wish: Wish, now: Now) {
        match wish.lead {
            Lead::Leads => {
                self.clocks.leads.get_or_insert(now.tick);
            }
            Lead::Follows => self.clocks.leads = None,
        }
        self.wish = wish;
    }

    /// The next action, or the time to wait.
    pub fn next(&mut self, now: Now) -> Move {
        let plan = self.plan(now);
        if let Stage::Pinning(hold) = &plan.stage {
            if *hold == Hold::Work {
                self.clocks.restless.get_or_insert(now.tick);
            }
        } else {
            self.clocks.restless = None;
        }
        self.enter(plan.stage);
        let soonest = now.tick + LOOK;
        let Some(action) = plan.action else {
            return plan.due.map_or(Move::Rest, |due| Move::Wait(due.max(soonest)));
        };
        if let Some(pause) = self.pause.filter(|pause| now.tick < *pause) {
            return Move::Wait(pause);
        }
        let is_repeated = |(done, at): &&(Action, Tick)| *done == action && now.tick < *at + SEEN_BY;
        if let Some((_, at)) = self.last.as_ref().filter(is_repeated) {
            return Move::Wait(*at + SEEN_BY);
        }
        Move::Do(action)
    }

    /// Takes the outcome of an action.
    pub fn did(&mut self, action: Action, outcome: Outcome, now: Now) {
        self.unheard = None;
        match outcome {
            Outcome::Done => {
                (self.trouble, self.pause) = (None, None);
                self.backoff.reset();
                self.note_deed(&action);
                self.last = Some((action, now.tick));
            }
            Outcome::Changed => {
                (self.trouble, self.pause) = (None, Some(now.tick + LOOK));
                self.backoff.reset();
            }
            Outcome::Failed(text) => {
                self.trouble = Some(text);
                self.pause = Some(now.tick + self.backoff.fail(0));
                self.unheard = Some(action);
            }
        }
    }

    /// The stage of the trial.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The error of the last action, if it failed.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The news about trials that were not reported before.
    pub fn news(&mut self) -> Vec<TrialNews> {
        std::mem::take(&mut self.news)
    }

    fn plan(&self, now: Now) -> Plan {
        let Some(sight) = &self.sight else {
            return Plan::rest(Stage::Unknown(Lacking::Deployment));
        };
        let view = match view(sight) {
            Ok(view) => view,
            Err(lacking) => return Plan::rest(Stage::Unknown(lacking)),
        };
        if now.tick.since(view.heard) > FRESH {
            return Plan::rest(Stage::Unheard);
        }
        match view.trial {
            None => self.between(view, now),
            Some(trial) => match &trial.verdict {
                None => self.during(view, trial, now),
                Some(verdict) => self.after(view, trial, verdict),
            },
        }
    }

    /// Checks whether a new sight shows that an action with an unknown outcome was done.
    fn recognize(&mut self, deed: Action) {
        let Some(sight) = &self.sight else { return };
        let is_done = match &deed {
            Action::Pin { from: _, to } | Action::Promote { from: _, to } => {
                let deployment = sight.deployment.as_ref();
                deployment.is_some_and(|deployment| deployment.image == *to && deployment.patched.as_ref() == Some(to))
            }
            Action::Record { over: _, trial } => sight.trial.is_known() && sight.trial.there() == trial.as_deref(),
            Action::Remember { over: _, remembered } => sight.remembered.as_ref() == Some(&**remembered),
            // These actions may be repeated without harm, so their outcome does not matter.
            Action::Entitle(_) | Action::MakeSet { .. } | Action::DropSet { .. } => return,
        };
        if is_done {
            (self.trouble, self.pause) = (None, None);
            self.note_deed(&deed);
        } else {
            self.unheard = Some(deed);
        }
    }

    /// Applies a successful action to the last sight. A later sight may correct it.
    fn note_deed(&mut self, action: &Action) {
        let Some(sight) = &mut self.sight else { return };
        match action {
            Action::Pin { from: _, to } | Action::Promote { from: _, to } => {
                if let Some(deployment) = &mut sight.deployment {
                    deployment.patch(to);
                }
            }
            Action::Record { over, trial } => {
                let handed = |trial: &Option<Box<Trial>>| trial.as_ref().map_or(0, |trial| trial.handed);
                self.clocks.has_noted |= handed(trial) > handed(over);
                sight.trial = trial
                    .as_ref()
                    .map_or(Known::Absent, |trial| Known::There((**trial).clone()));
            }
            Action::Remember { over, remembered } => {
                self.clocks.has_noted |=
                    remembered.put_back.last() != over.put_back.last() && !remembered.put_back.is_empty();
                sight.remembered = Some((**remembered).clone());
            }
            Action::DropSet { over: _, uid: _ } => {
                if let Known::There(set) = &mut sight.set {
                    set.is_going = true;
                }
            }
            Action::Entitle(_) | Action::MakeSet { .. } => {}
        }
        self.tell_deed(action);
    }

    fn leads(&self) -> bool {
        match self.wish.lead {
            Lead::Leads => true,
            Lead::Follows => false,
        }
    }

    fn is_of(&self, digests: &BTreeSet<ImageDigest>) -> bool {
        !self.me.digests.is_disjoint(digests)
    }
}

impl Clocks {
    fn note(&mut self, view: View<'_>) {
        let glance = view.trial.filter(|trial| trial.verdict.is_none()).map(|trial| Glance {
            trial,
            pod: view.set.and_then(|set| set.pod.as_ref()),
            lease: view.lease,
            report: view.report,
            heard: view.heard,
        });
        self.watch = match (glance, self.watch.take()) {
            (Some(glance), Some(watch)) => Some(watch.go_on(glance)),
            (Some(glance), None) => Some(Watch::begin(glance)),
            (None, _) => None,
        };
        let is_unowned = view.trial.is_none() && (view.set.is_some() || view.lease.entitled.is_some());
        watch::keep(&mut self.unowned, is_unowned, view.heard);
        // The note allows the next action. Once the effect of that action is seen, another action needs another note.
        self.has_noted &= match view.trial {
            Some(trial) => !course::is_charged(view, trial),
            None => hands::is_put_back(view),
        };
        let is_to_be_promoted = view.trial.is_some_and(|trial| course::is_to_be_promoted(view, trial));
        watch::keep(&mut self.passed, is_to_be_promoted, view.heard);
    }
}

impl Deployment {
    /// Applies our patch to the sight of the Deployment.
    fn patch(&mut self, image: &str) {
        self.is_rolled_out &= self.image == image;
        self.former = Some(std::mem::replace(&mut self.image, image.to_owned()));
        self.reference = Reference::parse(image).ok();
        self.patched = Some(image.to_owned());
        self.chart_image_then.clone_from(&self.chart_image);
    }
}

/// The complete view of the cluster, or the first object that is not known.
fn view(sight: &Sight) -> Result<View<'_>, Lacking> {
    if !sight.set.is_known() {
        return Err(Lacking::Set);
    }
    if !(sight.trial.is_known() && sight.report.is_known()) {
        return Err(Lacking::State);
    }
    Ok(View {
        deployment: sight.deployment.as_ref().ok_or(Lacking::Deployment)?,
        replicas: sight.replicas.as_deref().ok_or(Lacking::Replicas)?,
        set: sight.set.there(),
        lease: sight.lease.as_ref().ok_or(Lacking::Lease)?,
        trial: sight.trial.there(),
        report: sight.report.there(),
        remembered: sight.remembered.as_ref().ok_or(Lacking::State)?,
        heard: sight.heard,
    })
}

#[cfg(test)]
mod tests;
