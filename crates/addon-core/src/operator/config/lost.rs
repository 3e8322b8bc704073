//! A configuration that is lost: releases were made with one, and neither a ConfigMap tells of it nor our own state.
//!
//! With the rest of it their values would be values that no person chose, and helm would delete the objects that are no longer rendered. Their
//! modules are held until a person decides: by a ConfigMap, also an empty one, or by confirming that there is none. Must never take a
//! ConfigMap that a program made for that decision.

use std::collections::BTreeMap;

use serde_json::json;

use super::Config;
use super::news::is_filled;
use crate::name::{ModuleName, Owner};
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::release::ConfigTrace;
use crate::values::Store;

/// The releases whose configuration is lost.
#[derive(Debug, Default)]
pub(in crate::operator) struct Losses {
    stage: Stage,
    releases: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nobody has looked: not all is known yet.
    #[default]
    Unknown,
    /// Nothing is lost, or nothing that matters.
    Nothing,
    /// People have yet to speak.
    Open,
    /// They have spoken.
    Settled,
}

impl Losses {
    /// Those that are held.
    pub(in crate::operator) fn releases(&self) -> &[String] {
        &self.releases
    }

    /// The modules whose releases are held.
    pub(in crate::operator) fn modules(&self) -> Vec<ModuleName> {
        let names = self.releases.iter().filter_map(|name| ModuleName::parse(name).ok());
        names.collect()
    }

    /// It is known that nothing is lost, or people have spoken.
    pub(super) fn are_over(&self) -> bool {
        matches!(self.stage, Stage::Nothing | Stage::Settled)
    }

    /// Something was lost, and people have spoken.
    pub(super) fn are_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    /// The configuration that this release was made with is lost.
    pub(in crate::operator) fn hold(&self, release: &str) -> bool {
        self.releases.iter().any(|held| held == release)
    }
}

/// Why a module is held, in words.
pub(in crate::operator) const LOST: &str = "its configuration is lost: its release was made with one, and there is neither \
                                            a ConfigMap nor a last good section; create the ConfigMap again, or confirm \
                                            that it is gone with `addon-operator config lost --confirm`";

impl Config {
    /// The trace that the ConfigMap leaves on a module's release: of the module's values and of the global ones.
    pub(in crate::operator) fn trace(&self, values: &Store, name: &ModuleName) -> ConfigTrace {
        let section = |owner: &Owner| {
            let section = values.config_section(owner);
            section.filter(|values| is_filled(values))
        };
        let of_module = self.document.sections.get(name);
        let maintenance = of_module.and_then(|section| section.maintenance.good());
        ConfigTrace::of(&json!({
            "global": section(&Owner::Global).as_deref(),
            "values": section(&name.clone().into()).as_deref(),
            "enabled": self.flag(name),
            "maintenance": maintenance,
        }))
    }

    /// The releases whose configuration is lost.
    pub(in crate::operator) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Once all is known that tells of it: was there a configuration that nobody has any more? Looks once in a life.
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

    /// The reading is the word of people. If nobody has looked for losses yet there is none, be it that the ConfigMap is
    /// gone again by then: what it said is in force. True if what was held goes on with that.
    pub(in crate::operator) fn people_spoke(&mut self, cx: &mut Cx) -> bool {
        if self.losses.stage == Stage::Unknown {
            self.losses.stage = Stage::Nothing;
        }
        self.answer_loss(cx)
    }

    /// People have said what they want. True if something was held for that.
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
