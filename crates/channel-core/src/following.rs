//! How the operator follows the registry: when it asks, which questions it asks, and which news follow from the
//! answers.
//!
//! The leader asks one question at a time, in rounds. A round with a missing answer changes nothing: the known facts
//! stay. Must never begin a trial by itself: it only returns the choice.

mod installed;
mod news;
mod round;
mod wanted;

use std::collections::BTreeSet;
use std::time::Duration;

use clock::{Jitter, Now, Tick};
use jiff::Timestamp;

use super::candidate::{Candidate, Seen, Signature};
use super::channel::Channel;
use super::choice::{Activity, Choice, Memory, Running, Situation};
use super::reference::{ImageDigest, Tag};
use super::settings::Settings;

pub use installed::Installed;
pub use news::News;
use round::Round;

/// The time between the end of a round and the next round.
const PAUSE: Duration = Duration::from_mins(1);
/// The largest random extension of a pause, in milliseconds, so that many clusters do not ask at once.
const SPREAD_MS: u64 = 6_000;
/// The longest pause that a registry may ask for. A longer one is cut to this.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// The number of rounds in a row without an answer after which the registry is reported as unreachable.
const TOLD_AFTER: u32 = 3;

/// A request to the registry about our own repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Asks for all tags.
    Tags,
    /// Asks for the digest that a tag points to.
    Digest(Tag),
    /// Asks for the manifests, the notes and the signature of a digest.
    Candidate(ImageDigest),
    /// Asks whether a running digest still exists.
    Presence(ImageDigest),
}

/// The registry's reply to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All tags of the repository.
    Tags(BTreeSet<Tag>),
    /// The digest that the tag points to; `None` if there is no such tag.
    Digest(Option<ImageDigest>),
    /// The version with the digest; `None` if the registry does not have the digest.
    Candidate(Option<Box<Candidate>>),
    /// Whether the digest exists.
    Presence(bool),
}

/// The reason for which the registry gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A sentence that names the question and the error.
    pub text: String,
    /// The time for which the registry does not want to be asked.
    pub pause: Option<Duration>,
}

/// The next action of following the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Send the question to the registry, and pass in the registry's reply.
    Ask(Question),
    /// Do nothing until the given tick or the next input.
    Wait(Tick),
    /// Do nothing until the next input: another replica asks, or the running version and its repository are not known yet.
    Rest,
}

/// The state of following the registry, for people and reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The effective channel.
    pub channel: Option<Channel>,
    /// The last choice of a version to change to.
    pub choice: Option<Choice>,
    /// The time at which the last complete round ended.
    pub checked: Option<Timestamp>,
    /// The error of the last round, if it was not complete.
    pub trouble: Option<String>,
    /// Running digests that the registry does not have any more.
    pub missing: BTreeSet<ImageDigest>,
    /// The time at which the next round of questions begins.
    pub next: Option<Timestamp>,
    /// The time until which the registry does not want to be asked.
    pub left_alone: Option<Timestamp>,
}

/// The state machine with which one replica follows the registry.
#[derive(Debug, Clone)]
pub struct Following {
    settings: Option<Settings>,
    installed: Option<Installed>,
    memory: Memory,
    seen: Seen,
    round: Option<Round>,
    is_leading: bool,
    next: Tick,
    /// The time until which the registry does not want to be asked.
    left_alone: Tick,
    jitter: Jitter,
    /// The number of incomplete rounds in a row.
    failures: u32,
    status: Status,
    news: news::Told,
}

impl Following {
    /// Starts with the memory of earlier lives. The seed spreads the pauses.
    pub fn new(memory: Memory, seed: u64) -> Self {
        Self {
            settings: None,
            installed: None,
            memory,
            seen: Seen::default(),
            round: None,
            is_leading: false,
            next: Tick::ZERO,
            left_alone: Tick::ZERO,
            jitter: Jitter::new(seed),
            failures: 0,
            status: Status::default(),
            news: news::Told::default(),
        }
    }

    /// Notes whether this replica leads. Only the leader asks the registry.
    pub fn lead(&mut self, is_leading: bool) {
        if is_leading && !self.is_leading {
            self.hasten();
        }
        self.is_leading = is_leading;
    }

    /// Takes the settings of people; `None` if they are unknown. A changed channel starts a round at once.
    pub fn set(&mut self, settings: Option<Settings>) {
        let channel = |settings: &Option<Settings>| settings.as_ref().map(|settings| settings.channel.clone());
        if channel(&settings) != channel(&self.settings) {
            self.hasten();
        }
        self.settings = settings;
    }

    /// Takes the facts about our installation; `None` if they are unknown. If the repository changed, the known facts
    /// about the old one are dropped.
    pub fn find(&mut self, installed: Option<Installed>) {
        let repository = |installed: &Option<Installed>| installed.as_ref()?.repository.clone();
        if let Some((old, new)) = repository(&self.installed).zip(repository(&installed))
            && old != new
        {
            self.forget();
        }
        let running = |installed: &Option<Installed>| installed.as_ref().map(|installed| installed.running.clone());
        if running(&installed) != running(&self.installed) {
            self.hasten();
        }
        self.installed = installed;
    }

    /// Starts a new round at once, for a person or for a program that has pushed a version. A round that is under way
    /// does not count. A pause that the registry asked for is kept all the same.
    pub fn hasten(&mut self) {
        self.round = None;
        self.next = self.left_alone;
    }

    /// Drops all facts, because they are about another repository.
    fn forget(&mut self) {
        self.seen = Seen::default();
        self.left_alone = Tick::ZERO;
        self.failures = 0;
        self.status = Status::default();
        self.hasten();
    }

