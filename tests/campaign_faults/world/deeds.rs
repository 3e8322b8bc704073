//! The wishes of people, and how they say them. They speak with the API server directly: no fault is between them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use testbed::wait::wait_until;

use super::World;
use super::files::{CELLAR_PAGE, VAULT};
use crate::cluster;
use crate::plan::Deed;

/// The words that the vault may be told.
const WORDS: [&str; 2] = ["red", "green"];

#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) is_on: bool,
    word: usize,
    /// The texts of the objects that a hook watches, by name.
    pub(super) notes: BTreeMap<String, String>,
    /// Numbers the texts.
    written: usize,
}

impl Wanted {
    /// The word that the vault is to say, as a number; nothing while it is off.
    pub(super) fn vault(&self) -> Option<usize> {
        self.is_on.then_some(self.word)
    }

    /// The word on its pages.
    pub(super) fn word(&self) -> &'static str {
        WORDS[self.word]
    }

    /// The ConfigMap as people left it.
    pub(super) fn config(&self) -> BTreeMap<String, String> {
        let section = json!({ "word": self.word() }).to_string();
        BTreeMap::from([
            ("vaultEnabled".to_owned(), self.is_on.to_string()),
            (VAULT.to_owned(), section),
        ])
    }

    fn after(&self, deed: Deed) -> Self {
        let mut wanted = self.clone();
        match deed {
            Deed::Edit => wanted.word = (wanted.word + 1) % WORDS.len(),
            Deed::Switch => wanted.is_on = !wanted.is_on,
            Deed::Note(number) => {
                wanted.written += 1;
                wanted.notes.insert(note(number), format!("text {}", wanted.written));
            }
            Deed::Forget(number) => drop(wanted.notes.remove(&note(number))),
            Deed::Tear | Deed::Smear => {}
        }
        wanted
    }
}

fn note(number: usize) -> String {
    format!("note-{number}")
}

impl World<'_> {
    /// Does as a person would, who tries again while the API server is not there.
    pub(super) fn act(&mut self, deed: Deed) -> anyhow::Result<()> {
        self.wanted = self.wanted.after(deed);
        self.damages += u32::from(matches!(deed, Deed::Tear | Deed::Smear));
        let done = || self.try_act(deed).map(Some).map_err(|error| format!("{error:#}"));
        Ok(wait_until(Duration::from_mins(1), "a deed of a person", done)?)
    }

    fn try_act(&self, deed: Deed) -> anyhow::Result<()> {
        let kubectl = self.kubectl();
        match deed {
            Deed::Edit | Deed::Switch => cluster::edit(self.stage.namespace(), &json!(self.wanted.config()))?,
            Deed::Note(number) => {
                let name = note(number);
                let text = &self.wanted.notes[&name];
                let object = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "labels": {"campaign": "note"}}, "data": {"text": text},
                });
                kubectl.feed(["apply", "--server-side", "--filename=-"], &object.to_string())?;
            }
            Deed::Forget(number) => {
                kubectl.run(["delete", "configmap", &note(number), "--ignore-not-found"])?;
            }
            Deed::Tear => {
                kubectl.run(["delete", "configmap", CELLAR_PAGE, "--ignore-not-found"])?;
            }
            Deed::Smear => {
                let patch = r#"--patch={"data":{"word":"smeared"}}"#;
                let smeared = kubectl.run(["patch", "configmap", CELLAR_PAGE, "--type=merge", patch]);
                let is_torn = |error: &testbed::kubectl::KubectlError| error.to_string().contains("NotFound");
                ensure!(
                    smeared.as_ref().err().is_none_or(is_torn),
                    "cannot smear a page: {smeared:?}"
                );
            }
        }
        Ok(())
    }
}
