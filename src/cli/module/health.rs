//! The health of a module's objects, for people.

use std::fmt::Write as _;

use command::paint::{Paint, Tone};
use serde::{Deserialize, Serialize};

/// The health as the socket reports it. Earlier versions do not tell it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::cli) struct Health {
    #[serde(rename = "health")]
    word: String,
    /// The sentence about the object for which the module is not healthy.
    unhealthy: Option<String>,
    unhealthy_for: Option<u64>,
    in_maintenance: bool,
    /// The altered fields that are left to other writers, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
}

impl Health {
    /// The cell of the table: the health, and beside it the reasons for which objects may differ from the release.
    pub(super) fn cell(&self) -> (Tone, String) {
        let (tone, word) = self.word();
        let beside = [
            self.in_maintenance.then_some("maintenance"),
            (!self.left.is_empty()).then_some("altered"),
        ];
        let beside: Vec<&str> = beside.into_iter().flatten().collect();
        match (tone, word) {
            _ if beside.is_empty() => (tone, word.to_owned()),
            (_, "-") => (Tone::Waiting, beside.join(", ")),
            (Tone::Good, word) => (Tone::Waiting, format!("{word}, {}", beside.join(", "))),
            (tone, word) => (tone, format!("{word}, {}", beside.join(", "))),
        }
    }

    fn word(&self) -> (Tone, &str) {
        match self.word.as_str() {
            "" | "Unknown" => (Tone::Neutral, "-"),
            "Healthy" => (Tone::Good, "Healthy"),
            "Unhealthy" => (Tone::Bad, "Unhealthy"),
            word => (Tone::Waiting, word),
        }
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.word == "Healthy"
    }

    /// The object that is not healthy, in one sentence.
    pub(super) fn sentence(&self) -> Option<&str> {
        self.unhealthy.as_deref()
    }

    /// The lines about the health, as far as it is known, and about objects that may differ from the release.
    pub(super) fn lines(&self, paint: Paint) -> String {
        let mut text = self.line(paint);
        if self.in_maintenance {
            text += "maintenance: people keep its objects, the operator leaves them alone\n";
        }
        for left in &self.left {
            let _ = writeln!(text, "altered: {left}");
        }
        text
    }

    fn line(&self, paint: Paint) -> String {
        let (tone, word) = self.word();
        if word == "-" {
            return String::new();
        }
        let since = self
            .unhealthy_for
            .map_or_else(String::new, |seconds| format!(" for {seconds}s"));
        let sentence = self
            .sentence()
            .map_or_else(String::new, |sentence| format!(": {sentence}"));
        format!("health: {}{since}{sentence}\n", paint.paint(tone, word))
    }
}
