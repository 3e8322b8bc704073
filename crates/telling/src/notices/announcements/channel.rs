//! The news of the channel and of trials that become Kubernetes Events, and their counters.
//!
//! They are attached to the Deployment, where people look for them. Never waits, like all announcements.

use std::sync::Arc;

use channel_core::choice::{Reason, Target};
use channel_core::following::News;
use channel_core::news::ChannelNews;
use channel_core::trial::news::TrialNews;
use channel_core::trial::record::{Ruling, Verdict};
use tokio::sync::mpsc;

use super::{About, Announcement, Announcer, Weight, on_one_line};
use crate::meters::Meters;
use crate::meters::table::cluster::EVENTS_DROPPED;
use crate::meters::table::trials::TRIALS;

/// Sends on the news of the channel and of trials. Clones share the receiver.
#[derive(Debug, Clone)]
pub struct ChannelAnnouncer {
    /// The sender; none if Events are off.
    door: Option<mpsc::Sender<Announcement>>,
    meters: Arc<Meters>,
}

impl Announcer {
    /// An announcer for the channel and trials with the same receiver.
    pub fn of_channel(&self) -> ChannelAnnouncer {
        ChannelAnnouncer {
            door: Some(self.door.clone()),
            meters: Arc::clone(&self.meters),
        }
    }
}

impl ChannelAnnouncer {
    /// An announcer that only counts.
    pub fn silent(meters: Arc<Meters>) -> Self {
        Self { door: None, meters }
    }

    /// Creates all counters at zero if a channel is followed, so that a first increase is visible.
    #[must_use]
    pub fn begun(self) -> Self {
        for ruling in [Ruling::Passed, Ruling::Failed, Ruling::Unclear, Ruling::Void] {
            self.meters.add(&TRIALS, [word(ruling)], 0.0);
        }
        self
    }

    /// Counts the news, and announces those that people should know.
    pub fn hear(&self, news: &ChannelNews) {
        if let ChannelNews::Tried(TrialNews::Ended(_, verdict)) = news {
            self.meters.add(&TRIALS, [word(verdict.ruling)], 1.0);
        }
        if let (Some(door), Some(announcement)) = (&self.door, announcement(news))
            && door.try_send(announcement).is_err()
        {
            self.meters.add(&EVENTS_DROPPED, [], 1.0);
        }
    }
}

fn announcement(news: &ChannelNews) -> Option<Announcement> {
    match news {
        ChannelNews::Followed(news) => followed(news),
        ChannelNews::Tried(news) => tried(news),
    }
}

fn tried(news: &TrialNews) -> Option<Announcement> {
    match news {
        TrialNews::Begun(target) => {
            let note = format!("{} is on trial beside the version that runs", name(target));
            Some(about(target, "TrialBegun", "Try", Weight::Normal, note))
        }
        TrialNews::Ended(target, verdict) => Some(ended(target, verdict)),
        TrialNews::Sticks(target, why) => {
            let note = format!("{} has passed, and its rollout goes no further: {why}", name(target));
            Some(about(target, "UpdateStopped", "RollOut", Weight::Warning, note))
        }
        TrialNews::Stopped(why) => {
            let note = format!("no version is tried any more: {why}; `addon-operator channel resume` goes on");
            Some(channel("UpdateStopped", "Try", Weight::Warning, note))
        }
        TrialNews::Held(image) => {
            let note = format!("a person has put {image} into the Deployment: `addon-operator channel resume` goes on");
            Some(channel("UpdateWaits", "Try", Weight::Normal, note))
        }
        // No Event is needed: these changes are in the change-cause of the Deployment, or a person has commanded them.
        TrialNews::Pinned(_) | TrialNews::PutBack { .. } | TrialNews::Promoted(_) | TrialNews::Resumed => None,
    }
}

fn followed(news: &News) -> Option<Announcement> {
    match news {
        News::Available(target) => {
            let note = format!("{} is available", name(target));
            Some(about(target, "UpdateAvailable", "Follow", Weight::Normal, note))
        }
        News::Waits { target, reasons } => {
            let reasons: Vec<String> = reasons.iter().map(Reason::to_string).collect();
            let note = format!("{} waits: {}", name(target), reasons.join("; "));
            Some(about(target, "UpdateWaits", "Follow", Weight::Normal, note))
        }
        News::Unreachable(why) => {
            let note = format!("the registry does not answer, and no version is taken: {why}");
            Some(channel("RegistryUnreachable", "Follow", Weight::Warning, note))
        }
        // The log and metrics report these.
        News::Checked { .. } | News::Answers | News::Missing(_) => None,
    }
}

fn ended(target: &Target, verdict: &Verdict) -> Announcement {
    let (name, why) = (name(target), &verdict.why);
    let (reason, weight, note) = match verdict.ruling {
        Ruling::Passed => ("TrialPassed", Weight::Normal, format!("{name} has passed: {why}")),
        Ruling::Failed => {
            let note = format!("{name} has failed, and the version before leads again: {why}");
            ("TrialFailed", Weight::Warning, note)
        }
        Ruling::Unclear => {
            let note = format!("the trial of {name} found out nothing, there will be another: {why}");
            ("UpdateWaits", Weight::Warning, note)
        }
        Ruling::Void => {
            let note = format!("the trial of {name} does not count: {why}");
            ("UpdateWaits", Weight::Normal, note)
        }
    };
    about(target, reason, "Try", weight, note)
}

fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Passed => "passed",
        Ruling::Failed => "failed",
        Ruling::Unclear => "unclear",
        Ruling::Void => "void",
    }
}

