//! Operations that change objects.

use addon_core::failure::{Class, Failure};
use addon_core::object::patch::{Change, JqFilter, Segment, Terms};
use helm_yaml::number;
use hyper::Method;
use kube_access::error::RequestError;
use serde_json::{Value, json};

use super::Patcher;
use super::address::{Address, Ask};
use super::finalizer;
use super::race::{self, Lost, is_missing};

pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

const UNFIT_PATCH: &str = "a step of the patch does not fit the object: its path is not there, or its test failed";
const MISSING: &str = "with 'ignoreMissingObject: true' an object that is not there is no failure";

impl Patcher {
    pub(super) async fn change(
        &self,
        address: &Address,
        name: &str,
        change: &Change,
        terms: &Terms,
    ) -> Result<(), Failure> {
        let subresource = terms.subresource.as_ref().map(Segment::as_str);
        let outcome = match change {
            Change::Merge(patch) => send(address, name, subresource, MERGE_PATCH, &json!(patch.keys())).await,
            Change::Json(patch) => send(address, name, subresource, JSON_PATCH, &json!(patch.steps())).await,
            Change::Jq(filter) => race::run(|| self.refine(address, name, subresource, filter)).await,
            Change::Hold(finalizer) => race::run(|| finalizer::hold(address, name, finalizer)).await,
            Change::Free(finalizer) => race::run(|| finalizer::free(address, name, finalizer)).await,
        };
        match (outcome, subresource) {
            (Err(Lost::Request(error)), _) if terms.ignore_missing && is_missing(&error) => Ok(()),
            (Err(Lost::Request(error)), Some(part)) if error.is_not_found() => {
                let hint = format!(
                    "the API server gives the same answer for an object whose kind has no subresource '{part}'"
                );
                Err(Failure::from(error).hint(hint))
            }
            (Err(Lost::Request(error)), None) if is_missing(&error) => Err(Failure::from(error).hint(MISSING)),
            (Err(Lost::Request(error)), _) if matches!(change, Change::Json(_)) && is_unfit(&error) => {
                Err(Failure::from(error).hint(UNFIT_PATCH))
            }
            (outcome, _) => Ok(outcome?),
        }
    }

    /// Replaces the object by the filter's result, unless the two are equal.
    async fn refine(
        &self,
        address: &Address,
        name: &str,
        subresource: Option<&str>,
        filter: &JqFilter,
    ) -> Result<(), Lost> {
        let mut found = address.get(name).await?;
        let made = self.filtered(&found, filter).await.map_err(Lost::Before)?;
        number::settle(&mut found);
        if made != found {
            address.replace(name, subresource, &made).await?;
        }
        Ok(())
    }

    async fn filtered(&self, object: &Value, filter: &JqFilter) -> Result<Value, Failure> {
        let (jq, program, object) = (self.jq, filter.as_str().to_owned(), object.clone());
        let results = blocking::run(move || jq(&program, &object)).await?;
        match <[Value; 1]>::try_from(results) {
            Ok([mut object]) if object.is_object() => {
                number::settle(&mut object);
                Ok(object)
            }
            Ok(_) => Err(unfit("something that is no object")),
            Err(results) => Err(unfit(&format!("{} results", results.len()))),
        }
    }
}

async fn send(
    address: &Address,
    name: &str,
    subresource: Option<&str>,
    content_type: &'static str,
    patch: &Value,
) -> Result<(), Lost> {
    let ask = Ask {
        subresource,
        content_type,
        body: Some(patch),
        ..Ask::new("patch", Method::PATCH)
    };
    address.ask(name, ask).await?;
    Ok(())
}

/// Whether the API server could not carry out a JSON patch. Its answer names no step.
fn is_unfit(error: &RequestError) -> bool {
    let status = error.status().filter(|_| error.is_failed_test());
    status.is_some_and(|status| status.message.starts_with("the server rejected our request"))
}

fn unfit(found: &str) -> Failure {
    Failure::new(
        Class::HookFailed,
        format!("jqFilter gives {found} instead of one object"),
    )
    .hint("the filter has to give the whole object, changed: assign with `.a.b = c` or take away with `del(.a.b)`")
}
