//! The notices that become Kubernetes Events: changes of a module's state, and reasons that prevent one.
//!
//! Never waits and never fails: an announcement that cannot be sent is counted and dropped, because the log has it
//! anyway. An unchanged state of a module is no news, not even after a restart. Must never contain a value.

pub mod channel;
mod groups;
mod hooks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::{HealthNews, HeldFor, Notice, RecordCause};
use addon_core::operator::event::SyncAction;
use names::ModuleName;
use tokio::sync::mpsc;

use crate::meters::Meters;
use crate::meters::table::cluster::EVENTS_DROPPED;

/// The number of waiting announcements: enough for the first start of a large cluster.
const WAITING: usize = 256;
/// The API server accepts notes of at most this many bytes.
const NOTE_LIMIT: usize = 1024;

/// A piece of news in the form of an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    pub about: About,
    /// The module, key of the `ConfigMap`, or release that it is about.
    pub subject: String,
    /// The reason in one word, for people and alerts.
    pub reason: &'static str,
    /// The action in one word.
    pub action: &'static str,
    pub weight: Weight,
    /// The text, at most 1 KiB.
    pub note: String,
}

/// The object that the Event is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// The `ConfigMap`, which outlives every pod.
    ConfigMap,
    /// The operator's own Deployment.
    Deployment,
}

/// Whether a person should act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Normal,
    Warning,
}

/// Selects the notices that are news, and sends them on.
#[derive(Debug)]
pub struct Announcer {
    door: mpsc::Sender<Announcement>,
    meters: Arc<Meters>,
    modules: BTreeMap<ModuleName, Announced>,
    /// Whether the first converge is over: later switches of modules are news.
    converged: bool,
    /// The modules whose releases the first converge has installed or upgraded so far. They are announced together.
    upgraded: BTreeSet<ModuleName>,
}

/// The last announced state of a module; none if nothing was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announced {
    Ready,
    NotReady,
}

impl Announcer {
    /// An announcer, and the receiver of its announcements.
    pub fn new(meters: Arc<Meters>) -> (Self, mpsc::Receiver<Announcement>) {
        let (door, announcements) = mpsc::channel(WAITING);
        let announcer = Self {
            door,
            meters,
            modules: BTreeMap::new(),
            converged: false,
            upgraded: BTreeSet::new(),
        };
        (announcer, announcements)
    }

    pub(super) fn hear(&mut self, notice: &Notice) {
        let mut news = Vec::from_iter(self.news(notice));
        if let Notice::ConvergeFinished { first: true, .. } = notice {
            self.converged = true;
            news.extend(groups::ready(&std::mem::take(&mut self.upgraded)));
        }
        for announcement in news {
            if self.door.try_send(announcement).is_err() {
                self.meters.add(&EVENTS_DROPPED, [], 1.0);
            }
        }
    }

    fn news(&mut self, notice: &Notice) -> Option<Announcement> {
        match notice {
            Notice::ModuleSwitched {
                module,
                enabled,
                reason,
            } => self.switched(module, *enabled, reason),
            Notice::ModuleReady { module, action, .. } => self.ready(module, *action),
            Notice::ModuleFailed {
                module, step, failure, ..
            } => self.failed(module, step, failure),
            Notice::ModuleBlocked { module, failure } => Some(self.blocked(module, failure)),
            Notice::ScriptFailed { module, failure, .. } => {
                let note = format!("enabled script of module '{module}' failed: {}", failure.report);
                let news = || of_module(module, "EnabledScriptFailed", "Enable", Weight::Warning, note);
                is_news(failure).then(news)
            }
            Notice::HealthTurned(news) => Some(health_turned(news)),
            Notice::ObjectsAdopted { module, objects } => Some(adopted(module, objects)),
            Notice::ObjectsReplaced { module, objects } => Some(replaced(module, objects)),
            Notice::RecordRewritten {
                release,
                cause,
                subjects,
            } => Some(rewritten(release, *cause, subjects)),
            Notice::ModuleDeleted { module } => {
                self.modules.remove(module);
                self.upgraded.remove(module);
                let note = format!("module '{module}' is removed");
                Some(of_module(module, "ModuleDeleted", "Delete", Weight::Normal, note))
            }
            Notice::ModuleDeleteFailed { module, failure, .. } => {
                let note = format!("module '{module}' cannot be removed: {}", failure.report);
                let news = || of_module(module, "ModuleDeleteFailed", "Delete", Weight::Warning, note);
                is_news(failure).then(news)
            }
            Notice::ModuleRenewed { module } => {
                let note = format!("module '{module}' begins a new life with the files that were read again");
                Some(of_module(module, "ModuleRenewed", "Renew", Weight::Normal, note))
            }
            Notice::FilesRefused { module, failure } => {
                let note = format!("module '{module}' goes on with the files of before: {}", failure.report);
                Some(of_module(module, "FilesRefused", "Renew", Weight::Warning, note))
            }
            Notice::ConfigRejected { key, message } => {
                let note = format!("key '{key}' of the ConfigMap cannot be used, its last good value stays: {message}");
                Some(about(key, "ConfigInvalid", "Configure", Weight::Warning, note))
            }
            Notice::ConfigLost { releases } => Some(lost(releases)),
            Notice::ReleasePurged { release } => {
                let note = format!("release '{release}', whose module is gone, is removed");
                Some(about(release, "ReleasePurged", "Purge", Weight::Normal, note))
            }
            Notice::PurgeFailed { release, failure, .. } => purge_failed(release, failure),
            Notice::PurgeHeld { releases, reason } => Some(purge_held(releases, *reason)),
            Notice::PurgeConfirmed { releases } => Some(purge_confirmed(releases)),
            _ => self.passed_over(notice),
        }
    }

