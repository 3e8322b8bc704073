//! Lets a held upgrade go on, because a person confirms it. The confirmation is stored on the release, where the
//! operator finds it at the module's next run; nothing else is changed.

use addon_core::failure::Failure;
use addon_core::release::brake::Held;
use addon_core::release::refusal::{NotAllowed, Refused};
use addon_core::release::returned::Returned;
use command::Hinted;
use command::edit::EditError;
use command::reach;
use kube_access::Cluster;
use kube_access::error::RequestError;
use names::replaceable::{NotReplaceable, Replaceable};
use settings::{Environment, StartArgs};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::revisions::upgrades;
use crate::revisions::{self, Revision};

/// An upgrade that waits for a person.
#[derive(Debug)]
pub(crate) struct HeldUpgrade {
    /// The reason for which it is held.
    pub reason: Reason,
    revision: Revision,
    cluster: Cluster,
    runtime: Runtime,
}

/// The reason for which an upgrade is held.
#[derive(Debug)]
pub(crate) enum Reason {
    /// It would delete objects.
    Deletions(Held),
    /// It would change a field that nobody can change.
    Field(Refused),
    /// Its objects did not do their work, so it was taken back.
    Returned(Returned),
}

/// Why a held upgrade cannot go on.
#[derive(Debug, Error)]
pub(super) enum ConfirmError {
    #[error("no object is let go")]
    Name(#[from] NotReplaceable),
    #[error("no object is let go: '{0}' should name one object")]
    Several(Replaceable),
    #[error("no object is let go")]
    NotAllowed(#[from] NotAllowed),
    #[error("the upgrade of module '{module}' {state}, which no confirmation cures")]
    NoDeletions {
        module: String,
        state: &'static str,
        failure: Failure,
    },
    #[error("the upgrade of module '{module}' is held for no field that nobody can change, so no replacement cures it")]
    NoField { module: String },
    #[error("the upgrade of module '{module}' was not taken back")]
    NotTakenBack { module: String },
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("no upgrade of module '{module}' is held")]
    NothingHeld { module: String },
}

impl Hinted for ConfirmError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Name(_) | Self::Several(_) | Self::NotAllowed(_) => Vec::new(),
            Self::NoDeletions { failure, .. } => failure.hints.clone(),
            Self::NoField { module } | Self::NotTakenBack { module } => vec![format!(
                "`addon-operator module upgrade {module}` shows the reason for which it is held, and the way on"
            )],
            Self::Edit(error) => error.hints(),
            Self::NothingHeld { module } => vec![format!(
                "`addon-operator module why {module}` shows the reason of its wait"
            )],
        }
    }
}

impl HeldUpgrade {
    /// Finds the held upgrade of a module, if there is one. Changes nothing.
    pub(crate) fn find(args: &StartArgs, environment: &Environment, module: &str) -> Result<Option<Self>, EditError> {
        let (module, _, runtime, cluster) = reach::with_module(args, environment, module)?;
        let newest = runtime.block_on(revisions::newest_revision(&cluster, module.as_str()));
        let Some(revision) = newest.map_err(|error| EditError::Cluster(Failure::from(error)))? else {
            return Ok(None);
        };
        let deletions = revision.newest.held.clone().map(Reason::Deletions);
        let returned = revision.newest.returned.clone().filter(|note| note.kept.is_none());
        let reason = deletions
            .or_else(|| revision.refused.clone().map(Reason::Field))
            .or_else(|| returned.map(Reason::Returned));
        Ok(reason.map(|reason| Self {
            reason,
            revision,
            cluster,
            runtime,
        }))
    }

    /// The reason, for people.
    pub(crate) fn text(&self) -> String {
        let module = &self.revision.release;
        match &self.reason {
            Reason::Deletions(held) => {
                let mut lines = vec![format!(
                    "The upgrade of module '{module}' deletes {} of {} objects:",
                    held.taken, held.of
                )];
                lines.extend(held.takes.iter().map(|object| format!("  {object}")));
                if held.taken > held.takes.len() {
                    lines.push(format!("  and {} more", held.taken - held.takes.len()));
                }
                lines.join("\n")
            }
            Reason::Field(refused) => whole(&refused.failure(module)),
            Reason::Returned(note) => whole(&note.failure(module)),
        }
    }

    /// Confirms the shown deletions.
    pub(crate) fn confirm(&self) -> Result<(), ConfirmError> {
        match &self.reason {
            Reason::Deletions(held) => self.write(upgrades::allow(&self.cluster, &self.revision, held)),
            Reason::Field(refused) => {
                let failure = refused.failure(&self.revision.release);
                Err(self.no_deletions("is held for a field that nobody can change", failure))
            }
            Reason::Returned(note) => Err(self.no_deletions("was taken back", note.failure(&self.revision.release))),
        }
    }

    /// Lets the next upgrade delete the named objects and make them anew. The object in its way must be among them.
    pub(crate) fn replace(&self, texts: &[String]) -> Result<(), ConfirmError> {
        let named = named(texts)?;
        let Reason::Field(refused) = &self.reason else {
            return Err(ConfirmError::NoField {
                module: self.revision.release.clone(),
            });
        };
        refused.check(&named)?;
        self.write(upgrades::allow_replacement(&self.cluster, &self.revision, &named))
    }

    /// Lets the upgrade be tried again that was taken back.
    pub(crate) fn again(&self) -> Result<(), ConfirmError> {
        let Reason::Returned(note) = &self.reason else {
            return Err(ConfirmError::NotTakenBack {
                module: self.revision.release.clone(),
            });
        };
        let again = true;
        let note = Returned { again, ..note.clone() };
        self.write(upgrades::note_returned(&self.cluster, &self.revision, &note))
    }

    fn no_deletions(&self, state: &'static str, failure: Failure) -> ConfirmError {
        let module = self.revision.release.clone();
        ConfirmError::NoDeletions { module, state, failure }
    }

    fn write(&self, note: impl Future<Output = Result<(), RequestError>>) -> Result<(), ConfirmError> {
        let written = self.runtime.block_on(note);
        Ok(written.map_err(|error| EditError::Cluster(Failure::from(error)))?)
    }
}

fn whole(failure: &Failure) -> String {
    format!("{}\n  {}", failure.report, failure.hints.join("\n  "))
}

/// The objects that a person has named, one by one.
fn named(texts: &[String]) -> Result<Vec<Replaceable>, ConfirmError> {
    let parse = |text: &String| {
        let named = Replaceable::parse(text)?;
        if named.is_single() {
            Ok(named)
        } else {
            Err(ConfirmError::Several(named))
        }
    };
    texts.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_names_objects_one_by_one() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(named(&texts(&["Deployment/web", "Job/a"])).unwrap().len(), 2);
        for (text, expected) in [
            (
                "Deployment/*",
                "no object is let go: 'Deployment/*' should name one object",
            ),
            ("web", "no object is let go"),
            ("Namespace/a", "no object is let go"),
        ] {
            assert_eq!(named(&texts(&["Job/a", text])).unwrap_err().to_string(), expected);
        }
    }
}
