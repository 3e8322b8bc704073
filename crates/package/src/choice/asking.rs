//! The questions to one registry about the versions of packages.
//!
//! Must never ask a registry again shortly after it was out of reach.

use std::collections::BTreeMap;
use std::error::Error;

use addon_core::failure::{Class, Failure};
use channel_core::channel::Channel;
use channel_core::reference::{ImageDigest, Repository, Tag};
use channel_core::selection::{Selection, select};
use channel_core::version::Version;
use registry::Registry;
use registry::error::RegistryError;
use registry::place::{ImagePlace, Reference};
use report::Chain;
use settings::Environment;
use tokio::time::timeout_at;

use super::pace::Pace;
use super::{Again, Found, Manners, NameAndPassword, Wanted, failed};
use crate::transfer::{Reach, client};

/// The packages of one repository that are asked about with one login, each with its place in the batch.
#[derive(Debug, Default)]
pub(super) struct Errand {
    packages: Vec<(usize, Wanted)>,
}

impl Errand {
    pub(super) fn push(&mut self, place: usize, wanted: Wanted) {
        self.packages.push((place, wanted));
    }

    /// The same error for all packages of this errand.
    fn refused(self, error: &dyn Error) -> impl Iterator<Item = (usize, Found)> {
        let text = Chain(error).to_string();
        let packages = self.packages.into_iter();
        packages.map(move |(place, _)| (place, failed(text.clone())))
    }
}

/// A question without an answer.
#[derive(Debug, Clone)]
struct Silence {
    error: String,
    again: Again,
    /// Whether other questions to this registry would end in the same way.
    is_general: bool,
    /// Whether the time for questions is over, so that the remaining questions are not asked.
    is_late: bool,
}

impl Silence {
    /// The answer for another package, about which the registry was not asked after this silence.
    fn of_another(&self) -> Self {
        let mut other = self.clone();
        other.again.unasked = self.is_late;
        other
    }
}

impl From<Silence> for Found {
    fn from(Silence { error, again, .. }: Silence) -> Self {
        Self::Failed { error, again }
    }
}

impl From<RegistryError> for Silence {
    fn from(error: RegistryError) -> Self {
        let pause = error.pause();
        let again = Again {
            pause_seconds: pause.map(|pause| pause.as_secs()),
            unasked: false,
        };
        let is_general = pause.is_some() || matches!(error.class(), Class::Unavailable | Class::TimedOut);
        let Failure { report, .. } = Failure::from(error);
        Self {
            error: report,
            again,
            is_general,
            is_late: false,
        }
    }
}

/// The answers for all packages of one registry.
pub(super) async fn answers(
    errands: BTreeMap<(Repository, Option<NameAndPassword>), Errand>,
    reach: &Reach,
    manners: Manners,
    environment: &Environment,
) -> Vec<(usize, Found)> {
    let pace = Pace::new(manners);
    let mut out_of_reach: Option<Silence> = None;
    let mut clients: BTreeMap<Option<NameAndPassword>, Registry> = BTreeMap::new();
    let mut found = Vec::new();
    for ((repository, login), errand) in errands {
        if !clients.contains_key(&login) {
            match client(&repository, login.as_ref(), reach, environment) {
                Ok(registry) => drop(clients.insert(login.clone(), registry)),
                Err(error) => {
                    found.extend(errand.refused(&error));
                    continue;
                }
            }
        }
        let registry = &clients[&login];
        let mut counter = match inquiry::office::place(&repository) {
            Ok(place) => Counter::new(registry, place, &pace),
            Err(error) => {
                found.extend(errand.refused(&error));
                continue;
            }
        };
        for (place, wanted) in errand.packages {
            let answer = match &out_of_reach {
                Some(silence) => Err(silence.of_another()),
                None => counter.answer(&wanted).await,
            };
            if let Err(silence) = &answer
                && silence.is_general
            {
                out_of_reach = Some(silence.clone());
            }
            found.push((place, answer.unwrap_or_else(Found::from)));
        }
    }
    found
}

