//! The beginning and the end of a life of the operator, and what arrives after its end.

use addon_core::operator::effect::Job;

use super::{Due, Run};
use crate::life::Life;

impl Run<'_> {
    /// Begins a life: the directories and the `ConfigMap` are read.
    pub(super) fn begin_life(&mut self) {
        let misreading = self.world.misread.take();
        let mut dice = self.world.dice("start");
        let (directories, config) = (dice.between(0, 200), dice.between(0, 300));
        self.plan(directories, Due::Inventory(misreading));
        if !self.world.setup.alone {
            self.plan(config, Due::FirstRead);
        }
        if self.world.setup.elected {
            self.stand_by();
        }
        self.news_of_trial();
    }

    /// Reports the stage of the trial at some time, perhaps several times.
    fn news_of_trial(&mut self) {
        if self.world.trial.stage.is_none() {
            return;
        }
        let mut dice = self.world.dice("trial");
        for _ in 0..dice.count(1, 2) {
            let most = *dice.pick(&[50, 3_000, 60_000]);
            self.plan(dice.between(0, most), Due::Trial);
        }
    }

    /// Ends the trial. If it is not passed, the old version comes back in a life of its own.
    pub(super) fn judge(&mut self) {
        if !self.world.trial.is_open() {
            return;
        }
        if !self.world.trial.judge() {
            self.news_of_trial();
        } else if self.life.leads && self.world.setup.elected {
            self.plan(0, Due::Deposed);
        } else {
            self.restart();
        }
    }

    /// Ends the process, and begins the next life.
    pub(super) fn restart(&mut self) {
        for (_, running) in std::mem::take(&mut self.life.running) {
            if running.finished.is_none() {
                self.cut_off(&running.job);
            }
        }
        // A late write of an earlier leader may arrive while another replica leads.
        self.future.retain(|_, due| matches!(due, Due::Late(..)));
        self.repaired.clear();
        self.followers = super::followers::Followers::default();
        self.world.config.news.clear();
        self.world.disturbed = false;
        let (skew, with_twin) = (self.life.skew, self.case.seed.is_multiple_of(4));
        let (on_trial, number) = (self.world.on_trial(), self.life.number + 1);
        self.life = Life::new(
            self.case.seed,
            number,
            self.clock,
            &self.world.setup,
            on_trial,
            with_twin,
        );
        self.life.skew = skew;
        self.seen = self.life.look();
        self.checks.new_life();
        self.begin_life();
    }

    /// Cuts a job off. The write of a deposed leader may still be on its way.
    pub(super) fn cut_off(&mut self, job: &Job) {
        let lingers = self.life.deposed && matches!(job, Job::SaveConfig { .. });
        let mut dice = self.world.dice("late-write");
        if lingers && dice.chance(60) {
            let version = self.world.config.version();
            let most = *dice.pick(&[1_000, 60_000, 300_000]);
            self.plan(dice.between(0, most), Due::Late(Box::new(job.clone()), version));
        } else {
            self.world.cut_off(job);
        }
    }
}
