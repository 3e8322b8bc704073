//! The time after the history: no work fails any more, and the world must reach the final state of the model.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::event::Event;

use super::{MOST_STEPS, Run};
use crate::checks::{Violation, check_end, ensure};
use crate::model;
use crate::setup::{Deed, HookSpec, Setup, Source, Watch};
use crate::world::Release;

/// Twice the longest interval of a simulated hook's schedule, and more, in microseconds.
const ROUND: u64 = 2 * 610 * 1_000_000;

/// A time that is longer than the wait before the repair of fresh damage, in microseconds.
const CALM: u64 = 2_000_000;

impl Run<'_> {
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        self.mend()?;
        self.give_up_bad_files()?;
        self.come_to_rest()?;
        // A chart that was rendered without some files is rendered again only at the next start.
        if self.world.releases.values().any(Release::is_of_half_a_chart) {
            self.note("killed at rest, with half a chart installed".to_owned());
            self.restart();
            self.come_to_rest()?;
        }
        self.check_rest()?;
        let mut dice = self.world.dice("end");
        self.confirm_all()?;
        self.plan_an_edit()?;
        if dice.chance(50) {
            return Ok(());
        }
        // L4: a crash at rest, or shortly after it, leads to the same final state.
        let crash_at = self.clock + dice.between(0, 3_000_000);
        while self.next_at().is_some_and(|next| next <= crash_at) {
            self.step()?;
        }
        let mut enabled = model::end(&self.life.told.with_sources(&self.world.setup), &self.life.told.config).enabled;
        // A release that people removed is made again by the next run, whatever causes it.
        enabled.retain(|name| !self.world.ledger.taken.contains(name));
        // The health of a revision is drawn anew in each life, so a module may return in one of them.
        enabled.retain(|name| !self.world.module(name).is_some_and(|module| module.returns));
        let (before, was_ready) = (self.revisions(&enabled), self.seen.status.ready);
        self.note("killed at rest".to_owned());
        self.restart();
        self.come_to_rest()?;
        self.check_rest()?;
        let after = self.revisions(&enabled);
        // If a converge is held up for ever, so are the schedules of hooks.
        let is_ready = was_ready && self.seen.status.ready;
        if is_ready && is_foreseeable(&self.life.told.with_sources(&self.world.setup)) && before != after {
            let text = format!("a restart without any change made new revisions: {before:?}, then {after:?}");
            return Err(Violation::new("P6", text));
        }
        Ok(())
    }

    /// A person looks at the held removals, and confirms all of them or none.
    fn confirm_all(&mut self) -> Result<(), Violation> {
        let held = self.seen.status.held.iter().map(|held| held.release.clone());
        let held: BTreeSet<String> = held.collect();
        if held.is_empty() || self.world.dice("confirm").chance(50) {
            return Ok(());
        }
        self.tell(&Event::PurgeConfirmed(held), None)?;
        self.come_to_rest()?;
        let held = &self.seen.status.held;
        ensure(held.is_empty(), "R11", || {
            format!("all is confirmed, and held are {held:?}")
        })?;
        self.check_rest()
    }

    fn revisions(&self, modules: &BTreeSet<String>) -> BTreeMap<String, u32> {
        let releases = self.world.releases.iter().filter(|(name, _)| modules.contains(*name));
        releases
            .map(|(name, release)| (name.clone(), release.revision))
            .collect()
    }

    /// Whether the directories differ from the reading of the running operator.
    pub(super) fn disk_differs(&self) -> bool {
        let Some((_, complete)) = &self.life.told.modules else {
            return self.life.number > 0;
        };
        let disk = self
            .world
            .setup
            .modules
            .iter()
            .map(|module| (module.name.clone(), module.clone()));
        !complete || *self.life.told.directories() != disk.collect()
    }

    /// A person confirms the loss of a configuration, so that its modules go on.
    fn confirm_loss(&mut self, most: u64) -> Result<(), Violation> {
        if self.seen.status.config_lost.is_empty() {
            return Ok(());
        }
        self.life.told.loss_confirmed();
        self.tell(&Event::LossConfirmed, None)?;
        self.be_quiet(most)
    }

    /// Runs until nothing is left to do, then through a round of all schedules, and again.
    pub(super) fn come_to_rest(&mut self) -> Result<(), Violation> {
        let most = self.steps + MOST_STEPS;
        self.be_quiet(most)?;
        self.confirm_loss(most)?;
        let round = self.clock + ROUND;
        while self.next_at().is_some_and(|next| next <= round) {
            self.step()?;
        }
        self.move_clock(round);
        self.be_quiet(most)
    }

    /// Runs until nothing happens for a while. It is not enough to look at the timer once, because an early timer hides
    /// later ones.
    fn be_quiet(&mut self, most: u64) -> Result<(), Violation> {
        loop {
            while !self.is_quiet() {
                if self.steps > most {
                    let text = format!(
                        "no rest after {MOST_STEPS} steps without a failure; it waits for {:?}",
                        self.seen.timeout
                    );
                    return Err(Violation::new("L1", text));
                }
                self.step()?;
            }
            let calm = self.clock + CALM;
            if self.next_at().is_none_or(|next| next > calm) {
                return Ok(());
            }
            self.step()?;
        }
    }

    fn is_quiet(&self) -> bool {
        let waits = self.seen.timeout.is_some() && (!self.seen.is_looked_after() || self.seen.sleeps());
        self.life.running.is_empty() && self.future.is_empty() && !waits && self.life.stopping.is_none()
    }

    pub(super) fn check_rest(&self) -> Result<(), Violation> {
        let world = self.world.with_setup(self.life.told.with_sources(&self.world.setup));
        let end = model::end(&world.setup, &self.life.told.config);
        check_end(&end, &world, &self.life, &self.seen)?;
        let status = &self.seen.status;
        if self.world.setup.strict && (!status.ready || status.converge_tasks > 0) {
            // A converge that is held up also keeps hooks from being told of changes.
            return Ok(());
        }
        self.checks.at_rest(&world, &self.life, &self.seen, &end.stuck)
    }
}

/// Whether all values that hooks set are known before the first release, so that a start leaves every release as it is.
fn is_foreseeable(setup: &Setup) -> bool {
    let early = |hook: &HookSpec, stages: [&str; 2]| {
        let idle = hook.does.iter().all(|deed| matches!(deed, Deed::SetConfig { .. }));
        // A first run sees the current objects, which may have changed since an earlier life.
        let reads = |deed: &Deed| match deed {
            Deed::Set { to, .. } => !matches!(to, Source::Number(_)),
            Deed::FlagFrom { .. } => true,
            Deed::SetConfig { .. } | Deed::Flag { .. } | Deed::Tick { .. } => false,
        };
        let awaited = |watch: &Watch| watch.is_awaited() && !watch.skips && !watch.allow_failure;
        let by_first_run = hook.watches.iter().any(awaited) && !hook.does.iter().any(reads);
        let by_stage = stages.iter().any(|stage| hook.stages.contains_key(*stage));
        idle || !hook.runs() || by_first_run || by_stage
    };
    setup
        .global_hooks
        .iter()
        .all(|hook| early(hook, ["onStartup", "beforeAll"]))
        && setup
            .modules
            .iter()
            .flat_map(|module| &module.hooks)
            .all(|hook| early(hook, ["onStartup", "beforeHelm"]))
}
