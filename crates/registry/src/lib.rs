//! OCI registries: the digest of a tag, manifests, blobs, tags, and referrers of an image are read, and images pushed.
//!
//! Every answer is limited in size and time. Only registries that a person named are asked, and their mirrors before
//! them. Must never decide which version is wanted, and never retry later by itself.
//!
//! ```text
//!   Registry --> admission (login, token) --> wire: one request, one answer
//!      |            challenge, credentials      |
//!      |                                       way: address, proxy, TLS
//!      v                                       fence: addresses that are refused
//!   documents, paging, referrers
//!      |
//!      v
//!   signatures: is the image signed by a key of the admin?
//! ```
//!
//! Begin with `Registry`, whose methods are the questions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use certificates::material::Pem;
use channel_core::reference::{ImageDigest, Tag};
use futures::future::BoxFuture;
use hyper::Method;
use hyper::body::Bytes;
use report::Chain;
use serde::Deserialize;
use tokio::time::timeout;
use tracing::debug;

mod admission;
mod challenge;
pub mod credentials;
pub mod documents;
pub mod error;
pub mod fence;
mod paging;
pub mod place;
pub mod proxies;
mod referrers;
mod said;
mod sending;
pub mod signatures;
mod url;
pub mod way;
pub mod wire;

pub use admission::Rights;
use admission::{Admission, Server};
use credentials::ReadCredentials;
use documents::{Descriptor, Document, KINDS, Kind};
use error::{Asked, Problem, RegistryError, What};
use fence::Fence;
use place::{Host, ImagePlace, Reference, Repository, digest_of, digest_of_all};
use proxies::Proxies;
use url::Url;
use way::{SetupError, Ways};
use wire::{Answer, Limits, Question, Wire};

/// The size limit of a manifest; the specification requires registries to accept at least this.
const MANIFEST: usize = 4 << 20;
/// The limit of tags; a channel has fewer.
const TAGS: usize = 10_000;
/// The limit of pages: enough for all tags in pages of fifty, which is less than any registry returns.
const PAGES: usize = 200;
/// The number of tags that are requested per page.
const PAGE: &str = "1000";

/// The settings for registries.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The registries that may be asked.
    pub allowed: BTreeSet<Host>,
    /// Registries, mirrors and token issuers that are asked without TLS.
    pub plain: BTreeSet<Host>,
    /// Mirrors, which are asked in this order before their registry.
    pub mirrors: BTreeMap<Host, Vec<Mirror>>,
    /// Authorities that are trusted in addition to the machine's.
    pub authorities: Option<Pem>,
    pub proxies: Proxies,
    /// Addresses that are refused, if people without the operator's rights name the registries.
    pub fence: Option<Fence>,
    pub limits: Limits,
    pub rights: Rights,
}

/// A mirror: another registry with the same images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub host: Host,
    /// The repository below which the mirror has the images; `None`: at the root of the mirror.
    pub below: Option<Repository>,
}

/// The result of resolving a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub digest: ImageDigest,
    /// The type of the document, if the registry names it.
    pub kind: Option<Kind>,
}

/// A client for registries, which remembers how to authenticate at each.
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
    /// A client that has made no request yet.
    pub fn new(access: Access, read: ReadCredentials) -> Result<Self, SetupError> {
        let Access {
            allowed,
            plain,
            mirrors,
            authorities,
            proxies,
            fence,
            limits,
            rights,
        } = access;
        let ways = Ways::new(authorities.as_ref(), proxies, limits.connect)?.within(fence);
        let wire = Wire { ways, plain, limits };
        Ok(Self {
            admission: Admission::new(wire, rights, read),
            allowed,
            mirrors,
        })
    }

    /// Resolves a reference, with a HEAD request if the registry supports that.
    pub async fn head(&self, place: &ImagePlace, reference: &Reference) -> Result<Found, RegistryError> {
        let what = What::Version(reference.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.head_at(server, reference)) };
        self.first(place, what, ask).await
    }

    /// Reads a manifest or an index. For a digest the content is checked.
    pub async fn manifest(&self, place: &ImagePlace, reference: &Reference) -> Result<Document, RegistryError> {
        let what = What::Version(reference.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.manifest_at(server, reference)) };
        self.first(place, what, ask).await
    }

    /// Reads a blob of at most this size in bytes, and checks its digest.
    pub async fn blob(&self, place: &ImagePlace, digest: &ImageDigest, limit: usize) -> Result<Bytes, RegistryError> {
        let what = What::Blob(digest.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.blob_at(server, digest, limit)) };
        self.first(place, what, ask).await
    }

    /// Writes a blob of at most this size in bytes to a file, and checks its digest.
    pub async fn blob_into(
        &self,
        file: &Path,
        place: &ImagePlace,
        digest: &ImageDigest,
        limit: usize,
    ) -> Result<(), RegistryError> {
        let what = What::Blob(digest.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.blob_into_at(server, file, digest, limit)) };
        self.first(place, what, ask).await
    }

    /// All tags. An error if there are too many, because the best one cannot be chosen from a part.
    pub async fn tags(&self, place: &ImagePlace) -> Result<BTreeSet<Tag>, RegistryError> {
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.tags_at(server)) };
        self.first(place, What::Tags, ask).await
    }

    /// All referrers of a version (signatures and other documents), from the registry's API or from the referrers tag.
    pub async fn referrers(&self, place: &ImagePlace, digest: &ImageDigest) -> Result<Vec<Descriptor>, RegistryError> {
        let what = What::Referrers(digest.clone());
        let ask = move |server| -> BoxFuture<'_, _> { Box::pin(self.referrers_at(server, digest)) };
        match self.first(place, what, ask).await {
            Err(error) if error.is_absent() => Ok(Vec::new()),
            told => told,
        }
    }

    /// Asks the mirrors of a registry and then the registry itself, until one gives a usable answer.
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
            // Not every registry supports HEAD requests.
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

    async fn blob_into_at(
        &self,
        server: Arc<Server>,
        file: &Path,
        digest: &ImageDigest,
        limit: usize,
    ) -> Result<(), Problem> {
        let mut question = question(&server, "blobs", digest.as_str(), limit);
        question.accept = "*/*";
        question.into = Some(file.to_owned());
        self.admission.ask(&server, question).await?;
        let read = fs_err::File::open(file).and_then(digest_of_all);
        expect(&Reference::Digest(digest.clone()), &read.map_err(Problem::Unkept)?)
    }

    async fn tags_at(&self, server: Arc<Server>) -> Result<BTreeSet<Tag>, Problem> {
        let mut question = question(&server, "tags", "list", MANIFEST);
        question.accept = "application/json";
        question.url = question.url.with("n", PAGE);
        let mut tags = BTreeSet::new();
        for _ in 0..PAGES {
            let answer = self.admission.ask(&server, question.clone()).await?;
            let page: TagPage = serde_json::from_slice(&answer.body).map_err(Problem::Syntax)?;
            // Invalid tags are skipped, because they could not be requested.
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
}

fn question(server: &Server, kind: &str, name: &str, limit: usize) -> Question {
    let url = Url {
        origin: server.origin.clone(),
        path: format!("/v2/{}/{kind}/{name}", server.repository),
    };
    // Some mirrors serve several registries at one address, and distinguish them by this parameter.
    let url = match &server.of {
        Some(of) => url.with("ns", &of.to_string()),
        None => url,
    };
    Question {
        method: Method::GET,
        url,
        accept: KINDS,
        authorization: None,
        body: None,
        limit,
        into: None,
    }
}

/// The digest and type in the headers of an answer, if they are there.
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

/// The type of a document, from the registry or else from the document itself.
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
