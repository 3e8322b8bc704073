//! The version whose trial may begin, in the form that trials need.
//!
//! Must never name a version while the registry does not answer: the version may have been withdrawn.

use super::Following;
use crate::choice::Choice;
use crate::trial::replica::Wanted;

impl Following {
    /// The version whose trial may begin by the last choice, with all its digests.
    pub fn wanted(&self) -> Option<Wanted> {
        let Some(Choice::Begin(target)) = self.sound_choice() else {
            return None;
        };
        let platforms = &self.installed.as_ref()?.platforms;
        let candidate = self.seen.candidates.get(&target.digest)?;
        Some(Wanted {
            target: target.clone(),
            digests: candidate.digests(platforms).cloned().collect(),
        })
    }

    /// The last choice, if this replica leads and the registry answers.
    fn sound_choice(&self) -> Option<&Choice> {
        let is_sound = self.is_leading && self.status.trouble.is_none();
        self.status.choice.as_ref().filter(|_| is_sound)
    }
}
