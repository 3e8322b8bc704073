//! The remains of a helm that is killed during its work.

use addon_core::release::returned::{Returned, Unhealthy};
use addon_core::release::{self, ConfigTrace, Facts, Intent, IntentKind, ReleaseStep, Status};
use addon_core::values::section::Maintenance;
use serde_json::Value;

use super::{Release, halves};
use crate::dice::Dice;
use crate::world::World;

impl World {
    /// Kills a helm during its work, if it had begun any.
    pub(in crate::world) fn cut_off_sync(
        &mut self,
        module: &str,
        values: &Value,
        asked: &Value,
        maintenance: Maintenance,
        config: ConfigTrace,
        unhealthy: Option<Unhealthy>,
    ) {
        let Some(spec) = self.files(module).filter(|spec| spec.chart).cloned() else {
            return;
        };
        let mut facts = self.facts(module);
        facts.unmanaged = maintenance == Maintenance::NoResourceReconciliation;
        facts.asked = halves::asked(&spec, asked);
        let (digest, rendering) = self.rendering(&spec, values, facts.unmanaged);
        (facts.inputs, facts.unhealthy) = (digest, unhealthy);
        match self.approach(&mut facts, &rendering) {
            Ok(ReleaseStep::Upgrade(_)) => {}
            Ok(ReleaseStep::Return { note, .. }) => return self.cut_off_return(&facts, note),
            Ok(_) | Err(_) => return,
        }
        if self.claim(module, &rendering.objects).is_err() {
            return;
        }
        self.note_write(&facts);
        self.note_loss(&facts, &rendering);
        self.intend(&facts, IntentKind::Upgrade);
        let now = self.seconds();
        let first = || Release {
            revision: 0,
            ours: true,
            ..Release::foreign()
        };
        let release = self.releases.entry(module.to_owned()).or_insert_with(first);
        let status = match release.revision {
            0 => Status::PendingInstall,
            _ => Status::PendingUpgrade,
        };
        release.begin(status, now);
        release.unmanaged = facts.unmanaged;
        // The trace is a label, which helm writes with the revision.
        release.config = Some(config);
        self.ledger.taken.remove(module);
    }

    pub(in crate::world) fn cut_off_delete(&mut self, name: &str, dice: &mut Dice) {
        let facts = self.facts(name);
        if facts.newest.is_none() || release::delay_of_removal(&facts).is_some() {
            return;
        }
        match dice.between(0, 3) {
            0 => self.remove_release(name),
            1 => {
                self.intend(&facts, IntentKind::Uninstall);
                let now = self.seconds();
                if let Some(release) = self.releases.get_mut(name) {
                    release.status = Status::Uninstalling;
                    release.written = now;
                }
            }
            _ => {}
        }
    }

    /// Kills a helm while it rolls back, or before it begins.
    fn cut_off_return(&mut self, facts: &Facts, note: Returned) {
        let module = facts.release.clone();
        let mut dice = self.dice(&format!("cut/return/{module}"));
        if self.note_return(facts, note).kept.is_some() || dice.chance(30) {
            return;
        }
        self.intend(facts, IntentKind::Return);
        let now = self.seconds();
        if let Some(release) = self.releases.get_mut(&module) {
            release.begin(Status::PendingRollback, now);
        }
    }

    fn intend(&mut self, facts: &Facts, kind: IntentKind) {
        let intent = Intent {
            kind,
            revision_before: facts.newest.as_ref().map_or(0, |newest| newest.revision),
            digest: facts.inputs.clone(),
            started: self.seconds(),
            // Revisions have no such mark here.
            marks: false,
            holder: None,
        };
        self.ledger.intents.insert(facts.release.clone(), intent);
    }
}