/// A name for people: the version or the tag, and the digest, which people approve.
fn name(target: &Target) -> String {
    let version = target.version.as_ref().map(|version| format!("version {version}"));
    let tag = || target.tag.as_ref().map(|tag| format!("tag {tag}"));
    let name = version.or_else(tag).unwrap_or_else(|| "the version".to_owned());
    format!("{name} ({})", target.digest)
}

fn about(target: &Target, reason: &'static str, action: &'static str, weight: Weight, note: String) -> Announcement {
    Announcement {
        subject: target.digest.to_string(),
        ..channel(reason, action, weight, note)
    }
}

fn channel(reason: &'static str, action: &'static str, weight: Weight, note: String) -> Announcement {
    Announcement {
        about: About::Deployment,
        subject: String::new(),
        reason,
        action,
        weight,
        note: on_one_line(note),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use channel_core::choice::VersionStep;
    use channel_core::policy::Mode;
    use channel_core::reference::{ImageDigest, Tag};
    use channel_core::version::Version;

    use super::*;

    fn target() -> Target {
        Target {
            tag: Tag::parse("stable").ok(),
            digest: ImageDigest::parse(&format!("sha256:{}", "b".repeat(64))).unwrap(),
            version: Version::parse("1.4.3").ok(),
        }
    }

    fn end(ruling: Ruling) -> ChannelNews {
        let verdict = Verdict {
            ruling,
            why: "why".to_owned(),
            at: jiff::Timestamp::UNIX_EPOCH,
            judge: "a".to_owned(),
        };
        TrialNews::Ended(target(), verdict).into()
    }

    /// The reason, the weight, and a part of the note.
    type Told = (&'static str, Weight, &'static str);

    #[test]
    fn each_news_has_its_event_and_weight() {
        let approval = Reason::Approval {
            mode: Mode::Manual,
            step: VersionStep::Patch,
        };
        let waits = News::Waits {
            target: target(),
            reasons: vec![approval, Reason::NoVersion],
        };
        let sticks = TrialNews::Sticks(target(), "no room".to_owned());
        let stopped = TrialNews::Stopped("argocd puts another image back".to_owned());
        let rows: [(ChannelNews, Option<Told>); 16] = [
            (News::Checked { is_answered: true }.into(), None),
            (News::Answers.into(), None),
            (News::Missing(BTreeSet::new()).into(), None),
            (
                News::Available(target()).into(),
                Some(("UpdateAvailable", Weight::Normal, "version 1.4.3 (sha256:bbb")),
            ),
            (
                waits.into(),
                Some((
                    "UpdateWaits",
                    Weight::Normal,
                    ") waits: it wants an approval (releaseApproved): the mode is manual; it may",
                )),
            ),
            (
                News::Unreachable("cannot ask".to_owned()).into(),
                Some(("RegistryUnreachable", Weight::Warning, "cannot ask")),
            ),
            (
                TrialNews::Begun(target()).into(),
                Some(("TrialBegun", Weight::Normal, "is on trial beside the version")),
            ),
            (TrialNews::Pinned("a:1".to_owned()).into(), None),
            (TrialNews::Resumed.into(), None),
            (
                TrialNews::Held("a:1".to_owned()).into(),
                Some(("UpdateWaits", Weight::Normal, "has put a:1 into the Deployment")),
            ),
            (
                sticks.into(),
                Some(("UpdateStopped", Weight::Warning, "goes no further: no room")),
            ),
            (
                end(Ruling::Passed),
                Some(("TrialPassed", Weight::Normal, "has passed: why")),
            ),
            (
                end(Ruling::Failed),
                Some(("TrialFailed", Weight::Warning, "leads again: why")),
            ),
            (
                end(Ruling::Unclear),
                Some((
                    "UpdateWaits",
                    Weight::Warning,
                    "found out nothing, there will be another: why",
                )),
            ),
            (
                end(Ruling::Void),
                Some(("UpdateWaits", Weight::Normal, "does not count: why")),
            ),
            (
                stopped.into(),
                Some((
                    "UpdateStopped",
                    Weight::Warning,
                    "argocd puts another image back; `addon",
                )),
            ),
        ];
        for (news, expected) in rows {
            let told = announcement(&news);
            let found = told.as_ref().map(|told| (told.reason, told.weight, told.about));
            let wanted = expected.map(|(reason, weight, _)| (reason, weight, About::Deployment));
            assert_eq!(found, wanted, "{news:?}");
            if let (Some(told), Some((_, _, words))) = (told, expected) {
                assert!(told.note.contains(words), "{}", told.note);
            }
        }
    }

    #[test]
    fn verdicts_are_counted_also_where_nobody_wants_events() {
        let meters = Arc::new(Meters::new("own_"));
        let silent = ChannelAnnouncer::silent(Arc::clone(&meters)).begun();
        for ruling in [Ruling::Failed, Ruling::Failed, Ruling::Passed] {
            silent.hear(&end(ruling));
        }
        let page = meters.render(None);
        for line in [
            "own_channel_trials_total{verdict=\"failed\"} 2",
            "own_channel_trials_total{verdict=\"passed\"} 1",
            "own_channel_trials_total{verdict=\"unclear\"} 0",
        ] {
            assert!(page.contains(line), "{page}");
        }
    }

    #[test]
    fn news_come_out_where_those_of_modules_do() {
        let (announcer, mut announcements) = Announcer::new(Arc::new(Meters::new("own_")));
        announcer.of_channel().hear(&end(Ruling::Failed));
        assert_eq!(announcements.try_recv().unwrap().reason, "TrialFailed");
    }
}
