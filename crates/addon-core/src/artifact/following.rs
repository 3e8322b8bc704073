//! How the registry is followed: when it is asked, for what, and what is told of its answers.
//!
//! One question at a time, in rounds, by the replica that leads. A round that is not answered to its end changes nothing: what was
//! known stays. Must never begin a trial by itself: it says which choice was made.

mod news;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::candidate::{Candidate, Seen, Signature};
use super::channel::Channel;
use super::choice::{Activity, Choice, Memory, Running, Situation};
use super::platform::Platform;
use super::reference::{ImageDigest, Tag};
use super::settings::Settings;
use super::version::Version;
use crate::time::{Jitter, Now, Tick};

pub use news::News;

/// Between the end of a round and the next one.
const PAUSE: Duration = Duration::from_mins(1);
/// By so many milliseconds a pause may be longer, so that many clusters do not ask at once.
const SPREAD_MS: u64 = 6_000;
/// A registry that wants to be left alone for longer is asked after this all the same.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// So many rounds in a row without an answer are told.
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
    /// All there is to know of a digest; nothing if it is not there.
    Candidate(Option<Box<Candidate>>),
    /// Whether a digest is there.
    Presence(bool),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A sentence that says what was asked.
    pub text: String,
    /// How long the registry wants to be left alone.
    pub pause: Option<Duration>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Ask the registry, and tell what it answered.
    Ask(Question),
    /// Nothing, before this tick or before something is heard.
    Wait(Tick),
    /// Nothing, before something is heard: others ask, or it is not known yet what runs.
    Rest,
}

/// The operator as its cluster has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The version that runs.
    pub running: Running,
    /// The version of the chart that made our Deployment, if its label tells.
    pub chart: Option<Version>,
    /// The platforms of the machines that our pods are on.
    pub platforms: BTreeSet<Platform>,
    /// Digests that failed on trial.
    pub failed: BTreeSet<ImageDigest>,
}

/// The state of following, for people and pages.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// A round of questions.
#[derive(Debug, Clone, Default)]
struct Round {
    /// All tags were listed.
    listed: bool,
    /// The tag whose digest was asked for.
    resolved: Option<Tag>,
    /// Digests that were looked at, or found absent.
    looked_at: BTreeSet<ImageDigest>,
    /// Those that run, and that are there or not.
    present: BTreeSet<ImageDigest>,
    absent: BTreeSet<ImageDigest>,
    /// What is known once this round is over.
    seen: Seen,
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
    jitter: Jitter,
    /// Rounds in a row that were not answered.
    failures: u32,
    status: Status,
    news: news::Told,
}

impl Following {
    /// Knows nothing yet, apart from what was remembered in lives before. The seed spreads pauses.
    pub fn new(memory: Memory, seed: u64) -> Self {
        Self {
            settings: None,
            installed: None,
            memory,
            seen: Seen::default(),
            round: None,
            is_leading: false,
            next: Tick::ZERO,
            jitter: Jitter::new(seed),
            failures: 0,
            status: Status {
                channel: None,
                choice: None,
                checked: None,
                trouble: None,
                missing: BTreeSet::new(),
                next: None,
            },
            news: news::Told::default(),
        }
    }

    /// Only the replica that leads asks.
    pub fn lead(&mut self, is_leading: bool) {
        if is_leading && !self.is_leading {
            self.next = Tick::ZERO;
        }
        self.is_leading = is_leading;
    }

    /// People have made these settings, or nobody knows which. Another channel is asked for at once.
    pub fn set(&mut self, settings: Option<Settings>) {
        let channel = |settings: &Option<Settings>| settings.as_ref().map(|settings| settings.channel.clone());
        if channel(&settings) != channel(&self.settings) {
            self.hasten();
        }
        self.settings = settings;
    }

    /// The operator is installed like this, or nobody knows how.
    pub fn find(&mut self, installed: Option<Installed>) {
        let running = |installed: &Option<Installed>| installed.as_ref().map(|installed| installed.running.clone());
        if running(&installed) != running(&self.installed) {
            self.hasten();
        }
        self.installed = installed;
    }

    /// A person, or who has pushed a version, wants the registry to be asked now. A round that is under way does not count.
    pub fn hasten(&mut self) {
        self.round = None;
        self.next = Tick::ZERO;
    }

    /// What later lives have to know.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// How things stand.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// What is to be told and was not told before.
    pub fn news(&mut self) -> Vec<News> {
        self.news.take(&self.status, self.failures)
    }

    /// What to do next. Asked again before an answer has come, it asks the same.
    pub fn next(&mut self, now: Now) -> Move {
        let (true, Some(settings), Some(installed)) = (self.is_leading, &self.settings, &self.installed) else {
            return Move::Rest;
        };
        if self.round.is_none() && now.tick < self.next {
            return Move::Wait(self.next);
        }
        let round = self.round.get_or_insert_with(|| Round {
            seen: self.seen.clone(),
            ..Round::default()
        });
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

    /// Chooses again of what is known: time has passed, or the work under way is another.
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
        let situation = Situation {
            running: &installed.running,
            settings,
            seen: &self.seen,
            chart: installed.chart.as_ref(),
            platforms: &installed.platforms,
            failed: &installed.failed,
            unclear: None,
            activity,
        };
        self.status.choice = Some(situation.choose(&mut self.memory, now));
        self.status.choice.as_ref()
    }

