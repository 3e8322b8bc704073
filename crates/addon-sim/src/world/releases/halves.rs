//! The facts that the brake on upgrades needs of a release, and whether it has held.

use std::collections::BTreeSet;

use addon_core::release::brake::{Asked, Base, Held, Part};
use addon_core::release::{Facts, Rendered, Status};
use serde_json::Value;

use super::{Release, Rendering};
use crate::setup::ModuleSpec;
use crate::world::World;

/// Of this an object's kind holds others.
const HOLDING: &str = "server";

/// What people asked for, of which values were made.
pub(in crate::world) fn asked(spec: &ModuleSpec, config: &Value) -> Asked {
    Asked {
        section: config[spec.key()].to_string(),
        global: config["global"].to_string(),
    }
}

/// The rendering of half a chart begins with it.
const HALF: &str = "half ";

/// The chart renders to that, without what the files that are missing would render.
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
    /// Files of its chart were missing when it was rendered last.
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
        }
    }
}

impl World {
    /// A person would have to confirm this.
    pub(super) fn hold(&mut self, release: &str, held: &Held) {
        if let Some(release) = self.releases.get_mut(release) {
            release.held = Some(held.clone());
        }
    }

    /// A person confirms the upgrade that is held.
    pub(in crate::world) fn confirm_upgrade(&mut self, release: &str) {
        if let Some(release) = self.releases.get_mut(release) {
            release.confirmed = release.held.as_ref().map(|held| held.digest.clone());
        }
    }

    /// An upgrade that is about to be done takes away what nobody asked to be without.
    pub(super) fn note_loss(&mut self, facts: &Facts, rendering: &Rendering) {
        let Some(release) = self.releases.get(&facts.release) else {
            return;
        };
        let goes = |object: &&String| object.starts_with(HOLDING) && !rendering.objects.contains(*object);
        let lost = release.objects.iter().filter(goes).count();
        let held = release.held.as_ref().map(|held| &held.digest);
        if release.confirmed.is_some() && release.confirmed.as_ref() == held {
            return;
        }
        if lost > 0 && release.asked.as_ref() == Some(&facts.asked) && release.status != Status::Uninstalled {
            self.ledger.lost.push(facts.release.clone());
        }
    }
}
