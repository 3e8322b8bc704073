//! The API paths of the objects of a kind, and requests for one of them as plain JSON.

use addon_core::failure::{Class, Failure};
use addon_core::object::ObjectName;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use kube::core::{DynamicObject, Resource as _};
use kube_access::Cluster;
use kube_access::apis::Kind;
use kube_access::error::RequestError;
use serde_json::Value;

use super::tally::Tally;

/// The objects of a kind in one namespace, or in none.
#[derive(Debug)]
pub(super) struct Address {
    cluster: Cluster,
    pub(super) kind: Kind,
    namespace: Option<String>,
    tally: Tally,
}

/// A request to the API server, without its path.
pub(super) struct Ask<'a> {
    /// The verb as RBAC spells it.
    pub(super) verb: &'static str,
    pub(super) method: Method,
    pub(super) subresource: Option<&'a str>,
    pub(super) content_type: &'static str,
    /// The parameters, each a name and a value.
    pub(super) parameters: &'a [(&'a str, &'a str)],
    pub(super) body: Option<&'a Value>,
}

pub(super) const JSON: &str = "application/json";

impl Address {
    pub(super) fn new(cluster: Cluster, kind: Kind, namespace: Option<&str>, tally: Tally) -> Self {
        Self {
            tally,
            cluster,
            kind,
            namespace: namespace.map(str::to_owned),
        }
    }

    /// Why an object cannot have this place: its kind is namespaced and the operation names no namespace, or the other
    /// way round.
    pub(super) fn misplaced(&self) -> Option<Failure> {
        let kind = &self.kind.resource.kind;
        let failure = |report: String, hint: &str| Some(Failure::new(Class::HookFailed, report).hint(hint));
        match (self.kind.namespaced, &self.namespace) {
            (true, None) => failure(
                format!("objects of kind {kind} live in namespaces, and none is named"),
                "name the namespace: in 'namespace' of the operation, or in 'metadata.namespace' of an object to create",
            ),
            (false, Some(namespace)) => failure(
                format!("objects of kind {kind} live in no namespace, and '{namespace}' is named"),
                "leave the namespace out",
            ),
            (true, Some(_)) | (false, None) => None,
        }
    }

    pub(super) async fn get(&self, name: &str) -> Result<Value, RequestError> {
        self.ask(name, Ask::new("get", Method::GET)).await
    }

    pub(super) async fn create(&self, name: &str, object: &Value) -> Result<Value, RequestError> {
        let ask = Ask {
            body: Some(object),
            ..Ask::new("create", Method::POST)
        };
        self.ask(name, ask).await
    }

    pub(super) async fn replace(
        &self,
        name: &str,
        subresource: Option<&str>,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let ask = Ask {
            subresource,
            body: Some(object),
            ..Ask::new("update", Method::PUT)
        };
        self.ask(name, ask).await
    }

    pub(super) async fn ask(&self, name: &str, ask: Ask<'_>) -> Result<Value, RequestError> {
        let plural = &self.kind.resource.plural;
        let resource = ask
            .subresource
            .map_or_else(|| plural.clone(), |part| format!("{plural}/{part}"));
        let namespace = self.namespace.as_deref();
        let attempt = self.cluster.attempt_in(namespace, ask.verb, &resource, name);
        let body = ask.body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(&ask.method)
            .uri(self.path(name, &ask))
            .header(CONTENT_TYPE, ask.content_type)
            .body(body)
            .expect("every part of the path is encoded");
        let answer = self
            .cluster
            .ask(attempt, self.cluster.client().request(request))
            .await?;
        self.count(&ask, name, &answer);
        Ok(answer)
    }

    /// Counts the write of an object that the server has confirmed.
    fn count(&self, ask: &Ask<'_>, name: &str, answer: &Value) {
        let named = ObjectName {
            namespace: self.namespace.clone().unwrap_or_default(),
            name: answer["metadata"]["name"].as_str().unwrap_or(name).to_owned(),
            kind: self.kind.resource.kind.clone(),
        };
        match ask.method {
            Method::GET => {}
            Method::DELETE => self.tally.deleted(named, answer),
            _ => self.tally.wrote(named, answer, ask.body),
        }
    }

    /// Logs once that a verb was refused and another one is used.
    pub(super) fn tell_lacking(&self, refusal: RequestError, instead: &'static str) {
        self.cluster.lacking().tell(refusal, instead);
    }

    fn path(&self, name: &str, ask: &Ask<'_>) -> String {
        let namespace = self.namespace.as_deref().map(encoded);
        let mut path = DynamicObject::url_path(&self.kind.resource, namespace.as_deref());
        if ask.method != Method::POST {
            for part in [Some(name), ask.subresource].into_iter().flatten() {
                path.push('/');
                path.push_str(&encoded(part));
            }
        }
        for (place, (name, value)) in ask.parameters.iter().enumerate() {
            path.push(if place == 0 { '?' } else { '&' });
            path.extend([name, "=", &encoded(value)]);
        }
        path
    }
}

impl Ask<'_> {
    pub(super) fn new(verb: &'static str, method: Method) -> Self {
        Self {
            verb,
            method,
            subresource: None,
            content_type: JSON,
            parameters: &[],
            body: None,
        }
    }
}

/// A segment of a path, percent-encoded.
fn encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte);
    part.bytes()
        .map(|byte| match byte {
            byte if plain(byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_part_of_the_path() {
        assert_eq!(encoded("system:node-1.example_a"), "system:node-1.example_a");
        assert_eq!(encoded("a?b=c#d/../é"), "a%3Fb%3Dc%23d%2F..%2F%C3%A9");
    }
}
