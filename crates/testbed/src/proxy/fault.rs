//! The faults that may happen, and to which requests.

use std::time::Duration;

use super::asked::Asked;

/// Which requests a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    Everything,
    /// Requests that go on telling of changes, those under way included.
    Watches,
    /// All but those.
    Others,
    /// Those that list objects.
    Lists,
    /// Those that change something.
    Writes,
    /// Those that ask what the API server is and serves.
    Discovery,
}

/// The clients whose requests it hits, by their user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    All,
    /// Of clients whose user agent begins with this.
    Agent(&'static str),
    /// Of all others.
    Others(&'static str),
}

/// The fate of those requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The answer, and every part of it, is delayed by this time.
    Delay(Duration),
    /// The connection ends without an answer, or in the middle of it.
    Refuse,
    /// The connection stays open and nothing comes over it any more, also after the fault is over: it ends when the
    /// client gives up.
    BlackHole,
    /// Nothing comes until the fault is over, and then all of it.
    Stall,
    /// The connection ends after so many more bytes.
    Cut(usize),
    /// New requests get this status, with seconds after which to come again.
    Status(u16, Option<u32>),
    /// New requests are told that the version they go on from is too old.
    Gone,
    /// New requests are carried out, and then the connection ends without an answer.
    LoseAnswer,
    /// In lists of what is served, this group is one that the API server could not ask about.
    StaleGroup(&'static str),
    /// In lists of what is served, this group is missing.
    LostGroup(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub on: On,
    pub what: What,
}

/// A fault for some clients, and for some of their requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aimed {
    pub of: Of,
    /// One of so many requests is hit.
    pub every: u64,
    pub fault: Fault,
}

impl Aimed {
    pub(super) fn hits(&self, asked: &Asked) -> bool {
        asked.is_by(self.of) && asked.is_among(self.fault.on) && asked.number.is_multiple_of(self.every)
    }
}

impl From<Fault> for Aimed {
    fn from(fault: Fault) -> Self {
        let (of, every) = (Of::All, 1);
        Self { of, every, fault }
    }
}
