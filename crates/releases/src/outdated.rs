//! The kinds that releases use, and the API server's answers about them: not served, or served with a warning.
//!
//! Must never take a kind for gone or deprecated because the API server did not answer.

pub mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use addon_core::release::kinds::{InUse, KindName, Served, is_of_kubernetes};
use futures::stream::{self, StreamExt as _};
use hyper::{HeaderMap, header};
use kube::api::GetParams;
use kube::client::Body;
use kube::core::{DynamicObject, Request, Resource as _};
use kube_access::Cluster;
use kube_access::apis::{Apis, Kind};
use kube_access::error::{Attempt, RequestError};
use objects::key::{ObjectKey, key_of};
use serde_json::Value;

use crate::revisions::unserved;
use crate::revisions::unserved::kind_of;

/// The limit of concurrent requests.
const AT_ONCE: usize = 4;
/// The code of the warnings that an API server gives.
const OF_SERVER: &str = "299 ";

/// The objects of a kind in a release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Use {
    /// The number of objects.
    pub objects: usize,
    /// One of the objects.
    pub example: Option<ObjectKey>,
}

/// The kinds of a release with their objects.
pub type Uses = BTreeMap<KindName, Use>;

/// The API server's warnings about kinds; `None` for a kind without one.
pub type Warnings = BTreeMap<KindName, Option<String>>;

/// Adds the kinds of objects to those of the release.
pub(super) fn add(uses: &mut Uses, objects: impl IntoIterator<Item = Value>) {
    for object in objects {
        let Some(kind) = kind_of(&object) else { continue };
        let used = uses.entry(kind).or_default();
        used.objects += 1;
        used.example = used.example.take().or_else(|| key_of(&object));
    }
}

/// The kinds of these objects.
pub fn kinds_in(objects: impl IntoIterator<Item = Value>) -> BTreeSet<KindName> {
    objects.into_iter().filter_map(|object| kind_of(&object)).collect()
}

/// The outdated kinds in use, for the metrics. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Vec<InUse>>>);

impl Board {
    /// The last judgement.
    pub fn read(&self) -> Vec<InUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the last judgement.
    pub fn write(&self, in_use: Vec<InUse>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = in_use;
    }
}

/// Asks for the warnings about these kinds, a small request each. Kubernetes' own kinds are not asked for: their ends
/// are known. A kind without an answer is left out.
pub async fn warnings(cluster: &Cluster, uses: &Uses, apis: &Apis) -> Warnings {
    let asked = uses.iter().filter_map(|(kind, used)| {
        let known = apis.kind(&kind.api_version, &kind.kind)?;
        let example = used.example.as_ref().filter(|_| !is_of_kubernetes(kind.group()))?;
        Some((kind.clone(), known.clone(), example.clone()))
    });
    let asked: Vec<_> = asked.collect();
    let answers = stream::iter(asked).map(|(kind, known, example)| async move {
        let warning = warning(cluster, &known, &example).await.ok()?;
        Some((kind, warning))
    });
    answers
        .buffer_unordered(AT_ONCE)
        .filter_map(async |answer| answer)
        .collect()
        .await
}

/// The warning that the API server adds to the answer about an object, whether the object exists or not.
async fn warning(cluster: &Cluster, known: &Kind, object: &ObjectKey) -> Result<Option<String>, RequestError> {
    let namespace = known
        .namespaced
        .then(|| object.namespace.as_deref().unwrap_or(cluster.namespace()));
    let attempt = Attempt {
        resource: known.resource.plural.clone(),
        namespace: namespace.map(str::to_owned),
        ..cluster.attempt("get", "", &object.name)
    };
    let path = DynamicObject::url_path(&known.resource, namespace);
    let asked = async {
        let request = Request::new(path).get_metadata(&object.name, &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?.map(Body::from);
        cluster.client().send(request).await
    };
    let answer = cluster.ask(attempt, asked).await?;
    Ok(warning_in(answer.headers()))
}

/// The state of all these kinds in the running API server.
pub async fn served(cluster: &Cluster, uses: &Uses, warnings: &Warnings, apis: &Apis) -> BTreeMap<KindName, Served> {
    let gone = unserved::gone(cluster, uses.keys().cloned().collect(), apis).await;
    let served = |kind: &KindName| {
        let preferred = apis.preferred(kind.group(), &kind.kind);
        let preferred = preferred.filter(|preferred| *preferred != kind.api_version);
        Served {
            is_gone: gone.contains(kind),
            warning: warnings.get(kind).cloned().flatten(),
            preferred: preferred.map(|api_version| KindName::new(api_version, &kind.kind)),
        }
    };
    uses.keys().map(|kind| (kind.clone(), served(kind))).collect()
}

/// The first warning of an API server in the head of an answer: `299 - "the text"`.
fn warning_in(headers: &HeaderMap) -> Option<String> {
    let warnings = headers.get_all(header::WARNING).iter();
    let mut texts = warnings.filter_map(|value| {
        let quoted = value.to_str().ok()?.strip_prefix(OF_SERVER)?.split_once('"')?.1;
        let text = quoted.rsplit_once('"')?.0;
        Some(text.replace("\\\"", "\""))
    });
    texts.next()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_are_read_from_the_head_of_an_answer() {
        let rows: [(&[&str], Option<&str>); 5] = [
            (&[], None),
            (
                &["299 - \"t/v1 Widget is deprecated\""],
                Some("t/v1 Widget is deprecated"),
            ),
            (&["299 - \"use \\\"v2\\\"\"", "299 - \"b\""], Some("use \"v2\"")),
            (&["199 - \"other\"", "299 - \"a\""], Some("a")),
            (&["299 -"], None),
        ];
        for (values, expected) in rows {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::WARNING, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(warning_in(&headers).as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn objects_are_counted_by_kind_with_an_example() {
        let object = |name: &str| json!({"apiVersion": "t/v1", "kind": "Widget", "metadata": {"name": name}});
        let mut uses = Uses::new();
        add(
            &mut uses,
            [
                json!({"kind": "Widget"}),
                json!({"apiVersion": "t/v1", "kind": "Widget"}),
                object("a"),
                object("b"),
            ],
        );
        let used = &uses[&KindName::new("t/v1", "Widget")];
        assert_eq!(
            (used.objects, used.example.as_ref().map(|key| key.name.as_str())),
            (3, Some("a"))
        );
        assert_eq!(uses.len(), 1);
    }
}
