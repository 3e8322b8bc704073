//! One round of questions: the open questions, and the facts at its end.
//!
//! Must never let a part of the facts count before all questions are answered.

use std::collections::BTreeSet;

use super::{Answer, Installed, Question};
use crate::candidate::{Candidate, Seen, Signature};
use crate::channel::Channel;
use crate::reference::{ImageDigest, Tag};

/// The progress of one round of questions to the registry.
#[derive(Debug, Clone, Default)]
pub(super) struct Round {
    /// Whether the registry has listed all tags in the round.
    listed: bool,
    /// The tag whose digest was asked for in the round.
    resolved: Option<Tag>,
    /// Digests whose facts were asked for, found or not.
    looked_at: BTreeSet<ImageDigest>,
    /// Running digests whose existence was asked for.
    present: BTreeSet<ImageDigest>,
    pub(super) absent: BTreeSet<ImageDigest>,
    /// The facts that count once the round is over.
    pub(super) seen: Seen,
}

impl Round {
    /// A round that begins with the known facts.
    pub(super) fn new(seen: &Seen) -> Self {
        Self {
            seen: seen.clone(),
            ..Self::default()
        }
    }

    /// The first open question; `None` if all are answered.
    pub(super) fn question(&self, channel: Option<&Channel>, installed: &Installed) -> Option<Question> {
        let about_channel = channel.and_then(|channel| self.about(channel, installed));
        about_channel.or_else(|| {
            let mut running = installed.running.digests.iter();
            running.find_map(|digest| self.about_running(digest))
        })
    }

    /// The question about the running version. Its signature and its notes are asked for only once.
    fn about_running(&self, digest: &ImageDigest) -> Option<Question> {
        let is_known = self.seen.candidates.contains_key(digest);
        if !is_known && !self.looked_at.contains(digest) {
            return Some(Question::Candidate(digest.clone()));
        }
        let is_answered = self.present.contains(digest) || self.absent.contains(digest);
        (!is_answered).then(|| Question::Presence(digest.clone()))
    }

    fn about(&self, channel: &Channel, installed: &Installed) -> Option<Question> {
        let tag = match channel {
            Channel::Tag(tag) => tag,
            Channel::Range(_) if !self.listed => return Some(Question::Tags),
            Channel::Range(range) => range.highest(self.seen.tags.keys())?.0,
            Channel::Digest(digest) if self.is_open(digest) => return Some(Question::Candidate(digest.clone())),
            // A running digest as the channel: the tag beside it may point to a newer version.
            Channel::Digest(_) => installed.running.tag.as_ref()?,
        };
        if self.resolved.as_ref() != Some(tag) {
            return Some(Question::Digest(tag.clone()));
        }
        let digest = self.seen.tags.get(tag)?.as_ref()?;
        self.is_open(digest).then(|| Question::Candidate(digest.clone()))
    }

    /// Whether the facts about a digest have still to be asked for. The contents of a digest never change, but a
    /// signature may be added later.
    fn is_open(&self, digest: &ImageDigest) -> bool {
        let known = self.seen.candidates.get(digest);
        let is_complete = known.is_some_and(|candidate| !matches!(candidate.signature, Signature::Bad(_)));
        !is_complete && !self.looked_at.contains(digest)
    }

    /// The facts at the end of the round, without digests that are neither running nor tagged any more.
    pub(super) fn seen(mut self, channel: Option<&Channel>, installed: Option<&Installed>) -> Seen {
        let of_channel = channel.and_then(|channel| match channel {
            Channel::Digest(digest) => Some(digest),
            Channel::Tag(_) | Channel::Range(_) => None,
        });
        let mut named: BTreeSet<ImageDigest> = self.seen.tags.values().flatten().cloned().collect();
        named.extend(of_channel.cloned());
        let is_run = |candidate: &Candidate| {
            installed.is_some_and(|installed| candidate.is(&installed.running.digests, &installed.platforms))
        };
        self.seen
            .candidates
            .retain(|digest, candidate| named.contains(digest) || is_run(candidate));
        self.seen
    }

    pub(super) fn note(&mut self, question: &Question, answer: Answer) {
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
                if let Some(candidate) = candidate {
                    self.present.insert(digest.clone());
                    self.seen.candidates.insert(digest.clone(), *candidate);
                } else {
                    self.absent.insert(digest.clone());
                    self.seen.candidates.remove(digest);
                }
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