    /// Announces a part that does not work as wanted, while other modules go on: a late module, configuration that
    /// cannot be kept or read, a slowed hook, or old values that serve for a hook.
    fn passed_over(&mut self, notice: &Notice) -> Option<Announcement> {
        match notice {
            Notice::ModuleLate { module, waits_for } => {
                self.modules.insert(module.clone(), Announced::NotReady);
                let note = format!(
                    "the run of module '{module}' does not progress, other modules continue without it: {waits_for}"
                );
                Some(of_module(module, "ModuleLate", "Run", Weight::Warning, note))
            }
            Notice::SectionsNotKept { keys } => {
                let keys = keys.join(", ");
                let note = format!("keys of the ConfigMap are too large to be kept for a restart: {keys}");
                Some(about("", "SectionsNotKept", "Configure", Weight::Warning, note))
            }
            Notice::ValuesFileLost { file, modules } => {
                let modules: Vec<_> = modules.iter().map(ModuleName::as_str).collect();
                let note = format!(
                    "{file} is missing or empty, its values for these modules stay applied: {}",
                    modules.join(", ")
                );
                Some(about("", "ValuesFileLost", "Read", Weight::Warning, note))
            }
            Notice::Slowed(slowed) => Some(hooks::slowed(slowed)),
            Notice::StandIn(stand_in) => hooks::stand_in(stand_in),
            // The other notices are details, which the log has.
            _ => None,
        }
    }

    /// Announces a switch of a module. Flags that hooks set are lost in a restart, so the switches of the first
    /// converge are no news.
    fn switched(&mut self, module: &ModuleName, enabled: bool, reason: &str) -> Option<Announcement> {
        if !self.converged {
            return None;
        }
        let (word, state) = if enabled {
            self.modules.insert(module.clone(), Announced::NotReady);
            ("ModuleEnabled", "enabled")
        } else {
            self.modules.remove(module);
            ("ModuleDisabled", "disabled")
        };
        let note = format!("module '{module}' is {state} by {reason}");
        Some(of_module(module, word, "Enable", Weight::Normal, note))
    }

    /// Announces an upgraded release. A run without a change is only news after a failure.
    fn ready(&mut self, module: &ModuleName, action: Option<SyncAction>) -> Option<Announcement> {
        let before = self.modules.insert(module.clone(), Announced::Ready);
        let upgraded = action == Some(SyncAction::Upgraded);
        if upgraded && before != Some(Announced::NotReady) && !self.converged {
            self.upgraded.insert(module.clone());
            return None;
        }
        if !upgraded && before != Some(Announced::NotReady) {
            return None;
        }
        let how = if upgraded {
            ", its release is installed or upgraded"
        } else {
            ""
        };
        let note = format!("module '{module}' is ready{how}");
        Some(of_module(module, "ModuleReady", "Run", Weight::Normal, note))
    }

    fn blocked(&mut self, module: &ModuleName, failure: &Failure) -> Announcement {
        self.modules.insert(module.clone(), Announced::NotReady);
        let note = if failure.class == Class::Unavailable {
            failure.report.clone()
        } else {
            format!("module '{module}' cannot be run as it is declared: {}", failure.report)
        };
        of_module(module, "ModuleHeld", "Run", Weight::Warning, note)
    }

