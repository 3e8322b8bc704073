//! Follows the source of one module: asks its registry, takes versions, and gives bad ones back. Runs on the leader alone.
//!
//! Which version is wanted, and whether it may be taken, is for the core to say. Must never remove anything of the module.

use std::sync::Arc;
use std::time::Duration;

use addon_core::artifact::choice::{Activity, Choice, Running, Subject, Target};
use addon_core::artifact::following::{Answer, Following, Installed, Move, News, Question, Trouble};
use addon_core::artifact::platform::Platform;
use addon_core::artifact::source::ModuleSource;
use addon_core::failure::Failure;
use addon_core::module::Edition;
use addon_core::operator::effect::FilesVerdict;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::login;
use super::record::Record;
use super::shown::Shown;
use super::taking::{TakeError, Taker, ValuesFiles};
use crate::app::following::asking::Inquiry;
use crate::app::following::setup::Office;
use crate::driver::Clock;
use crate::registry::documents;
use crate::report::Chain;

/// The interval of checks whether time or an edit has changed the choice.
const BEAT: Duration = Duration::from_secs(1);
/// The interval of looks at the ConfigMap with values files.
const VALUES: Duration = Duration::from_secs(15);
/// The pause before a version whose files cannot be used is checked again: its values may have changed meanwhile.
const AGAIN: Duration = Duration::from_mins(5);
/// The pause after a request to the API server failed.
const PAUSE: Duration = Duration::from_secs(5);

