//! Damage of releases by people, and its detection by the watch of releases.

use addon_core::operator::event::Drift;
use addon_core::release::Status;

use super::HELM_TIMEOUT;
use crate::action::Harm;
use crate::world::World;

impl World {
    /// Damages a release of ours.
    pub(in crate::world) fn harm(&mut self, name: &str, harm: Harm) {
        let now = self.seconds();
        let mut dice = self.dice(&format!("harm/{name}"));
        let Some(release) = self.releases.get_mut(name).filter(|release| release.ours) else {
            return;
        };
        match harm {
            Harm::Object => {
                let objects: Vec<&String> = release.objects.iter().collect();
                if !objects.is_empty() {
                    let object = (*dice.pick(&objects)).clone();
                    release.missing.insert(object);
                }
            }
            Harm::Release => {
                self.releases.remove(name);
                self.ledger.spoilt.remove(name);
                self.ledger.taken.insert(name.to_owned());
            }
            Harm::Helm => release.begin(Status::Failed, now),
        }
    }

    /// The damage of a release as the watch finds it, and the time of its next check.
    pub fn drift(&self, name: &str) -> (Option<Drift>, Option<u64>) {
        let Some(release) = self.releases.get(name) else {
            return (Some(Drift::Status(None)), None);
        };
        if !release.ours || release.unmanaged {
            return (None, None);
        }
        let until = release.written + HELM_TIMEOUT;
        match release.status {
            Status::Deployed => (release.missing.first().cloned().map(Drift::Absent), None),
            status if status.is_unfinished() && self.seconds() < until => (None, Some((until + 1) * 1_000_000)),
            status => (Some(Drift::Status(Some(status))), None),
        }
    }
}
