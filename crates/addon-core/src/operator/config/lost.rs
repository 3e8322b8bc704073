//! A lost configuration: releases were made with a configuration that neither the ConfigMap nor the state Secret holds
//! any more.
//!
//! Without it the releases would get values that no person chose, and helm would delete the objects that are no longer
//! rendered. The modules of these releases are held until a person decides: by creating a ConfigMap, even an empty one,
//! or by confirming the loss. Must never take a ConfigMap that a program made for that decision.

use std::collections::BTreeMap;

use names::{ModuleName, Owner};
use serde_json::json;

use super::Config;
use super::news::is_filled;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::release::ConfigTrace;
use crate::values::Store;

/// The releases whose configuration is lost.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Losses {
    stage: Stage,
    releases: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Stage {
    /// The releases have not been compared yet, because not everything is known.
    #[default]
    Unknown,
    /// No release has lost its configuration, or the loss does not matter.
    Nothing,
    /// Releases are held until people decide.
    Open,
    /// People have decided.
    Settled,
}

impl Losses {
    /// The releases that are held.
    pub(in crate::operator) fn releases(&self) -> &[String] {
        &self.releases
    }

    /// The modules whose releases are held.
    pub(in crate::operator) fn modules(&self) -> Vec<ModuleName> {
        let names = self.releases.iter().filter_map(|name| ModuleName::parse(name).ok());
        names.collect()
    }

    /// Whether no release is held: nothing was lost, or people have decided.
    pub(super) fn are_over(&self) -> bool {
        matches!(self.stage, Stage::Nothing | Stage::Settled)
    }

    /// Whether something was lost and people have decided.
    pub(super) fn are_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    /// Whether this release is held because its configuration is lost.
    pub(in crate::operator) fn hold(&self, release: &str) -> bool {
        self.releases.iter().any(|held| held == release)
    }
}

/// The reason for which a module is held; a text for people.
pub(in crate::operator) const LOST: &str = "its configuration is lost: its release was made with one, and there is neither \
                                            a ConfigMap nor a last good section; create the ConfigMap again, or confirm \
                                            that it is gone with `addon-operator config lost --confirm`";

impl Config {
    /// The trace of the ConfigMap that is written to a module's release. It covers the module's section, the global section, and the
    /// registry that the module comes from.
    pub(in crate::operator) fn trace(&self, values: &Store, name: &ModuleName) -> ConfigTrace {
        let section = |owner: &Owner| {
            let section = values.config_section(owner);
            section.filter(|values| is_filled(values))
        };
        let of_module = self.document.sections.get(name);
        let maintenance = of_module.and_then(|section| section.maintenance.good());
        let mut said = json!({
            "global": section(&Owner::Global).as_deref(),
            "values": section(&name.clone().into()).as_deref(),
            "enabled": self.flag(name),
            "maintenance": maintenance,
        });
        // Only a module with a source gets this field, because a field for all modules would change the traces of all
        // existing releases.
        if let Some(source) = self
            .document
            .module_sources
            .good()
            .and_then(|sources| sources.get(name))
        {
            said["source"] = json!(source.repository);
        }
        ConfigTrace::of(&said)
    }

    /// The releases whose configuration is lost.
    pub(in crate::operator) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Compares the traces on the releases with the ConfigMap, and holds the releases whose configuration is lost. Works
    /// once in a life, when all sources are known.
    pub(in crate::operator) fn look_for_losses(
        &mut self,
        cx: &mut Cx,
        values: &Store,
        traces: &BTreeMap<String, ConfigTrace>,
    ) {
        if self.losses.stage != Stage::Unknown {
            return;
        }
        self.losses.stage = Stage::Nothing;
        if self.kept.is_some() || self.is_peoples_word() {
            return;
        }
        let lost = traces.iter().filter(|(release, trace)| {
            let now = || Some(self.trace(values, &ModuleName::parse(release).ok()?));
            matches!(trace, ConfigTrace::Said(_)) && now() != Some(**trace)
        });
        let releases: Vec<String> = lost.map(|(release, _)| release.clone()).collect();
        if releases.is_empty() {
            return;
        }
        self.losses = Losses {
            stage: Stage::Open,
            releases: releases.clone(),
        };
        cx.tell(Notice::ConfigLost { releases });
    }

    /// Notes a reading of a ConfigMap that people wrote. If the releases have not been compared yet, nothing can be lost
    /// any more, even if the ConfigMap is deleted later: its texts are applied. True if held releases go on.
    pub(in crate::operator) fn people_spoke(&mut self, cx: &mut Cx) -> bool {
        if self.losses.stage == Stage::Unknown {
            self.losses.stage = Stage::Nothing;
        }
        self.answer_loss(cx)
    }

    /// Releases the held modules, because people have decided. True if a release was held.
    pub(in crate::operator) fn answer_loss(&mut self, cx: &mut Cx) -> bool {
        if self.losses.stage != Stage::Open {
            return false;
        }
        self.losses = Losses {
            stage: Stage::Settled,
            releases: Vec::new(),
        };
        cx.tell(Notice::ConfigLossAnswered);
        true
    }
}
