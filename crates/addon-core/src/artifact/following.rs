//! How the registry is followed: when it is asked, which questions it gets, and which news its answers make.
//!
//! One question at a time, in rounds, by the replica that leads. A round that is not answered to its end changes
//! nothing: what was known stays. Must never begin a trial by itself: it only returns the choice.

mod installed;
mod news;
mod round;
mod wanted;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::candidate::{Candidate, Seen, Signature};
use super::channel::Channel;
use super::choice::{Activity, Choice, Memory, Running, Situation};
use super::reference::{ImageDigest, Tag};
use super::settings::Settings;
use crate::time::{Jitter, Now, Tick};

pub use installed::Installed;
pub use news::News;
use round::Round;

/// Between the end of a round and the next one.
const PAUSE: Duration = Duration::from_mins(1);
/// The largest random extension of a pause, in milliseconds, so that many clusters do not ask at once.
const SPREAD_MS: u64 = 6_000;
/// A registry that wants to be left alone for longer is asked after this all the same.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// The number of rounds in a row without an answer that is reported.
const TOLD_AFTER: u32 = 3;

/// One request to the registry, about our own repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// For all tags.
    Tags,
    /// For the digest that the tag stands for.
    Digest(Tag),
    /// For all there is to know of a digest: its manifests, its notes, its signature.
    Candidate(ImageDigest),
    /// Whether this digest, which runs, is there.
    Presence(ImageDigest),
}

/// The answer of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All tags.
    Tags(BTreeSet<Tag>),
    /// The digest that the tag stands for; nothing if there is no such tag.
    Digest(Option<ImageDigest>),
    /// All facts of a digest; nothing if it does not exist.
    Candidate(Option<Box<Candidate>>),
    /// Whether a digest is there.
    Presence(bool),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A sentence that names the question.
    pub text: String,
    /// How long the registry wants to be left alone.
    pub pause: Option<Duration>,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Ask the registry, and pass in its answer.
    Ask(Question),
    /// Nothing until this tick or the next input.
    Wait(Tick),
    /// Nothing until the next input: another replica asks, or the running version and its repository are not known yet.
    Rest,
}

/// The state of following, for people and pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The channel that counts.
    pub channel: Option<Channel>,
    /// The choice that was made last.
    pub choice: Option<Choice>,
    /// When a round was answered to its end.
    pub checked: Option<Timestamp>,
    /// Why the last round was not.
    pub trouble: Option<String>,
    /// The digests that run and that the registry has lost.
    pub missing: BTreeSet<ImageDigest>,
    /// When the next round begins.
    pub next: Option<Timestamp>,
    /// Before this the registry is not asked, for it wants to be left alone.
    pub left_alone: Option<Timestamp>,
}

/// One replica's part in following the registry.
#[derive(Debug, Clone)]
pub struct Following {
    settings: Option<Settings>,
    installed: Option<Installed>,
    memory: Memory,
    seen: Seen,
    round: Option<Round>,
    is_leading: bool,
    next: Tick,
    /// Until this time the registry wants no requests.
    left_alone: Tick,
    jitter: Jitter,
    /// Rounds in a row that were not answered.
    failures: u32,
    status: Status,
    news: news::Told,
}

impl Following {
    /// Starts only with the memory of earlier lives. The seed spreads pauses.
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

    /// Only the replica that leads asks.
    pub fn lead(&mut self, is_leading: bool) {
        if is_leading && !self.is_leading {
            self.hasten();
        }
        self.is_leading = is_leading;
    }

    /// The settings of people, or none if they are unknown. Another channel is asked for at once.
    pub fn set(&mut self, settings: Option<Settings>) {
        let channel = |settings: &Option<Settings>| settings.as_ref().map(|settings| settings.channel.clone());
        if channel(&settings) != channel(&self.settings) {
            self.hasten();
        }
        self.settings = settings;
    }

    /// The installation of the operator, or none if it is unknown. Of another repository nothing is known yet.
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

    /// A person, or a program that has pushed a version, wants the registry to be asked now. A round that is under way does not
    /// count. A registry that wants to be left alone is left alone all the same.
    pub fn hasten(&mut self) {
        self.round = None;
        self.next = self.left_alone;
    }

    /// All that was learnt is about another repository.
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

    /// Another replica has led meanwhile: this is what it remembered last.
    pub fn recall(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// How things stand.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether the version that runs is signed; nothing if that was not checked. It may be signed by either of its
    /// digests.
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

    /// The version that runs, as its image tells it, if that was looked at; else as it knows itself.
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

    /// The news that were not reported before.
    pub fn news(&mut self) -> Vec<News> {
        self.news.take(&self.status, self.failures)
    }

    /// The next step. Asked again before an answer has come, it asks the same.
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

    /// The registry has answered, or not. An answer to a question that is not asked any more changes nothing.
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

    /// Chooses again from the known versions: time has passed, or the running work has changed.
    pub fn choose(&mut self, activity: Activity, now: Now) -> Option<&Choice> {
        let (Some(settings), Some(installed)) = (&self.settings, &self.installed) else {
            return None;
        };
        // Before the first round nothing is known, which is not that nothing is there.
        self.status.checked?;
        if self.status.trouble.is_some() {
            // Nothing begins that a registry may have taken back meanwhile.
            return self
                .status
                .choice
                .as_ref()
                .filter(|choice| !matches!(choice, Choice::Begin(_)));
        }
        let running = self.running().unwrap_or_default();
        let situation = Situation {
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
