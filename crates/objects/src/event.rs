//! The operation that tells people about an object by an Event of Kubernetes.
//!
//! Must never fail a hook because the namespace of the Event is being deleted.

use addon_core::digest::Digest;
use addon_core::failure::Failure;
use addon_core::object::patch::{ApiVersion, EventContents, Segment, Target};
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::warn;

use super::Patcher;
use super::address::Address;
use super::race::{self, Lost, is_ending, is_taken};

/// The reporting component of all Events of hooks, for field selectors.
const COMPONENT: &str = "addon-operator";
/// The namespace of Events about objects that are in no namespace.
const NAMESPACE: &str = "default";
/// The part of the object's name that is in the Event's name, in bytes. The digest behind it needs the rest.
const NAME_PART: usize = 180;

impl Patcher {
    /// Writes the Event. If an Event with the same contents exists, only its count is increased.
    pub(super) async fn tell(&self, target: &Target, contents: &EventContents) -> Result<(), Failure> {
        let about = self.address_of(target).await?;
        if let Some(failure) = about.misplaced() {
            return Err(failure);
        }
        let name = target.name.as_str();
        let uid = match &contents.uid {
            Some(uid) => json!(uid),
            None => about.get(name).await?["metadata"]["uid"].clone(),
        };
        let namespace = target.namespace.as_ref().map_or(NAMESPACE, Segment::as_str);
        let involved = json!({
            "apiVersion": about.kind.resource.api_version,
            "kind": about.kind.resource.kind,
            "namespace": target.namespace.as_ref().map(Segment::as_str),
            "name": name,
            "uid": uid,
        });
        let event = event(namespace, name, &involved, contents);
        let address = self.events(namespace).await?;
        match race::run(|| create_or_count(&address, &event)).await {
            Err(Lost::Request(error)) if is_ending(&error) => {
                warn!(object = %target, reason = contents.reason(), "the Event is not written: its namespace is being deleted");
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }

    async fn events(&self, namespace: &str) -> Result<Address, Failure> {
        let version = ApiVersion::parse("v1").expect("a version is one segment");
        let kind = Segment::parse("Event").expect("a kind is one segment");
        let namespace = Segment::parse(namespace).expect("it was a segment of the operation");
        self.address(Some(&version), &kind, Some(&namespace)).await
    }
}

/// The Event of a first occurrence. Its name follows from its contents, so that the next occurrence finds it.
fn event(namespace: &str, object: &str, involved: &Value, contents: &EventContents) -> Value {
    let parts = [
        &involved.to_string(),
        contents.weight.as_str(),
        contents.reason(),
        contents.message(),
    ];
    let digest = Digest::of_bytes(parts.join("\0").as_bytes()).to_string();
    // The name of an RBAC object may have colons; the name of an Event may not.
    let object: String = object
        .to_ascii_lowercase()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .take(NAME_PART)
        .collect();
    let object = object.trim_matches(|c| matches!(c, '-' | '.'));
    let name = [object, &digest].into_iter().filter(|part| !part.is_empty());
    let now = json!(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": name.collect::<Vec<_>>().join(".")},
        "involvedObject": involved,
        "type": contents.weight.as_str(),
        "reason": contents.reason(),
        "message": contents.message(),
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    })
}

async fn create_or_count(address: &Address, event: &Value) -> Result<(), Lost> {
    let name = event["metadata"]["name"].as_str().unwrap_or_default();
    match address.create(name, event).await {
        Err(error) if is_taken(&error) => {}
        outcome => return Ok(outcome.map(drop)?),
    }
    let mut found = address.get(name).await.map_err(Lost::on_existing)?;
    let counted = found["count"].as_i64().unwrap_or(1);
    found["count"] = json!(counted.saturating_add(1).min(i64::from(i32::MAX)));
    found["lastTimestamp"] = event["lastTimestamp"].clone();
    address.replace(name, None, &found).await.map_err(Lost::on_existing)?;
    Ok(())
}
