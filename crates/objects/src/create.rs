//! Operations that create objects.

use addon_core::failure::Failure;
use addon_core::object::patch::{Existing, Manifest, Segment};
use serde_json::{Value, json};

use super::Patcher;
use super::address::Address;
use super::race::{self, Lost, is_taken};

const TAKEN: &str = "CreateOrUpdate replaces an object that is there, and CreateIfNotExists leaves it as it is";

impl Patcher {
    pub(super) async fn create(&self, object: &Manifest, existing: Existing) -> Result<(), Failure> {
        let address = self
            .address(object.api_version(), object.kind(), object.namespace())
            .await?;
        if let Some(failure) = address.misplaced() {
            return Err(failure);
        }
        let content = content(&address, object);
        let name = object.name().map_or("", Segment::as_str);
        match (existing, object.name()) {
            (Existing::Replace, Some(_)) => {
                race::run(|| create_or_replace(&address, name, &content)).await?;
                Ok(())
            }
            (Existing::Keep, Some(_)) => match address.create(name, &content).await {
                Err(error) if is_taken(&error) => Ok(()),
                outcome => Ok(outcome.map(drop)?),
            },
            // A name that the server generates is never taken already.
            (Existing::Refuse, _) | (_, None) => match address.create(name, &content).await {
                Err(error) if is_taken(&error) => Err(Failure::from(error).hint(TAKEN)),
                outcome => Ok(outcome.map(drop)?),
            },
        }
    }
}

/// The object to send, with the kind's own name. The operation may use another name of the kind.
pub(super) fn content(address: &Address, object: &Manifest) -> Value {
    let mut content = Value::Object(object.content().clone());
    content["apiVersion"] = json!(address.kind.resource.api_version);
    content["kind"] = json!(address.kind.resource.kind);
    content
}

async fn create_or_replace(address: &Address, name: &str, content: &Value) -> Result<(), Lost> {
    match address.create(name, content).await {
        Err(error) if is_taken(&error) => {}
        outcome => return Ok(outcome.map(drop)?),
    }
    let found = address.get(name).await.map_err(Lost::on_existing)?;
    let mut content = content.clone();
    content["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
    address.replace(name, None, &content).await.map_err(Lost::on_existing)?;
    Ok(())
}
