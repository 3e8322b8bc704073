//! The operation that applies fields of an object under the name of a field manager.
//!
//! Must never take over a field of another manager unless the operation says so.

use addon_core::failure::Failure;
use addon_core::object::patch::{FieldManager, Manifest, Segment, Terms};
use hyper::Method;

use super::Patcher;
use super::address::Ask;
use super::create::content;
use super::race::{has_other_managers, is_missing};

pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";

const CONFLICT: &str =
    "another field manager has set these fields: leave them out of 'object', or take them over with 'force: true'";

impl Patcher {
    pub(super) async fn apply_fields(
        &self,
        object: &Manifest,
        manager: &FieldManager,
        force: bool,
        terms: &Terms,
    ) -> Result<(), Failure> {
        let address = self
            .address(object.api_version(), object.kind(), object.namespace())
            .await?;
        if let Some(failure) = address.misplaced() {
            return Err(failure);
        }
        let content = content(&address, object);
        let parameters = [("fieldManager", manager.as_str()), ("force", "true")];
        let subresource = terms.subresource.as_ref().map(Segment::as_str);
        let ask = Ask {
            subresource,
            content_type: APPLY_PATCH,
            parameters: if force { &parameters } else { &parameters[..1] },
            body: Some(&content),
            ..Ask::new("patch", Method::PATCH)
        };
        let name = object.name().map_or("", Segment::as_str);
        match address.ask(name, ask).await {
            Ok(_) => Ok(()),
            // Without a subresource a missing object would be created, so then something else is missing.
            Err(error) if subresource.is_some() && terms.ignore_missing && is_missing(&error) => Ok(()),
            Err(error) if has_other_managers(&error) => Err(Failure::from(error).hint(CONFLICT)),
            Err(error) => Err(error.into()),
        }
    }
}