    /// The memory for later lives.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Replaces the memory by the memory of another replica, which has led meanwhile.
    pub fn recall(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// The state of following, for people and reports.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The signature check of the running version; `None` if it was not checked. A signature of the index or of the
    /// manifest counts.
    pub fn signature(&self) -> Option<&Signature> {
        let mut last = None;
        for candidate in self.known_as_running() {
            last = Some(&candidate.signature);
            if candidate.signature == Signature::Good {
                break;
            }
        }
        last
    }

    /// The running version: as its image in the registry describes it, if that is known, else as the program describes itself.
    pub fn running(&self) -> Option<Running> {
        let mut running = self.installed.as_ref()?.running.clone();
        let told = self
            .known_as_running()
            .find_map(|candidate| candidate.notes.version.clone());
        running.version = told.or(running.version);
        Some(running)
    }

    fn known_as_running(&self) -> impl Iterator<Item = &Candidate> {
        let installed = self.installed.as_ref();
        self.seen.candidates.values().filter(move |candidate| {
            installed.is_some_and(|installed| candidate.is(&installed.running.digests, &installed.platforms))
        })
    }

    /// The news about the registry that were not reported before.
    pub fn news(&mut self) -> Vec<News> {
        self.news.take(&self.status, self.failures)
    }

    /// The next action to follow the registry. Until the answer comes, each call returns the same question.
    pub fn next(&mut self, now: Now) -> Move {
        let (true, Some(settings), Some(installed)) = (self.is_leading, &self.settings, &self.installed) else {
            return Move::Rest;
        };
        if installed.repository.is_none() {
            return Move::Rest;
        }
        if self.round.is_none() && now.tick < self.next {
            return Move::Wait(self.next);
        }
        let round = self.round.get_or_insert_with(|| Round::new(&self.seen));
        let channel = channel(settings, &installed.running);
        if let Some(question) = round.question(channel.as_ref(), installed) {
            return Move::Ask(question);
        }
        self.finish(channel, now);
        Move::Wait(self.next)
    }

    /// Takes an answer of the registry or an error. An answer to a question that is not asked any more changes nothing.
    pub fn hear(&mut self, question: &Question, answer: Result<Answer, Trouble>, now: Now) {
        let (Some(settings), Some(installed), Some(round)) = (&self.settings, &self.installed, &mut self.round) else {
            return;
        };
        let asked = round.question(channel(settings, &installed.running).as_ref(), installed);
        if asked.as_ref() != Some(question) {
            return;
        }
        match answer {
            Ok(answer) => round.note(question, answer),
            Err(trouble) => {
                self.round = None;
                self.failures = self.failures.saturating_add(1);
                self.status.trouble = Some(trouble.text);
                self.news.note_round(false);
                self.pause(trouble.pause, now);
            }
        }
    }

    /// Makes the choice again from the known facts, because time has passed or the running work has changed.
    pub fn choose(&mut self, activity: Activity, now: Now) -> Option<&Choice> {
        let (Some(settings), Some(installed)) = (&self.settings, &self.installed) else {
            return None;
        };
        // Before the first complete round the facts are unknown. That does not mean that nothing is there.
        self.status.checked?;
        if self.status.trouble.is_some() {
            // While the registry does not answer, no trial begins: the version may have been withdrawn.
            return self
                .status
                .choice
                .as_ref()
                .filter(|choice| !matches!(choice, Choice::Begin(_)));
        }
        let running = self.running().unwrap_or_default();
        let situation = Situation {
            subject: installed.subject,
            running: &running,
            settings,
            seen: &self.seen,
            chart: installed.chart.as_ref(),
            platforms: &installed.platforms,
            failed: &installed.failed,
            spent: &installed.spent,
            unclear: installed.unclear.as_ref().map(|(digest, again)| (digest, *again)),
            activity,
        };
        self.status.choice = Some(situation.choose(&mut self.memory, now));
        self.status.choice.as_ref()
    }

    fn finish(&mut self, channel: Option<Channel>, now: Now) {
        let Some(round) = self.round.take() else { return };
        let runs = |digest: &ImageDigest| {
            let installed = self.installed.as_ref();
            installed.is_some_and(|installed| installed.running.digests.contains(digest))
        };
        let missing = round.absent.iter().filter(|digest| runs(digest)).cloned().collect();
        let installed = self.installed.as_ref();
        self.seen = round.seen(channel.as_ref(), installed);
        self.failures = 0;
        self.status = Status {
            channel,
            choice: self.status.choice.take(),
            checked: Some(now.wall),
            trouble: None,
            missing,
            next: None,
            left_alone: None,
        };
        self.news.note_round(true);
        self.pause(None, now);
    }

    fn pause(&mut self, wanted: Option<Duration>, now: Now) {
        let spread = Duration::from_millis(self.jitter.draw() % SPREAD_MS);
        let pause = wanted.unwrap_or(PAUSE).clamp(PAUSE, LONGEST_PAUSE) + spread;
        self.next = now.tick + pause;
        let left_alone = wanted.map(|wanted| wanted.min(LONGEST_PAUSE));
        self.left_alone = left_alone.map_or(Tick::ZERO, |left_alone| now.tick + left_alone);
        self.status.left_alone = left_alone.and_then(|left_alone| now.wall.checked_add(left_alone).ok());
        self.status.next = now.wall.checked_add(pause).ok();
    }
}

fn channel(settings: &Settings, running: &Running) -> Option<Channel> {
    let of_image = || running.tag.clone().map(Channel::Tag);
    settings.channel.clone().or_else(of_image)
}

#[cfg(test)]
mod tests;
