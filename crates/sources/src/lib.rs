//! Modules that come from registries: a follower for each source that the ConfigMap names, on the leader.
//!
//! Must never remove a module or its release: the core does so, once its source is gone.
//!
//! ```text
//!   moduleSources in the ConfigMap --> the core --> a follower for each source
//!                                                     | inquiry    which version is wanted
//!                                                     | install    its files: on disk, kept in Secrets, or pulled
//!                                                     v
//!                                                   intake --> the core
//!   command --> answers --> requests   reports, a check at once        copies   Secrets with files and records
//! ```
//!
//! Begin with `start`, then read `follower.rs`.

pub mod answers;
pub mod command;
mod copies;
mod follower;
mod install;
mod library;
mod login;
mod record;
pub mod requests;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use addon_core::module::Edition;
use addon_core::operator::effect::FilesVerdict;
use addon_core::operator::event::Event;
use addon_core::operator::query::{NamedSource, SourcesQuery};
use channel_core::source::ModuleSource;
use futures::future::ready;
use inquiry::office::{BadFile, Files, Office};
use inquiry::pod_credentials;
use intake::{Desk, Unfit};
use leadership::standing::{ActingRole, Told};
use names::ModuleName;
use parts::Parts;
use registry::credentials::{Credentials, ReadCredentials};
use report::Chain;
use serde_json::Value;
use settings::channel::Follow;
use settings::{Environment, Settings, Work};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

pub use self::copies::Keeping;

use self::copies::Copies;
use self::follower::{Follower, Word};
use self::install::Taker;
use self::library::Library;
use self::requests::{Sources, Wish};
use self::shown::Shown;

/// The interval of looks at the sources.
const BEAT: Duration = Duration::from_secs(1);
/// The timeout for an answer of the main loop.
const PATIENCE: Duration = Duration::from_secs(5);

/// A judgement on files that came from a source.
pub type Judged = (ModuleName, Edition, FilesVerdict);

/// The ways between the sources and the rest of the program.
#[derive(Debug)]
pub struct Ways<'a> {
    /// Judgements of the core on files.
    pub judged: mpsc::UnboundedReceiver<Judged>,
    /// Gets the handle by which commands reach this part.
    pub requests: &'a OnceLock<Sources>,
    /// The role of this replica.
    pub standing: Told,
    /// Whether this replica keeps what it takes.
    pub keeping: Keeping,
    /// Gives another number at each call. The numbers spread the questions to registries over time.
    pub seed: fn() -> u64,
}

/// Starts this part, if the operator has modules.
pub fn start(
    settings: &Settings,
    environment: &Environment,
    desk: Option<Arc<Desk>>,
    ways: Ways<'_>,
    parts: &mut Parts,
) -> Result<(), BadFile> {
    let (Work::Modules(modules), Some(desk)) = (&settings.work, desk) else {
        return Ok(());
    };
    let channel = &modules.channel;
    let files = Files::read(channel)?;
    let read: Box<dyn Fn() -> ReadCredentials + Send + Sync> = match &channel.follow {
        Follow::As(pod) => {
            let (cluster, pod) = (desk.ground.cluster.clone(), pod.clone());
            Box::new(move || pod_credentials::of_pod(cluster.clone(), pod.clone()))
        }
        Follow::Refused | Follow::NoPod => Box::new(|| Box::new(|| Box::pin(ready(Ok(Credentials::default()))))),
    };
    let office = match Office::new(channel, files, environment, read) {
        Ok(office) => office,
        Err(error) => {
            warn!(error = %Chain(&error), "Modules cannot come from registries");
            return Ok(());
        }
    };
    let (wishes, wished) = mpsc::unbounded_channel();
    ways.requests.get_or_init(|| Sources::new(wishes));
    let copies = Copies {
        cluster: desk.ground.cluster.clone(),
        keeping: ways.keeping,
    };
    let office = Offices {
        library: Library::below(&settings.tmp_dir),
        copies,
        office: Arc::new(office),
        desk,
        standing: ways.standing,
        seed: ways.seed,
        judged: ways.judged,
        wished,
        followed: BTreeMap::new(),
        tasks: JoinSet::new(),
        has_read_copies: false,
    };
    parts.spawn("modules from registries", office.run());
    Ok(())
}

/// All sources, and their followers.
struct Offices {
    seed: fn() -> u64,
    library: Library,
    copies: Copies,
    office: Arc<Office>,
    desk: Arc<Desk>,
    standing: Told,
    judged: mpsc::UnboundedReceiver<Judged>,
    wished: mpsc::UnboundedReceiver<Wish>,
    followed: BTreeMap<ModuleName, Followed>,
    /// The tasks of the followers. A follower that panics is started again.
    tasks: JoinSet<()>,
    has_read_copies: bool,
}

