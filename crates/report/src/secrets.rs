//! The known secrets, shared by all code that shows anything: the log, the debug socket, pages of metrics, Events.
//!
//! The lock must never be held during a wait, and the secrets never be printed.

use std::borrow::Cow;
use std::sync::Arc;

use masking::secret::known::Known;
use serde_json::Value;
use tokio::sync::watch;

/// The secrets to mask, as last set by the loop. Clones share them.
#[derive(Debug, Clone)]
pub struct Secrets(Arc<watch::Sender<Told>>);

/// The present secrets and the previous ones, which may still occur, for example in the error of a job that began
/// earlier.
#[derive(Debug, Clone, Default)]
struct Told {
    now: Arc<Known>,
    before: Arc<Known>,
}

impl Default for Secrets {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Told::default())))
    }
}

impl Secrets {
    /// Sets the secrets to mask.
    pub fn learn(&self, known: Arc<Known>) {
        self.0.send_modify(|told| {
            told.before = std::mem::replace(&mut told.now, known);
        });
    }

    fn told(&self) -> Told {
        self.0.borrow().clone()
    }

    /// The text with masked secrets.
    pub fn masked<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let Told { now, before } = self.told();
        match now.masked(text) {
            Cow::Borrowed(text) => before.masked(text),
            Cow::Owned(text) => Cow::Owned(before.masked(&text).into_owned()),
        }
    }

    /// The text with masked secrets if it is longer than this many characters and so will be cut: half of a secret at
    /// the cut could not be recognised any more. A shorter text is returned as it is, and masked where it is shown.
    pub fn before_cut<'text>(&self, text: &'text str, longest: usize) -> Cow<'text, str> {
        match text.char_indices().nth(longest) {
            Some(_) => self.masked(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Masks every text of a document.
    pub fn mask(&self, document: &mut Value) {
        let Told { now, before } = self.told();
        now.mask(document);
        before.mask(document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(secret: &str) -> Arc<Known> {
        Arc::new([secret].into_iter().collect())
    }

    #[test]
    fn only_what_is_to_be_cut_is_masked_before() {
        let secrets = Secrets::default();
        secrets.learn(known("horse1"));
        assert_eq!(secrets.before_cut("a horse1", 8), "a horse1");
        assert_eq!(secrets.before_cut("a horse1", 7), "a <masked>");
    }

    #[test]
    fn what_was_told_before_is_not_shown_either() {
        let secrets = Secrets::default();
        assert_eq!(secrets.masked("first second"), "first second");
        secrets.learn(known("first1"));
        secrets.clone().learn(known("second2"));
        assert_eq!(secrets.masked("first1 second2"), "<masked> <masked>");
        let mut document = Value::from("first1 third");
        secrets.mask(&mut document);
        assert_eq!(document, "<masked> third");
    }
}
