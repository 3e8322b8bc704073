//! Tells those who show anything which texts of values they must not show.
//!
//! Must never tell it after what may quote them.

use std::sync::Arc;

use super::Operator;
use super::effect::Notice;

impl Operator {
    /// Before anything else that follows from the event.
    pub(super) fn tell_secrets(&mut self) {
        if let Some(secrets) = self.values.take_new_secrets() {
            let notice = Notice::SecretsChanged(Arc::new(secrets));
            self.cx.tell_first(notice);
        }
    }
}
