//! The facts about a release for the brake on upgrades, and whether the brake worked.

use std::collections::BTreeSet;

use addon_core::release::brake::{Asked, Base, Held, Part};
use addon_core::release::{Facts, Rendered, Status};
use serde_json::Value;

use super::{Release, Rendering};
use crate::setup::ModuleSpec;
use crate::world::World;

/// The name of the objects whose kind holds data.
const HOLDING: &str = "server";

/// The digests of the sections that values were made of.
pub(in crate::world) fn asked(spec: &ModuleSpec, config: &Value) -> Asked {
    Asked {
        section: config[spec.key()].to_string(),
        global: config["global"].to_string(),
    }
}

/// The rendering of a chart with missing files begins with this text.
const HALF: &str = "half ";

/// The rendering of the chart if some of its files are missing.
pub(super) fn halved(rendering: Rendering) -> Rendering {
    let Rendering { text, mut objects } = rendering;
    objects.retain(|object| !object.starts_with(HOLDING));
    let text = format!("{HALF}{text}");
    Rendering { text, objects }
}

pub(super) fn rendered(rendering: &Rendering) -> Rendered {
    Rendered {
        checksum: rendering.text.clone(),
        parts: parts(&rendering.objects),
    }
}

fn parts(objects: &BTreeSet<String>) -> BTreeSet<Part> {
    let part = |object: &String| {
        let (kind, name) = object.split_once('/').unwrap_or_default();
        let kind = if kind == HOLDING { "PersistentVolumeClaim" } else { kind };
        Part {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    };
    objects.iter().map(part).collect()
}

impl Release {
    /// Whether files of its chart were missing at the last rendering.
    pub fn is_of_half_a_chart(&self) -> bool {
        let marks = self.marks.as_ref();
        marks.is_some_and(|(_, rendering)| rendering.starts_with(HALF))
    }

    pub(super) fn base(&self) -> Base {
        Base {
            asked: self.asked.clone(),
            confirmed: self.confirmed.clone(),
            version: None,
            parts: parts(&self.objects),
            altered: Vec::new(),
            is_outdated: false,
        }
    }
}

impl World {
    /// Notes an upgrade that is held until a person confirms it.
    pub(super) fn hold(&mut self, release: &str, held: &Held) {
        if let Some(release) = self.releases.get_mut(release) {
            release.held = Some(held.clone());
        }
    }

    /// Confirms the held upgrade.
    pub(in crate::world) fn confirm_upgrade(&mut self, release: &str) {
        if let Some(release) = self.releases.get_mut(release) {
            release.confirmed = release.held.as_ref().map(|held| held.digest.clone());
        }
    }

    /// Notes an upgrade that deletes objects without a request of people.
    pub(super) fn note_loss(&mut self, facts: &Facts, rendering: &Rendering) {
        let Some(release) = self.releases.get(&facts.release) else {
            return;
        };
        let goes = |object: &&String| object.starts_with(HOLDING) && !rendering.objects.contains(*object);
        let lost = release.objects.iter().filter(goes).count();
        let held = release.held.as_ref().map(|held| &held.digest);
        // A confirmation counts until its objects are gone, also if the files were whole in between.
        if release.confirmed.is_some() && (held.is_none() || release.confirmed.as_ref() == held) {
            return;
        }
        if lost > 0 && release.asked.as_ref() == Some(&facts.asked) && release.status != Status::Uninstalled {
            self.ledger.lost.push(facts.release.clone());
        }
    }
}
