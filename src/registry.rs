//! Asks OCI registries: the digest of a tag, manifests, blobs, tags, and referrers of an image.
//!
//! Every answer is bounded in bytes and in time, and only registries are asked that a person named, by their mirrors first.
//! It must never decide which version is wanted, nor try again later by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use addon_core::artifact::reference::{ImageDigest, Tag};
use futures::future::BoxFuture;
use hyper::Method;
use hyper::body::Bytes;
use serde::Deserialize;
use tokio::time::timeout;
use tracing::debug;

use crate::certificates::material::Pem;
use crate::report::Chain;

mod admission;
mod challenge;
pub mod credentials;
pub mod documents;
pub mod error;
mod paging;
pub mod place;
pub mod proxies;
mod said;
mod url;
pub mod way;
pub mod wire;

use admission::{Admission, Server};
use credentials::ReadCredentials;
use documents::{Descriptor, Document, Index, KINDS, Kind};
use error::{Asked, Problem, RegistryError, What};
use place::{Host, ImagePlace, Reference, Repository, digest_of, tag_of};
use proxies::Proxies;
use url::Url;
use way::{SetupError, Ways};
use wire::{Answer, Limits, Question, Wire};

/// The specification bids registries to take manifests of this size at least.
const MANIFEST: usize = 4 << 20;
/// More tags than any channel needs to choose from.
const TAGS: usize = 10_000;
/// Signatures and papers of one image are a handful, each time it is built.
const REFERRERS: usize = 1_000;
/// As many as it takes for all tags by fifty each, which is less than any registry gives.
const PAGES: usize = 200;
/// How many tags are asked for at once.
const PAGE: &str = "1000";

/// The registries to ask, and the ways to them.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The registries that may be asked.
    pub allowed: BTreeSet<Host>,
    /// Those registries, mirrors and issuers of tokens that are asked without TLS.
    pub plain: BTreeSet<Host>,
    /// Mirrors are asked before their registry, in this order.
    pub mirrors: BTreeMap<Host, Vec<Mirror>>,
    /// Authorities to trust besides those that the machine trusts.
    pub authorities: Option<Pem>,
    pub proxies: Proxies,
    pub limits: Limits,
}

/// Another registry that has the same images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub host: Host,
    /// The repository below which it has them, if not at its root.
    pub below: Option<Repository>,
}

/// The version to which a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub digest: ImageDigest,
    /// The kind of document that describes it, if the registry names it.
    pub kind: Option<Kind>,
}

/// Registries, with their known ways to authenticate.
pub struct Registry {
    admission: Admission,
    allowed: BTreeSet<Host>,
    mirrors: BTreeMap<Host, Vec<Mirror>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("allowed", &self.allowed)
            .field("mirrors", &self.mirrors)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct TagPage {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl Registry {
    /// Asks nothing yet.
    pub fn new(access: Access, read: ReadCredentials) -> Result<Self, SetupError> {
        let Access {
            allowed,
            plain,
            mirrors,
            authorities,
            proxies,
            limits,
        } = access;
        let ways = Ways::new(authorities.as_ref(), proxies, limits.connect)?;
        let wire = Wire { ways, plain, limits };
        Ok(Self {
            admission: Admission::new(wire, read),
            allowed,
            mirrors,
        })
    }

    /// Where a reference leads now, for the price of one small question where the registry knows how to answer it.
    pub async fn head(&self, place: &ImagePlace, reference: &Reference) -> Result<Found, RegistryError> {
        let what = What::Version(reference.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.head_at(server, reference)) };
        self.first(place, what, ask).await
    }

    /// A manifest or an index. One that was asked for by its digest has that digest.
    pub async fn manifest(&self, place: &ImagePlace, reference: &Reference) -> Result<Document, RegistryError> {
        let what = What::Version(reference.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.manifest_at(server, reference)) };
        self.first(place, what, ask).await
    }

