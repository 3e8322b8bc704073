//! A configuration that is lost: releases were made with one, and neither a ConfigMap tells of it nor our own state.
//!
//! With what is left of it their values would be others than anybody chose, and helm would delete what is not rendered any
//! more. Their modules are held until people say something: by a ConfigMap, be it an empty one, or by confirming that
//! there is none. Must never take what a program made for their word.

use std::collections::BTreeMap;

use serde_json::json;

use crate::name::{ModuleName, Owner};
use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::operator::task::Reason;
use crate::release::ConfigTrace;

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

impl Operator {
    /// The trace that the ConfigMap leaves on a module's release: of the module's values and of the global ones.
    pub(in crate::operator) fn config_trace(&self, name: &ModuleName) -> ConfigTrace {
        let section = |owner: &Owner| {
            let section = self.values.config_section(owner);
            section.filter(|values| super::is_filled(values))
        };
        let of_module = self.config.document.sections.get(name);
        let maintenance = of_module.and_then(|section| section.maintenance.good());
        ConfigTrace::of(&json!({
            "global": section(&Owner::Global).as_deref(),
            "values": section(&name.clone().into()).as_deref(),
            "enabled": self.config.flag(name),
            "maintenance": maintenance,
        }))
    }

    /// Once all is known that tells of it: was there a configuration that nobody has any more?
    pub(in crate::operator) fn look_for_losses(&mut self) {
        if self.config.losses.stage != Stage::Unknown || !self.startup.begun || !self.removal.is_listed() {
            return;
        }
        self.config.losses.stage = Stage::Nothing;
        if self.config.kept.is_some() || self.config.is_peoples_word() {
            return;
        }
        let traces: BTreeMap<String, ConfigTrace> = self.removal.traces();
        let lost = traces.into_iter().filter(|(release, trace)| {
            let now = || Some(self.config_trace(&ModuleName::parse(release).ok()?));
            matches!(trace, ConfigTrace::Said(_)) && now() != Some(*trace)
        });
        let releases: Vec<String> = lost.map(|(release, _)| release).collect();
        if releases.is_empty() {
            return;
        }
        self.config.losses = Losses {
            stage: Stage::Open,
            releases: releases.clone(),
        };
        self.cx.tell(Notice::ConfigLost { releases });
    }

    /// The reading is the word of people. If nobody has looked for losses yet there is none, be it that the ConfigMap is
    /// gone again by then: what it said is in force.
    pub(super) fn people_spoke(&mut self) {
        if self.config.losses.stage == Stage::Unknown {
            self.config.losses.stage = Stage::Nothing;
        }
        self.loss_answered();
    }

    /// People have said what they want: what was held goes on with that.
    fn loss_answered(&mut self) {
        if self.config.losses.stage != Stage::Open {
            return;
        }
        self.config.losses = Losses {
            stage: Stage::Settled,
            releases: Vec::new(),
        };
        self.cx.tell(Notice::ConfigLossAnswered);
        self.request_converge(Reason::ConfigChanged, true);
        if self.converge.first_done {
            self.purge();
        }
    }

    /// A person says that it is gone for good.
    pub(in crate::operator) fn loss_confirmed(&mut self) {
        self.loss_answered();
    }
}
