//! The faults of the proxy, and the requests that they hit.

use std::time::Duration;

use super::asked::Asked;

/// Which requests a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    Everything,
    /// Watch requests, running ones included.
    Watches,
    /// All requests except watches.
    Others,
    /// Requests that list objects.
    Lists,
    /// Requests that change something.
    Writes,
    /// Requests for the version of the API server and for the served APIs.
    Discovery,
}

/// The clients whose requests a fault hits, by their user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    All,
    /// Clients whose user agent begins with this text.
    Agent(&'static str),
    /// Clients whose user agent does not begin with this text.
    Others(&'static str),
}

/// The effect of a fault on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The head and each part of the answer are delayed by this time.
    Delay(Duration),
    /// The proxy closes the connection before the answer, or in the middle of the answer.
    Refuse,
    /// The connection stays open and carries nothing any more, also after the fault has ended. It ends when the client
    /// gives up.
    BlackHole,
    /// The answer is held back until the fault ends, and then comes completely.
    Stall,
    /// The connection is closed after this many more bytes.
    Cut(usize),
    /// New requests are answered with this status, and a `Retry-After` header in seconds.
    Status(u16, Option<u32>),
    /// New requests are told that their resource version is too old (410).
    Gone,
    /// New requests are carried out, and then the connection is closed without an answer.
    LoseAnswer,
    /// Lists of served APIs show this group as stale.
    StaleGroup(&'static str),
    /// Lists of served APIs lack this group.
    LostGroup(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub on: On,
    pub what: What,
}

/// A fault for certain clients and certain requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aimed {
    pub of: Of,
    /// Only requests whose number among all requests is a multiple of this are hit.
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
