//! The requests of commands to the part that follows the sources. Must never wait for that part without a time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::module::Origin;
use futures::future::join_all;
use intake::Prepared;
use names::ModuleName;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// How long a client waits for reports.
const REPORTS: Duration = Duration::from_secs(5);
/// How long a plan of a start waits for the registries.
const ROUNDS: Duration = Duration::from_mins(1);
/// The pause until a follower is there.
const BEAT: Duration = Duration::from_millis(200);
/// How long a plan waits for the files of a version.
const VERSION: Duration = Duration::from_mins(2);

/// The reports about sources: the module's name, the text for people, and the document for programs.
pub type Reports = Vec<(String, String, Value)>;

/// A request to the part that follows the sources.
#[derive(Debug)]
pub enum Wish {
    /// The reports about all sources.
    Report(oneshot::Sender<Reports>),
    /// The modules whose version was not learned, each with the files that a start would use, and the reason.
    Lacks(oneshot::Sender<BTreeMap<ModuleName, String>>),
    /// A round of questions to the registry of this module. The answer is false if the module has no source.
    Check(ModuleName, oneshot::Sender<bool>),
    /// The files of a version of this module, for a plan.
    Read(ModuleName, String, oneshot::Sender<ReadVersion>),
}

/// A version that was read for a plan, with its origin; or the reason why it cannot be used.
pub type ReadVersion = Result<(Prepared, Origin), String>;

/// The way to the part that follows the sources.
#[derive(Debug)]
pub struct Sources(mpsc::UnboundedSender<Wish>);

impl Sources {
    /// A way through this channel.
    pub fn new(wishes: mpsc::UnboundedSender<Wish>) -> Self {
        Self(wishes)
    }

    /// The reports about all sources; none if the part does not answer.
    pub async fn reports(&self) -> Option<Reports> {
        let (reply, reports) = oneshot::channel();
        self.0.send(Wish::Report(reply)).ok()?;
        timeout(REPORTS, reports).await.ok()?.ok()
    }

    /// Waits until the registries of these modules have been asked, and their versions are taken. Returns the modules whose version was not
    /// learned, each with the files that a start would use, and the reason.
    pub async fn settled(&self, modules: &BTreeSet<ModuleName>) -> BTreeMap<ModuleName, String> {
        let rounds = join_all(modules.iter().map(|module| self.round(module)));
        // The reason tells of a registry that does not answer in time.
        drop(timeout(ROUNDS, rounds).await);
        let (reply, lacks) = oneshot::channel();
        // If the part has ended, no answer comes.
        drop(self.0.send(Wish::Lacks(reply)));
        match timeout(REPORTS, lacks).await {
            Ok(Ok(mut lacks)) => {
                lacks.retain(|module, _| modules.contains(module));
                lacks
            }
            _ => unfollowed(modules),
        }
    }

    /// Waits for a round of questions to the registry of a module.
    async fn round(&self, module: &ModuleName) {
        loop {
            let (reply, done) = oneshot::channel();
            if !self.check(module, reply) || matches!(done.await, Ok(true)) {
                return;
            }
            sleep(BEAT).await;
        }
    }

    /// Asks the registry of a module at once. Returns whether the part can be reached.
    pub fn check(&self, module: &ModuleName, reply: oneshot::Sender<bool>) -> bool {
        self.0.send(Wish::Check(module.clone(), reply)).is_ok()
    }

    /// Reads a version of a module, a tag or a digest, without bringing it into use.
    pub async fn read(&self, module: &ModuleName, version: &str) -> ReadVersion {
        let (reply, read) = oneshot::channel();
        let sent = self.0.send(Wish::Read(module.clone(), version.to_owned(), reply));
        let read = match sent {
            Ok(()) => timeout(VERSION, read).await,
            Err(_) => return Err("this replica follows no sources".to_owned()),
        };
        match read {
            Ok(Ok(read)) => read,
            Ok(Err(_)) => Err("its source has changed meanwhile".to_owned()),
            Err(_) => Err(format!(
                "version {version} was not there within {} s",
                VERSION.as_secs()
            )),
        }
    }
}

/// The same if no part follows the sources.
pub fn unfollowed(modules: &BTreeSet<ModuleName>) -> BTreeMap<ModuleName, String> {
    let lack = |module: &ModuleName| {
        let lack = "a start would have no files for it: registries cannot be asked";
        (module.clone(), lack.to_owned())
    };
    modules.iter().map(lack).collect()
}
