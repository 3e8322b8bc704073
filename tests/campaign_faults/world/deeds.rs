//! The wishes of people, and the requests that express them. These requests go to the API server directly, so no fault
//! hits them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use testbed::wait::wait_until;

use super::World;
use super::files::{CELLAR_PAGE, VAULT};
use crate::cluster;
use crate::plan::Deed;

/// The values that the vault may have.
const WORDS: [&str; 2] = ["red", "green"];

#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) is_on: bool,
    word: usize,
    /// The texts of the objects that a hook watches, by name.
    pub(super) notes: BTreeMap<String, String>,
    /// The number of texts so far, which makes each text unique.
    written: usize,
}

impl Wanted {
    /// The index of the value that the vault should show; none while the vault is off.
    pub(super) fn vault(&self) -> Option<usize> {
        self.is_on.then_some(self.word)
    }

    /// The value that the vault's pages should show.
    pub(super) fn word(&self) -> &'static str {
        WORDS[self.word]
    }

    /// The ConfigMap as people have edited it.
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
    /// Does what a person would do, who tries again while the API server is down.
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