    /// A blob of at most this size in bytes. It has the requested digest.
    pub async fn blob(&self, place: &ImagePlace, digest: &ImageDigest, limit: usize) -> Result<Bytes, RegistryError> {
        let what = What::Blob(digest.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.blob_at(server, digest, limit)) };
        self.first(place, what, ask).await
    }

    /// All tags, or an error if they are too many: the best cannot be chosen from a part of them.
    pub async fn tags(&self, place: &ImagePlace) -> Result<BTreeSet<Tag>, RegistryError> {
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.tags_at(server)) };
        self.first(place, What::Tags, ask).await
    }

    /// All referrers of a version: signatures and other documents, found by the registry or by a tag.
    pub async fn referrers(&self, place: &ImagePlace, digest: &ImageDigest) -> Result<Vec<Descriptor>, RegistryError> {
        let what = What::Referrers(digest.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.referrers_at(server, digest)) };
        match self.first(place, what, ask).await {
            Err(error) if error.is_absent() => Ok(Vec::new()),
            told => told,
        }
    }

    /// Asks the mirrors of a registry and then itself, until one gives an answer that counts.
    async fn first<'a, T>(
        &'a self,
        place: &ImagePlace,
        what: What,
        ask: impl Fn(Arc<Server>) -> BoxFuture<'a, Result<T, Problem>>,
    ) -> Result<T, RegistryError> {
        let asked = Asked {
            place: place.clone(),
            what,
        };
        let failed = |server: &Host, problem| RegistryError {
            asked: asked.clone(),
            server: server.clone(),
            problem,
        };
        if !self.allowed.contains(&place.host) {
            return Err(failed(&place.host, Problem::Foreign));
        }
        let waited = self.admission.patience();
        let all = async {
            for mirror in self.mirrors.get(&place.host).into_iter().flatten() {
                let server = Arc::new(self.mirror(mirror, place));
                match ask(server).await {
                    Ok(found) => return Ok(found),
                    Err(problem) => {
                        let error = failed(&mirror.host, problem);
                        debug!(error = %Chain(&error), "A mirror of a registry does not give the answer");
                    }
                }
            }
            let server = Arc::new(self.server(place.host.clone(), place.repository.clone()));
            ask(server).await.map_err(|problem| failed(&place.host, problem))
        };
        let late = |_| {
            let step = "all of it";
            failed(&place.host, Problem::Late { step, waited })
        };
        timeout(waited, Box::pin(all)).await.map_err(late)?
    }

    fn server(&self, host: Host, repository: Repository) -> Server {
        Server {
            origin: self.admission.origin(&host),
            host,
            repository,
            of: None,
        }
    }

    fn mirror(&self, mirror: &Mirror, place: &ImagePlace) -> Server {
        let below = mirror.below.as_ref();
        let repository = below.map_or_else(|| place.repository.clone(), |outer| place.repository.within(outer));
        Server {
            of: Some(place.host.clone()),
            ..self.server(mirror.host.clone(), repository)
        }
    }

    async fn head_at(&self, server: Arc<Server>, reference: &Reference) -> Result<Found, Problem> {
        let mut question = question(&server, "manifests", reference.as_str(), MANIFEST);
        question.method = Method::HEAD;
        let told = match self.admission.ask(&server, question).await {
            Ok(answer) => found(&answer),
            // Not every registry supports this request.
            Err(Problem::Status { status: 405 | 501, .. }) => None,
            Err(problem) => return Err(problem),
        };
        if let Some(told) = told {
            expect(reference, &told.digest)?;
            return Ok(told);
        }
        let document = self.manifest_at(server, reference).await?;
        Ok(Found {
            digest: document.digest,
            kind: Some(document.kind),
        })
    }

    async fn manifest_at(&self, server: Arc<Server>, reference: &Reference) -> Result<Document, Problem> {
        let question = question(&server, "manifests", reference.as_str(), MANIFEST);
        let answer = self.admission.ask(&server, question).await?;
        let digest = digest_of(&answer.body);
        expect(reference, &digest)?;
        let (kind, media_type) = kind(&answer)?;
        Ok(Document {
            digest,
            kind,
            media_type,
            bytes: answer.body,
        })
    }

    async fn blob_at(&self, server: Arc<Server>, digest: &ImageDigest, limit: usize) -> Result<Bytes, Problem> {
        let mut question = question(&server, "blobs", digest.as_str(), limit);
        question.accept = "*/*";
        let answer = self.admission.ask(&server, question).await?;
        expect(&Reference::Digest(digest.clone()), &digest_of(&answer.body))?;
        Ok(answer.body)
    }

    async fn tags_at(&self, server: Arc<Server>) -> Result<BTreeSet<Tag>, Problem> {
        let mut question = question(&server, "tags", "list", MANIFEST);
        question.accept = "application/json";
        question.url = question.url.with("n", PAGE);
        let mut tags = BTreeSet::new();
        for _ in 0..PAGES {
            let answer = self.admission.ask(&server, question.clone()).await?;
            let page: TagPage = serde_json::from_slice(&answer.body).map_err(Problem::Syntax)?;
            // An invalid tag could not be requested.
            tags.extend(
                page.tags
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|tag| Tag::parse(tag).ok()),
            );
            if tags.len() > TAGS {
                return Err(Problem::too_many("tags", TAGS));
            }
            match paging::next(&answer.headers, &question.url)? {
                Some(next) => question.url = next,
                None => return Ok(tags),
            }
        }
        Err(Problem::too_many("pages of tags", PAGES))
    }

    /// None is as good as an answer that it is absent, so that after a mirror its registry is asked, too.
    async fn referrers_at(&self, server: Arc<Server>, digest: &ImageDigest) -> Result<Vec<Descriptor>, Problem> {
        let listed = if let Some(listed) = self.listed_referrers(&server, digest).await? {
            listed
        } else {
            let tag = Reference::Tag(tag_of(digest));
            let document = self.manifest_at(server, &tag).await?;
            let index: Index = serde_json::from_slice(&document.bytes).map_err(Problem::Syntax)?;
            index.manifests
        };
        match listed.len() {
            0 => Err(Problem::Absent),
            1..=REFERRERS => Ok(listed),
            _ => Err(Problem::too_many("things that refer to it", REFERRERS)),
        }
    }

    /// As the registry itself finds them; `None` where it does not.
    async fn listed_referrers(
        &self,
        server: &Server,
        digest: &ImageDigest,
    ) -> Result<Option<Vec<Descriptor>>, Problem> {
        let mut question = question(server, "referrers", digest.as_str(), MANIFEST);
        let mut listed = Vec::new();
        for _ in 0..PAGES {
            let answer = match self.admission.ask(server, question.clone()).await {
                Ok(answer) => answer,
                Err(
                    Problem::Absent
                    | Problem::Status {
                        status: 400..=499 | 501,
                        ..
                    },
                ) => return Ok(None),
                Err(problem) => return Err(problem),
            };
            if answer.header("content-type").and_then(Kind::of) != Some(Kind::Index) {
                return Ok(None);
            }
            let page: Index = serde_json::from_slice(&answer.body).map_err(Problem::Syntax)?;
            listed.extend(page.manifests);
            match paging::next(&answer.headers, &question.url)? {
                Some(next) if listed.len() <= REFERRERS => question.url = next,
                _ => break,
            }
        }
        Ok(Some(listed))
    }
}

