//! Follows the source of one module: asks its registry, takes versions, and gives up bad versions. Runs on the leader
//! alone.
//!
//! The core decides which version is wanted, and whether it may be taken. Must never remove anything of the module.

mod asking;
mod history;
mod planned;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use addon_core::module::Edition;
use addon_core::operator::effect::FilesVerdict;
use channel_core::choice::{Activity, Choice, Memory, Running, Subject, Target};
use channel_core::following::{Following, Installed, Move};
use channel_core::reference::ImageDigest;
use channel_core::source::ModuleSource;
use inquiry::Inquiry;
use inquiry::office::Office;
use parts::clock::Clock;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::install::{Inputs, Taker};
use super::record::Record;
use super::shown::Shown;
use crate::requests::ReadVersion;

/// The interval of checks whether time or an edit has changed the choice.
const BEAT: Duration = Duration::from_secs(1);
/// The pause after a request to the API server failed.
const PAUSE: Duration = Duration::from_secs(5);

/// A message to the follower of one source.
#[derive(Debug)]
pub(super) enum Word {
    /// The core has judged the files of a reading.
    Judged(Edition, FilesVerdict),
    /// A person wants the registry to be asked at once. Answered when a round of questions has ended.
    Check(oneshot::Sender<bool>),
    /// A plan needs the files of a version, which is a tag or a digest.
    Read(String, oneshot::Sender<ReadVersion>),
}

/// The follower of one source.
pub(super) struct Follower {
    taker: Taker,
    office: Arc<Office>,
    sources: watch::Receiver<ModuleSource>,
    words: mpsc::UnboundedReceiver<Word>,
    shown: watch::Sender<Shown>,
    source: ModuleSource,
    record: Record,
    /// The record as the Secret has it.
    written: Option<Record>,
    following: Following,
    clock: Clock,
    inquiry: Option<Arc<Inquiry>>,
    /// The reading that was handed over last.
    edition: Option<Edition>,
    /// The inputs with which the files were read last, and the time of the last look at them.
    inputs: Inputs,
    looked: Instant,
    /// The reason why the inputs could not be read.
    unread: Option<String>,
    /// A version whose files cannot be used: the error, and the time of the next attempt.
    unfit: Option<(Target, String, Instant)>,
    /// People who wait for the end of a round of questions.
    waiting: Vec<oneshot::Sender<bool>>,
    /// Whether a round has ended since those people were answered last.
    has_checked: bool,
    /// The version that was fetched for a plan last.
    planned: Option<ImageDigest>,
}

impl Follower {
    pub(super) fn new(
        taker: Taker,
        office: Arc<Office>,
        sources: watch::Receiver<ModuleSource>,
        words: mpsc::UnboundedReceiver<Word>,
        shown: watch::Sender<Shown>,
        seed: u64,
    ) -> Self {
        let source = sources.borrow().clone();
        Self {
            following: Following::new(Memory::default(), seed),
            taker,
            office,
            sources,
            words,
            shown,
            source,
            record: Record::default(),
            written: None,
            clock: Clock::start(),
            inquiry: None,
            edition: None,
            inputs: Inputs::default(),
            looked: Instant::now(),
            unread: None,
            unfit: None,
            waiting: Vec::new(),
            has_checked: false,
            planned: None,
        }
    }

    /// Brings the kept version into use, sends `loaded`, and follows the source for ever.
    pub(super) async fn run(mut self, loaded: oneshot::Sender<()>) {
        self.begin().await;
        // If the receiver is gone, no part waits for the copies.
        let _ = loaded.send(());
        loop {
            self.note_source();
            let due = self.decide().await;
            self.write_record().await;
            self.look_at_inputs().await;
            self.show();
            self.answer();
            tokio::select! {
                biased;
                Some(word) = self.words.recv() => self.hear(word).await,
                Ok(()) = self.sources.changed() => {}
                () = sleep_until(due.min(Instant::now() + BEAT)) => {}
            }
        }
    }

