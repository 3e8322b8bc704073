//! The news of trials, each reported once, by the replica that carried out the action.
//!
//! Must never report an action of another replica.

use super::Trials;
use super::action::Action;
use super::record::Verdict;
use super::stage::Stage;
use crate::choice::Target;

/// News about trials, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialNews {
    /// Our pin replaced an image with a tag alone by this one.
    Pinned(String),
    /// Another writer had put back the image that we had replaced.
    PutBack {
        /// The image that another writer put back.
        image: String,
        /// The field manager of the other writer, if the Deployment names one.
        manager: Option<String>,
    },
    /// A trial has begun.
    Begun(Target),
    /// A trial has ended with the given verdict.
    Ended(Target, Verdict),
    /// The Deployment has the image of the passed version.
    Promoted(String),
    /// The rollout of the passed version does not progress, for this reason.
    Sticks(Target, String),
    /// No version is tried until a person runs `addon-operator channel resume`, for this reason.
    Stopped(String),
    /// People have put this image into the Deployment, and no trial begins while it is there.
    Held(String),
    /// A person has resumed the channel.
    Resumed,
}

impl Trials {
    /// Notes the news of a stage that begins, if people should know of it and this replica leads.
    pub(super) fn enter(&mut self, stage: Stage) {
        if stage == self.stage {
            return;
        }
        let told = match &stage {
            Stage::Held(image) => Some(TrialNews::Held(image.clone())),
            Stage::RollsOut(target, Some(why)) => Some(TrialNews::Sticks(target.clone(), why.clone())),
            Stage::Unknown(_)
            | Stage::Unheard
            | Stage::Idle
            | Stage::Pinning(_)
            | Stage::PinningAgain
            | Stage::Stopped(_)
            | Stage::Waits(..)
            | Stage::Begins(_)
            | Stage::Starts(..)
            | Stage::HandsOver(_)
            | Stage::Converges(_)
            | Stage::Fails(..)
            | Stage::Proves(..)
            | Stage::Doubts(_)
            | Stage::Unjudged(_)
            | Stage::Elsewhere(_)
            | Stage::Promotes(_)
            | Stage::RollsOut(_, None)
            | Stage::WindsUp(..) => None,
        };
        if self.leads() {
            self.news.extend(told);
        }
        self.stage = stage;
    }

    pub(super) fn tell_deed(&mut self, action: &Action) {
        let told = match action {
            Action::Pin { from, to } => (from != to).then(|| TrialNews::Pinned(to.clone())),
            Action::Promote { from: _, to } => Some(TrialNews::Promoted(to.clone())),
            Action::Record { over, trial } => match (over, trial) {
                (None, Some(trial)) => Some(TrialNews::Begun(trial.to.clone())),
                (Some(over), Some(trial)) if over.verdict.is_none() => {
                    let verdict = trial.verdict.clone();
                    verdict.map(|verdict| TrialNews::Ended(trial.to.clone(), verdict))
                }
                (Some(_), Some(_)) | (_, None) => None,
            },
            Action::Remember { over, remembered } => self.memory_news(over, remembered),
            Action::Entitle(_) | Action::MakeSet { .. } | Action::DropSet { over: _, uid: _ } => None,
        };
        self.news.extend(told);
    }
}
