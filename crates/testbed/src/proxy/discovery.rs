//! Changed lists of served API groups: one group is stale or missing, as while its aggregated API server is down.
//!
//! Must never change the entries of other groups.

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{Request, Response};
use serde_json::Value;

use super::answer::{Answer, whole};

/// The change of the group's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The group is stale: the API server could not ask the group's server, and shows none of the group's resources.
    Stale(String),
    Lost(String),
}

/// Changes the headers of the request so that the answer is complete JSON without compression.
pub(super) fn prepare(request: &mut Request<Incoming>) {
    let headers: &mut HeaderMap = request.headers_mut();
    headers.remove(ACCEPT_ENCODING);
    headers.remove(IF_NONE_MATCH);
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let is_json = |part: &&str| part.trim().starts_with("application/json");
    let json: Vec<&str> = accepted.unwrap_or_default().split(',').filter(is_json).collect();
    let json = if json.is_empty() {
        "application/json".to_owned()
    } else {
        json.join(",")
    };
    if let Ok(json) = HeaderValue::from_str(&json) {
        headers.insert(ACCEPT, json);
    }
}

/// The answer with the change. An answer that is not a list of groups stays the same.
pub(super) async fn changed(answer: Response<Incoming>, change: &Change) -> Result<Answer, hyper::Error> {
    let (mut head, body) = answer.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let bytes = match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut list) => {
            change.apply(&mut list);
            Bytes::from(list.to_string())
        }
        Err(_) => bytes,
    };
    head.headers.remove(ETAG);
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(head, whole(bytes)))
}

impl Change {
    fn apply(&self, list: &mut Value) {
        let is = |group: &str, item: &Value| item["metadata"]["name"] == group || item["name"] == group;
        // The aggregated list has `items`, with all resources; the older list has `groups`, with names alone.
        for key in ["items", "groups"] {
            let Some(groups) = list[key].as_array_mut() else {
                continue;
            };
            match self {
                Self::Lost(lost) => groups.retain(|item| !is(lost, item)),
                Self::Stale(stale) => {
                    for item in groups.iter_mut().filter(|item| is(stale, item)) {
                        let versions = item["versions"].as_array_mut().into_iter().flatten();
                        for version in versions.filter(|version| version["resources"].is_array()) {
                            version["freshness"] = "Stale".into();
                            version["resources"] = Value::Array(Vec::new());
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list() -> Value {
        let group = |name: &str| {
            json!({
                "metadata": {"name": name},
                "versions": [{"version": "v1", "freshness": "Current", "resources": [{"resource": "things"}]}],
            })
        };
        json!({"kind": "APIGroupDiscoveryList", "items": [group("apps"), group("batch")]})
    }

    #[test]
    fn a_group_is_stale_or_lost_and_the_others_are_not() {
        let mut stale = list();
        Change::Stale("batch".to_owned()).apply(&mut stale);
        assert_eq!(stale["items"][0], list()["items"][0]);
        let version = json!({"version": "v1", "freshness": "Stale", "resources": []});
        assert_eq!(stale["items"][1]["versions"], json!([version]));

        let mut lost = list();
        Change::Lost("batch".to_owned()).apply(&mut lost);
        assert_eq!(lost["items"], json!([list()["items"][0]]));

        let mut of_old = json!({"kind": "APIGroupList", "groups": [{"name": "apps"}, {"name": "batch"}]});
        Change::Lost("apps".to_owned()).apply(&mut of_old);
        assert_eq!(of_old["groups"], json!([{"name": "batch"}]));
    }
}