    fn finish(&mut self, channel: Option<Channel>, now: Now) {
        let Some(mut round) = self.round.take() else { return };
        let missing = std::mem::take(&mut round.absent);
        self.seen = round.seen(channel.as_ref());
        self.failures = 0;
        self.status = Status {
            channel,
            choice: self.status.choice.take(),
            checked: Some(now.wall),
            trouble: None,
            missing,
            next: None,
        };
        self.news.note_round(true);
        self.pause(None, now);
    }

    fn pause(&mut self, wanted: Option<Duration>, now: Now) {
        let spread = Duration::from_millis(self.jitter.draw() % SPREAD_MS);
        let pause = wanted.unwrap_or(PAUSE).clamp(PAUSE, LONGEST_PAUSE) + spread;
        self.next = now.tick + pause;
        self.status.next = now.wall.checked_add(pause).ok();
    }
}

fn channel(settings: &Settings, running: &Running) -> Option<Channel> {
    let of_image = || running.tag.clone().map(Channel::Tag);
    settings.channel.clone().or_else(of_image)
}

impl Round {
    /// The first question that is open, if there is one.
    fn question(&self, channel: Option<&Channel>, installed: &Installed) -> Option<Question> {
        let about_channel = channel.and_then(|channel| self.about(channel, installed));
        about_channel.or_else(|| {
            let mut running = installed.running.digests.iter();
            let open = running.find(|digest| !self.present.contains(*digest) && !self.absent.contains(*digest));
            open.cloned().map(Question::Presence)
        })
    }

    fn about(&self, channel: &Channel, installed: &Installed) -> Option<Question> {
        let tag = match channel {
            Channel::Tag(tag) => tag,
            Channel::Range(_) if !self.listed => return Some(Question::Tags),
            Channel::Range(range) => range.highest(self.seen.tags.keys())?.0,
            Channel::Digest(digest) if self.is_open(digest) => return Some(Question::Candidate(digest.clone())),
            // There may be news of the tag beside it.
            Channel::Digest(_) => installed.running.tag.as_ref()?,
        };
        if self.resolved.as_ref() != Some(tag) {
            return Some(Question::Digest(tag.clone()));
        }
        let digest = self.seen.tags.get(tag)?.as_ref()?;
        self.is_open(digest).then(|| Question::Candidate(digest.clone()))
    }

    /// A digest says for ever what it says. Only its signature may be made later.
    fn is_open(&self, digest: &ImageDigest) -> bool {
        let known = self.seen.candidates.get(digest);
        let is_complete = known.is_some_and(|candidate| !matches!(candidate.signature, Signature::Bad(_)));
        !is_complete && !self.looked_at.contains(digest)
    }

    /// All that is known by now, without what nothing leads to any more.
    fn seen(mut self, channel: Option<&Channel>) -> Seen {
        let of_channel = channel.and_then(|channel| match channel {
            Channel::Digest(digest) => Some(digest),
            Channel::Tag(_) | Channel::Range(_) => None,
        });
        let mut named: BTreeSet<ImageDigest> = self.seen.tags.values().flatten().cloned().collect();
        named.extend(of_channel.cloned());
        self.seen.candidates.retain(|digest, _| named.contains(digest));
        self.seen
    }

    fn note(&mut self, question: &Question, answer: Answer) {
        match (question, answer) {
            (Question::Tags, Answer::Tags(tags)) => {
                self.listed = true;
                let known = std::mem::take(&mut self.seen.tags);
                let digest_of = |tag: &Tag| known.get(tag).cloned().flatten();
                self.seen.tags = tags.into_iter().map(|tag| (tag.clone(), digest_of(&tag))).collect();
            }
            (Question::Digest(tag), Answer::Digest(digest)) => {
                self.resolved = Some(tag.clone());
                match digest {
                    Some(digest) => {
                        self.seen.tags.insert(tag.clone(), Some(digest));
                    }
                    None => {
                        self.seen.tags.remove(tag);
                    }
                }
            }
            (Question::Candidate(digest), Answer::Candidate(candidate)) => {
                self.looked_at.insert(digest.clone());
                match candidate {
                    Some(candidate) => self.seen.candidates.insert(digest.clone(), *candidate),
                    None => self.seen.candidates.remove(digest),
                };
            }
            (Question::Presence(digest), Answer::Presence(is_there)) => {
                let found = if is_there { &mut self.present } else { &mut self.absent };
                found.insert(digest.clone());
            }
            // An answer to another question leaves this one open.
            (
                Question::Tags | Question::Digest(_) | Question::Candidate(_) | Question::Presence(_),
                Answer::Tags(_) | Answer::Digest(_) | Answer::Candidate(_) | Answer::Presence(_),
            ) => {}
        }
    }
}

#[cfg(test)]
mod tests;