/// A message to the follower of one source.
#[derive(Debug)]
pub(super) enum Word {
    /// The core has judged the files of a reading.
    Judged(Edition, FilesVerdict),
    /// A person wants the registry to be asked at once. Answered when a round of questions has ended.
    Check(oneshot::Sender<bool>),
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
    /// The values files at that time, and the time of the last look at them.
    values: ValuesFiles,
    looked: Instant,
    /// A version whose files cannot be used: the error, and the time of the next attempt.
    unfit: Option<(Target, String, Instant)>,
    waiting: Vec<oneshot::Sender<bool>>,
    rounds: u64,
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
            following: Following::new(addon_core::artifact::choice::Memory::default(), seed),
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
            values: ValuesFiles::new(),
            looked: Instant::now(),
            unfit: None,
            waiting: Vec::new(),
            rounds: 0,
        }
    }

    /// Brings the kept version into use, says so, and follows the source for ever.
    pub(super) async fn run(mut self, loaded: oneshot::Sender<()>) {
        self.begin().await;
        // Without a listener nobody waits for the copies.
        let _ = loaded.send(());
        loop {
            self.note_source();
            let due = self.decide().await;
            self.write_record().await;
            self.look_at_values().await;
            self.show();
            tokio::select! {
                biased;
                Some(word) = self.words.recv() => self.hear(word).await,
                Ok(()) = self.sources.changed() => {}
                () = sleep_until(due.min(Instant::now() + BEAT)) => {}
            }
        }
    }

    /// Reads the record, and hands the files of the version in use to the core if a copy of them is kept.
    async fn begin(&mut self) {
        let record = loop {
            match self.taker.desk.tools.cluster.source_record(&self.taker.module).await {
                Ok(record) => break record,
                Err(error) => {
                    warn!(module = self.name(), error = %Chain(&error), "The record of a source cannot be read, trying again");
                    self.show_trouble(&Failure::from(error).report);
                    sleep(PAUSE).await;
                }
            }
        };
        let record = record.and_then(|text| {
            let read = serde_json::from_slice(&text);
            read.inspect_err(|error| warn!(module = self.name(), %error, "The record of a source is not understood, going on without it"))
                .ok()
        });
        self.record = record.unwrap_or_default();
        self.written = Some(self.record.clone());
        if self.record.repository.as_ref() != Some(&self.source.repository) {
            self.record.memory = addon_core::artifact::choice::Memory::default();
        }
        self.following.recall(self.record.memory.clone());
        self.following.lead(true);
        if let Some(running) = self.record.running.clone()
            && !self.use_kept(&running).await
            && let Some(good) = self.record.good.clone()
        {
            self.use_kept(&good).await;
        }
    }

    /// Hands the kept files of a version over. False if there are none.
    async fn use_kept(&mut self, target: &Target) -> bool {
        loop {
            let used = self.bring_back(target).await;
            match used {
                Ok(is_there) => return is_there,
                Err(error) if error.is_of_version() => {
                    warn!(module = self.name(), digest = target.digest.as_str(), error = %Chain(&error), "The kept files of a version cannot be used");
                    return false;
                }
                Err(error) => {
                    warn!(module = self.name(), error = %Chain(&error), "The kept files of a module cannot be read, trying again");
                    self.show_trouble(&Chain(&error).to_string());
                    sleep(PAUSE).await;
                    self.note_source();
                }
            }
        }
    }

    async fn bring_back(&mut self, target: &Target) -> Result<bool, TakeError> {
        let Some(place) = self.taker.kept(&target.digest).await? else {
            return Ok(false);
        };
        self.values = self.taker.values(&self.source).await?;
        let has_former = self.record.has_former();
        let edition = self
            .taker
            .hand_over(&self.source, &self.values, place, has_former)
            .await?;
        self.edition = Some(edition);
        Ok(true)
    }

    fn name(&self) -> &str {
        self.taker.module.as_str()
    }

    /// Takes the source as people have it now.
    fn note_source(&mut self) {
        let source = self.sources.borrow_and_update().clone();
        if source == self.source {
            return;
        }
        let is_elsewhere = source.repository != self.source.repository || source.auth != self.source.auth;
        if is_elsewhere {
            self.inquiry = None;
        }
        if source.order != self.source.order || source.env != self.source.env || source.values != self.source.values {
            // The same files with another order, other variables or other values are a new reading.
            self.values = ValuesFiles::from([(String::new(), String::new())]);
            self.looked = Instant::now() - VALUES;
        }
        self.unfit = None;
        let allowed = source.allowed();
        self.record.spent.retain(|digest| allowed.contains(digest));
        self.source = source;
    }

    /// What is known about the version in use, in the form that the core's choice needs.
    fn installed(&self) -> Installed {
        // Before the first files are in use, any version is welcome.
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
            platforms: [own_platform()].into(),
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

    async fn ask(&mut self, question: &Question) -> Result<Answer, Trouble> {
        let inquiry = self.inquiry()?;
        let answer = inquiry.answer(question).await?;
        Ok(for_any_platform(answer))
    }

    fn inquiry(&mut self) -> Result<Arc<Inquiry>, Trouble> {
        if let Some(inquiry) = &self.inquiry {
            return Ok(Arc::clone(inquiry));
        }
        let read = match &self.source.auth {
            Some(name) => login::of_secret(
                self.taker.desk.tools.cluster.clone(),
                name.clone(),
                &self.source.repository,
            ),
            None => self.office.logins(),
        };
        let inquiry = Arc::new(self.office.of_module(&self.source.repository, read)?);
        self.inquiry = Some(Arc::clone(&inquiry));
        Ok(inquiry)
    }

    fn tell_news(&mut self) {
        let module = self.taker.module.as_str();
        for news in self.following.news() {
            match news {
                News::Checked { .. } => {
                    self.rounds += 1;
                    // A person who went away does not wait.
                    for waiting in self.waiting.drain(..) {
                        let _ = waiting.send(true);
                    }
                }
                News::Unreachable(error) => {
                    warn!(module, error, "The registry of a module does not answer, trying again");
                }
                News::Answers => info!(module, "The registry of a module answers again"),
                News::Available(target) => {
                    info!(
                        module,
                        digest = target.digest.as_str(),
                        "Another version of a module is available"
                    );
                }
                News::Waits { target, reasons } => {
                    let reasons: Vec<String> = reasons.iter().map(|reason| reason.told(Subject::Module)).collect();
                    info!(
                        module,
                        digest = target.digest.as_str(),
                        reasons = reasons.join("; "),
                        "A version of a module waits"
                    );
                }
                News::Missing(_) => warn!(
                    module,
                    "The registry no longer has the version of a module that is in use"
                ),
            }
        }
    }

    /// Takes a version: fetches and checks its files, notes it in the cluster, and hands the files over.
    async fn take(&mut self, target: Target) {
        let is_refused = |unfit: &(Target, String, Instant)| unfit.0 == target && Instant::now() < unfit.2;
        if self.unfit.as_ref().is_some_and(is_refused) {
            return;
        }
        match self.try_to_take(&target).await {
            Ok(()) => {
                self.unfit = None;
                info!(
                    module = self.name(),
                    digest = target.digest.as_str(),
                    "A version of a module is taken up"
                );
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                let is_news = self.unfit.as_ref().is_none_or(|unfit| unfit.1 != text);
                if is_news {
                    warn!(
                        module = self.name(),
                        digest = target.digest.as_str(),
                        error = text,
                        "A version of a module cannot be used"
                    );
                }
                let pause = if error.is_of_version() { AGAIN } else { PAUSE };
                self.unfit = Some((target, text, Instant::now() + pause));
            }
        }
    }

    async fn try_to_take(&mut self, target: &Target) -> Result<(), TakeError> {
        let inquiry = self
            .inquiry()
            .map_err(|trouble| TakeError::Cluster(Failure::defect(&trouble.text)))?;
        let place = self.taker.fetch(&inquiry, &target.digest).await?;
        let values = self.taker.values(&self.source).await?;
        self.taker.check(&self.source, &values, place.clone()).await?;
        let before = self.record.clone();
        self.record.repository = Some(self.source.repository.clone());
        self.record.take(target.clone());
        // A life after a kill has to know the version before the module runs with it.
        if !self.write_record().await {
            self.record = before;
            return Err(TakeError::Cluster(Failure::defect(
                "the record of the source was not written",
            )));
        }
        let has_former = self.record.has_former();
        self.edition = Some(self.taker.hand_over(&self.source, &values, place, has_former).await?);
        self.values = values;
        Ok(())
    }

    /// Reads the files of the version in use again if the values of the source have changed.
    async fn look_at_values(&mut self) {
        if self.looked.elapsed() < VALUES || self.edition.is_none() {
            return;
        }
        self.looked = Instant::now();
        let Some(running) = self.record.running.clone() else {
            return;
        };
        let values = match self.taker.values(&self.source).await {
            Ok(values) => values,
            Err(error) => return self.show_trouble(&Chain(&error).to_string()),
        };
        if values == self.values {
            return;
        }
        let Some(place) = self.taker.library.find(&self.taker.module, &running.digest) else {
            return;
        };
        let outcome = match self.taker.check(&self.source, &values, place.clone()).await {
            Ok(_) => self.taker.hand_over(&self.source, &values, place, false).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(edition) => {
                self.edition = Some(edition);
                info!(
                    module = self.name(),
                    "A module is read again with other values of its source"
                );
            }
            Err(error) => {
                warn!(module = self.name(), error = %Chain(&error), "The values of a source cannot be used, those of before stay");
            }
        }
        self.values = values;
    }

    async fn hear(&mut self, word: Word) {
        match word {
            Word::Check(done) => {
                self.waiting.push(done);
                self.unfit = None;
                self.following.hasten();
            }
            Word::Judged(edition, _) if Some(edition) != self.edition => {}
            Word::Judged(_, FilesVerdict::Good) => {
                self.record.did_well();
                self.write_record().await;
                self.keep_copies().await;
            }
            Word::Judged(_, FilesVerdict::Bad(error)) => self.give_back(error).await,
        }
    }

    /// Keeps the files of the good version in Secrets, and drops those of older ones.
    async fn keep_copies(&mut self) {
        let Some(good) = self.record.good.clone() else { return };
        if let Err(failure) = self.taker.keep(&good.digest).await {
            warn!(
                module = self.name(),
                error = failure.report,
                "The files of a module are not kept in the cluster"
            );
        }
        let (record, name) = (self.record.clone(), self.taker.module.clone());
        let is_needed = move |module: &str, digest: Option<&str>| {
            module != name.as_str() || digest.is_none_or(|digest| record.needs(digest))
        };
        let dropped = self.taker.desk.tools.cluster.drop_source_secrets(&is_needed).await;
        if let Err(error) = dropped {
            warn!(module = self.name(), error = %Chain(&error), "Old files of a module cannot be removed from the cluster");
        }
        self.taker
            .library
            .sweep(|module, digest| is_needed(module, Some(digest)));
    }

    /// Gives a bad version up, and returns to the last good one.
    async fn give_back(&mut self, error: String) {
        let bad = self
            .record
            .running
            .as_ref()
            .map(|running| running.digest.as_str().to_owned());
        self.record.did_badly(error.clone(), &self.source.allowed());
        self.write_record().await;
        let good = self.record.running.clone();
        let digest = good.as_ref().map(|good| good.digest.as_str());
        warn!(
            module = self.name(),
            bad,
            good = digest,
            error,
            "A version of a module fails, the last good one returns"
        );
        self.edition = None;
        if let Some(good) = good {
            self.use_kept(&good).await;
        }
    }

    /// Writes the record if it has changed. False if it could not be written.
    async fn write_record(&mut self) -> bool {
        if self.written.as_ref() == Some(&self.record) {
            return true;
        }
        let text = serde_json::to_vec(&self.record).expect("a record is JSON");
        let written = self
            .taker
            .desk
            .tools
            .cluster
            .write_source_record(&self.taker.module, text)
            .await;
        match written {
            Ok(()) => {
                self.written = Some(self.record.clone());
                true
            }
            Err(error) => {
                warn!(module = self.name(), error = %Chain(&error), "The record of a source cannot be written");
                false
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
            self.rounds,
        );
        self.shown.send_if_modified(|told| {
            let differs = *told != shown;
            *told = shown;
            differs
        });
    }
}

/// The platform of this machine.
fn own_platform() -> Platform {
    let own = documents::Platform::own().to_string();
    Platform::parse(&own).expect("the platform of this build has a name")
}

/// Files of a module fit every platform, unless the registry has different ones for several platforms.
fn for_any_platform(answer: Answer) -> Answer {
    match answer {
        Answer::Candidate(Some(mut candidate)) if candidate.manifests.len() <= 1 => {
            candidate.manifests = [(own_platform(), candidate.digest.clone())].into();
            Answer::Candidate(Some(candidate))
        }
        other => other,
    }
}