fn question(server: &Server, kind: &str, name: &str, limit: usize) -> Question {
    let url = Url {
        origin: server.origin.clone(),
        path: format!("/v2/{}/{kind}/{name}", server.repository),
    };
    // Some mirrors have several registries at one address, and distinguish them by this.
    let url = match &server.of {
        Some(of) => url.with("ns", &of.to_string()),
        None => url,
    };
    Question {
        method: Method::GET,
        url,
        accept: KINDS,
        authorization: None,
        form: None,
        limit,
    }
}

/// The version in the headers of an answer, if there is one.
fn found(answer: &Answer) -> Option<Found> {
    let digest = ImageDigest::parse(answer.header("docker-content-digest")?.trim()).ok()?;
    let kind = answer.header("content-type").and_then(Kind::of);
    Some(Found { digest, kind })
}

fn expect(reference: &Reference, found: &ImageDigest) -> Result<(), Problem> {
    match reference {
        Reference::Digest(wanted) if wanted != found => Err(Problem::Content {
            wanted: wanted.clone(),
            found: found.clone(),
        }),
        _ => Ok(()),
    }
}

/// The kind of a document: from its registry, or else from the document itself.
fn kind(answer: &Answer) -> Result<(Kind, String), Problem> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Own {
        media_type: Option<String>,
    }
    let told = answer.header("content-type").unwrap_or_default();
    if let Some(kind) = Kind::of(told) {
        return Ok((kind, told.to_owned()));
    }
    let own: Option<Own> = serde_json::from_slice(&answer.body).ok();
    let own = own.and_then(|own| own.media_type);
    match own.as_deref().and_then(Kind::of) {
        Some(kind) => Ok((kind, own.unwrap_or_default())),
        None => Err(Problem::Kind(said::line(told))),
    }
}