    fn name(&self) -> &str {
        self.taker.module.as_str()
    }

    /// Takes over the present source, which a person may have edited.
    fn note_source(&mut self) {
        let source = self.sources.borrow_and_update().clone();
        if source == self.source {
            return;
        }
        let is_elsewhere = source.repository != self.source.repository || source.auth != self.source.auth;
        if is_elsewhere {
            self.inquiry = None;
        }
        self.unfit = None;
        let allowed = source.allowed();
        self.record.spent.retain(|digest| allowed.contains(digest));
        self.source = source;
    }

    /// The facts about the version in use, in the form that the core's choice needs.
    fn installed(&self) -> Installed {
        // Before the first files are in use, no version counts as running, so any version may be taken.
        let running = self.record.running.as_ref().filter(|_| self.edition.is_some());
        Installed {
            subject: Subject::Module,
            repository: Some(self.source.repository.clone()),
            running: Running {
                digests: running.map(|target| target.digest.clone()).into_iter().collect(),
                tag: running.and_then(|target| target.tag.clone()),
                version: running.and_then(|target| target.version.clone()),
                state_format: String::new(),
            },
            chart: None,
            platforms: [asking::own_platform()].into(),
            failed: self.record.bad.keys().cloned().collect(),
            spent: self.record.spent.clone(),
            unclear: None,
        }
    }

    /// Asks the registry or takes a version, as the core decides. Returns the time of the next decision.
    async fn decide(&mut self) -> Instant {
        self.following.set(Some(self.source.settings()));
        self.following.find(Some(self.installed()));
        while let Move::Ask(question) = self.following.next(self.clock.now()) {
            let answer = self.ask(&question).await;
            self.following.hear(&question, answer, self.clock.now());
            if self.sources.has_changed().unwrap_or(false) {
                return Instant::now();
            }
        }
        let due = match self.following.next(self.clock.now()) {
            Move::Wait(until) => self.clock.instant(until),
            Move::Ask(_) | Move::Rest => Instant::now(),
        };
        let choice = self.following.choose(Activity::Quiet, self.clock.now()).cloned();
        self.tell_news();
        self.record.memory = self.following.memory().lasting();
        if let Some(Choice::Begin(target)) = choice {
            self.take(target).await;
        }
        due
    }

    async fn hear(&mut self, word: Word) {
        match word {
            Word::Check(done) => {
                self.waiting.push(done);
                self.unfit = None;
                self.following.hasten();
            }
            Word::Read(version, mut reply) => {
                let read = tokio::select! {
                    // The plan has come to its end, and verdicts on the version in use wait.
                    () = reply.closed() => return,
                    read = self.read_version(&version) => read,
                };
                let _ = reply.send(read);
            }
            Word::Judged(edition, _) if Some(edition) != self.edition => {}
            Word::Judged(_, FilesVerdict::Good) => {
                self.record.did_well();
                self.write_record().await;
                self.keep_copies().await;
                self.drop_old().await;
            }
            Word::Judged(_, FilesVerdict::Bad(error)) => self.give_back(error).await,
        }
    }

    /// Answers the people who wait for the end of a round. Must be called after the outcome of the round is shown.
    fn answer(&mut self) {
        if std::mem::take(&mut self.has_checked) {
            for waiting in self.waiting.drain(..) {
                // The person may have stopped waiting.
                let _ = waiting.send(true);
            }
        }
    }

    fn show_trouble(&self, text: &str) {
        self.shown.send_modify(|shown| shown.trouble = Some(text.to_owned()));
    }

    fn show(&self) {
        let unfit = self
            .unfit
            .as_ref()
            .map(|(target, text, _)| (target.clone(), text.clone()));
        let is_in_use = self.edition.is_some();
        let shown = Shown::of(
            &self.source,
            &self.record,
            is_in_use,
            self.following.status(),
            unfit,
            self.unread.as_ref(),
        );
        self.shown.send_if_modified(|told| {
            let differs = *told != shown;
            *told = shown;
            differs
        });
    }
}
