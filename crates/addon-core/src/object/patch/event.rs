//! The contents of an Event of Kubernetes that a hook asks for.
//!
//! Must never hold a text that the API server refuses because of its length.

/// How much an Event matters to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Nothing is wrong.
    Normal,
    /// A person should look at the object.
    Warning,
}

impl Weight {
    /// The weight with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Normal, Self::Warning]
            .into_iter()
            .find(|weight| weight.as_str() == text)
    }

    /// The name in files and in the cluster.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The contents of an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventContents {
    /// How much the Event matters.
    pub weight: Weight,
    /// The UID of the object that the Event is about; `None`: the UID that the object has at the time of the operation.
    pub uid: Option<String>,
    reason: String,
    message: String,
}

impl EventContents {
    /// The largest length of a reason, in characters.
    const LONGEST_REASON: usize = 128;
    /// The largest size of a message that the API server accepts, in bytes.
    const LARGEST_MESSAGE: usize = 1024;

    /// The contents; `None` if the reason is no word. A long message loses its end.
    pub fn new(weight: Weight, reason: &str, message: &str, uid: Option<String>) -> Option<Self> {
        let is_word = reason.len() <= Self::LONGEST_REASON
            && reason.starts_with(|c: char| c.is_ascii_alphabetic())
            && reason.chars().all(|c| c.is_ascii_alphanumeric());
        is_word.then(|| Self {
            weight,
            uid,
            reason: reason.to_owned(),
            message: cut(message),
        })
    }

    /// The word by which programs know the cause.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The text for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}

fn cut(message: &str) -> String {
    const SIGN: &str = "…";
    if message.len() <= EventContents::LARGEST_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(EventContents::LARGEST_MESSAGE - SIGN.len());
    format!("{}{SIGN}", &message[..end])
}