/// A source with its follower.
struct Followed {
    source: watch::Sender<ModuleSource>,
    /// The number of the source's naming: it changes when the source is removed and named again.
    naming: u64,
    words: mpsc::UnboundedSender<Word>,
    shown: watch::Receiver<Shown>,
    /// Answers once the kept copy was handed over, or found missing.
    loaded: Option<oneshot::Receiver<()>>,
    task: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Offices {
    async fn run(mut self) {
        while !matches!(&*self.standing.borrow_and_update(), ActingRole::Leads) {
            if self.standing.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
        loop {
            if let Ok(Ok(Some(sources))) = timeout(PATIENCE, self.desk.doors.ask(SourcesQuery)).await {
                self.take(sources).await;
            }
            tokio::select! {
                biased;
                Some((module, edition, verdict)) = self.judged.recv() => {
                    if let Some(followed) = self.followed.get(&module) {
                        // A follower ends only with its source.
                        let _ = followed.words.send(Word::Judged(edition, verdict));
                    }
                }
                Some(wish) = self.wished.recv() => self.answer(wish),
                Some(ended) = self.tasks.join_next() => self.note_end(&ended),
                () = sleep(BEAT) => {}
            }
        }
    }

    /// Takes over the present sources: starts followers for new sources, and ends the followers of sources that are
    /// gone.
    async fn take(&mut self, sources: BTreeMap<ModuleName, NamedSource>) {
        let gone: BTreeSet<ModuleName> = self
            .followed
            .keys()
            .filter(|name| !sources.contains_key(*name))
            .cloned()
            .collect();
        for name in &gone {
            self.followed.remove(name);
            info!(module = name.as_str(), "The source of a module is gone");
        }
        let has_changed = !gone.is_empty();
        // If a source was removed and named again between two looks, its files are needed again.
        let naming = |name: &ModuleName| sources.get(name).map(|named| named.naming);
        self.followed
            .retain(|name, followed| Some(followed.naming) == naming(name));
        for (name, NamedSource { source, naming }) in &sources {
            match self.followed.get(name) {
                Some(followed) => {
                    followed.source.send_if_modified(|known| {
                        let differs = known != source;
                        known.clone_from(source);
                        differs
                    });
                }
                None => self.begin(name.clone(), source.clone(), *naming),
            }
        }
        let is_first = !self.has_read_copies;
        self.announce_copies();
        let is_first = is_first && self.has_read_copies;
        if has_changed || is_first {
            self.clean(&sources, is_first).await;
        }
        for name in gone {
            // From now on a directory with a module of this name counts again.
            if let Ok(Err(unfit @ (Unfit::Mistakes(_) | Unfit::Section { .. } | Unfit::Unchecked(_)))) =
                self.desk.reload(&name).await
            {
                warn!(module = name.as_str(), error = %unfit, "The directory of a module cannot take the place of its source");
            }
        }
    }

    fn begin(&mut self, name: ModuleName, source: ModuleSource, naming: u64) {
        let (sender, receiver) = watch::channel(source);
        let (words, heard) = mpsc::unbounded_channel();
        let (shows, shown) = watch::channel(Shown::default());
        let (loads, loaded) = oneshot::channel();
        let taker = Taker {
            module: name.clone(),
            library: self.library.clone(),
            copies: self.copies.clone(),
            desk: Arc::clone(&self.desk),
        };
        let follower = Follower::new(taker, Arc::clone(&self.office), receiver, heard, shows, (self.seed)());
        let task = self.tasks.spawn(async move {
            follower.run(loads).await;
        });
        let followed = Followed {
            source: sender,
            naming,
            words,
            shown,
            loaded: Some(loaded),
            task,
        };
        self.followed.insert(name, followed);
    }

    /// Forgets the followers that have ended, so that they are started again.
    fn note_end(&mut self, ended: &Result<(), JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            error!(%error, "The follower of a source panicked, please report it");
        }
        self.followed.retain(|_, followed| !followed.task.is_finished());
    }

    /// Tells the core once that all kept copies were read. The first converge waits for that.
    fn announce_copies(&mut self) {
        if self.has_read_copies {
            return;
        }
        for followed in self.followed.values_mut() {
            if let Some(loaded) = &mut followed.loaded {
                match loaded.try_recv() {
                    Err(oneshot::error::TryRecvError::Empty) => return,
                    // A follower that ended has nothing more to tell.
                    Ok(()) | Err(oneshot::error::TryRecvError::Closed) => followed.loaded = None,
                }
            }
        }
        self.has_read_copies = self.desk.doors.post(Event::CopiesRead).is_ok();
    }

    /// Removes the records and copies of sources that are gone. The directories of these sources stay, because hooks
    /// may still run at the removal of a module. The directories are removed, too, only once in a process: after all
    /// kept copies were read.
    async fn clean(&self, sources: &BTreeMap<ModuleName, NamedSource>, is_first: bool) {
        let names: BTreeSet<String> = sources.keys().map(ToString::to_string).collect();
        let is_named = |module: &str, _: Option<&str>| names.contains(module);
        if let Err(error) = self.copies.sweep(is_named).await {
            warn!(error = %Chain(&error), "Cannot delete the records of modules that have no source any more");
        }
        if is_first {
            let library = self.library.clone();
            blocking::run(move || library.sweep(|module, _| names.contains(module))).await;
        }
    }

    fn answer(&self, wish: Wish) {
        match wish {
            Wish::Report(reply) => {
                let reports = self.followed.iter().map(|(name, followed)| {
                    let shown = followed.shown.borrow();
                    let document = serde_json::to_value(&*shown).unwrap_or(Value::Null);
                    (name.to_string(), shown.text(name.as_str()), document)
                });
                // The client may have gone away.
                let _ = reply.send(reports.collect());
            }
            Wish::Lacks(reply) => {
                let lacks = self.followed.iter().filter_map(|(name, followed)| {
                    let lack = followed.shown.borrow().lack()?;
                    Some((name.clone(), lack))
                });
                // The client may have gone away.
                let _ = reply.send(lacks.collect());
            }
            Wish::Check(module, reply) => {
                let Some(followed) = self.followed.get(&module) else {
                    let _ = reply.send(false);
                    return;
                };
                // A follower ends only with its source.
                let _ = followed.words.send(Word::Check(reply));
            }
            Wish::Read(module, version, reply) => {
                let Some(followed) = self.followed.get(&module) else {
                    let _ = reply.send(Err("it has no source".to_owned()));
                    return;
                };
                // If its follower has ended, the reply is dropped, which tells the asker so.
                let _ = followed.words.send(Word::Read(version, reply));
            }
        }
    }
}