/// One repository, with the answers that it gave.
struct Counter<'a> {
    registry: &'a Registry,
    place: ImagePlace,
    pace: &'a Pace,
    tags: Option<Result<Vec<Tag>, Silence>>,
    digests: BTreeMap<String, Result<ImageDigest, Silence>>,
}

impl<'a> Counter<'a> {
    fn new(registry: &'a Registry, place: ImagePlace, pace: &'a Pace) -> Self {
        Self {
            registry,
            place,
            pace,
            tags: None,
            digests: BTreeMap::new(),
        }
    }

    async fn answer(&mut self, wanted: &Wanted) -> Result<Found, Silence> {
        let (tag, version, kept) = match &wanted.channel {
            Channel::Digest(digest) => {
                let digest = self.digest(&Reference::Digest(digest.clone())).await?;
                return Ok(chosen(None, None, digest, None));
            }
            Channel::Tag(tag) => (tag.clone(), Version::parse_full(tag.as_str()), None),
            Channel::Range(range) => {
                let tags = self.tags().await?;
                match select(range, wanted.tag.as_ref(), &tags) {
                    Selection::Tag { tag, version } => (tag, version, None),
                    Selection::Nothing => {
                        let error = format!(
                            "none of the {} tags of {} is a version in '{range}'",
                            tags.len(),
                            self.place
                        );
                        return Err(Silence {
                            error,
                            again: Again::default(),
                            is_general: false,
                            is_late: false,
                        });
                    }
                    Selection::Kept { shown } => {
                        let tag = wanted.tag.clone().expect("a version is kept only if one runs");
                        let shown = shown.map_or_else(|| "no version".to_owned(), |shown| format!("only {shown}"));
                        let text = format!(
                            "{} shows {shown} of '{range}' now, which is lower than {tag}",
                            self.place
                        );
                        if let Some(digest) = wanted.digest.clone() {
                            let version = Version::parse_full(tag.as_str());
                            return Ok(chosen(Some(tag), version, digest, Some(text)));
                        }
                        let version = Version::parse_full(tag.as_str());
                        (tag, version, Some(text))
                    }
                }
            }
        };
        let digest = self.digest(&Reference::Tag(tag.clone())).await?;
        Ok(chosen(Some(tag), version, digest, kept))
    }

    async fn tags(&mut self) -> Result<Vec<Tag>, Silence> {
        if self.tags.is_none() {
            let asked = self.in_turn(self.registry.tags(&self.place)).await;
            self.tags = Some(asked.map(|tags| tags.into_iter().collect()));
        }
        self.tags.clone().expect("the answer was stored a moment ago")
    }

    async fn digest(&mut self, reference: &Reference) -> Result<ImageDigest, Silence> {
        let key = reference.to_string();
        if let Some(known) = self.digests.get(&key) {
            return known.clone();
        }
        let asked = self.in_turn(self.registry.head(&self.place, reference)).await;
        let answer = asked.map(|found| found.digest);
        self.digests.insert(key, answer.clone());
        answer
    }

    /// Asks one question when it is its turn.
    async fn in_turn<T>(&self, question: impl Future<Output = Result<T, RegistryError>>) -> Result<T, Silence> {
        let late = |text: String| Silence {
            error: text,
            again: Again {
                pause_seconds: None,
                unasked: true,
            },
            is_general: true,
            is_late: true,
        };
        if !self.pace.turn().await {
            return Err(late(format!(
                "{} was not asked: the time for questions is over",
                self.place
            )));
        }
        match timeout_at(self.pace.end(), question).await {
            Ok(answer) => answer.map_err(Silence::from),
            Err(_) => Err(Silence {
                again: Again::default(),
                ..late(format!(
                    "{} gave no answer before the time for questions was over",
                    self.place
                ))
            }),
        }
    }
}

fn chosen(tag: Option<Tag>, version: Option<Version>, digest: ImageDigest, kept: Option<String>) -> Found {
    Found::Chosen {
        tag,
        version: version.map(|version| version.to_string()),
        digest,
        kept,
    }
}
