//! The way of a reading of the ConfigMap: it is applied in its turn, once all of it has been checked against schemas.

use crate::failure::Failure;
use crate::operator::Operator;
use crate::operator::effect::Job;
use crate::operator::event::ConfigRead;
use crate::operator::ticket::VetFor;
use crate::values::vetted::{Unvetted, Vetted};

impl Operator {
    /// Takes a reading of the ConfigMap. It is applied at once, or once all of it has been checked against schemas.
    pub(super) fn config_changed(&mut self, read: ConfigRead) {
        if read != ConfigRead::Missing {
            self.commits.note_sight();
        }
        if !self.startup.has_begun() {
            self.config.keep_reading(read);
        } else if !self.config.keep_latest(read) {
            return;
        }
        self.take_readings();
    }

    /// Applies readings in their order, as far as they have been checked.
    pub(super) fn take_readings(&mut self) {
        while self.config.has_readings() {
            let omissible = self.certainty().omissible();
            let next = self
                .config
                .next_reading(&mut self.cx, &self.values, &self.commits, &omissible);
            let counted = match next {
                None => return,
                Some(Err(unvetted)) => return self.vet_reading(unvetted),
                Some(Ok(counted)) => counted,
            };
            if let Some(good) = counted.good {
                self.put_in_force(good);
            }
            if counted.of_people && self.config.people_spoke(&mut self.cx) {
                self.loss_answered();
            }
        }
        self.config.drop_readings();
    }

    /// Starts the check of the first reading, unless another check is running.
    fn vet_reading(&mut self, unvetted: Unvetted) {
        if self.standing.is_stopping() {
            self.config.drop_readings();
        } else if !self.config.is_vetting() {
            self.config.vetting_begins(unvetted.clone());
            self.jobs
                .begin(&mut self.cx, VetFor::Reading, |ticket| Job::Vet(unvetted, ticket));
        }
    }

    /// Takes the results of a check of sections.
    pub(super) fn reading_vetted(&mut self, result: Result<Vetted, Failure>) {
        if self.config.reading_vetted(result, self.standing.is_stopping()) {
            self.take_readings();
        }
    }
}
