//! The real registry that all tests of this program share, and a guard and a client for each test.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use certificates::material::Pem;
use channel_core::reference::{ImageDigest, Tag};
use futures::future::ready;
use registry::credentials::{Credentials, ReadCredentials};
use registry::place::{Host, ImagePlace, Reference};
use registry::wire::Limits;
use registry::{Access, Registry};
use serde_json::json;
use testbed::registry::guard::{Guard, Seen};
use testbed::registry::push::Repository;

/// The address of a registry for all tests. The registry is never dropped, because statics are not; its program ends
/// with this process.
pub(crate) fn real() -> &'static str {
    static REAL: OnceLock<testbed::registry::Registry> = OnceLock::new();
    REAL.get_or_init(|| testbed::registry::Registry::start().unwrap())
        .address()
}

pub(crate) fn repository(name: &str) -> Repository {
    Repository::at(real(), name)
}

/// Pushes a small image; another mark gives another digest.
pub(crate) async fn push(name: &str, tag: &str, mark: &str) -> ImageDigest {
    let config = json!({ "Labels": { "mark": mark } });
    let digest = repository(name).push(tag, &config, &[b"no real layer".to_vec()]).await;
    ImageDigest::parse(&digest).unwrap()
}

pub(crate) fn guard() -> Guard {
    Guard::start(real()).unwrap()
}

pub(crate) fn host(address: SocketAddr) -> Host {
    address.to_string().parse().unwrap()
}

pub(crate) fn place(host: &Host, name: &str) -> ImagePlace {
    ImagePlace {
        host: host.clone(),
        repository: name.parse().unwrap(),
    }
}

/// A guard, and a repository behind it with one image under the tag 1.
pub(crate) async fn repository_of_one(name: &str) -> (Guard, ImagePlace, ImageDigest) {
    let guard = guard();
    let place = place(&host(guard.address()), name);
    let digest = push(name, "1", "one").await;
    (guard, place, digest)
}

pub(crate) fn tag(text: &str) -> Reference {
    Reference::Tag(Tag::parse(text).unwrap())
}

/// Credentials without any login.
pub(crate) fn nobody() -> ReadCredentials {
    Box::new(|| Box::pin(ready(Ok(Credentials::default()))))
}

/// Credentials that are read anew each time: they have the passwords one after another, and then always the last one.
/// Also returns the number of reads.
pub(crate) fn people(host: &Host, passwords: &[&str]) -> (ReadCredentials, Arc<AtomicUsize>) {
    let of = |password: &&str| {
        let entry = json!({ "auths": { host.to_string(): { "username": "user", "password": password } } });
        Credentials::config(entry.to_string().as_bytes()).unwrap()
    };
    let all: Vec<Credentials> = passwords.iter().map(of).collect();
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let read: ReadCredentials = Box::new(move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(ready(Ok(all[number.min(all.len() - 1)].clone())))
    });
    (read, reads)
}

/// A client's settings that know only this guard and trust it, with time limits for a busy machine.
pub(crate) fn access(guard: &Guard) -> Access {
    let authority = guard.authority();
    let authority = (!authority.is_empty()).then(|| Pem {
        place: "the authority of the guard".to_owned(),
        text: authority.as_bytes().to_vec(),
    });
    Access {
        allowed: BTreeSet::from([host(guard.address())]),
        plain: BTreeSet::new(),
        mirrors: BTreeMap::new(),
        authorities: authority,
        limits: Limits {
            connect: Duration::from_secs(20),
            head: Duration::from_secs(20),
            whole: Duration::from_secs(40),
            call: Duration::from_mins(2),
        },
        ..Access::default()
    }
}

pub(crate) fn client(access: Access) -> Registry {
    Registry::new(access, nobody()).unwrap()
}

/// `METHOD path` for each request, without the query. A `*` marks requests with credentials.
pub(crate) fn told(seen: &[Seen]) -> Vec<String> {
    let line = |seen: &Seen| {
        let path = seen.path.split('?').next().unwrap_or_default();
        let path = path.rsplit_once("/v2/").map_or(path, |(_, rest)| rest);
        let sign = if seen.authorization.is_some() { " *" } else { "" };
        format!("{} {path}{sign}", seen.method)
    };
    seen.iter().map(line).collect()
}
