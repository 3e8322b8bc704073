//! The finding about one object: a state and a sentence.
//!
//! Must never hold a sentence that is not harmless and bounded.

use serde::{Deserialize, Serialize};

use crate::field::Malformed;
use crate::text::{SENTENCE, harmless};

/// The state of an object, the least severe first: of several objects, the greatest state tells most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The object is as its spec says.
    Current,
    /// The object is being deleted.
    Terminating,
    /// Its controller is at work, or the object waits for something.
    InProgress,
    /// Its fields cannot be read.
    Unknown,
    /// Its controller has given up, or cannot go on without a change.
    Failed,
}

/// The health of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The state, by which findings are compared.
    pub state: State,
    /// A short sentence without the object's name. Empty if an object is current and nothing is to be said.
    pub sentence: String,
}

impl Finding {
    /// A finding with a sentence, which is made harmless and cut to its bound.
    pub fn new(state: State, sentence: &str) -> Self {
        Self {
            state,
            sentence: harmless(sentence, SENTENCE),
        }
    }

    pub(crate) fn current() -> Self {
        Self::new(State::Current, "")
    }

    pub(crate) fn in_progress(sentence: &str) -> Self {
        Self::new(State::InProgress, sentence)
    }

    pub(crate) fn failed(sentence: &str) -> Self {
        Self::new(State::Failed, sentence)
    }
}

impl From<Malformed> for Finding {
    fn from(malformed: Malformed) -> Self {
        Self::new(State::Unknown, &malformed.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_is_the_greatest() {
        let states = [State::Failed, State::Current, State::Terminating, State::InProgress];
        assert_eq!(states.iter().max(), Some(&State::Failed));
        assert!(State::Current < State::Terminating && State::Terminating < State::InProgress);
        assert!(State::InProgress < State::Unknown && State::Unknown < State::Failed);
    }

    #[test]
    fn a_finding_is_written_as_json() {
        let finding = Finding::in_progress("0 of 2 pods are ready");
        let text = serde_json::to_string(&finding).unwrap();
        assert_eq!(text, r#"{"state":"inProgress","sentence":"0 of 2 pods are ready"}"#);
        assert_eq!(serde_json::from_str::<Finding>(&text).unwrap(), finding);
    }
}
