//! The state of channel and trials for the commands that show it.
//!
//! A reason for which something waits must never be left out.

use channel_core::trial::replica::Lead;
use channel_core::trial::stage::Stage;
use channel_core::view::{Answerer, ChannelState, Known, Records, View};
use jiff::Timestamp;
use telling::meters::table::channel::INFO;

use super::Trying;
use crate::follower::Followed;
use crate::installation::watching::Seen;

impl Trying {
    pub(super) fn show(&mut self) {
        let followed = match &*self.followed.borrow() {
            Followed::On(followed) => (**followed).clone(),
            Followed::Unknown => crate::follower::Known::default(),
            // The part that switched the channel off has logged the reason.
            Followed::Off { why: _ } => return,
        };
        let Seen {
            deployment,
            replicas: _,
            trial,
            heard: _,
        } = self.seen.borrow().clone();
        let records = self.shelf.remembered().map(|remembered| Records {
            trial: self.shelf.trial().cloned(),
            report: self.shelf.known_report().there().cloned(),
            remembered: remembered.clone(),
        });
        let (stage, trouble) = (self.trials.stage(), self.trials.trouble());
        let known = Known {
            settings: followed.settings,
            installed: followed.installed,
            deployment: deployment.there().cloned(),
            signature: followed.signature,
            following: followed.status,
            rounds: followed.rounds,
            records,
            trial_set: trial.there().cloned(),
            hold: stage.is_held().then(|| stage.to_string()),
            stage: (*stage != Stage::Idle).then(|| match trouble {
                Some(trouble) => format!("{stage}; {trouble}"),
                None => stage.to_string(),
            }),
            trial_stage: Some(stage.clone()),
        };
        let state = ChannelState::On(Box::new(known));
        self.measure(&state);
        self.outside.state.send_if_modified(|shown| {
            let differs = *shown != state;
            *shown = state;
            differs
        });
    }
}

/// The metric series whose labels have the state of the channel. Only the leader has one.
#[derive(Debug, Default)]
pub(super) struct Series(Option<[String; 3]>);

impl Trying {
    fn measure(&mut self, state: &ChannelState) {
        let labels = (self.lead == Lead::Leads).then(|| labels(&View::of(state, Answerer::Leader, Timestamp::now())));
        if labels == self.series.0 {
            return;
        }
        let meters = &self.outside.meters;
        if let Some([running, available, state]) = self.series.0.take() {
            meters.end(&INFO, [&running, &available, &state]);
        }
        if let Some([running, available, state]) = &labels {
            meters.set(&INFO, [running, available, state], 1.0);
        }
        self.series.0 = labels;
    }
}

/// The values of the labels: the running version, the wanted version (the digest if its version is unknown), and the
/// state.
fn labels(view: &View) -> [String; 3] {
    let digest = || view.running.digests.first().map(ToString::to_string);
    let running = view.running.version.clone().or_else(digest);
    let available = view.available.as_ref().map(|target| match &target.version {
        Some(version) => version.to_string(),
        None => target.digest.to_string(),
    });
    [
        running.unwrap_or_default(),
        available.unwrap_or_default(),
        view.state.word().to_owned(),
    ]
}
