//! The health of a module's objects, for people.

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
}

impl Health {
    /// The cell of the table.
    pub(super) fn cell(&self) -> (Tone, String) {
        let (tone, word) = match self.word.as_str() {
            "" | "Unknown" => (Tone::Neutral, "-"),
            "Healthy" => (Tone::Good, "Healthy"),
            "Unhealthy" => (Tone::Bad, "Unhealthy"),
            word => (Tone::Waiting, word),
        };
        (tone, word.to_owned())
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.word == "Healthy"
    }

    /// The object that is not healthy, in one sentence.
    pub(super) fn sentence(&self) -> Option<&str> {
        self.unhealthy.as_deref()
    }

    /// The line about the health; empty if it is not known.
    pub(super) fn line(&self, paint: Paint) -> String {
        let (tone, word) = self.cell();
        if word == "-" {
            return String::new();
        }
        let since = self
            .unhealthy_for
            .map_or_else(String::new, |seconds| format!(" for {seconds}s"));
        let sentence = self
            .sentence()
            .map_or_else(String::new, |sentence| format!(": {sentence}"));
        format!("health: {}{since}{sentence}\n", paint.paint(tone, &word))
    }
}
