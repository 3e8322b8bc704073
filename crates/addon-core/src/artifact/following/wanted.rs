//! The version whose trial may begin, as trials have to know it.
//!
//! Must never name one while the registry does not answer: it may have been taken back.

use super::Following;
use crate::artifact::choice::Choice;
use crate::artifact::trial::replica::Wanted;

impl Following {
    /// The version whose trial may begin by the last choice, with all digests that count as it.
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

    /// The choice, if we lead and the registry answers.
    fn sound_choice(&self) -> Option<&Choice> {
        let is_sound = self.is_leading && self.status.trouble.is_none();
        self.status.choice.as_ref().filter(|_| is_sound)
    }
}
