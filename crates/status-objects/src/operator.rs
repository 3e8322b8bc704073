//! The sheet of the operator.
//!
//! Must never tell the state of a module.

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Status};
use crate::module::ModuleSheet;
use crate::sheet::RECONCILING;

/// The state of the operator, as its object tells it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorSheet {
    /// `Starting`, `Converging` or `Ready`.
    pub state: String,
    /// The version of the program.
    pub version: String,
    /// The name of the pod that leads.
    pub leader: String,
    /// Absent if no channel is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// The numbers of modules.
    pub modules: Modules,
    /// `Ready`, and `Reconciling` until then.
    pub conditions: Vec<Condition>,
}

/// The state of the channel that the operator follows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Channel {
    /// The state in one word, as in `channel status`.
    pub state: String,
    /// The image that is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The trial, or the failure of the last one, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How many modules there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Modules {
    /// The enabled ones.
    pub enabled: u32,
    /// Those of them that are ready.
    pub ready: u32,
    /// Those of them that fail or are not healthy.
    pub stalled: u32,
}

impl Modules {
    /// Counts a module.
    pub fn count(&mut self, sheet: &ModuleSheet) {
        let holds = |kind: &str| {
            let mut conditions = sheet.conditions.iter();
            conditions.any(|condition| condition.kind == kind && condition.status == Status::True)
        };
        self.enabled += u32::from(sheet.enabled);
        self.ready += u32::from(holds("Ready"));
        self.stalled += u32::from(holds("Stalled"));
    }
}

impl OperatorSheet {
    /// Sets the state and the conditions. `waits` names the obstacles of the first converge.
    #[must_use]
    pub fn in_state(mut self, is_ready: bool, is_converging: bool, waits: &str) -> Self {
        let (state, message) = match (is_ready, is_converging) {
            (false, _) => ("Starting", waits),
            (true, true) => ("Converging", ""),
            (true, false) => ("Ready", ""),
        };
        self.conditions = vec![Condition::new("Ready", is_ready, state, message)];
        if !is_ready {
            self.conditions.push(Condition::new(RECONCILING, true, state, message));
        }
        Self {
            state: state.to_owned(),
            ..self
        }
    }
}