    fn failed(&mut self, module: &ModuleName, step: &str, failure: &Failure) -> Option<Announcement> {
        if !is_news(failure) {
            return None;
        }
        self.modules.insert(module.clone(), Announced::NotReady);
        self.upgraded.remove(module);
        if matches!(failure.class, Class::Held | Class::Blocked) {
            let note = format!("module '{module}': {}", failure.report);
            return Some(of_module(module, "UpgradeHeld", "Upgrade", Weight::Warning, note));
        }
        let note = format!("module '{module}' failed, step {step}: {}", failure.report);
        Some(of_module(module, "ModuleFailed", "Run", Weight::Warning, note))
    }
}

fn purge_failed(release: &str, failure: &Failure) -> Option<Announcement> {
    let note = format!(
        "release '{release}', whose module is gone, cannot be removed: {}",
        failure.report
    );
    let news = || about(release, "ReleasePurgeFailed", "Purge", Weight::Warning, note);
    is_news(failure).then(news)
}

fn purge_held(releases: &[String], reason: HeldFor) -> Announcement {
    let whose = match reason {
        HeldFor::Directories | HeldFor::Changed => "without a module",
        HeldFor::Confirmation { .. } => "whose modules are no longer named",
    };
    let note = format!("releases {whose} are kept, {reason}: {}", releases.join(", "));
    about("", "PurgeHeld", "Purge", Weight::Warning, note)
}

fn purge_confirmed(releases: &[String]) -> Announcement {
    let names = releases.join(", ");
    let note = format!("a person confirmed the removal of releases: {names}");
    about("", "PurgeConfirmed", "Purge", Weight::Normal, note)
}

fn health_turned(HealthNews { module, unhealthy }: &HealthNews) -> Announcement {
    if let Some(sentence) = unhealthy {
        let note = format!("module '{module}' is not healthy: {sentence}");
        of_module(module, "ModuleUnhealthy", "Watch", Weight::Warning, note)
    } else {
        let note = format!("module '{module}' is healthy again");
        of_module(module, "ModuleHealthy", "Watch", Weight::Normal, note)
    }
}

fn adopted(module: &ModuleName, objects: &[String]) -> Announcement {
    let note = format!(
        "module '{module}' takes over objects that it did not create, they stay when the module is removed: {}",
        objects.join(", ")
    );
    of_module(module, "ObjectsAdopted", "Upgrade", Weight::Normal, note)
}

fn replaced(module: &ModuleName, objects: &[String]) -> Announcement {
    let note = format!(
        "objects of module '{module}' are made anew, because nobody can change a field of theirs: {}",
        objects.join(", ")
    );
    of_module(module, "ObjectsReplaced", "Upgrade", Weight::Normal, note)
}

fn rewritten(release: &str, cause: RecordCause, subjects: &[String]) -> Announcement {
    let subjects = subjects.join(", ");
    match cause {
        RecordCause::Unserved => {
            let note = format!(
                "helm's record of release '{release}' named kinds that the API server does not serve, and is rewritten: {subjects}"
            );
            about(release, "RecordAmended", "Upgrade", Weight::Warning, note)
        }
        RecordCause::Damaged => {
            let note = format!("helm's records of release '{release}' were damaged, and are repaired: {subjects}");
            about(release, "RecordRepaired", "Repair", Weight::Warning, note)
        }
    }
}

/// Whether a failure is news. A run that the operator itself ended is none.
fn is_news(failure: &Failure) -> bool {
    failure.class != Class::Cancelled
}

fn of_module(
    module: &ModuleName,
    reason: &'static str,
    action: &'static str,
    weight: Weight,
    note: String,
) -> Announcement {
    about(module.as_str(), reason, action, weight, note)
}

fn lost(releases: &[String]) -> Announcement {
    let note = format!(
        "these releases were made with a configuration, and there is neither a ConfigMap nor a last good section: they are \
         neither upgraded nor removed until a person creates the ConfigMap or confirms that it is gone: {}",
        releases.join(", ")
    );
    about("", "ConfigurationLost", "Configure", Weight::Warning, note)
}

fn about(subject: &str, reason: &'static str, action: &'static str, weight: Weight, note: String) -> Announcement {
    Announcement {
        about: About::ConfigMap,
        subject: subject.to_owned(),
        reason,
        action,
        weight,
        note: on_one_line(note),
    }
}

/// The note without line breaks, cut to the API server's limit.
fn on_one_line(note: String) -> String {
    const CUT: &str = " …";
    let mut note = note;
    if note.contains(char::is_control) {
        note = note
            .split(char::is_control)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
    }
    if note.len() > NOTE_LIMIT {
        note.truncate(note.floor_char_boundary(NOTE_LIMIT - CUT.len()));
        note.push_str(CUT);
    }
    note
}

#[cfg(test)]
mod tests;
